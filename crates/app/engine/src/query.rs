//! SQL over everything the home holds.

use std::path::Path;

use serde_json::{Map, Value};
use trackway_ledger::{Answer, QueryLimits, sql_within};

use crate::Context;
use crate::error::AppError;

impl Context {
    /// Answers one SELECT over the ledger's tables, `metrics` and `effective_metrics`.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] when the query is wrong, names what is not there, or would write.
    pub fn sql(&self, query: &str, limits: &QueryLimits) -> Result<Answer, AppError> {
        self.ledger_read(|ledger| sql_within(ledger, self.home.folder(), query, limits))
    }

    /// The rows of an answer as JSON objects.
    ///
    /// # Errors
    /// When a value has no JSON form.
    pub fn json_rows(&self, answer: &Answer) -> Result<Vec<Map<String, Value>>, AppError> {
        self.ledger_read(|_| answer.json_rows())
    }

    /// The rows of an answer as texts.
    ///
    /// # Errors
    /// When a value has no text form.
    pub fn text_rows(&self, answer: &Answer) -> Result<Vec<Vec<String>>, AppError> {
        self.ledger_read(|_| answer.text_rows())
    }

    /// Writes an answer as a Parquet file, whole or not at all, and says how many rows it has.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_parquet(&self, answer: &Answer, path: &Path) -> Result<usize, AppError> {
        let rows = self.ledger_write(|_| answer.write_parquet(path))?;
        trackway_files::give_to_user(path).map_err(|error| AppError::file("write", path, &error))?;
        Ok(rows)
    }
}
