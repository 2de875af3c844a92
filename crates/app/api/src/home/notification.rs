//! What is sent to a webhook.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::detect::{DetectionSeverity, Detector};
use trackway_core::registry::GateVerdict;
use trackway_core::{Health, RunId, Step, TerminationReason, Timestamp, closed_list};
use trackway_ledger::RunState;

/// The version of the document.
pub const VERSION: u32 = 1;

closed_list!(
    /// What a notification is about.
    NotificationAbout, "subject of a notification", {
        /// A run that ended.
        End = "end",
        /// What a detector found.
        Detection = "detection",
        /// Gates that were judged.
        Gate = "gate",
        /// Nothing: it was sent with `trackway config notify`.
        Test = "test",
    }
);

/// A notification: the body of the request to a webhook. Chats show `text`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    /// Version of the document: 1. It grows only if a field changes its meaning.
    pub version: u32,
    pub about: NotificationAbout,
    /// When it was made.
    pub at: Timestamp,
    /// All of it in a sentence.
    pub text: String,
    /// The run; null in a test.
    pub run: Option<NotifiedRun>,
    /// What a detector found; null unless it is about that.
    pub detection: Option<NotifiedDetection>,
    /// The gates that were judged; empty unless it is about them.
    pub gates: Vec<NotifiedGate>,
}

/// The run of a notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotifiedRun {
    pub run_id: RunId,
    pub name: String,
    pub state: RunState,
    /// The person who answers for it.
    pub owner: Option<String>,
    /// The team it is charged to.
    pub team: Option<String>,
    /// Attempts so far.
    pub attempt_count: u32,
    /// Why the last attempt ended.
    pub termination_reason: Option<TerminationReason>,
    /// Whether what the last attempt computed is worth something.
    #[serde(default)]
    pub health: Option<Health>,
    /// The step that a resume continues from.
    pub last_committed_step: Option<Step>,
    /// Wall seconds of all attempts that ended.
    pub wall_seconds: f64,
    /// Their cost in USD.
    pub cost_usd: Option<f64>,
}

/// What a detector found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotifiedDetection {
    pub detector: Detector,
    /// How bad it is.
    pub severity: DetectionSeverity,
    /// The step at which it was sure.
    pub step: Step,
    /// What was seen, and the likely cause.
    pub message: String,
}

/// A gate that was judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotifiedGate {
    /// As it is in the run file.
    pub rule: String,
    pub verdict: GateVerdict,
    /// An explanation with the numbers.
    pub why: String,
}
