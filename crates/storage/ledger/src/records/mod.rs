//! The tables as plain structs. A struct is the one place where a table's columns are listed: the catalogue,
//! `docs/ledger.md` and every query come from it, and a test holds both migrations against it.

mod attempt;
mod data;
mod detection;
mod diagnosis;
mod duty;
mod evaluation;
mod history;
mod lease;
mod preflight;
mod progress;
mod proof;
mod registry;
mod roll_back;
mod run;
mod rung;
mod subject;

use crate::value::{Record, Table};
pub use attempt::{AttemptRow, AttemptState, LAUNCHES};
pub use data::{AttemptDataRow, DataSnapshotFileRow, DataSnapshotRow, RunDataRow, ValidationSetRow};
pub use detection::DetectionRow;
pub use diagnosis::DiagnosisRow;
pub use duty::{DeliveryState, DutyRow, NoticeRow, OutboxRow};
pub use evaluation::{
    EvaluationMetricRow, EvaluationRow, EvaluationSliceRow, EvaluationState, TestSetRow, TestSetUseRow,
};
pub use history::{
    AmendedAttemptRow, AmendmentRow, ArtifactRow, CostRow, Decision, EventRow, ParameterRow, RetryRow,
    RunAmendmentRow, RunField, RunTagRow, TagRow,
};
pub use lease::{LeaseRow, SupervisorLeaseRow};
pub use preflight::{DriftResultRow, PreflightCheckRow};
pub use progress::{CheckpointRow, MetricSummaryRow, RecordSegmentRow};
pub use proof::{ProofVerdict, ResumeProofRow};
pub use registry::{ApprovalRow, GateReceiptRow, GateTestRow, ModelChangeRow, ModelRow, ModelVersionRow};
pub use roll_back::RollBackRow;
pub use run::{RunCostRow, RunRow, RunState};
pub use rung::{RungRow, RungVerdict};
pub use subject::{ChangeRow, ChargeKind, ChargeRow, Subject, SubjectEventRow, SubjectKind};

/// Every table of the ledger but `schema_version`, in the order of `docs/ledger.md`.
pub const TABLES: &[&Table] = &[
    RunRow::TABLE,
    AttemptRow::TABLE,
    LAUNCHES,
    CheckpointRow::TABLE,
    MetricSummaryRow::TABLE,
    ParameterRow::TABLE,
    TagRow::TABLE,
    ArtifactRow::TABLE,
    RecordSegmentRow::TABLE,
    SubjectEventRow::TABLE,
    RetryRow::TABLE,
    AmendmentRow::TABLE,
    RunAmendmentRow::TABLE,
    LeaseRow::TABLE,
    CostRow::TABLE,
    ChargeRow::TABLE,
    DataSnapshotRow::TABLE,
    DataSnapshotFileRow::TABLE,
    RunDataRow::TABLE,
    AttemptDataRow::TABLE,
    EvaluationRow::TABLE,
    EvaluationMetricRow::TABLE,
    EvaluationSliceRow::TABLE,
    TestSetUseRow::TABLE,
    ResumeProofRow::TABLE,
    PreflightCheckRow::TABLE,
    DriftResultRow::TABLE,
    DetectionRow::TABLE,
    DiagnosisRow::TABLE,
    RollBackRow::TABLE,
    RungRow::TABLE,
    ModelRow::TABLE,
    ModelVersionRow::TABLE,
    ModelChangeRow::TABLE,
    GateReceiptRow::TABLE,
    GateTestRow::TABLE,
    ApprovalRow::TABLE,
    ChangeRow::TABLE,
    DutyRow::TABLE,
    NoticeRow::TABLE,
    OutboxRow::TABLE,
];

/// Views over them.
pub const VIEWS: &[&Table] = &[
    EventRow::TABLE,
    SupervisorLeaseRow::TABLE,
    TestSetRow::TABLE,
    ValidationSetRow::TABLE,
    AmendedAttemptRow::TABLE,
    RunTagRow::TABLE,
    RunCostRow::TABLE,
];

/// Tables whose rows of an attempt are sealed with it.
pub(crate) const SEALED_WITH_ATTEMPTS: [&Table; 6] = [
    MetricSummaryRow::TABLE,
    ParameterRow::TABLE,
    TagRow::TABLE,
    ArtifactRow::TABLE,
    RecordSegmentRow::TABLE,
    CostRow::TABLE,
];
