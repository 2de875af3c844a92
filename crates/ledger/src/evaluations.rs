//! Evaluations: begun, ended once, found again.

use serde_json::Value as Json;
use trackway_core::{RunId, Timestamp};

use crate::error::LedgerError;
use crate::ledger::Ledger;
use crate::records::{
    EvaluationMetricRow, EvaluationRow, EvaluationSliceRow, EvaluationState, GateReceiptRow, TestSetRow,
    TestSetUseRow,
};
use crate::seal::{digest_of, lines_of};
use crate::value::{Record, Value};

/// Evaluations that are named when several fit a reference.
const EXAMPLES_MAX: usize = 5;
/// The fewest characters that are taken for a part of an id.
const FRAGMENT_MIN: usize = 4;

/// Everything that is written when an evaluation ends, in one transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationEnd {
    /// The complete row; `receipt_sha256` is filled in.
    pub evaluation: EvaluationRow,
    /// Its metrics, of all rows and of slices.
    pub metrics: Vec<EvaluationMetricRow>,
    /// Its slices.
    pub slices: Vec<EvaluationSliceRow>,
    /// What its gates said, a receipt of its own; it has none.
    pub gate_receipt: Option<GateReceiptRow>,
}

impl EvaluationEnd {
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
    /// Stores an evaluation that runs, and that its task set is used, durably.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when it exists, or its run does not.
    pub fn begin_evaluation(&self, evaluation: &EvaluationRow) -> Result<(), LedgerError> {
        self.backend().transaction(true, |backend| {
            backend.insert(evaluation)?;
            use_of(evaluation).iter().try_for_each(|row| backend.insert(row))
        })
    }

    /// Ends an evaluation, durably; it changes no more. Gives the row as it was stored.
    ///
    /// # Errors
    /// [`LedgerError::Integrity`] when it has ended already, or still runs by its state.
    pub fn end_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, LedgerError> {
        let receipt_sha256 = Some(end.receipt_sha256());
        let evaluation = EvaluationRow { receipt_sha256, ..end.evaluation.clone() };
        self.backend().transaction(true, |backend| {
            end.metrics.iter().try_for_each(|row| backend.insert(row))?;
            end.slices.iter().try_for_each(|row| backend.insert(row))?;
            if evaluation.state == EvaluationState::Running {
                return Err(backend.refuse("ending an evaluation", "its state says that it still runs"));
            }
            if !backend.update_in(EvaluationRow::TABLE, &evaluation, &["run_id"])? {
                return Err(backend.refuse("ending an evaluation", "it was never begun"));
            }
            end.gate_receipt.iter().try_for_each(|receipt| backend.insert(receipt))
        })?;
        Ok(evaluation)
    }

    /// Stores an evaluation that ended elsewhere, in one transaction: what an import needs.
    ///
    /// # Errors
    /// As [`Ledger::begin_evaluation`] and [`Ledger::end_evaluation`].
    pub fn insert_ended_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, LedgerError> {
        let receipt_sha256 = Some(end.receipt_sha256());
        let ended = EvaluationRow { receipt_sha256, ..end.evaluation.clone() };
        let begun = EvaluationRow { state: EvaluationState::Running, ended_at: None, ..ended.clone() };
        self.backend().transaction(true, |backend| {
            backend.insert(&begun)?;
            use_of(&begun).iter().try_for_each(|row| backend.insert(row))?;
            end.metrics.iter().try_for_each(|row| backend.insert(row))?;
            end.slices.iter().try_for_each(|row| backend.insert(row))?;
            backend.upsert(&ended, &["run_id"])
        })?;
        Ok(ended)
    }

    /// Evaluations that have not ended, oldest first.
    ///
    /// # Errors
    /// Faults of the database.
    pub fn running_evaluations(&self) -> Result<Vec<EvaluationRow>, LedgerError> {
        self.backend().select("WHERE state = ? ORDER BY started_at, evaluation_id", &[Value::from("running")])
    }

    /// The newest evaluations, newest first.
    ///
    /// # Errors
    /// Faults of the database.
    pub fn newest_evaluations(&self, limit: u32) -> Result<Vec<EvaluationRow>, LedgerError> {
        self.backend().select(&format!("ORDER BY started_at DESC, evaluation_id DESC LIMIT {limit}"), &[])
    }

    /// Completed evaluations on a task set, newest first.
    ///
    /// # Errors
    /// Faults of the database.
    pub fn evaluations_on(&self, task_set_sha256: &str) -> Result<Vec<EvaluationRow>, LedgerError> {
        let tail = "WHERE task_set_sha256 = ? AND state = ? ORDER BY started_at DESC, evaluation_id DESC";
        self.backend().select(tail, &[Value::from(task_set_sha256), Value::from("completed")])
    }

    /// How often task sets were looked at; one when its content is named.
    ///
    /// # Errors
    /// Faults of the database.
    pub fn test_sets(&self, task_set_sha256: Option<&str>) -> Result<Vec<TestSetRow>, LedgerError> {
        match task_set_sha256 {
            Some(content) => self.backend().select("WHERE task_set_sha256 = ?", &[Value::from(content)]),
            None => self.backend().select("ORDER BY last_used_at DESC, task_set_sha256", &[]),
        }
    }

    /// An evaluation by its id, a unique part of it, or `last`.
    ///
    /// # Errors
    /// [`LedgerError::NotFound`], [`LedgerError::Ambiguous`].
    pub fn find_evaluation(&self, reference: &str) -> Result<EvaluationRow, LedgerError> {
        let missing = |hint: &str| LedgerError::NotFound {
            what: "evaluation",
            name: reference.into(),
            hint: hint.into(),
        };
        if reference == "last" {
            let newest = self.newest_evaluations(1)?.pop();
            return newest.ok_or_else(|| missing(" (there is none yet)"));
        }
        let fragment = reference.to_lowercase();
        let plain = fragment.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !plain || fragment.len() < FRAGMENT_MIN {
            return Err(missing("; `trackway evaluations` lists them"));
        }
        // `_` is any character of `LIKE`; what it finds too much is left out.
        let tail =
            format!("WHERE evaluation_id LIKE ? ORDER BY evaluation_id DESC LIMIT {}", EXAMPLES_MAX + 1);
        let mut found: Vec<EvaluationRow> =
            self.backend().select(&tail, &[Value::Text(format!("%{fragment}%"))])?;
        found.retain(|row| row.evaluation_id.contains(&fragment));
        match found.len() {
            0 => Err(missing("; `trackway evaluations` lists them")),
            1 => Ok(found.remove(0)),
            count => Err(LedgerError::Ambiguous {
                what: "evaluation",
                name: reference.into(),
                count,
                examples: found.iter().map(|row| row.evaluation_id.clone()).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Whether an evaluation that ended still is what was stored then; `None` while it runs.
    ///
    /// # Errors
    /// [`LedgerError::NotFound`]; faults of the database.
    pub fn verify_evaluation(&self, evaluation_id: &str) -> Result<Option<bool>, LedgerError> {
        let evaluation = self.find_evaluation(evaluation_id)?;
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

/// The use of the task set, where there is one.
fn use_of(evaluation: &EvaluationRow) -> Option<TestSetUseRow> {
    Some(TestSetUseRow {
        evaluation_id: evaluation.evaluation_id.clone(),
        task_set_sha256: evaluation.task_set_sha256.clone()?,
        task_set_version: evaluation.task_set_version.clone(),
        run_id: evaluation.run_id,
        checkpoint_manifest_sha256: evaluation.checkpoint_manifest_sha256.clone(),
        at: evaluation.started_at,
    })
}

impl EvaluationRow {
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

    /// A member of what it was asked for.
    #[must_use]
    pub fn spec(&self, name: &str) -> Option<&Json> {
        self.spec_json.as_ref()?.get(name).filter(|value| !value.is_null())
    }
}
