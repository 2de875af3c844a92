//! Evaluations, listed and found.

use trackway_core::RunId;

use super::receipt::{self, EvaluationReceipt};
use crate::App;
use crate::error::AppError;

impl App {
    /// Evaluations, newest first; of one run when one is named.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`] when the named run does not exist.
    pub fn evaluations(&self, run: Option<&str>, limit: u32) -> Result<Vec<EvaluationReceipt>, AppError> {
        let mut rows = match run {
            Some(run) => {
                let run = self.find_run(run)?;
                let mut rows = self.ledger_read(|ledger| ledger.evaluations_of_run(run.run_id))?;
                rows.reverse();
                rows
            }
            None => self.ledger_read(|ledger| ledger.newest_evaluations(limit))?,
        };
        rows.truncate(limit as usize);
        rows.iter().map(|row| receipt::of(self, row)).collect()
    }

    /// Evaluations of a run, oldest first.
    pub(crate) fn evaluations_of(&self, run_id: RunId) -> Result<Vec<EvaluationReceipt>, AppError> {
        let rows = self.ledger_read(|ledger| ledger.evaluations_of_run(run_id))?;
        rows.iter().map(|row| receipt::of(self, row)).collect()
    }

    /// An evaluation by its id, a unique part of it, or `last`.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`], also when several fit.
    pub fn evaluation(&self, reference: &str) -> Result<EvaluationReceipt, AppError> {
        let row = self.ledger_read(|ledger| ledger.find_evaluation(reference))?;
        receipt::of(self, &row)
    }
}
