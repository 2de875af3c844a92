//! Evaluations, listed and found.

use std::path::Path;

use trackway_core::RunId;
use trackway_ledger::{EvaluationRow, QueryLimits};

use super::receipt::{self, EvaluationReceipt};
use crate::App;
use crate::assess::write_numbers;
use crate::error::AppError;

impl App {
    /// Evaluations, newest first; of one run when one is given.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn evaluations(&self, run: Option<RunId>, limit: u32) -> Result<Vec<EvaluationReceipt>, AppError> {
        let mut rows = match run {
            Some(run) => {
                let mut rows = self.ledger_read(|ledger| ledger.evaluations_of_run(run))?;
                rows.reverse();
                rows
            }
            None => self.ledger_read(|ledger| ledger.newest_evaluations(limit))?,
        };
        rows.truncate(limit as usize);
        receipt::of_all(self, &rows)
    }

    /// Evaluations of a run, oldest first.
    pub(crate) fn evaluations_of(&self, run_id: RunId) -> Result<Vec<EvaluationReceipt>, AppError> {
        let rows = self.ledger_read(|ledger| ledger.evaluations_of_run(run_id))?;
        receipt::of_all(self, &rows)
    }

    /// The receipt of an evaluation.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn evaluation(&self, row: &EvaluationRow) -> Result<EvaluationReceipt, AppError> {
        receipt::of(self, row)
    }

    /// Writes every number of an evaluation as a Parquet file, whole or not at all.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Fault`] where it cannot be written.
    pub fn write_evaluation_numbers(&self, receipt: &EvaluationReceipt, path: &Path) -> Result<(), AppError> {
        if let Some(assessment) = receipt.judged() {
            return write_numbers(path, &assessment);
        }
        let query = format!(
            "select slice, metric, value, low, high, support, method, rows_used, rows_expected from evaluation_metrics where evaluation_id = '{}' order by slice, metric",
            receipt.evaluation_id
        );
        self.write_parquet(&self.sql(&query, &QueryLimits::default())?, path).map(drop)
    }
}
