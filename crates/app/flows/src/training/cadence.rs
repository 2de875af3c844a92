//! The advice on cadence for a run: gathers the measurements, and asks the rules.

use trackway_core::{AttemptId, Clock as _, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_ledger::{AttemptRow, MetricSummaryRow, RunRow};
use trackway_recorder::cost;
use trackway_rules::checkpoints::cadence::{
    CadenceAdvice, FailureHistory, Price, SaveCosts, advise, is_failure,
};

/// With fewer saves the cost of one is too uncertain.
const SAVES_MIN: u64 = 3;
/// Attempts of the run, the newest ones, whose saves are counted.
const ATTEMPTS_MAX: usize = 20;
/// Uploads, the newest ones, whose lag is counted.
const UPLOADS_MAX: usize = 64;
/// What is measured of saves.
const COSTS: [&str; 5] = [
    cost::STALL_SECONDS,
    cost::COMMIT_LAG_SECONDS,
    cost::SLOWDOWN,
    cost::STEP_SECONDS,
    cost::INTERVAL_SECONDS,
];
/// Failures are counted over so many days: machines and code change.
const HISTORY_DAYS: i64 = 90;

/// How often the run should save; none while fewer than `SAVES_MIN` saves were measured. `uploads` are the seconds
/// that each upload took, oldest first.
///
/// # Errors
/// When the ledger cannot be read.
pub fn cadence_advice(
    context: &Context,
    run: &RunRow,
    attempt: &AttemptRow,
    attempts: &[AttemptRow],
    uploads: &[f64],
) -> Result<Option<CadenceAdvice>, AppError> {
    let newest = attempts.iter().rev().take(ATTEMPTS_MAX);
    let newest: Vec<AttemptId> = newest.map(|attempt| attempt.attempt_id).collect();
    let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of_all(&newest, &COSTS))?;
    let Some(costs) = save_costs(&summaries, upload_lag_seconds(uploads)) else { return Ok(None) };
    let since = Timestamp::from_micros(context.clock.now().as_micros() - HISTORY_DAYS * 86_400_000_000);
    let ends = context.ledger_read(|ledger| ledger.ends_like(run, &attempt.launcher, since))?;
    let failed = ends.iter().filter(|end| is_failure(end.reason, end.domain));
    let history = FailureHistory {
        failures: failed.map(|end| end.attempt_count).sum(),
        observed_seconds: ends.iter().map(|end| end.wall_seconds).sum(),
    };
    let gpus = f64::from(attempt.gpu_count.unwrap_or(0));
    Ok(Some(advise(costs, history, Price { gpus, usd_per_gpu_hour: attempt.usd_per_gpu_hour })))
}

/// Means over all saves; none when there are too few, or when no step between two saves was measured.
fn save_costs(summaries: &[MetricSummaryRow], upload_lag_seconds: Option<f64>) -> Option<SaveCosts> {
    let of = |name| Mean::of(summaries, name);
    let stall = of(cost::STALL_SECONDS).filter(|mean| mean.count >= SAVES_MIN)?;
    Some(SaveCosts {
        save_count: stall.count,
        stall_seconds: stall.value,
        commit_lag_seconds: of(cost::COMMIT_LAG_SECONDS)?.value,
        slowdown: of(cost::SLOWDOWN).map_or(0.0, |mean| mean.value),
        upload_lag_seconds,
        step_seconds: of(cost::STEP_SECONDS)?.value,
        interval_seconds: interval_seconds(summaries)?,
    })
}

/// The mean time between two saves. The first one of an attempt is left out where there are others: it counts from the start of the
/// process, whose imports and first step belong to no cadence.
fn interval_seconds(summaries: &[MetricSummaryRow]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0);
    for row in summaries.iter().filter(|row| row.name == cost::INTERVAL_SECONDS && row.point_count > 1) {
        if let Some((mean, first)) = row.mean_value.zip(row.first_value) {
            sum += mean * row.point_count as f64 - first;
            count += row.point_count - 1;
        }
    }
    match count {
        0 => Mean::of(summaries, cost::INTERVAL_SECONDS).map(|mean| mean.value),
        count => Some(sum / count as f64),
    }
}

/// The median duration of the newest uploads, from the commit on; none before there was one. Not the mean: a night in
/// which the remote did not answer does not predict the next upload.
fn upload_lag_seconds(uploads: &[f64]) -> Option<f64> {
    let mut newest: Vec<f64> = uploads.iter().rev().take(UPLOADS_MAX).copied().collect();
    newest.sort_by(f64::total_cmp);
    newest.get(newest.len() / 2).copied()
}

struct Mean {
    value: f64,
    count: u64,
}

impl Mean {
    fn of(summaries: &[MetricSummaryRow], name: &str) -> Option<Self> {
        let (mut sum, mut count) = (0.0, 0);
        for row in summaries.iter().filter(|row| row.name == name) {
            if let Some(mean) = row.mean_value {
                let points = row.point_count - row.non_finite_count;
                sum += mean * points as f64;
                count += points;
            }
        }
        (count > 0).then(|| Self { value: sum / count as f64, count })
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{AttemptId, RunId, SequentialIds};

    use super::*;

    fn intervals(values: &[f64]) -> MetricSummaryRow {
        let (count, ids) = (values.len() as u64, SequentialIds::default());
        MetricSummaryRow {
            attempt_id: AttemptId::new(&ids),
            run_id: RunId::new(&ids),
            name: cost::INTERVAL_SECONDS.into(),
            point_count: count,
            non_finite_count: 0,
            non_finite_from_step: None,
            non_finite_end_count: None,
            first_step: 1,
            last_step: count as i64,
            first_value: values.first().copied(),
            last_value: values.last().copied(),
            min_value: None,
            max_value: None,
            mean_value: Some(values.iter().sum::<f64>() / count as f64),
        }
    }

    /// Proves that the imports before the first save of an attempt are no part of the cadence, unless nothing else is known of it.
    #[test]
    fn the_start_of_a_process_is_no_interval() {
        assert_eq!(interval_seconds(&[]), None);
        assert_eq!(interval_seconds(&[intervals(&[8.0])]), Some(8.0));
        let all = [intervals(&[8.0, 3.0, 3.0, 3.0]), intervals(&[20.0]), intervals(&[9.0, 3.0])];
        assert_eq!(interval_seconds(&all), Some(3.0));
    }

    /// Proves that one upload which waited a night for its remote does not move the figure, and that without uploads it
    /// is missing and not zero.
    #[test]
    fn an_outage_is_no_property_of_uploads() {
        assert_eq!(upload_lag_seconds(&[]), None);
        assert_eq!(upload_lag_seconds(&[4.0, 30_000.0, 5.0]), Some(5.0));
        let many: Vec<f64> = [1e6; UPLOADS_MAX].into_iter().chain([2.0; UPLOADS_MAX]).collect();
        assert_eq!(upload_lag_seconds(&many), Some(2.0));
    }
}
