//! The runs that later ones of the same name are compared with.

use trackway_core::detect::DetectionSeverity;
use trackway_core::{AttemptId, CheckpointState, CheckpointUse, Health, RunId, Timestamp};
use trackway_ledger::{RunFilter, RunRow, RunState};

use crate::Context;
use crate::error::AppError;
use crate::rows::health_report;

/// Completed runs that are looked at, newest first.
const RUNS_MAX: usize = 20;
/// The tag by which a person vouches for a run, with the reason as its value.
pub const BLESSED: &str = "blessed";

/// The newest runs of a name that are good: completed, and of a health that is neither suspect nor broken, or blessed by a person. Runs of older
/// receipts have no health: no detector found anything critical in them. `before`: those that are older.
///
/// # Errors
/// When the ledger cannot be read.
pub fn good_runs(
    context: &Context,
    run_name: &str,
    before: Option<Timestamp>,
) -> Result<Vec<RunRow>, AppError> {
    let filter = RunFilter {
        name: Some(run_name.to_owned()),
        state: Some(RunState::Completed),
        created_before: before,
        limit: Some(RUNS_MAX),
        ..RunFilter::default()
    };
    let mut good = Vec::new();
    for run in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
        if is_good(context, &run)? || blessed_because(context, &run)?.is_some() {
            good.push(run);
        }
    }
    Ok(good)
}

fn is_good(context: &Context, run: &RunRow) -> Result<bool, AppError> {
    if run.health.is_some() {
        return Ok(Health::is_good(run.health));
    }
    let detections = context.ledger_read(|ledger| ledger.detections_of_run(run.run_id))?;
    Ok(detections.iter().all(|found| found.severity != DetectionSeverity::Critical))
}

/// Why a person vouches for a run whatever its health is, if one does. What a script calls itself does not count.
///
/// # Errors
/// When the ledger cannot be read.
pub fn blessed_because(context: &Context, run: &RunRow) -> Result<Option<String>, AppError> {
    let amendments = context.ledger_read(|ledger| ledger.amendments_of_run(run.run_id))?;
    let newest = amendments.into_iter().rfind(|amendment| amendment.tag.as_deref() == Some(BLESSED));
    Ok(newest.and_then(|amendment| amendment.new_text))
}

/// Why the weights of an attempt must not be used for `purpose` because of its health; none: they may, or a person vouches for its run.
///
/// # Errors
/// When the ledger cannot be read.
pub fn unfit_because(
    context: &Context,
    (run_id, attempt_id): (RunId, AttemptId),
    purpose: CheckpointUse,
) -> Result<Option<String>, AppError> {
    let Some(row) = context.ledger_read(|ledger| ledger.attempt(attempt_id))? else { return Ok(None) };
    let may = |accepted| Health::may_be_used_for(row.health, CheckpointState::Committed, purpose, accepted);
    if may(false) || may(blessed_because(context, &context.run_by_id(run_id)?)?.is_some()) {
        return Ok(None);
    }
    let findings = health_report(&row).map(|report| report.findings).unwrap_or_default();
    let found = findings.into_iter().next().map(|found| found.evidence);
    Ok(Some(found.unwrap_or_else(|| "what was found is not written down".into())))
}
