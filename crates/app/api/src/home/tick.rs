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

    /// What it does, as it is counted.
    #[must_use]
    pub const fn actions(self) -> &'static [DutyAction] {
        match self {
            Self::Reap => &[DutyAction::AttemptsSealed, DutyAction::EvaluationsEnded],
            Self::Approvals => &[DutyAction::ApprovalsExpired],
            Self::Pins => &[DutyAction::PinsRemoved],
            Self::Outbox => &[
                DutyAction::NoticesTried,
                DutyAction::NoticesDelivered,
                DutyAction::NoticesGivenUp,
                DutyAction::CopiesWritten,
            ],
            Self::Prune => {
                &[DutyAction::ChangesRemoved, DutyAction::NoticesRemoved, DutyAction::CopiesRemoved]
            }
        }
    }
}

closed_list!(
    /// What a duty does to one thing.
    DutyAction, "action of a duty", {
        /// An attempt is sealed.
        AttemptsSealed = "attempts_sealed",
        /// An evaluation without a supervisor ends.
        EvaluationsEnded = "evaluations_ended",
        /// An approval is noted as expired.
        ApprovalsExpired = "approvals_expired",
        /// A pin of a checkpoint is removed.
        PinsRemoved = "pins_removed",
        /// A notice is tried: sent once.
        NoticesTried = "notices_tried",
        /// A notice that was tried has arrived.
        NoticesDelivered = "notices_delivered",
        /// A notice that was tried is not tried again.
        NoticesGivenUp = "notices_given_up",
        /// A copy of a notice that had none is written.
        CopiesWritten = "copies_written",
        /// A change of the change feed is removed.
        ChangesRemoved = "changes_removed",
        /// A notice is removed from the ledger.
        NoticesRemoved = "notices_removed",
        /// A copy of a notice is removed from the home.
        CopiesRemoved = "copies_removed",
    }
);

impl DutyAction {
    /// What it is done to, in the singular, and what has become of that: `attempt` and `sealed`.
    #[must_use]
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::AttemptsSealed => ("attempt", "sealed"),
            Self::EvaluationsEnded => ("evaluation", "ended"),
            Self::ApprovalsExpired => ("approval", "noted as expired"),
            Self::PinsRemoved => ("pin", "removed"),
            Self::NoticesTried => ("notice", "tried"),
            Self::NoticesDelivered => ("notice", "delivered"),
            Self::NoticesGivenUp => ("notice", "given up"),
            Self::CopiesWritten => ("copy", "written"),
            Self::ChangesRemoved => ("change", "removed"),
            Self::NoticesRemoved => ("notice", "removed"),
            Self::CopiesRemoved => ("copy", "removed"),
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
    /// How many things were done, or would be, by what; none where it was not due, is another process's, or failed.
    pub counts: Vec<DutyCount>,
    /// What is to be read about it, a sentence each.
    pub lines: Vec<String>,
    /// Why it failed, or the process that does it.
    pub why: Option<String>,
    /// Seconds until it is due again, or may be taken from the process that does it.
    pub next_seconds: Option<f64>,
}

/// How many things of one kind a duty did, or would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DutyCount {
    pub action: DutyAction,
    /// How many things it was done to, or would be. Whether a notice arrives no dry run knows.
    pub count: u64,
}

impl TickReport {
    /// Whether a duty failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.duties.iter().any(|duty| duty.outcome == DutyOutcome::Failed)
    }
}
