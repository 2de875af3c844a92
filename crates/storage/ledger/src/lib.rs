//! The ledger: what every attempt really did, in SQLite (the default) or PostgreSQL.
//!
//! - [`Ledger`] opens and migrates a ledger and reads and writes its rows as plain structs. Every call of it may fail with a
//!   fault of the database; the calls name the errors that they have besides.
//! - [`Ledger::seal_attempt`] turns an attempt's row into a receipt that the database itself no longer lets change.
//! - [`scan`] is what a query engine reads a ledger by; `trackway-sql` is one.
//! - [`conformance`] is the suite that every backend passes.
//!
//! **What a crash may lose.** A killed process loses nothing that a call has returned from. A power cut may undo
//! the newest writes on SQLite (WAL with `synchronous = NORMAL`), whole and in order; sealing, new runs and new
//! attempts are synced before the call returns, and take everything before them along. Progress that a power cut
//! undoes is computed again from the attempt's folder.

mod backend;
mod catalogue;
mod changes;
mod claims;
mod clauses;
pub mod conformance;
mod error;
mod import;
mod kept;
mod leases;
mod ledger;
mod reading;
mod receipts;
mod records;
pub mod scan;
mod text;
mod value;
mod writing;

pub use backend::without_password;
pub use catalogue::document;
pub use claims::duties::DutyAnswer;
pub use claims::outbox::DeliveryEnd;
pub use error::{ErrorKind, LedgerError};
pub use import::{
    ForeignEnd, ForeignPoint, ForeignRun, ForeignStore, ForeignTool, Omission, OmissionKind, Omissions,
    read_foreign,
};
pub use kept::{KeptRows, KnownAttempt, RestoredRows};
pub use leases::{Holder, LeaseAnswer};
pub use ledger::{AttemptProgress, BUSY_TIMEOUT_MILLIS, Ledger, OpenOptions};
pub use reading::feed::{FeedPage, KeptBounds};
pub use reading::find::{AttemptFilter, EndCount, RunFilter};
pub use reading::pages::RowPage;
pub use reading::resolve::RunOrAttempt;
pub use receipts::seal::{AttemptSeal, NAMED_ROWS_MAX, SealOutcome};
pub use receipts::verify::{CheckedReceipt, CheckpointPage, Page, UnreadableRow, unproved};
pub use records::{
    AmendedAttemptRow, AmendmentRow, ApprovalRow, ArtifactRow, AttemptDataRow, AttemptRow, AttemptState,
    ChangeRow, ChargeKind, ChargeRow, CheckpointRow, CostRow, DataSnapshotFileRow, DataSnapshotRow, Decision,
    DeliveryState, DetectionRow, DiagnosisRow, DriftResultRow, DutyRow, EvaluationMetricRow, EvaluationRow,
    EvaluationSliceRow, EvaluationState, EventRow, GateReceiptRow, GateTestRow, LAUNCHES, LeaseRow,
    MetricSummaryRow, ModelChangeRow, ModelRow, ModelVersionRow, NoticeRow, OutboxRow, ParameterRow,
    PreflightCheckRow, ProofVerdict, RecordSegmentRow, ResumeProofRow, RetryRow, RollBackRow,
    RunAmendmentRow, RunCostRow, RunDataRow, RunField, RunRow, RunState, RunTagRow, RungRow, RungVerdict,
    Subject, SubjectEventRow, SubjectKind, SupervisorLeaseRow, TABLES, TagRow, TestSetRow, TestSetUseRow,
    VIEWS, ValidationSetRow,
};
pub use text::{KEY_BYTES_MAX, TEXT_BYTES_MAX};
pub use value::{Column, ColumnKind, Table};
pub use writing::evaluations::{EvaluationEnd, GATE_TEST_ORIGIN};
