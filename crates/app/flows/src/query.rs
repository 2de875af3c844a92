//! SQL over everything the home holds, and searches for runs.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_sql::{Answer, FoundRuns, QueryLimits, RunSearch, sql_within};

/// Answers one SELECT over the ledger's tables, `metrics` and `effective_metrics`.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::Usage`] when the query is wrong, names what is not there, or would write;
/// [`trackway_engine::error::ErrorKind::Cancelled`].
pub fn sql(context: &Context, query: &str, limits: &QueryLimits) -> Result<Answer, AppError> {
    let cancelled = Some(Arc::clone(context.request.cancel.end_flag()));
    let limits = QueryLimits { cancelled, ..limits.clone() };
    context.ledger_read(|ledger| sql_within(ledger, context.home.folder(), query, &limits))
}

/// The rows of an answer as JSON objects.
///
/// # Errors
/// When a value has no JSON form.
pub fn json_rows(context: &Context, answer: &Answer) -> Result<Vec<Map<String, Value>>, AppError> {
    context.ledger_read(|_| answer.json_rows())
}

/// The rows of a result as strings.
///
/// # Errors
/// When a value has no text form.
pub fn text_rows(context: &Context, answer: &Answer) -> Result<Vec<Vec<String>>, AppError> {
    context.ledger_read(|_| answer.text_rows())
}

/// Writes a result as a Parquet file, whole or not at all, and returns how many rows it has.
pub fn write_parquet(context: &Context, answer: &Answer, path: &Path) -> Result<usize, AppError> {
    let rows = context.ledger_write(|_| answer.write_parquet(path))?;
    trackway_files::give_to_user(path).map_err(|error| AppError::file("write", path, error))?;
    Ok(rows)
}

/// The names of all numbers that evaluations of these runs report, in order, such as `eval.accuracy`.
///
/// # Errors
/// When the ledger cannot be read.
pub fn evaluated_names(context: &Context, runs: &[RunId]) -> Result<Vec<String>, AppError> {
    context.ledger_read(|ledger| trackway_sql::evaluated_names(ledger, runs))
}

/// A page of the runs that meet a condition over their columns, metrics, evaluations, parameters and tags.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::Usage`] when the condition is wrong or names what no run has;
/// [`trackway_engine::error::ErrorKind::NotFound`] when the page comes after what is not a training run.
pub fn search_runs(context: &Context, search: &RunSearch) -> Result<FoundRuns, AppError> {
    context.ledger_read(|ledger| trackway_sql::search_runs(ledger, &context.live_records, search))
}
