//! Runs: the list of them, how one ended, and what was asked of it. What is shown of a run, of its attempts and of the
//! checks before it has one module per subject.

pub mod attempts;
pub mod changes;
pub mod compare;
pub mod detections;
pub mod diagnosis;
pub mod explain;
pub mod export;
pub mod init;
pub mod logs;
pub mod postmortem;
pub mod preflight;
pub mod progressive;
pub mod rehearsal;
pub mod reproduce;
pub mod watch;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trackway_core::{AttemptId, Health, LaunchKind, RunId, Step, TerminationReason, Timestamp, closed_list};
pub use trackway_ledger::{RunField, RunState, RungVerdict};
use trackway_rules::gate::JudgedGate;

use crate::checkpoints::remote::RemoteStatus;
use crate::models::evaluations::EvaluationReceipt;
use crate::runs::preflight::PreflightReport;
use crate::runs::watch::QueuedRun;

/// A run, as lists have it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub run_id: RunId,
    /// Its name; several runs may share one.
    pub name: String,
    /// What the run is for.
    pub kind: LaunchKind,
    pub state: RunState,
    /// The family it is counted with.
    pub model_family: Option<String>,
    /// The person who answers for it.
    pub owner: Option<String>,
    /// The team it is charged to.
    pub team: Option<String>,
    /// The project it belongs to; null: it is not known.
    pub project: Option<String>,
    /// SHA-256 of the config.
    pub config_sha256: String,
    /// SHA-256 over the hashes of all data sets.
    pub data_sha256: Option<String>,
    pub seed: Option<u64>,
    pub created_at: Timestamp,
    /// When its first attempt began.
    pub started_at: Option<Timestamp>,
    /// When it ended; not null exactly if the state is final.
    pub ended_at: Option<Timestamp>,
    /// Number of attempts of the run's own kind so far.
    pub attempt_count: u32,
    /// Why the last attempt ended.
    pub termination_reason: Option<TerminationReason>,
    /// Whether what its last attempt computed is worth something; null in older receipts and before its end.
    pub health: Option<Health>,
    /// The step that a resume continues from.
    pub last_committed_step: Option<Step>,
    /// Cost of all sealed attempts in USD.
    pub cost_usd: Option<f64>,
    /// GPUs allocated × wall seconds, over all sealed attempts.
    pub gpu_seconds: f64,
    /// Wall seconds of all sealed attempts.
    pub wall_seconds: f64,
    /// The run file; null for a command without one.
    pub run_file_path: Option<String>,
    /// What a person noted about it.
    pub note: Option<String>,
    /// Its tags as they are now.
    pub tags: BTreeMap<String, String>,
    /// When it was hidden; null if it is visible.
    pub hidden_at: Option<Timestamp>,
    /// Its wait for a place in its queue; null: it does not wait for one.
    pub queue: Option<QueuedRun>,
    /// Whether it waits to begin, for a place in its queue or for its next attempt, and no process supervises it: nothing happens before it
    /// is resumed.
    #[serde(default)]
    pub unsupervised: bool,
    /// The values of the names in `--columns`, `--sort` and `--where`, each by its name without quotes; null: the run lacks it.
    pub values: BTreeMap<String, Value>,
    /// In the last run of a page, if there are more runs: the value of `--after` for the next page.
    pub next: Option<RunId>,
}

/// A run whose supervisor continues without the terminal.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DetachedRun {
    pub run_id: RunId,
    pub name: String,
    /// The attempt that was launched; null: the supervisor attached to one that was running already.
    pub attempt_id: Option<AttemptId>,
    /// Its number in the run.
    pub attempt_number: Option<u32>,
    /// The process id of the supervisor.
    pub supervisor_pid: u32,
    /// The file that the supervisor writes its messages to; null: none could be written.
    pub supervisor_log: Option<String>,
}

/// A run after changes of what it is called or how lists show it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AmendedRun {
    pub run_id: RunId,
    pub name: String,
    /// What a person noted about it.
    pub note: Option<String>,
    pub tags: BTreeMap<String, String>,
    /// When it was hidden; null if it is visible.
    pub hidden_at: Option<Timestamp>,
    /// The changes that were made now; what was so already is not among them.
    pub changes: Vec<RunAmendment>,
}

/// A change of what a run is called or how lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunAmendment {
    pub amendment_id: String,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it.
    pub author: String,
    /// What was changed.
    pub field: RunField,
    /// The name of the tag; null for other fields.
    pub tag: Option<String>,
    /// What it was; null: there was none.
    pub old_text: Option<String>,
    /// What it is since then; null: there is none.
    pub new_text: Option<String>,
    /// Why, where a reason was given.
    pub why: Option<String>,
}

/// How a run ended, or its state when the supervisor detached.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunOutcome {
    pub run_id: RunId,
    pub name: String,
    /// Its state; `running` and `waiting` when the supervisor detached.
    pub state: RunState,
    /// Whether what its last attempt computed is worth something; null before its end.
    #[serde(default)]
    pub health: Option<Health>,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptOutcome>,
    /// The rungs of its ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungSummary>,
    /// The state of its remote; null without one.
    pub remote: Option<RemoteStatus>,
}

/// How a run ended, with its pre-flight, its evaluation and its gates.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// How the run ended.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// The evaluation of its result; null: none was requested, or there was nothing to evaluate.
    pub evaluation: Option<EvaluationReceipt>,
    /// The verdicts of its gates.
    pub gates: Vec<JudgedGate>,
    /// What this command checked before the launch; null: nothing.
    pub preflight: Option<PreflightReport>,
    /// What a run without a run file showed, and the step after it; null: it has a run file, or did not end here.
    pub next: Option<NextStep>,
}

/// What a run without a run file showed, and the step after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    /// The names of the metrics that the last attempt recorded, without those of the machine.
    pub metrics: Vec<String>,
    /// How many of its checkpoints are committed and kept.
    pub checkpoint_count: u64,
    /// The step that a resume continues from; null: there is no checkpoint.
    pub resume_step: Option<Step>,
    /// Patterns of the checkpoints that the script wrote itself, for `checkpoint.adopt`.
    pub adopt: Vec<String>,
    /// Data files that its command or its script names.
    pub data: Vec<String>,
    /// What the command line prints of it.
    pub lines: Vec<String>,
}

impl RunReport {
    /// The report of a run without evaluation and pre-flight.
    #[must_use]
    pub fn of(outcome: RunOutcome) -> Self {
        Self { outcome, evaluation: None, gates: Vec::new(), preflight: None, next: None }
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttemptOutcome {
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// Why it ended; null while it runs.
    pub termination_reason: Option<TerminationReason>,
    /// The rule that named the reason.
    pub termination_rule: Option<String>,
    /// The script's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: Option<f64>,
    pub wall_seconds: Option<f64>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
}

/// A rung of a run's ladder, over all its sealed attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RungSummary {
    pub run_id: RunId,
    /// The rung, such as `10%`.
    pub rung: String,
    /// The fraction of the data, from 0 to 1.
    pub fraction: f64,
    /// Its place in the ladder, from 1.
    pub place: u32,
    /// Whether the run was promoted to the next rung.
    pub verdict: RungVerdict,
    /// Number of its sealed attempts.
    pub attempt_count: u32,
    /// The newest of them.
    pub last_attempt_id: AttemptId,
    /// The last step that any of them reported.
    pub last_step: Option<Step>,
    pub wall_seconds: f64,
    /// GPUs allocated × wall seconds, over all of them.
    pub gpu_seconds: f64,
    /// Cost in USD, if there is a price.
    pub cost_usd: Option<f64>,
    /// The step of the previous rung whose weights it started from; null: from scratch.
    pub warm_start_step: Option<Step>,
    /// The promotion rule; null: there is none, or it was not applied.
    pub rule: Option<String>,
    /// The outcome of the rule, with its values.
    pub why: Option<String>,
    /// The values the rule was applied to, by name; a value is null if it was not recorded or is not a number.
    pub values_json: Option<BTreeMap<String, Option<f64>>>,
    /// The last value of each metric, by name.
    pub metrics_json: Option<BTreeMap<String, Option<f64>>>,
    /// Rows that it kept, as counted; null: nothing counted them.
    pub rows: Option<u64>,
    /// Rows of all of the data it kept them from.
    pub rows_total: Option<u64>,
}

closed_list!(
    /// How a run is stopped.
    StopMethod, "way to stop a run", {
        /// The attempt may save a checkpoint and end by itself.
        Graceful = "graceful",
        /// The attempt is killed; also where a stop was requested before.
        Kill = "kill",
        /// The run waits for its next attempt, which does not start.
        BeforeNextAttempt = "before_next_attempt",
    }
);

/// A run was asked to stop.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StopRequested {
    pub run_id: RunId,
    /// Its live attempt; between two attempts, the last one.
    pub attempt_id: Option<AttemptId>,
    /// How it is stopped.
    pub mode: StopMethod,
}

closed_list!(
    /// How far a rollback is.
    RollbackState, "state of a rollback", {
        /// The live attempt was ended, and its supervisor continues from the earlier checkpoint.
        Asked = "asked",
        /// The run is at rest; `trackway resume` continues from the earlier checkpoint.
        Done = "done",
    }
);

/// A run goes back to an earlier checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RolledBack {
    pub run_id: RunId,
    /// The attempt that is abandoned.
    pub attempt_id: AttemptId,
    /// How far the rollback is.
    pub state: RollbackState,
    /// The committed step to continue from; null: from the beginning.
    pub to_step: Option<Step>,
    /// All batches that the run skips from then on, such as `120..340`.
    pub skip_batches: String,
    /// A sentence about what happens.
    pub summary: String,
}
