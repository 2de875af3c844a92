//! The state of a home and its ledger.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

closed_list!(
    /// The state of a home's ledger.
    LedgerState, "state of a ledger", {
        /// It can be read and has the runs of the home, or there are none.
        Sound = "sound",
        /// It does not exist, but attempts do.
        Missing = "missing",
        /// It has no run, but attempts exist.
        Empty = "empty",
        /// It cannot be read.
        Damaged = "damaged",
        /// Its server does not answer, another process holds it, or a newer program created it: its content is unknown.
        Unreachable = "unreachable",
    }
);

closed_list!(
    /// The kind of a finding about a home.
    HomeFindingKind, "kind of finding", {
        /// The ledger itself.
        Ledger = "ledger",
        /// A folder of an attempt that the ledger does not have.
        UnknownAttempt = "unknown_attempt",
        /// An attempt that is not sealed and whose folder does not exist.
        LostFolder = "lost_folder",
        /// A sealed receipt whose digest differs from the one it was sealed with.
        ChangedReceipt = "changed_receipt",
        /// An attempt or an evaluation that cannot be sealed now.
        SetAside = "set_aside",
        /// A file of a killed command. It does no harm.
        Leftover = "leftover",
    }
);

/// Something in a home that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HomeFinding {
    pub kind: HomeFindingKind,
    /// The attempt, the evaluation, or the path below the home.
    pub subject: String,
    /// What is wrong.
    pub why: String,
}

/// The state of a home and its ledger.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HomeDiagnosis {
    pub home: String,
    /// The ledger, without a password.
    pub ledger: String,
    pub ledger_state: LedgerState,
    /// Number of folders of attempts in the home.
    pub attempt_folder_count: u64,
    /// What was found, by kind; at most 100 of each.
    pub findings: Vec<HomeFinding>,
    /// Number of findings that are not listed.
    pub unlisted_count: u64,
    /// Whether nothing is wrong; leftovers do not count.
    pub healthy: bool,
    /// What to do.
    pub hints: Vec<String>,
}

/// What `trackway doctor rebuild` did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RebuiltLedger {
    pub ledger: String,
    /// Its state before.
    pub found: LedgerState,
    /// Where the old ledger was moved to; null: it was extended, or there was none.
    pub old_ledger: Option<String>,
    /// Number of runs in the files.
    pub run_count: u64,
    /// Number of receipts that were restored with the digest they were sealed with.
    pub receipt_count: u64,
    /// Number of receipts that were computed again from the folder of an attempt.
    pub computed_count: u64,
    /// Number of files with copies of other rows that were restored: evaluations, receipts of gates, approvals, changes
    /// of models, amendments, diagnoses, checks and notices.
    pub other_count: u64,
    /// What the files contain and could not be restored.
    pub failed: Vec<String>,
    /// What was in the old ledger and is not in this one.
    pub missing: Vec<String>,
    /// What may have been in the old ledger alone: the files do not show whether it was.
    pub not_known: Vec<String>,
    /// Number of notices that may be sent again: they were being sent, and what became of it was not kept.
    pub may_be_sent_again_count: u64,
}
