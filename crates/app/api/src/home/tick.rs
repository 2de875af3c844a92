//! What a tick did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{Timestamp, closed_list};

closed_list!(
    /// Something that has to be done from time to time.
    DutyName, "duty", {
        /// Attempts of this home that ended without a supervisor are sealed.
        Reap = "reap",
        /// Approvals whose time is over become events of their models.
        Approvals = "approvals",
        /// Pins of checkpoints whose time is over are taken away.
        Pins = "pins",
        /// Notices that were not delivered are sent.
        Outbox = "outbox",
        /// Old changes of the change feed, and notices that ended, are removed.
        Prune = "prune",
    }
);

impl DutyName {
    /// Seconds from one time that it is done to the next.
    #[must_use]
    pub const fn every_seconds(self) -> u64 {
        match self {
            Self::Reap => 60,
            Self::Approvals | Self::Pins => 300,
            Self::Outbox => 30,
            Self::Prune => 3_600,
        }
    }

    /// Seconds that a process has for it: after that another one may do it.
    #[must_use]
    pub const fn bound_seconds(self) -> u64 {
        match self {
            Self::Reap => 900,
            Self::Approvals => 120,
            Self::Pins | Self::Outbox | Self::Prune => 600,
        }
    }
}

closed_list!(
    /// What became of a duty.
    DutyOutcome, "outcome of a duty", {
        Done = "done",
        /// It is due, and was not done because this was a dry run.
        Due = "due",
        NotDue = "not_due",
        /// Another process does it now.
        Held = "held",
        Failed = "failed",
    }
);

/// What `trackway tick` did, or would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickReport {
    pub at: Timestamp,
    /// Whether this was a dry run: nothing was changed.
    pub dry_run: bool,
    /// Every duty, in the order in which they are done.
    pub duties: Vec<TickedDuty>,
}

/// A duty of a tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickedDuty {
    pub name: DutyName,
    pub outcome: DutyOutcome,
    /// What was done, or would be, a sentence each.
    pub lines: Vec<String>,
    /// Why it failed, or the process that does it.
    pub why: Option<String>,
    /// Seconds until it is due again, or may be taken from the process that does it.
    pub next_seconds: Option<f64>,
}

impl TickReport {
    /// Whether a duty failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.duties.iter().any(|duty| duty.outcome == DutyOutcome::Failed)
    }
}
