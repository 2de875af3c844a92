use std::path::PathBuf;

use trackway_checkpoint::{Best, RankError, RankGroup};
use trackway_core::{AttemptId, LaunchKind, RunId, SkippedBatches, Step};
use trackway_formats::Variable;

use crate::rehearsal_plan::RehearsalPlan;

/// Batches that are skipped: ranges `FIRST..END`, separated by commas.
pub(crate) const SKIP_BATCHES: &str = Variable::SkipBatches.as_str();

/// Settings from the environment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    /// `TRACKWAY_RECORD`: the folder for segments. Without it the recorder does nothing.
    pub record_folder: Option<PathBuf>,
    /// `TRACKWAY_RUN`, as a string for the record.
    pub run: String,
    /// `TRACKWAY_ATTEMPT`, as a string for the record.
    pub attempt: String,
    /// `TRACKWAY_CONTROL`: the control file.
    pub control_file: Option<PathBuf>,
    /// `TRACKWAY_CHECKPOINTS`: the checkpoint root.
    pub checkpoint_root: Option<PathBuf>,
    /// `TRACKWAY_WARM_START`: the checkpoint root of the rung before or of another run, whose weights this one begins with.
    pub warm_start: Option<PathBuf>,
    /// `TRACKWAY_WARM_START_NUMBER`: the number of the checkpoint there; the newest if absent.
    pub warm_start_number: Option<u64>,
    /// `TRACKWAY_ARTIFACTS`: the folder for artifacts.
    pub artifact_folder: Option<PathBuf>,
    /// `TRACKWAY_EPOCH`.
    pub epoch: Option<u64>,
    /// The metric of `TRACKWAY_CHECKPOINT_KEEP_BEST`.
    pub best_metric: Option<String>,
    /// `TRACKWAY_CHECKPOINT_EVERY_STEPS`.
    pub every_steps: Option<u64>,
    /// `TRACKWAY_CHECKPOINT_EVERY_SECONDS`.
    pub every_seconds: Option<f64>,
    /// `TRACKWAY_CHECKPOINT_EVERY_EPOCHS`.
    pub every_epochs: Option<u64>,
    /// `TRACKWAY_CHECKPOINT_AT_STEPS`, separated by commas: checkpoints are due there and by no other cadence.
    pub at_steps: Vec<Step>,
    /// `TRACKWAY_MAX_STEPS`: the last step; from there on a stop is requested.
    pub max_steps: Option<Step>,
    /// `TRACKWAY_HOLD_AT_STEP`: where the loop is held for a while, so that a proof can kill it in a known place.
    pub hold_at_step: Option<Step>,
    /// `TRACKWAY_HOLD_IN_SAVE`: the first save of this step or a later one is held before its commit, so that a
    /// rehearsal can kill it there.
    pub hold_in_save: Option<Step>,
    /// `RANK` and `WORLD_SIZE`, or those of another launcher: which of several processes this is, or what is wrong with
    /// them; `None`: there is one.
    pub group: Option<Result<RankGroup, RankError>>,
    /// `TRACKWAY_SKIP_BATCHES`: the batches that the run skips since it was rolled back.
    pub skipped: SkippedBatches,
    /// Why `TRACKWAY_SKIP_BATCHES` cannot be read.
    pub skipped_unreadable: Option<String>,
    /// `TRACKWAY_GRACE_SECONDS`: what is left to the process after SIGTERM.
    pub grace_seconds: Option<f64>,
    /// `TRACKWAY_KIND=one_batch` or `overfit`, with `TRACKWAY_REHEARSAL_BATCHES`,
    /// `TRACKWAY_REHEARSAL_TARGET` and `TRACKWAY_REHEARSAL_TARGET_LOSS`.
    pub rehearsal: Option<RehearsalPlan>,
}

impl Settings {
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var_os(name).and_then(|value| value.into_string().ok()))
    }

    pub fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name| text(name).map(PathBuf::from);
        let number = |name| text(name).and_then(|value| value.parse::<u64>().ok());
        let seconds =
            |name| text(name).and_then(|value| value.parse().ok()).filter(|seconds: &f64| *seconds > 0.0);
        let group = match RankGroup::from_variables(&text) {
            Ok(group) if group.world_size() == 1 => None,
            group => Some(group),
        };
        let skipped = text(SKIP_BATCHES).unwrap_or_default().parse::<SkippedBatches>();
        Self {
            group,
            skipped_unreadable: skipped.as_ref().err().cloned(),
            skipped: skipped.unwrap_or_default(),
            record_folder: path(Variable::Record.as_str()),
            run: text(Variable::Run.as_str()).unwrap_or_default(),
            attempt: text(Variable::Attempt.as_str()).unwrap_or_default(),
            control_file: path(Variable::Control.as_str()),
            checkpoint_root: path(Variable::Checkpoints.as_str()),
            warm_start: path(Variable::WarmStart.as_str()),
            warm_start_number: number(Variable::WarmStartNumber.as_str()),
            artifact_folder: path(Variable::Artifacts.as_str()),
            epoch: number(Variable::Epoch.as_str()),
            best_metric: text(Variable::CheckpointKeepBest.as_str())
                .and_then(|text| Best::parse(&text))
                .map(|best| best.metric),
            every_steps: number(Variable::CheckpointEverySteps.as_str()).filter(|steps| *steps > 0),
            every_seconds: seconds(Variable::CheckpointEverySeconds.as_str()),
            every_epochs: number(Variable::CheckpointEveryEpochs.as_str()).filter(|epochs| *epochs > 0),
            at_steps: text(Variable::CheckpointAtSteps.as_str())
                .map(|steps| steps.split(',').filter_map(|step| step.trim().parse().ok()).collect())
                .unwrap_or_default(),
            max_steps: number(Variable::MaxSteps.as_str()),
            hold_at_step: number(Variable::HoldAtStep.as_str()),
            hold_in_save: number(Variable::HoldInSave.as_str()),
            grace_seconds: seconds(Variable::GraceSeconds.as_str()),
            rehearsal: rehearsal(text),
        }
    }

    /// Whether it is set when to save, epochs aside: they count only once the script reports them.
    pub fn has_cadence(&self) -> bool {
        self.every_steps.is_some() || self.every_seconds.is_some() || !self.at_steps.is_empty()
    }

    /// What decides when to save, for a person.
    pub fn cadence(&self) -> String {
        if !self.at_steps.is_empty() {
            return "given steps".into();
        }
        let of = |count: Option<String>, unit: &str| count.map(|count| format!("every {count} {unit}"));
        let ways = [
            of(self.every_steps.map(|steps| steps.to_string()), "steps"),
            of(self.every_seconds.map(|seconds| seconds.to_string()), "s"),
            of(self.every_epochs.map(|epochs| epochs.to_string()), "epochs"),
        ];
        let ways: Vec<String> = ways.into_iter().flatten().collect();
        if ways.is_empty() { "each call".into() } else { ways.join(" or ") }
    }

    pub fn run_id(&self) -> Option<RunId> {
        self.run.parse().ok()
    }

    pub fn attempt_id(&self) -> Option<AttemptId> {
        self.attempt.parse().ok()
    }
}

fn rehearsal(text: impl Fn(&str) -> Option<String>) -> Option<RehearsalPlan> {
    let (kind, batches) = match text(Variable::Kind.as_str())?.as_str() {
        "one_batch" => (LaunchKind::OneBatch, 1),
        "overfit" => (LaunchKind::Overfit, 10),
        _ => return None,
    };
    let asked = text(Variable::RehearsalBatches.as_str()).and_then(|count| count.parse().ok());
    let number = |name| text(name).and_then(|number| number.parse().ok());
    Some(RehearsalPlan {
        kind,
        batches: asked.filter(|count| *count > 0).unwrap_or(batches),
        target_share: number(Variable::RehearsalTarget.as_str()).filter(|share| *share > 0.0),
        target_loss: number(Variable::RehearsalTargetLoss.as_str()),
    })
}
