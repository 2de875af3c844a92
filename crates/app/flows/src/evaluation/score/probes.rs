//! Probes of the model that an evaluation scores: what it loses without a feature, and what changed values do.

use std::path::Path;

use trackway_engine::error::{AppError, ErrorKind};
use trackway_evaluate::debug::{ProbeAnswer, ProbePart, ProbeSettings};
use trackway_evaluate::latency::BatchTime;

use super::request::{ModelInput, ScoreRequest};
use super::{PredictionKind, ReadObserver};
use crate::evaluation::probe::{ProbeRequest, probe};
use crate::evaluation::scoring::PATIENCE_SECONDS;

/// How many rows are drawn if the request does not say.
const ROWS: u64 = 200;
/// If probing takes longer than this, only a request that names the rows is probed.
const SECONDS_MAX: f64 = 60.0;
/// The shortest wait for the answers to the rows of a probe.
const PATIENCE_SECONDS_MIN: f64 = 10.0;
/// Shuffles of each feature for its importance.
const REPEATS: usize = 2;
/// Changes of each feature: missing, ten times as large, a tenth, shuffled.
const CHANGES: usize = 4;

/// What the scoring of all rows showed.
pub(super) struct ScoredRows<'s> {
    pub given: &'s ModelInput,
    pub kind: PredictionKind,
    pub times: &'s [BatchTime],
}

/// Probes the model with some rows of the table. The inner error: why it was not, for a reader.
///
/// # Errors
/// [`ErrorKind::Cancelled`].
pub(super) fn probes(
    base: &Path,
    request: &ScoreRequest,
    scored: &ScoredRows<'_>,
    observer: &ReadObserver<'_>,
) -> Result<Result<ProbeAnswer, String>, AppError> {
    let features: Vec<String> = scored.given.names().map(str::to_owned).collect();
    let rows = match request.probe_rows {
        Some(0) => {
            return Ok(Err(
                "the model was not probed: `evaluate.probe_rows` is 0, as on further test sets".into()
            ));
        }
        Some(rows) => rows,
        None => {
            let calls = features.len() * (REPEATS + CHANGES) + 1;
            let seconds = seconds_per_row(scored.times) * (ROWS * calls as u64) as f64;
            if seconds > SECONDS_MAX {
                return Ok(Err(format!(
                    "the model was not probed: {ROWS} rows would take about {seconds:.0} s; `evaluate.probe_rows` requests it"
                )));
            }
            ROWS
        }
    };
    let request = ProbeRequest {
        table: request.table.clone(),
        command: request.command.clone(),
        format: request.format,
        label: request.label.clone(),
        positive: request.positive.clone().filter(|_| scored.kind == PredictionKind::Probabilities),
        loss: None,
        threshold: None,
        features,
        skip: Vec::new(),
        rows: usize::try_from(rows).unwrap_or(usize::MAX),
        settings: ProbeSettings {
            parts: vec![ProbePart::Importance, ProbePart::Perturbations],
            repeats: REPEATS,
            ..ProbeSettings::default()
        },
        patience_seconds: Some(patience_seconds(scored.times)),
        // Every row was scored: what changed rows do to the model is a result of the probe, not of the evaluator.
        keeps_errors: true,
    };
    match probe(base, &request, observer, &|_| {}) {
        Ok(report) => Ok(Ok(report.found)),
        Err(error) if error.kind == ErrorKind::Cancelled => Err(error),
        Err(error) => Ok(Err(format!("the model was not probed: {error}"))),
    }
}

/// A model that does not answer changed rows must not hold up the evaluation: it has ten times as long as the first batch took,
/// with the start of the model.
fn patience_seconds(times: &[BatchTime]) -> f64 {
    let first = times.first().map_or(0.0, |batch| batch.seconds);
    (first * 10.0).clamp(PATIENCE_SECONDS_MIN, PATIENCE_SECONDS)
}

/// The first batch, for which the model was started, counts only if it is alone.
fn seconds_per_row(times: &[BatchTime]) -> f64 {
    let counted = if times.len() > 1 { &times[1..] } else { times };
    let rows: usize = counted.iter().map(|batch| batch.rows).sum();
    counted.iter().map(|batch| batch.seconds).sum::<f64>() / rows.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the start of the model is not taken for the time of its rows.
    #[test]
    fn the_start_of_a_model_does_not_count() {
        let batch = |rows, seconds| BatchTime { rows, seconds };
        assert_eq!(seconds_per_row(&[batch(100, 9.0), batch(100, 1.0), batch(50, 0.5)]), 0.01);
        assert_eq!(seconds_per_row(&[batch(10, 1.0)]), 0.1);
        assert_eq!(seconds_per_row(&[]), 0.0);
    }
}
