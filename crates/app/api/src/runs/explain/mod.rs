//! Everything about an attempt that a person who never saw it needs to know.

mod attempt;
mod checkpoints;
mod health;
mod inputs;
mod measured;
mod run;
mod same_inputs;
mod termination;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::Step;
use trackway_results::reading::ReadNote;
pub use trackway_rules::checkpoints::cadence::{Cadence, CadenceAdvice};

pub use self::attempt::{Amendment, AttemptPlacement, AttemptSummary, ExplainedAttempt};
pub use self::checkpoints::{ResumeProofSummary, SaveRequests};
pub use self::health::ExplainedHealth;
pub use self::inputs::{
    AttemptInputs, AttemptParameter, AttemptTag, EvaluatorVersion, ExplainedData, ExplainedDataSet,
    RecordedCheck,
};
pub use self::measured::{
    AttemptArtifact, AttemptCost, CostBeside, LoopTime, MachineSummary, MachineValue, MetricSummary,
};
pub use self::run::{ExplainedRun, TimelineEvent};
pub use self::same_inputs::SameInputsRun;
pub use self::termination::{RetryDecision, SecondaryReason, Termination, TerminationEvidence, exit_status};
use crate::checkpoints::remote::RemoteStatus;
use crate::checkpoints::{Checkpoint, CheckpointStanding, FallBack};
use crate::models::evaluations::EvaluationReceipt;
use crate::models::registry::ModelVersion;
use crate::runs::RungSummary;
pub use crate::runs::changes::{Change, Diff, InputKind, LineCount, UnknownChange};
use crate::runs::compare::ComparedCurve;
use crate::runs::detections::Detection;
use crate::runs::diagnosis::AttemptDiagnosis;
use crate::runs::progressive::ProgressiveEstimate;

/// Explains an attempt, or the last attempt of a run: what ran, why it ended, which checkpoint is valid, what to do next.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    pub run: ExplainedRun,
    /// The explanation in at most ten lines.
    #[serde(default)]
    pub short: Vec<ShortLine>,
    /// What changed since the last good run of the same name, which completed and is neither suspect nor broken; null without one.
    pub since_last_good: Option<Diff>,
    /// The attempt that is explained; of a run, its last one. Null: the run was never launched.
    pub attempt: Option<ExplainedAttempt>,
    /// All attempts of the run, oldest first.
    pub attempts: Vec<AttemptSummary>,
    /// The rungs of the run's ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungSummary>,
    /// How this attempt differs from its parent attempt.
    pub parent_diff: Option<Diff>,
    /// The data it read.
    pub data: ExplainedData,
    /// The pre-flight checks; empty if nothing was checked.
    pub preflight: Vec<RecordedCheck>,
    /// What detectors found during the run, oldest first.
    pub detections: Vec<Detection>,
    /// What diagnoses of the run's attempts showed, oldest first (`trackway diagnose`).
    pub diagnoses: Vec<AttemptDiagnosis>,
    /// Where it ran.
    pub placement: Option<AttemptPlacement>,
    /// What happened, oldest first; checkpoints that a resume skipped for one reason are one line.
    pub timeline: Vec<TimelineEvent>,
    /// Why it ended; null while it runs.
    pub termination: Option<Termination>,
    /// Whether what the attempt computed is worth something; null while it runs, and for launches that are no training.
    #[serde(default)]
    pub health: Option<ExplainedHealth>,
    /// The run's checkpoints, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Why there is none; null if there is one, and while the attempt runs.
    pub no_checkpoint_why: Option<String>,
    /// How often the script asked whether to save, and how often nothing was; null if it never asked.
    pub save_requests: Option<SaveRequests>,
    /// What was left out between the script and the log and record of an attempt that ended: what it printed, its files
    /// of metrics, an import.
    #[serde(default)]
    pub reading: Vec<ReadNote>,
    /// The state of the run's remote; null without one.
    pub remote: Option<RemoteStatus>,
    /// What the attempt lost because it resumed from an older checkpoint than the newest; null if it did not.
    pub fall_back: Option<FallBack>,
    /// The step that a resume would continue from.
    pub resume_step: Option<Step>,
    /// The newest, the newest safe and the best checkpoint.
    #[serde(default)]
    pub standing: CheckpointStanding,
    /// The newest resume proof of the run's config.
    pub resume_proof: Option<ResumeProofSummary>,
    /// How often to save, from the cost of saves and the failure rate; null before there are enough saves.
    pub cadence: Option<CadenceAdvice>,
    /// The decision after each attempt.
    pub retries: Vec<RetryDecision>,
    /// The evaluations of the run's checkpoints.
    pub evaluations: Vec<EvaluationReceipt>,
    /// The model versions that its checkpoints became.
    pub versions: Vec<ModelVersion>,
    /// The attempt's metrics.
    pub metrics: Vec<MetricSummary>,
    /// The curves of the run over the attempt's rung, each as one series: steps that a resume made void do not count. Only for a
    /// page (`--html`), else empty.
    pub curves: Vec<ComparedCurve>,
    /// The loss on data that the model has not seen, by progressive validation, over the attempt's rung; null if it was
    /// not recorded.
    pub progressive: Option<ProgressiveEstimate>,
    /// The use of the machine.
    pub machine: MachineSummary,
    /// The attempt's parameters: those of its command, those given beside it, and those that the script reported.
    pub parameters: Vec<AttemptParameter>,
    /// The attempt's tags, with what was amended since.
    pub tags: Vec<AttemptTag>,
    /// The files that the script recorded as artifacts.
    pub artifacts: Vec<AttemptArtifact>,
    /// Other completed runs with the same config, data and seed.
    pub same_inputs: Vec<SameInputsRun>,
    pub cost: AttemptCost,
    /// The last lines it printed, stderr before stdout: at most 8 of each and 200 characters of a line, with `…` where more follow.
    pub last_lines: Vec<String>,
    /// What to do, most useful first.
    pub next_actions: Vec<String>,
}

impl Explanation {
    /// What the health of the attempt rests on, as lines; none without a health.
    #[must_use]
    pub fn health_lines(&self) -> Vec<String> {
        let of_attempt = self.attempt.as_ref().map(|attempt| attempt.attempt_id);
        let detected: Vec<&Detection> =
            self.detections.iter().filter(|found| Some(found.attempt_id) == of_attempt).collect();
        self.health.as_ref().map(|health| health.lines(&detected)).unwrap_or_default()
    }

    /// The timeline with what detectors found, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<TimelineEvent> {
        let number_of = |found: &Detection| {
            let line = self.attempts.iter().find(|line| line.attempt_id == found.attempt_id);
            line.map(|line| line.attempt_number)
        };
        let found = self.detections.iter().map(|found| TimelineEvent {
            at: found.at,
            attempt_number: number_of(found),
            kind: "detection".to_owned(),
            step: Some(found.step),
            text: format!(
                "{} ({}) at step {}: {}",
                found.detector, found.severity, found.step, found.evidence
            ),
        });
        let mut all: Vec<TimelineEvent> = self.timeline.iter().cloned().chain(found).collect();
        all.sort_by_key(|event| event.at);
        all
    }
}

/// A line of the short explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShortLine {
    /// What it is about: `run`, `cause`, `evidence`, `warning`, `health`, `checkpoint`, `changed`, `cost`, `next`.
    pub name: String,
    pub text: String,
}
