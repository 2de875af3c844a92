//! The run file as a whole: its sections, and how they are read from the tree.

use super::checks::read::{governance, preflight, training};
use super::detect::detect;
use super::early_stop::early_stop;
use super::evaluate::evaluate;
use super::keys::tree::Node;
use super::keys::walker::{Problems, Scope};
use super::notify::notify;
use super::plan::{PLAN_VERSION, Plan};
use super::read::{checkpoint, container, data, ladder, launch, owner, resources, retry, run, supervise};
use super::unsupported::{self, Unsupported};

/// A run file that was read without a mistake.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFile {
    /// What it decides, with every default filled in.
    pub plan: Plan,
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
    let data = top.part("data", problems, data).unwrap_or_default();
    let resources = top.part("resources", problems, resources).unwrap_or_default();
    let plan = Plan {
        version: PLAN_VERSION,
        run: top.part("run", problems, run).unwrap_or_default(),
        container: top.part("container", problems, container).flatten(),
        preflight: top.part("preflight", problems, preflight),
        governance: top.part("governance", problems, governance).unwrap_or_default(),
        training: top.part("training", problems, training),
        ladder: top.part("ladder", problems, ladder),
        checkpoint: top.part("checkpoint", problems, checkpoint).unwrap_or_default(),
        retry: top
            .part("retry", problems, |scope, problems| retry(scope, &resources, problems))
            .unwrap_or_default(),
        supervise: top.part("supervise", problems, supervise).unwrap_or_default(),
        detect: top.part("detect", problems, detect).unwrap_or_default(),
        early_stop: top.part("early_stop", problems, early_stop),
        evaluate: top.part("evaluate", problems, |scope, problems| evaluate(scope, &data, problems)),
        notify: top.part("notify", problems, notify),
        owner: top.part("owner", problems, owner).unwrap_or_default(),
        launch: top.part("launch", problems, launch).unwrap_or_default(),
        data,
        resources,
    };
    Some(RunFile { plan, unsupported: unsupported::find(&top, problems) })
}
