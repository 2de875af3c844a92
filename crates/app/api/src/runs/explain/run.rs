//! The run of an explanation, and what happened in it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{RunId, Step, Timestamp};
use trackway_ledger::RunState;

use crate::runs::RunAmendment;
use crate::runs::watch::{QueuedRun, waiting_sentence};

/// The run of an explanation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRun {
    pub run_id: RunId,
    pub name: String,
    pub state: RunState,
    /// The family it is counted with.
    pub model_family: Option<String>,
    /// The person who answers for it.
    pub owner: Option<String>,
    /// The team it is charged to.
    pub team: Option<String>,
    /// SHA-256 of the config.
    pub config_sha256: String,
    /// SHA-256 over the hashes of all data sets.
    pub data_sha256: Option<String>,
    pub seed: Option<u64>,
    pub created_at: Timestamp,
    /// What a person noted about it.
    pub note: Option<String>,
    /// When it was hidden; null if it is visible.
    pub hidden_at: Option<Timestamp>,
    /// Changes of its name, note and tags and of whether lists show it, oldest first.
    pub amendments: Vec<RunAmendment>,
    /// Its wait for a place in its queue; null: it does not wait for one.
    #[serde(default)]
    pub queue: Option<QueuedRun>,
    /// Whether it waits to begin, for a place in its queue or for its next attempt, and no process supervises it: nothing happens before it
    /// is resumed.
    #[serde(default)]
    pub unsupervised: bool,
    /// Why a resume is refused of a run that no process supervises; absent: it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_refused: Option<String>,
}

impl ExplainedRun {
    /// What is said of it while it waits; none while it does not.
    #[must_use]
    pub fn waiting(&self) -> Option<String> {
        let refused = self.resume_refused.as_deref();
        waiting_sentence(self.run_id, self.queue.as_ref(), (self.unsupervised, refused))
    }
}

/// An event of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The attempt it belongs to.
    pub attempt_number: Option<u32>,
    /// Its kind: `queued` (by its engine), `launched`, `ended`, `decision`, or a kind of event (`docs/events.md`).
    pub kind: String,
    /// The step it belongs to.
    pub step: Option<Step>,
    /// A sentence about what happened.
    pub text: String,
}
