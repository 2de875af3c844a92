//! The estimate of progressive validation of a run, for display.

use serde_json::Value;
use trackway_api::runs::detections::Detection;
use trackway_api::runs::progressive::ProgressiveEstimate;
use trackway_core::detect::Detector;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::stored::stored_plan;
use trackway_formats::record::PROGRESSIVE_LOSS;
use trackway_ledger::{AttemptRow, AttemptState, MetricSummaryRow, RunRow};
use trackway_rules::early_stop::progressive::{Progressive, WINDOW_DEFAULT};

use crate::curves::rows_of;

/// Values in a window, from the run file.
pub(crate) fn window_of(run: &RunRow) -> Result<u64, AppError> {
    let section = stored_plan(run)?.and_then(|plan| plan.early_stop);
    Ok(section.and_then(|section| section.window).unwrap_or(WINDOW_DEFAULT))
}

/// The estimate, and what speaks against it: batches that came again in attempts of this kind and rung.
pub(crate) fn card(
    estimate: Option<ProgressiveEstimate>,
    detections: &[Detection],
    attempt: &AttemptRow,
    attempts: &[AttemptRow],
) -> Option<ProgressiveEstimate> {
    let is_beside = |it: &&AttemptRow| it.kind == attempt.kind && it.rung == attempt.rung;
    let concerns = |id| attempts.iter().filter(is_beside).any(|it| it.attempt_id == id);
    let repeated =
        detections.iter().find(|found| found.detector == Detector::SeenBefore && concerns(found.attempt_id));
    Some(ProgressiveEstimate { invalid: repeated.map(|found| found.evidence.clone()), ..estimate? })
}

/// What the rung of an attempt recorded, over all of its attempts; several ranks are averaged at each step. `None`
/// where nothing was recorded.
pub(crate) fn progressive_of(
    context: &Context,
    run: &RunRow,
    attempt: &AttemptRow,
    summaries: &[MetricSummaryRow],
) -> Result<Option<ProgressiveEstimate>, AppError> {
    let recorded = summaries.iter().any(|summary| summary.name == PROGRESSIVE_LOSS);
    if !recorded && attempt.state == AttemptState::Sealed {
        return Ok(None);
    }
    let query = format!(
        "select step, avg(value) as value from effective_metrics where run_id = '{}' and kind = '{}' \
         and rung = '{}' and name = '{PROGRESSIVE_LOSS}' group by step order by step",
        run.run_id,
        attempt.kind.as_str(),
        attempt.rung
    );
    let mut progressive = Progressive::new(window_of(run)?);
    for row in rows_of(context, &query)? {
        let Some(step) = row.get("step").and_then(Value::as_u64) else { continue };
        progressive.take(step, row.get("value").and_then(Value::as_f64).unwrap_or(f64::NAN));
    }
    Ok(progressive.estimate())
}
