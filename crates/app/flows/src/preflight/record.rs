//! What the ledger keeps of a pre-flight.

use trackway_api::explain::RecordedCheck;
use trackway_api::preflight::PreflightReport;
use trackway_core::{Clock as _, RunId};
use trackway_data::personal::masked_value;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::stored::read_stored;
use trackway_formats::layout::RowCopy;
use trackway_ledger::{KeptRows, PreflightCheckRow};

/// Writes down what was checked before a run; personal data in examples of values is masked.
pub fn record(context: &Context, run_id: RunId, report: &PreflightReport) -> Result<(), AppError> {
    let now = context.clock.now();
    let row = |(place, check): (usize, &super::CheckResult)| PreflightCheckRow {
        run_id,
        check_name: check.name.clone(),
        place: u32::try_from(place + 1).unwrap_or(u32::MAX),
        verdict: check.verdict,
        blocks: report.blocks(check),
        seconds: check.seconds,
        why: check.why.clone(),
        skipped_why: report
            .skipped
            .iter()
            .find(|skipped| skipped.check == check.name)
            .map(|skipped| skipped.why.clone()),
        finding_count: u32::try_from(check.findings.len()).unwrap_or(u32::MAX),
        findings_json: (!check.findings.is_empty()).then(|| masked_value(serde_json::json!(check.findings))),
        at: now,
    };
    let rows: Vec<PreflightCheckRow> = report.checks.iter().enumerate().map(row).collect();
    context.ledger_write(|ledger| ledger.insert_preflight_checks(&rows))?;
    context.keep(run_id, RowCopy::Checks, &KeptRows::of_checks(&rows));
    Ok(())
}

/// What was checked before a run, in the order of the report; empty without pre-flight.
pub fn recorded(context: &Context, run_id: RunId) -> Result<Vec<RecordedCheck>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.preflight_checks_of(run_id))?;
    let check = |row: PreflightCheckRow| -> Result<RecordedCheck, AppError> {
        let owner = || format!("check `{}` of run {run_id}", row.check_name);
        let findings = match &row.findings_json {
            Some(stored) => read_stored(stored, "preflight_checks.findings_json", owner)?,
            None => Vec::new(),
        };
        Ok(RecordedCheck {
            name: row.check_name,
            verdict: row.verdict,
            blocks: row.blocks,
            seconds: row.seconds,
            why: row.why,
            skipped_why: row.skipped_why,
            findings,
        })
    };
    rows.into_iter().map(check).collect()
}
