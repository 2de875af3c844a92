//! Attempts: the list of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{
    AttemptId, Confidence, Domain, Health, HealthReport, LaunchKind, RetryOutlook, RunId, Step,
    TerminationReason, Timestamp,
};
use trackway_ledger::AttemptState;

/// What the engine of an attempt reported of it: its wait, its start, and the files that came back.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct EngineReport {
    /// When its engine took it into its queue; null: the engine has none, or does not say.
    #[serde(default)]
    pub submitted_at: Option<Timestamp>,
    /// Seconds in that queue; null: it waits, was in none, or ended before it was started.
    #[serde(default)]
    pub queued_seconds: Option<f64>,
    /// Its engine by the name in the settings, then `:` and the engine's name for this start of it, such as
    /// `juwels:4711`; null: this machine, without a name.
    #[serde(default)]
    pub engine_instance: Option<String>,
    /// How many of its files are here as a whole, such as `2 of 3 files`, and which are not; null: all.
    #[serde(default)]
    pub completeness: Option<String>,
}

/// An attempt, as lists have it. `trackway sql` has the other columns of its receipt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub attempt_id: AttemptId,
    /// The run it belongs to.
    pub run_id: RunId,
    /// Counted from 1 within the run and kind.
    pub attempt_number: u32,
    /// The attempt it follows.
    pub parent_attempt_id: Option<AttemptId>,
    /// What the launch was for.
    pub kind: LaunchKind,
    /// The rung of the ladder, such as `100%`.
    pub rung: String,
    pub state: AttemptState,
    /// Why it ended; `docs/termination-reasons.md` explains each word.
    pub termination_reason: Option<TerminationReason>,
    /// The rule that named the reason.
    pub termination_rule: Option<String>,
    /// Confidence in the reason.
    pub termination_confidence: Option<Confidence>,
    /// The domain of the cause.
    pub termination_domain: Option<Domain>,
    /// Whether a retry may succeed.
    pub retry_outlook: Option<RetryOutlook>,
    /// Whether what it computed is worth something; null in older receipts and before its end.
    pub health: Option<Health>,
    /// What that rests on.
    pub health_report: Option<HealthReport>,
    /// The script's own exit code; null if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// When the launcher was called to start it.
    pub started_at: Option<Timestamp>,
    /// When its process had ended.
    pub ended_at: Option<Timestamp>,
    /// Seconds from its start to the end of its script, or of the work that this left running; cost and budgets count them.
    pub wall_seconds: Option<f64>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: Option<f64>,
    /// CPU seconds of the script and its children.
    pub cpu_seconds: Option<f64>,
    /// Peak resident memory of the script's processes.
    pub peak_rss_bytes: Option<u64>,
    /// GPU seconds × price.
    pub cost_usd: Option<f64>,
    /// The committed step it continued from; null: from the beginning.
    pub resumed_from_step: Option<Step>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    pub last_committed_step: Option<Step>,
    pub launcher: String,
    /// Host names, separated by commas.
    pub hosts: Option<String>,
    #[serde(flatten)]
    pub engine: EngineReport,
    /// SHA-256 of the config, with the changes of a retry plan.
    pub config_sha256: String,
    /// SHA-256 over the hashes of all data sets.
    pub data_sha256: Option<String>,
    /// The seed the script was given.
    pub seed: Option<u64>,
    /// SHA-256 over the sealed receipt; null until it is sealed.
    pub receipt_sha256: Option<String>,
    /// In the last attempt of a page, if there are more attempts: the value of `--after` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<AttemptId>,
}
