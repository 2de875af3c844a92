//! The run file as a whole: its sections, and how they are read from the tree.

use std::collections::BTreeMap;

use super::checks::{GovernanceSection, PreflightSection, TrainingSection};
use super::detect::{DetectSection, detect};
use super::early_stop::{EarlyStopSection, early_stop};
use super::evaluate::{EvaluateSection, evaluate};
use super::notify::{NotifySection, notify};
use super::read::{checkpoint, container, data, ladder, launch, owner, resources, retry, run, supervise};
use super::read_checks::{governance, preflight, training};
use super::sections::{
    CheckpointSection, ContainerSection, DataSpec, LadderSection, LaunchSection, OwnerSection,
    ResourcesSection, RetrySection, RunSection, SuperviseSection,
};
use super::tree::Node;
use super::unsupported::{self, Unsupported};
use super::walker::{Problems, Scope};

/// A run file that was read without a mistake.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFile {
    /// `[run]`
    pub run: RunSection,
    /// `[resources]`
    pub resources: ResourcesSection,
    /// `[container]`
    pub container: Option<ContainerSection>,
    /// `[data.NAME]` by name; empty is legal.
    pub data: BTreeMap<String, DataSpec>,
    /// `[preflight]`
    pub preflight: Option<PreflightSection>,
    /// `[governance]`
    pub governance: GovernanceSection,
    /// `[training]`
    pub training: Option<TrainingSection>,
    /// `[ladder]`
    pub ladder: Option<LadderSection>,
    /// `[checkpoint]`
    pub checkpoint: CheckpointSection,
    /// `[retry]`
    pub retry: RetrySection,
    /// `[supervise]`
    pub supervise: SuperviseSection,
    /// `[detect]`
    pub detect: DetectSection,
    /// `[early_stop]`
    pub early_stop: Option<EarlyStopSection>,
    /// `[evaluate]`
    pub evaluate: Option<EvaluateSection>,
    /// `[notify]`
    pub notify: Option<NotifySection>,
    /// `[owner]`
    pub owner: OwnerSection,
    /// `[launch]`
    pub launch: LaunchSection,
    pub(super) unsupported: Vec<Unsupported>,
}

impl RunFile {
    /// What the file requests that this version does not do, in file order. A caller refuses or warns by name; it must
    /// not skip it silently.
    #[must_use]
    pub fn unsupported(&self) -> Vec<Unsupported> {
        self.unsupported.clone()
    }
}

/// Reads the whole document; what it returns counts only if `problems` stays empty.
pub(super) fn read(root: &Node, problems: &mut Problems) -> Option<RunFile> {
    let top = Scope::open(root, "", "", root.place.clone(), problems)?;
    if top.node("run").is_none() {
        let hint = "write `[run]`, then `name = \"…\"` and `command = [\"python\", \"train.py\"]` below it";
        problems.add(root.place.clone(), "the section `[run]` is missing".into(), Some(hint.into()));
    }
    let data = top.section("data", problems).map(|scope| data(&scope, problems)).unwrap_or_default();
    Some(RunFile {
        run: top.section("run", problems).map(|scope| run(&scope, problems)).unwrap_or_default(),
        resources: top
            .section("resources", problems)
            .map(|scope| resources(&scope, problems))
            .unwrap_or_default(),
        container: top.section("container", problems).and_then(|scope| container(&scope, problems)),
        preflight: top.section("preflight", problems).map(|scope| preflight(&scope, problems)),
        governance: top
            .section("governance", problems)
            .map(|scope| governance(&scope, problems))
            .unwrap_or_default(),
        training: top.section("training", problems).map(|scope| training(&scope, problems)),
        ladder: top.section("ladder", problems).map(|scope| ladder(&scope, problems)),
        checkpoint: top
            .section("checkpoint", problems)
            .map(|scope| checkpoint(&scope, problems))
            .unwrap_or_default(),
        retry: top.section("retry", problems).map(|scope| retry(&scope, problems)).unwrap_or_default(),
        supervise: top
            .section("supervise", problems)
            .map(|scope| supervise(&scope, problems))
            .unwrap_or_default(),
        detect: top.section("detect", problems).map(|scope| detect(&scope, problems)).unwrap_or_default(),
        early_stop: top.section("early_stop", problems).map(|scope| early_stop(&scope, problems)),
        evaluate: top.section("evaluate", problems).map(|scope| evaluate(&scope, &data, problems)),
        notify: top.section("notify", problems).map(|scope| notify(&scope, problems)),
        owner: top.section("owner", problems).map(|scope| owner(&scope, problems)).unwrap_or_default(),
        launch: top.section("launch", problems).map(|scope| launch(&scope, problems)).unwrap_or_default(),
        unsupported: unsupported::find(&top),
        data,
    })
}
