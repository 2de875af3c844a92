//! How often a script asked whether to save, and what was proved of a resume.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{ProofId, Step, Timestamp};
use trackway_ledger::ProofVerdict;

/// How often the script of an attempt asked whether to save, and how often nothing was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SaveRequests {
    /// Steps at whose end it asked.
    pub asked: u64,
    /// Whether that is all of them; false while it runs and if its process was killed, when there may be up to twice as many.
    pub is_complete: bool,
    /// The first of these steps.
    pub from_step: Option<Step>,
    /// What decides when a checkpoint is due, such as `every 200 steps`.
    pub cadence: Option<String>,
    /// Steps at which none was due.
    pub not_due: u64,
    /// Steps at which a save did not fit into what was left of the grace period.
    pub no_time: u64,
    /// Steps at which the previous save was still being written.
    pub busy: u64,
}

impl SaveRequests {
    /// `the script asked 60 times whether to save (every 20 steps): 57 times none was due`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let at_least = if self.is_complete { "" } else { "at least " };
        let cadence = self.cadence.as_ref().map(|cadence| format!(" ({cadence})")).unwrap_or_default();
        let reasons = [
            (self.not_due, "none was due"),
            (self.busy, "the previous save was still being written"),
            (self.no_time, "a save did not fit into what was left of the grace period"),
        ];
        let reasons = reasons.into_iter().filter(|(count, _)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(count, why)| format!("{} {why}", times(count))).collect();
        let unsaved = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
        format!("the script asked {at_least}{} whether to save{cadence}{unsaved}", times(self.asked))
    }
}

/// What `trackway prove` found for the config of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResumeProofSummary {
    /// Its id in the table `resume_proofs`.
    pub proof_id: ProofId,
    pub verdict: ProofVerdict,
    /// Why, for every verdict but `equal`.
    pub why: Option<String>,
    /// When it ended.
    pub at: Timestamp,
    /// Steps of each launch.
    pub steps: Step,
    pub killed_at_step: Option<Step>,
    /// The step that the killed launch was resumed from.
    pub resumed_from_step: Option<Step>,
    /// What differs between the attempt and what was proved: `code`, `data`, `environment`, `seed`.
    pub changed_since: Vec<String>,
}
