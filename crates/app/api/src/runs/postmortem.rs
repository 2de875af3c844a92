//! What happened to a run that did not go as planned, from evidence only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, Step, TerminationReason, Timestamp};

use crate::checkpoints::{Checkpoint, CheckpointState, FallBack};
use crate::home::verify::VerifyReport;
use crate::runs::detections::Detection;
use crate::runs::diagnosis::AttemptDiagnosis;
use crate::runs::explain::{
    Amendment, Diff, ExplainedDataSet, ExplainedRun, ResumeProofSummary, RetryDecision, Termination,
    TimelineEvent,
};

/// What happened to a run, from evidence only: null means that the evidence does not show it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Postmortem {
    pub run: ExplainedRun,
    /// When this was made.
    pub made_at: Timestamp,
    /// What happened, as sentences.
    pub summary: Vec<String>,
    /// What it cost.
    pub impact: Impact,
    /// What happened, oldest first; checkpoints that follow each other are one line.
    pub timeline: Vec<TimelineEvent>,
    /// What pre-flight found that forbade the launch.
    pub blocked_by: Vec<String>,
    /// The attempts that did not succeed, oldest first.
    pub failures: Vec<FailedAttempt>,
    /// The decision after each attempt.
    pub tried: Vec<RetryDecision>,
    /// What the attempts started from.
    pub inputs: InputVersions,
    /// Whether what is stored still is what was written.
    pub integrity: StoredIntegrity,
    /// What to do, most useful first.
    pub actions: Vec<PostmortemAction>,
}

impl Postmortem {
    /// Whether the last attempt diverged, and none of its checkpoints is marked unsafe: what it saved last may be a
    /// state of the training that did.
    #[must_use]
    pub fn last_attempt_diverged(&self) -> bool {
        if self.integrity.checkpoints.iter().any(|one| one.state == CheckpointState::Unsafe) {
            return false;
        }
        let is_last = |failed: &&FailedAttempt| u64::from(failed.attempt_number) == self.impact.attempt_count;
        let last = self.failures.last().filter(is_last);
        last.is_some_and(|failed| failed.termination.reason == TerminationReason::NumericDivergence)
    }
}

/// What the failures of a run cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Impact {
    pub attempt_count: u64,
    /// Number of those that did not succeed.
    pub failed_count: u64,
    /// Steps that were trained and do not count, as far as they are known.
    pub lost_steps: Option<u64>,
    /// Number of failed attempts of which it is not known how many steps were lost.
    pub lost_unknown_count: u64,
    /// Number of failed attempts after which no attempt made a step.
    pub unrecovered_count: u64,
    /// Seconds from the end of each failed attempt to the first step of the next one, added up; null: no attempt followed, or none made
    /// a step.
    pub recovery_seconds: Option<f64>,
    /// All attempts together.
    pub run: Spent,
    /// Those that did not succeed.
    pub failed: Spent,
    /// Their part for steps that do not count: in proportion to the steps that each attempt made.
    pub lost: Spent,
}

/// What attempts spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    pub wall_hours: Option<f64>,
    /// GPUs × wall hours.
    pub gpu_hours: Option<f64>,
    /// Money, if there is a price.
    pub usd: Option<f64>,
}

/// An attempt that did not succeed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FailedAttempt {
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// When it began.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The host names, separated by commas.
    pub hosts: Option<String>,
    /// The script's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    /// Steps that it trained and that do not count.
    pub lost_steps: Option<u64>,
    /// The attempt that followed it; null: none did.
    pub next_attempt_number: Option<u32>,
    /// Seconds from its end to the first step of the attempt that followed.
    pub recovery_seconds: Option<f64>,
    /// The peak resident memory of its processes.
    pub peak_rss_bytes: Option<u64>,
    pub host_memory_bytes: Option<u64>,
    pub spent: Spent,
    /// Why it ended, with its evidence, and the other reasons that are possible.
    pub termination: Termination,
    /// Late facts about it: they may contradict the reason.
    pub amendments: Vec<Amendment>,
    /// What detectors found in it.
    pub detections: Vec<Detection>,
    /// What diagnoses of it showed.
    pub diagnoses: Vec<AttemptDiagnosis>,
}

/// What the attempts of a run started from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct InputVersions {
    /// The data sets by name; empty: the run file names none.
    pub sets: Vec<ExplainedDataSet>,
    /// Each kind of input over all attempts.
    pub inputs: Vec<InputVersion>,
    /// What changed since the last good run of the same name; null without one.
    pub since_last_good: Option<Diff>,
}

/// A kind of input over all attempts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputVersion {
    /// What: `all data sets`, `settings`, `code commit`, `code changes`, `script`, `packages`, `image`, `seed`, `hosts`.
    pub what: String,
    /// Whether it changed between attempts; null: at least one attempt has no record of it.
    pub changed: Option<bool>,
    /// Its versions in the order of the attempts.
    pub versions: Vec<VersionOfAttempts>,
}

/// A version of an input, and the attempts that started from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionOfAttempts {
    /// A hash or a value; null: not recorded.
    pub value: Option<String>,
    /// The numbers of the attempts.
    pub attempts: Vec<u32>,
}

/// Whether what is stored still is what was written.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StoredIntegrity {
    /// What `trackway verify` finds now.
    pub verified: VerifyReport,
    /// The checkpoints that were not deleted by retention, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Number of checkpoints that retention deleted.
    pub deleted_count: u64,
    /// Why there is no checkpoint; null if there is one.
    pub no_checkpoint_why: Option<String>,
    /// What the last attempt lost because it resumed from an older checkpoint than the newest; null if it did not.
    pub fall_back: Option<FallBack>,
    /// The step that a resume would continue from.
    pub resume_step: Option<Step>,
    /// The newest resume proof of the run's config; null: there is none.
    pub resume_proof: Option<ResumeProofSummary>,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PostmortemAction {
    /// What to do.
    pub text: String,
    /// The reason it belongs to; null: it belongs to the run.
    pub reason: Option<TerminationReason>,
    /// The section of the runbook or of the documents about it.
    pub runbook: Option<String>,
}
