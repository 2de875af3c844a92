//! Evaluations, listed and found.

use std::path::Path;

use trackway_api::models::evaluations::EvaluationReceipt;
use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::page::{Page, Paged};
use trackway_engine::run::{Job, RunSource};
use trackway_formats::runfile::PlanPatch;
use trackway_ledger::{EvaluationRow, EvaluationState, RunFilter};
use trackway_sql::QueryLimits;

use super::receipt;
use crate::evaluation::assess::write_numbers;
use crate::query;

/// Runs of a run file, the newest first, among which an evaluation is looked for.
const RUNS_MAX: usize = 1_000;

/// A page of evaluations, newest first; of one run when one is given.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is no evaluation that the page comes after.
pub fn evaluations(
    context: &Context,
    run: Option<RunId>,
    page: &Page<String>,
) -> Result<Paged<EvaluationReceipt, String>, AppError> {
    let after = page.after.as_ref().map(|after| context.evaluation_by_id(after)).transpose()?;
    let rows = context.ledger_read(|ledger| ledger.evaluations_page(run, after.as_ref(), page.rows()))?;
    let receipts = receipt::of_all(context, &rows.rows)?;
    Ok(Paged::new(receipts, rows.more_count, |receipt| receipt.evaluation_id.clone()))
}

/// Evaluations of a run, oldest first.
pub fn evaluations_of(context: &Context, run_id: RunId) -> Result<Vec<EvaluationReceipt>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.evaluations_of_run(run_id))?;
    receipt::of_all(context, &rows)
}

/// The newest completed evaluation on a test set (`None`: that of `[evaluate]` itself) of the newest run of a run file that has one.
///
/// # Errors
/// [`ErrorKind::NotFound`] where none has one; the mistakes of the run file.
pub fn newest_evaluation_of_file(
    context: &Context,
    path: &Path,
    test_set: Option<&str>,
) -> Result<EvaluationRow, AppError> {
    let source = RunSource::File { path: path.to_owned(), patch: PlanPatch::default() };
    let name = Job::read(&source, &context.redactor)?.plan.run.name;
    let filter = RunFilter { name: Some(name.clone()), limit: Some(RUNS_MAX), ..RunFilter::default() };
    let is_meant = |row: &EvaluationRow| {
        row.state == EvaluationState::Completed && row.test_set.as_deref() == test_set && !row.is_gate_test()
    };
    for run in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
        let rows = context.ledger_read(|ledger| ledger.evaluations_of_run(run.run_id))?;
        if let Some(newest) = rows.into_iter().rfind(is_meant) {
            return Ok(newest);
        }
    }
    let on = test_set.map(|name| format!(" on test set `{name}`")).unwrap_or_default();
    let message = format!("no run `{name}` has a completed evaluation{on}");
    Err(AppError::new(ErrorKind::NotFound, message)
        .hint(format!("evaluate one: trackway eval run {}", path.display())))
}

/// The receipt of an evaluation.
pub fn evaluation(context: &Context, row: &EvaluationRow) -> Result<EvaluationReceipt, AppError> {
    receipt::of(context, row)
}

/// Writes every number of an evaluation as a Parquet file, whole or not at all.
///
/// # Errors
/// [`trackway_engine::error::ErrorKind::Fault`] where it cannot be written.
pub fn write_evaluation_numbers(
    context: &Context,
    receipt: &EvaluationReceipt,
    path: &Path,
) -> Result<(), AppError> {
    if let Some(assessment) = receipt.assessed() {
        return write_numbers(path, &assessment);
    }
    let query = format!(
        "select slice, metric, value, low, high, support, method, rows_used, rows_expected from evaluation_metrics where evaluation_id = '{}' order by slice, metric",
        receipt.evaluation_id
    );
    query::write_parquet(context, &query::sql(context, &query, &QueryLimits::default())?, path).map(drop)
}
