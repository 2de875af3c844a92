//! The ledger's row of a rung, from its sealed attempts.

use std::collections::BTreeMap;

use serde_json::json;
use trackway_core::TerminationReason;
use trackway_ledger::{AttemptRow, MetricSummaryRow, RunRow, RungRow, RungVerdict};

use super::past::past_of_rung;
use super::{Ladder, RungOutcome, ended_well};
use crate::Context;
use crate::error::AppError;
use crate::ledger::rows::rung_of;

/// Metrics whose last value is kept, at most; those of the rule come first.
const RUNG_METRICS_MAX: usize = 100;

/// The row of the rung of an attempt that is about to be sealed; `None` where the run file has no ladder. `summaries`
/// are those of the attempt.
pub(crate) fn rung_row(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    summaries: &[MetricSummaryRow],
    judged: Option<&RungOutcome>,
) -> Result<Option<RungRow>, AppError> {
    let ladder = Ladder::of(run)?;
    if !ladder.named {
        return Ok(None);
    }
    let rung = rung_of(row);
    let mut all = past_of_rung(context, row, rung)?;
    all.take(context, row, (summaries, &[]));
    let values: BTreeMap<_, _> = all.metrics.iter().map(|(name, values)| (name, values.last)).collect();
    let of_rule = |name: &str| judged.is_some_and(|judged| judged.judgement.values.contains_key(name));
    let (first, rest): (Vec<_>, Vec<_>) = values.into_iter().partition(|(name, _)| of_rule(name));
    let shown: BTreeMap<_, _> = first.into_iter().chain(rest).take(RUNG_METRICS_MAX).collect();
    let judged = judged.filter(|_| ended_well(row)).map(|judged| &judged.judgement);
    let verdict = match (row.termination_reason, judged) {
        (Some(TerminationReason::RungRejected), Some(judgement)) if judgement.proof.rows().is_none() => {
            RungVerdict::NotProved
        }
        (Some(TerminationReason::RungRejected), _) => RungVerdict::Rejected,
        (_, Some(_)) => RungVerdict::Promoted,
        (_, None) if ended_well(row) => RungVerdict::Completed,
        (_, None) => RungVerdict::Open,
    };
    Ok(Some(RungRow {
        run_id: row.run_id,
        rung: row.rung.clone(),
        fraction: rung.fraction(),
        place: u32::try_from(ladder.place(rung)).unwrap_or(u32::MAX),
        verdict,
        attempt_count: all.attempt_count,
        last_attempt_id: row.attempt_id,
        last_step: all.last_step,
        wall_seconds: all.wall_seconds,
        gpu_seconds: all.gpu_seconds,
        cost_usd: all.cost_usd,
        warm_start_step: all.warm_start_step,
        rule: judged.and_then(|judged| judged.rule.clone()),
        why: judged.map(|judged| judged.why.clone()),
        values_json: judged.map(|judged| json!(judged.values)),
        metrics_json: Some(json!(shown)),
        rows: all.rows,
        rows_total: all.rows_total,
    }))
}
