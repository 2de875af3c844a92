//! Lists of runs and attempts, and what hangs from them.

use std::ops::Range;

use trackway_core::{AttemptId, Domain, LaunchKind, RunId, TerminationReason, Timestamp};

use crate::backend::marks;
use crate::clauses::Clauses;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::records::{
    AmendmentRow, ApprovalRow, ArtifactRow, AttemptDataRow, AttemptRow, AttemptState, ChargeRow,
    CheckpointRow, CostRow, DataSnapshotFileRow, DataSnapshotRow, DetectionRow, DiagnosisRow, DriftResultRow,
    EvaluationMetricRow, EvaluationRow, EvaluationSliceRow, EventRow, GateReceiptRow, GateTestRow, LAUNCHES,
    MetricSummaryRow, ModelChangeRow, ModelVersionRow, ParameterRow, PreflightCheckRow, RecordSegmentRow,
    ResumeProofRow, RetryRow, RollBackRow, RunAmendmentRow, RunCostRow, RunDataRow, RunRow, RunState,
    RungRow, TagRow,
};
use crate::value::{ColumnKind, Field, Record as _, Value};

/// Which runs to list; `None` admits everything.
#[derive(Debug, Clone)]
pub struct RunFilter {
    /// For this purpose: `train` by default, so that a proof is never taken for a run.
    pub kind: LaunchKind,
    /// Of this name.
    pub name: Option<String>,
    /// In this state.
    pub state: Option<RunState>,
    /// Of this model family.
    pub model_family: Option<String>,
    /// With this config.
    pub config_sha256: Option<String>,
    /// On this data.
    pub data_sha256: Option<String>,
    /// With this seed.
    pub seed: Option<u64>,
    /// Made before this time.
    pub created_before: Option<Timestamp>,
    /// At most so many.
    pub limit: Option<usize>,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self {
            kind: LaunchKind::Train,
            name: None,
            state: None,
            model_family: None,
            config_sha256: None,
            data_sha256: None,
            seed: None,
            created_before: None,
            limit: None,
        }
    }
}

/// Which training attempts to list; `None` admits everything.
#[derive(Debug, Clone, Default)]
pub struct AttemptFilter {
    /// Of this run.
    pub run_id: Option<RunId>,
    /// In this state.
    pub state: Option<AttemptState>,
    /// Ended for this reason.
    pub termination_reason: Option<TerminationReason>,
    /// Of this model family.
    pub model_family: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Training attempts that ended alike.
#[derive(Debug, Clone, PartialEq)]
pub struct EndCount {
    pub reason: TerminationReason,
    /// Whose matter it was.
    pub domain: Option<Domain>,
    pub attempt_count: u64,
    pub wall_seconds: f64,
}

impl Ledger {
    /// Runs, newest first.
    pub fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, LedgerError> {
        let clause = Clauses::default()
            .and("kind = ?", Some(&filter.kind))
            .and("name = ?", filter.name.as_ref())
            .and("state = ?", filter.state.as_ref())
            .and("model_family = ?", filter.model_family.as_ref())
            .and("config_sha256 = ?", filter.config_sha256.as_ref())
            .and("data_sha256 = ?", filter.data_sha256.as_ref())
            .and("seed = ?", filter.seed.as_ref())
            .and("created_at < ?", filter.created_before.as_ref());
        let tail = clause.tail("created_at DESC, run_id DESC", filter.limit);
        self.backend().select(&tail, &clause.values)
    }

    /// The training runs that have not ended, newest first.
    pub fn open_runs(&self) -> Result<Vec<RunRow>, LedgerError> {
        let tail = "WHERE kind = ? AND ended_at IS NULL ORDER BY created_at DESC, run_id DESC";
        self.backend().select(tail, &[LaunchKind::Train.to_value()])
    }

    /// The newest other training runs with the config, the data and the seed of a run; at most so many.
    pub fn runs_with_inputs_of(&self, run: &RunRow, limit: usize) -> Result<Vec<RunRow>, LedgerError> {
        let clause = Clauses::default()
            .and("config_sha256 = ?", Some(&run.config_sha256))
            .and("kind = ?", Some(&LaunchKind::Train))
            .and_same("data_sha256", run.data_sha256.as_ref())
            .and_same("seed", run.seed.as_ref())
            .and("run_id <> ?", Some(&run.run_id));
        let tail = clause.tail("created_at DESC, run_id DESC", Some(limit));
        self.backend().select(&tail, &clause.values)
    }

    /// Training attempts, newest first.
    pub fn list_attempts(&self, filter: &AttemptFilter) -> Result<Vec<AttemptRow>, LedgerError> {
        let clause = Clauses::default()
            .and("run_id = ?", filter.run_id.as_ref())
            .and("state = ?", filter.state.as_ref())
            .and("termination_reason = ?", filter.termination_reason.as_ref())
            .and("model_family = ?", filter.model_family.as_ref());
        // Ids begin with the time of their making; they also order attempts that never started.
        let tail = clause.tail("attempt_id DESC", filter.limit);
        self.backend().select(&tail, &clause.values)
    }

    /// How the training attempts of one launcher ended that started at `since` or later: those of the run's model
    /// family or, without one, those of the runs of its name.
    pub fn ends_like(
        &self,
        run: &RunRow,
        launcher: &str,
        since: Timestamp,
    ) -> Result<Vec<EndCount>, LedgerError> {
        let (of, value) = match &run.model_family {
            Some(family) => ("model_family = ?", family),
            None => ("run_id IN (SELECT run_id FROM runs WHERE name = ?)", &run.name),
        };
        let sql = format!(
            "SELECT termination_reason, termination_domain, count(*), coalesce(sum(wall_seconds), 0.0) FROM training_attempts WHERE {of} AND launcher = ? AND started_at >= ? AND termination_reason IS NOT NULL GROUP BY termination_reason, termination_domain ORDER BY termination_reason, termination_domain"
        );
        let values = [value.to_value(), Value::from(launcher), Value::Timestamp(since)];
        let kinds = [ColumnKind::Text, ColumnKind::Text, ColumnKind::Integer, ColumnKind::Real];
        let rows = self.backend().rows("counting ends", &sql, &values, &kinds)?;
        Ok(rows.into_iter().filter_map(end_count).collect())
    }

    /// The training attempts of a run, oldest first.
    pub fn attempts_of_run(&self, run_id: RunId) -> Result<Vec<AttemptRow>, LedgerError> {
        self.backend().select("WHERE run_id = ? ORDER BY attempt_number", &[run_id.to_value()])
    }

    /// Runs by their ids, in no order.
    pub fn runs_by_id(&self, ids: &[RunId]) -> Result<Vec<RunRow>, LedgerError> {
        self.backend().select_among(RunRow::TABLE, "run_id", ids, "")
    }

    /// The runs of other kinds that exist for a run: its evaluations, diagnoses and rehearsals, oldest first.
    pub fn runs_for(&self, run_id: RunId) -> Result<Vec<RunRow>, LedgerError> {
        self.backend().select("WHERE for_run_id = ? ORDER BY run_id", &[run_id.to_value()])
    }

    /// The runs that read data with this hash, newest first.
    pub fn runs_of_data(&self, data_sha256: &str) -> Result<Vec<RunRow>, LedgerError> {
        let tail = "WHERE run_id IN (SELECT run_id FROM run_data WHERE data_sha256 = ?) ORDER BY run_id DESC";
        self.backend().select(tail, &[Value::from(data_sha256)])
    }

    /// What a training run took, and what its evaluations, diagnoses and rehearsals took.
    pub fn run_cost(&self, run_id: RunId) -> Result<Option<RunCostRow>, LedgerError> {
        Ok(self.backend().select("WHERE run_id = ?", &[run_id.to_value()])?.pop())
    }

    /// The launches of other kinds of several runs, by run, oldest first.
    pub fn launches_of_all(&self, runs: &[RunId]) -> Result<Vec<AttemptRow>, LedgerError> {
        let order = "ORDER BY run_id, attempt_number";
        self.backend().select_among(LAUNCHES, "run_id", runs, order)
    }

    /// The last training attempt of each of these runs, in no order; none of a run without attempts.
    pub fn last_attempts_of(&self, runs: &[RunId]) -> Result<Vec<AttemptRow>, LedgerError> {
        let newest = "AND NOT EXISTS (SELECT 1 FROM training_attempts later WHERE later.run_id = training_attempts.run_id AND later.attempt_number > training_attempts.attempt_number)";
        self.backend().select_among(AttemptRow::TABLE, "run_id", runs, newest)
    }

    /// The metrics of several attempts by attempt and name; only those with these names, unless there are none.
    pub fn metric_summaries_of_all(
        &self,
        attempts: &[AttemptId],
        names: &[&str],
    ) -> Result<Vec<MetricSummaryRow>, LedgerError> {
        if attempts.is_empty() {
            return Ok(Vec::new());
        }
        let mut tail = format!("WHERE attempt_id IN ({})", marks(attempts.len()));
        if !names.is_empty() {
            tail += &format!(" AND name IN ({})", marks(names.len()));
        }
        let names = names.iter().map(|name| Value::from(*name));
        let values: Vec<Value> = attempts.iter().map(Field::to_value).chain(names).collect();
        self.backend().select(&format!("{tail} ORDER BY attempt_id, name"), &values)
    }

    /// The newest resume proof of a config.
    pub fn newest_resume_proof(&self, config_sha256: &str) -> Result<Option<ResumeProofRow>, LedgerError> {
        let tail = "WHERE config_sha256 = ? ORDER BY started_at DESC, proof_id DESC LIMIT 1";
        Ok(self.backend().select(tail, &[Value::from(config_sha256)])?.pop())
    }

    /// A snapshot of data by its hash.
    pub fn data_snapshot(&self, data_sha256: &str) -> Result<Option<DataSnapshotRow>, LedgerError> {
        Ok(self.backend().select("WHERE data_sha256 = ?", &[Value::from(data_sha256)])?.pop())
    }

    /// The launches of one kind of a run, oldest first: its training attempts, or those of another kind.
    pub fn attempts_of_kind(&self, run_id: RunId, kind: LaunchKind) -> Result<Vec<AttemptRow>, LedgerError> {
        let tail = "WHERE run_id = ? AND kind = ? ORDER BY attempt_number";
        let values = [run_id.to_value(), kind.to_value()];
        self.backend().select_from(AttemptRow::table_of(kind), tail, &values)
    }

    /// The last launch of one kind of a run.
    pub fn last_attempt_of_kind(
        &self,
        run_id: RunId,
        kind: LaunchKind,
    ) -> Result<Option<AttemptRow>, LedgerError> {
        let tail = "WHERE run_id = ? AND kind = ? ORDER BY attempt_number DESC LIMIT 1";
        let values = [run_id.to_value(), kind.to_value()];
        Ok(self.backend().select_from(AttemptRow::table_of(kind), tail, &values)?.pop())
    }

    /// The launches of one kind of a run whose numbers are among these, oldest first.
    pub fn attempts_numbered(
        &self,
        (run_id, kind): (RunId, LaunchKind),
        numbers: Range<u32>,
    ) -> Result<Vec<AttemptRow>, LedgerError> {
        let tail = "WHERE run_id = ? AND kind = ? AND attempt_number >= ? AND attempt_number < ? ORDER BY attempt_number";
        let values = [run_id.to_value(), kind.to_value(), numbers.start.to_value(), numbers.end.to_value()];
        self.backend().select_from(AttemptRow::table_of(kind), tail, &values)
    }

    /// What was decided after these attempts, in no order.
    pub fn retries_after(&self, attempts: &[AttemptId]) -> Result<Vec<RetryRow>, LedgerError> {
        self.backend().select_among(RetryRow::TABLE, "attempt_id", attempts, "")
    }

    /// The launches of other kinds of a run, oldest first.
    pub fn launches_of_run(&self, run_id: RunId) -> Result<Vec<AttemptRow>, LedgerError> {
        self.backend().select_from(LAUNCHES, "WHERE run_id = ? ORDER BY attempt_id", &[run_id.to_value()])
    }

    /// Attempts of every kind that are not sealed: alive, or left behind by a supervisor that is gone.
    pub fn unsealed_attempts(&self) -> Result<Vec<AttemptRow>, LedgerError> {
        let mut backend = self.backend();
        let mut found = backend.select("WHERE sealed_at IS NULL ORDER BY attempt_id", &[])?;
        found.extend(backend.select_from(LAUNCHES, "WHERE sealed_at IS NULL ORDER BY attempt_id", &[])?);
        Ok(found)
    }
}

/// A row that does not hold what it must is left out of the count.
fn end_count(values: Vec<Value>) -> Option<EndCount> {
    let [reason, domain, attempt_count, wall_seconds]: [Value; 4] = values.try_into().ok()?;
    Some(EndCount {
        reason: Field::from_value(reason).ok()?,
        domain: Field::from_value(domain).ok()?,
        attempt_count: Field::from_value(attempt_count).ok()?,
        wall_seconds: Field::from_value(wall_seconds).ok()?,
    })
}

/// The lists that hang from a run or an attempt.
impl Ledger {
    /// What happened of one kind in an attempt.
    pub fn events_of_attempt_of_kind(
        &self,
        attempt_id: AttemptId,
        kind: &str,
    ) -> Result<Vec<EventRow>, LedgerError> {
        let tail = "WHERE attempt_id = ? AND kind = ? ORDER BY at, event_id";
        self.backend().select(tail, &[attempt_id.to_value(), Value::from(kind)])
    }
}

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident($id:ident: $type:ty) -> $row:ty, $order:literal;)+) => {
        impl Ledger { $(
            $(#[$doc])*
            pub fn $name(&self, $id: $type) -> Result<Vec<$row>, LedgerError> {
                let tail = concat!("WHERE ", stringify!($id), " = ? ORDER BY ", $order);
                self.backend().select(tail, &[$id.to_owned().to_value()])
            }
        )+ }
    };
}

lists! {
    /// What happened in a run, oldest first.
    events_of_run(run_id: RunId) -> EventRow, "at, event_id";
    /// What happened in an attempt, oldest first.
    events_of_attempt(attempt_id: AttemptId) -> EventRow, "at, event_id";
    /// What was decided in a run, oldest first.
    retries_of_run(run_id: RunId) -> RetryRow, "at, attempt_id";
    /// The checkpoints of a run, newest step and epoch first.
    checkpoints_of_run(run_id: RunId) -> CheckpointRow, "epoch DESC, step DESC, object_prefix DESC";
    /// The metrics of an attempt, by name.
    metric_summaries_of(attempt_id: AttemptId) -> MetricSummaryRow, "name";
    /// The parameters of an attempt, by name.
    parameters_of(attempt_id: AttemptId) -> ParameterRow, "name";
    /// The tags of an attempt, by name.
    tags_of(attempt_id: AttemptId) -> TagRow, "name";
    /// The artifacts of an attempt, by name.
    artifacts_of(attempt_id: AttemptId) -> ArtifactRow, "name, at";
    /// The segments of an attempt's flight record.
    segments_of(attempt_id: AttemptId) -> RecordSegmentRow, "path";
    /// What an attempt cost.
    costs_of(attempt_id: AttemptId) -> CostRow, "item";
    /// Late facts about an attempt, oldest first.
    amendments_of(attempt_id: AttemptId) -> AmendmentRow, "at, amendment_id";
    /// Changes of what a run is called or how lists show it, oldest first.
    amendments_of_run(run_id: RunId) -> RunAmendmentRow, "at, amendment_id";
    /// Evaluations of a run's checkpoints, oldest first.
    evaluations_of_run(run_id: RunId) -> EvaluationRow, "started_at, evaluation_id";
    /// The metrics of an evaluation, those of all rows first.
    metrics_of_evaluation(evaluation_id: &str) -> EvaluationMetricRow, "slice, metric";
    /// The slices of an evaluation, by name.
    slices_of_evaluation(evaluation_id: &str) -> EvaluationSliceRow, "slice";
    /// What was checked before a run was launched, in the order of the report.
    preflight_checks_of(run_id: RunId) -> PreflightCheckRow, "place";
    /// What an attempt is charged, by item.
    charges_of_attempt(attempt_id: AttemptId) -> ChargeRow, "item";
    /// How far the data of a run was from what it was compared with, by data set and column.
    drift_results_of(run_id: RunId) -> DriftResultRow, "data_set, compared_with, column_name";
    /// The rungs of a run that were launched, from the smallest.
    rungs_of_run(run_id: RunId) -> RungRow, "place";
    /// What detectors found in a run, oldest first.
    detections_of_run(run_id: RunId) -> DetectionRow, "at, detection_id";
    /// What detectors found in an attempt, oldest first.
    detections_of_attempt(attempt_id: AttemptId) -> DetectionRow, "at, detection_id";
    /// Diagnoses of attempts of a run, oldest first.
    diagnoses_of_run(run_id: RunId) -> DiagnosisRow, "at, diagnosis_run_id";
    /// Where a run went back to, oldest first.
    roll_backs_of_run(run_id: RunId) -> RollBackRow, "at, roll_back_id";
    /// Evaluations of exactly these weights, oldest first.
    evaluations_of_checkpoint(checkpoint_manifest_sha256: &str) -> EvaluationRow, "started_at, evaluation_id";
    /// The versions of a model, from the first.
    versions_of_model(model: &str) -> ModelVersionRow, "version";
    /// Versions of models that a run trained, by model.
    versions_of_run(run_id: RunId) -> ModelVersionRow, "model, version";
    /// What happened to a model, oldest first.
    changes_of_model(model: &str) -> ModelChangeRow, "number";
    /// Approvals of versions of a model, oldest first.
    approvals_of_model(model: &str) -> ApprovalRow, "at, approval_id";
    /// The gate receipts of an evaluation, newest first.
    gate_receipts_of_evaluation(evaluation_id: &str) -> GateReceiptRow, "judged_at DESC, gate_receipt_id";
    /// The tests of a gate against known-bad models, newest first.
    gate_tests_of_rule(rule: &str) -> GateTestRow, "at DESC, gate_test_id";
    /// The data sets a run reads, by name.
    data_of_run(run_id: RunId) -> RunDataRow, "name";
    /// The data sets that an attempt was launched on, by name.
    data_of_attempt(attempt_id: AttemptId) -> AttemptDataRow, "name";
    /// The files of a snapshot, by path.
    data_snapshot_files(data_sha256: &str) -> DataSnapshotFileRow, "path";
}
