//! What the ledger keeps of a pre-flight.

use trackway_api::runs::explain::RecordedCheck;
use trackway_api::runs::preflight::{DriftComparison, PreflightReport};
use trackway_core::{Clock as _, RunId, Timestamp};
use trackway_data::drift::{Role, SchemaChange};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::run::Start;
use trackway_engine::stored::read_stored;
use trackway_formats::layout::RowCopy;
use trackway_ledger::{DriftResultRow, KeptRows, PreflightCheckRow};
use trackway_tables::personal::masked_value;

use super::sets::SetProfile;
use super::steps::{severity_of, severity_of_drift};
use super::{Severity, Verdict};
use crate::data::snapshot::{keep_profile_of_data, store};

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
    let drift: Vec<DriftResultRow> =
        report.drift.iter().flat_map(|comparison| drift_rows(run_id, comparison, now)).collect();
    context.ledger_write(|ledger| {
        ledger.insert_preflight_checks(&rows)?;
        ledger.insert_drift_results(&drift)
    })?;
    context.keep(run_id, RowCopy::Checks, &KeptRows::of(&rows).and(&drift));
    report.rehearsals.iter().try_for_each(|rehearsal| context.is_for(*rehearsal, run_id))
}

/// A row for each column of a comparison: those that both sides have as the same type, then the others, then those that were
/// set apart.
fn drift_rows(run_id: RunId, comparison: &DriftComparison, now: Timestamp) -> Vec<DriftResultRow> {
    let report = &comparison.report;
    let row = |column: &str| DriftResultRow {
        run_id,
        data_set: comparison.data_set.clone(),
        compared_with: comparison.compared_with.as_str().to_owned(),
        column_name: column.to_owned(),
        reference: comparison.reference.clone(),
        reference_run_id: comparison.reference_run_id,
        reference_rows: report.reference_rows,
        rows: report.current_rows,
        role: "feature".to_owned(),
        test: None,
        statistic: None,
        threshold: None,
        p_value: None,
        missing_change: None,
        verdict: Verdict::Pass,
        why: None,
        at: now,
    };
    let verdict_of =
        |severity: Severity| if severity == Severity::Block { Verdict::Block } else { Verdict::Warn };
    let of_change = |change: &SchemaChange| verdict_of(severity_of(change, comparison.compared_with));
    let change_of = |name: &str| report.schema_changes.iter().find(|change| change.name == name);
    let compared = report.columns.iter().map(|column| DriftResultRow {
        role: if column.role == Role::Label { "label" } else { "feature" }.to_owned(),
        test: Some(column.test.as_str().to_owned()),
        statistic: Some(column.statistic),
        threshold: Some(column.threshold),
        p_value: Some(column.adjusted_p_value),
        missing_change: Some(column.missing.current_fraction - column.missing.reference_fraction),
        verdict: match change_of(&column.name) {
            Some(change) => of_change(change),
            None if column.drifted => verdict_of(severity_of_drift(column, comparison.compared_with)),
            None => Verdict::Pass,
        },
        why: change_of(&column.name).map(why_changed),
        ..row(&column.name)
    });
    let is_compared = |name: &str| report.columns.iter().any(|column| column.name == name);
    let others = report.schema_changes.iter().filter(|change| !is_compared(&change.name));
    let others = others.map(|change| DriftResultRow {
        verdict: of_change(change),
        why: Some(why_changed(change)),
        ..row(&change.name)
    });
    let apart = report.set_apart.iter();
    let apart = apart.map(|apart| DriftResultRow { why: Some(apart.why.clone()), ..row(&apart.name) });
    compared.chain(others).chain(apart).collect()
}

fn why_changed(change: &SchemaChange) -> String {
    match (change.reference, change.current) {
        (Some(_), None) => "the data does not have it".to_owned(),
        (None, _) => "the reference does not have it".to_owned(),
        (Some(before), Some(now)) => format!("{now}, and {before} in the reference"),
    }
}

/// Keeps the profile of each table of a run that is going to be launched, so that a later run can be compared with it.
pub fn keep_profiles(context: &Context, start: &Start, profiles: &[SetProfile]) -> Result<(), AppError> {
    let store = store(&context.home);
    for set in profiles {
        if let Some(data_sha256) = start.data_sha256_of(&set.name) {
            keep_profile_of_data(&store, data_sha256, &set.evidence.profile)?;
        }
    }
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
