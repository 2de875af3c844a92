//! Evaluations: begun, ended once, found again.

use serde_json::Value as Json;
use trackway_core::{RunId, Timestamp};

use crate::backend::Backend;
use crate::changes::note_change;
use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::receipts::seal::{digest_of, lines_of, rows_as_stored};
use crate::records::{
    EvaluationMetricRow, EvaluationRow, EvaluationSliceRow, EvaluationState, GateReceiptRow, TestSetRow,
    TestSetUseRow, ValidationSetRow,
};
use crate::value::{Record, Value};

/// Everything that is written when an evaluation ends, in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationEnd {
    /// The complete row; `receipt_sha256` is filled in.
    pub evaluation: EvaluationRow,
    /// Its metrics, of all rows and of slices.
    pub metrics: Vec<EvaluationMetricRow>,
    pub slices: Vec<EvaluationSliceRow>,
    /// The receipt of its gates; none yet.
    pub gate_receipt: Option<GateReceiptRow>,
}

impl EvaluationEnd {
    /// The end as it is read back: what the receipt's hash is taken over.
    pub(crate) fn as_stored(&self, backend: &Backend) -> Result<Self, LedgerError> {
        Ok(Self {
            evaluation: backend.as_stored(&self.evaluation)?,
            metrics: rows_as_stored(backend, &self.metrics)?,
            slices: rows_as_stored(backend, &self.slices)?,
            gate_receipt: self.gate_receipt.clone(),
        })
    }

    /// SHA-256 over the evaluation, its metrics and its slices, as [`crate::AttemptSeal::receipt_sha256`].
    #[must_use]
    pub fn receipt_sha256(&self) -> String {
        digest_of(&[
            lines_of(std::slice::from_ref(&self.evaluation)),
            lines_of(&self.metrics),
            lines_of(&self.slices),
        ])
    }
}

impl Ledger {
    /// Stores an evaluation that runs, and that its task set is used, durably. The same again changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when another one has its id, or its run does not exist.
    pub fn begin_evaluation(&self, evaluation: &EvaluationRow) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            if backend.stored(evaluation)? == Some(backend.as_stored(evaluation)?) {
                return Ok(());
            }
            backend.insert(evaluation)?;
            // With the beginning: an evaluation that fails may have looked at its task set too.
            use_of(evaluation).iter().try_for_each(|row| backend.insert_once(row).map(drop))?;
            note_change(backend, EvaluationRow::TABLE, evaluation.run_id)
        })
    }

    /// Ends an evaluation, durably; it changes no more. Gives the row as it was stored. The same end again changes
    /// nothing.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when it has ended otherwise already, or still runs by its state.
    pub fn end_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, LedgerError> {
        self.backend().transaction(true, |backend| {
            let end = end.as_stored(backend)?;
            let receipt_sha256 = Some(end.receipt_sha256());
            let evaluation = EvaluationRow { receipt_sha256, ..end.evaluation };
            if has_ended_so(backend, &evaluation)? {
                return Ok(evaluation);
            }
            // Before its row ends: a rule takes metrics only of one that runs.
            backend.insert_all(&end.metrics)?;
            backend.insert_all(&end.slices)?;
            if evaluation.state == EvaluationState::Running {
                return Err(backend.refuse("ending an evaluation", "its state is still `running`"));
            }
            if !backend.update(&evaluation, &["run_id"])? {
                return Err(backend.refuse("ending an evaluation", "it was never started"));
            }
            end.gate_receipt.iter().try_for_each(|receipt| backend.insert(receipt))?;
            note_change(backend, EvaluationRow::TABLE, evaluation.run_id)?;
            Ok(evaluation)
        })
    }

    /// Stores an evaluation that ended elsewhere, in one transaction: what an import needs.
    ///
    /// # Errors
    /// As [`Ledger::begin_evaluation`] and [`Ledger::end_evaluation`].
    pub fn insert_ended_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, LedgerError> {
        self.backend().transaction(true, |backend| {
            let end = end.as_stored(backend)?;
            let receipt_sha256 = Some(end.receipt_sha256());
            let ended = EvaluationRow { receipt_sha256, ..end.evaluation };
            let begun = EvaluationRow { state: EvaluationState::Running, ended_at: None, ..ended.clone() };
            if has_ended_so(backend, &ended)? {
                return Ok(ended);
            }
            // As one that runs: its metrics are taken only then.
            backend.insert(&begun)?;
            use_of(&begun).iter().try_for_each(|row| backend.insert(row))?;
            backend.insert_all(&end.metrics)?;
            backend.insert_all(&end.slices)?;
            backend.upsert(&ended, &["run_id"])?;
            note_change(backend, EvaluationRow::TABLE, ended.run_id)?;
            Ok(ended)
        })
    }

    /// Evaluations that have not ended, oldest first.
    pub fn running_evaluations(&self) -> Result<Vec<EvaluationRow>, LedgerError> {
        // A literal of the statement, not a parameter: so the index of those that run is used.
        self.backend().select("WHERE state = 'running' ORDER BY started_at, evaluation_id", &[])
    }

    /// The newest evaluations, newest first.
    pub fn newest_evaluations(&self, limit: u32) -> Result<Vec<EvaluationRow>, LedgerError> {
        self.backend().select(&format!("ORDER BY started_at DESC, evaluation_id DESC LIMIT {limit}"), &[])
    }

    /// Completed evaluations on a task set, newest first.
    pub fn evaluations_on(&self, task_set_sha256: &str) -> Result<Vec<EvaluationRow>, LedgerError> {
        let tail = "WHERE task_set_sha256 = ? AND state = ? ORDER BY started_at DESC, evaluation_id DESC";
        self.backend().select(tail, &[Value::from(task_set_sha256), Value::from("completed")])
    }

    /// How often task sets with these contents were looked at.
    pub fn test_sets(&self, task_set_sha256s: &[&str]) -> Result<Vec<TestSetRow>, LedgerError> {
        let contents: Vec<String> = task_set_sha256s.iter().map(ToString::to_string).collect();
        self.backend().select_among(TestSetRow::TABLE, "task_set_sha256", &contents, "")
    }

    /// How many runs a validation set with this content decided about; none where it was in no training run.
    pub fn validation_set(&self, data_sha256: &str) -> Result<Option<ValidationSetRow>, LedgerError> {
        Ok(self.backend().select("WHERE data_sha256 = ?", &[Value::from(data_sha256)])?.pop())
    }

    /// An evaluation by its id.
    pub fn evaluation(&self, evaluation_id: &str) -> Result<Option<EvaluationRow>, LedgerError> {
        Ok(self.backend().select("WHERE evaluation_id = ?", &[Value::from(evaluation_id)])?.pop())
    }

    /// Whether an evaluation that ended still is what was stored then; `None` while it runs.
    ///
    /// # Errors
    /// [`LedgerError::NotFound`]; faults of the database.
    pub fn verify_evaluation(&self, evaluation_id: &str) -> Result<Option<bool>, LedgerError> {
        let missing = || LedgerError::not_found("evaluation", evaluation_id, "");
        let evaluation = self.evaluation(evaluation_id)?.ok_or_else(missing)?;
        let Some(sealed) = evaluation.receipt_sha256.clone() else { return Ok(None) };
        let end = EvaluationEnd {
            metrics: self.metrics_of_evaluation(&evaluation.evaluation_id)?,
            slices: self.slices_of_evaluation(&evaluation.evaluation_id)?,
            evaluation,
            gate_receipt: None,
        };
        Ok(Some(end.receipt_sha256() == sealed))
    }
}

/// Whether the evaluation ended already, with the same content.
fn has_ended_so(backend: &mut Backend, evaluation: &EvaluationRow) -> Result<bool, LedgerError> {
    let digest = backend.stored(evaluation)?.and_then(|stored| stored.receipt_sha256);
    Ok(digest.is_some() && digest == evaluation.receipt_sha256)
}

/// The use of the task set, where there is one.
pub(crate) fn use_of(evaluation: &EvaluationRow) -> Option<TestSetUseRow> {
    Some(TestSetUseRow {
        evaluation_id: evaluation.evaluation_id.clone(),
        task_set_sha256: evaluation.task_set_sha256.clone()?,
        task_set_version: evaluation.task_set_version.clone(),
        run_id: evaluation.run_id,
        checkpoint_manifest_sha256: evaluation.checkpoint_manifest_sha256.clone(),
        at: evaluation.started_at,
    })
}

/// The origin of an evaluation of a known-bad model, made to test gates: it is never chosen by default.
pub const GATE_TEST_ORIGIN: &str = "gate_test";

impl EvaluationRow {
    /// Whether it was made to test gates.
    #[must_use]
    pub fn is_gate_test(&self) -> bool {
        self.origin == GATE_TEST_ORIGIN
    }

    /// An evaluation that begins, of which nothing more is known.
    #[must_use]
    pub fn begun(
        evaluation_id: String,
        run_id: RunId,
        checkpoint_manifest_sha256: String,
        started_at: Timestamp,
    ) -> Self {
        Self {
            evaluation_id,
            run_id,
            checkpoint_manifest_sha256,
            started_at,
            state: EvaluationState::Running,
            origin: "trackway".into(),
            ..Self::blank()
        }
    }

    /// A member of its specification.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<&Json> {
        self.spec_json.as_ref()?.get(name).filter(|value| !value.is_null())
    }
}
