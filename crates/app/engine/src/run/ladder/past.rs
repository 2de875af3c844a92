//! What the sealed attempts of a rung took and recorded together: a fold, so that a decision about a rung reads what is new alone.

use std::collections::BTreeMap;

use trackway_core::{Rung, Step};
use trackway_ledger::{AttemptRow, AttemptState, EventRow, MetricSummaryRow};
use trackway_rules::ladder::{MetricValues, RungMetrics};

use super::evidence::RungEvidence;
use super::warm_start::WarmStart;
use crate::Context;
use crate::error::AppError;
use crate::ledger::rows::rung_of;

/// What attempts of one rung took and recorded.
#[derive(Debug, Clone, Default)]
pub(super) struct RungPast {
    pub attempt_count: u32,
    pub last_step: Option<Step>,
    pub wall_seconds: f64,
    pub gpu_seconds: f64,
    pub cost_usd: Option<f64>,
    /// The rows of the last attempt that counted them, kept and of all.
    pub rows: Option<u64>,
    pub rows_total: Option<u64>,
    /// The step of the rung before whose weights the last that began with some began with.
    pub warm_start_step: Option<Step>,
    pub metrics: RungMetrics,
    pub evidence: RungEvidence,
}

impl RungPast {
    /// Takes the next attempt, and what it recorded.
    pub fn take(
        &mut self,
        context: &Context,
        row: &AttemptRow,
        (summaries, events): (&[MetricSummaryRow], &[EventRow]),
    ) {
        self.attempt_count = self.attempt_count.saturating_add(1);
        self.last_step = self.last_step.max(row.last_step);
        self.wall_seconds += row.wall_seconds.unwrap_or(0.0);
        self.gpu_seconds += row.gpu_seconds.unwrap_or(0.0);
        self.cost_usd = self.cost_usd.into_iter().chain(row.cost_usd).reduce(|sum, cost| sum + cost);
        self.rows = row.rung_rows.or(self.rows);
        self.rows_total = row.rung_rows_total.or(self.rows_total);
        let warm_start = WarmStart::read(context, row.attempt_id);
        self.warm_start_step = warm_start.map(|from| from.step).or(self.warm_start_step);
        gather(&mut self.metrics, summaries);
        self.evidence.take(events);
    }
}

/// The sealed attempts of a run, by rung.
#[derive(Debug, Clone, Default)]
struct OfRun(BTreeMap<String, RungPast>);

impl OfRun {
    fn take(&mut self, context: &Context, attempt: &AttemptRow) -> Result<(), AppError> {
        if attempt.state != AttemptState::Sealed {
            return Ok(());
        }
        let id = attempt.attempt_id;
        let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of(id))?;
        let events = context.ledger_read(|ledger| ledger.events_of_attempt(id))?;
        let past = self.0.entry(rung_of(attempt).to_string()).or_default();
        past.take(context, attempt, (&summaries, &events));
        Ok(())
    }
}

/// What the sealed attempts of a rung before the row's took and recorded.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn past_of_rung(context: &Context, row: &AttemptRow, rung: Rung) -> Result<RungPast, AppError> {
    let of = (row.run_id, row.kind);
    let take = |known: &mut OfRun, attempt: &AttemptRow| known.take(context, attempt);
    let known = context.fold_attempts(of, row.attempt_number, take)?;
    Ok(known.0.get(&rung.to_string()).cloned().unwrap_or_default())
}

/// Adds what a later attempt recorded: its last value counts, and its extremes where they go beyond.
fn gather(metrics: &mut RungMetrics, summaries: &[MetricSummaryRow]) {
    for summary in summaries {
        let values: &mut MetricValues = metrics.entry(summary.name.clone()).or_default();
        values.last = summary.last_value;
        values.least = values.least.into_iter().chain(summary.min_value).min_by(f64::total_cmp);
        values.greatest = values.greatest.into_iter().chain(summary.max_value).max_by(f64::total_cmp);
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{AttemptId, RunId, SequentialIds};
    use trackway_ledger::conformance::rows_read;

    use super::*;
    use crate::testing::{SETTLES, World};

    /// Proves that the newest value of a metric counts, also where only an earlier attempt recorded it, and that the
    /// extremes are those of all attempts.
    #[test]
    fn a_rung_is_the_sum_of_its_attempts() {
        let ids = SequentialIds::default();
        let (run_id, attempt_id) = (RunId::new(&ids), AttemptId::new(&ids));
        let summary = |name: &str, last: f64, least: f64, greatest: f64| MetricSummaryRow {
            attempt_id,
            run_id,
            name: name.into(),
            point_count: 3,
            non_finite_count: 0,
            non_finite_from_step: None,
            non_finite_end_count: None,
            first_step: 1,
            last_step: 3,
            first_value: None,
            last_value: last.is_finite().then_some(last),
            min_value: Some(least),
            max_value: Some(greatest),
            mean_value: None,
        };
        let mut metrics = RungMetrics::new();
        gather(&mut metrics, &[summary("a", 3.0, 1.0, 4.0), summary("b", 7.0, 7.0, 7.0)]);
        gather(&mut metrics, &[summary("a", f64::NAN, 2.0, 9.0)]);
        assert_eq!(metrics["a"], MetricValues { last: None, least: Some(1.0), greatest: Some(9.0) });
        assert_eq!(metrics["b"].last, Some(7.0));
    }

    /// Proves that what a rung recorded is read once by a process, that only its own sealed attempts count, and that
    /// another process adds up the same.
    #[test]
    fn a_rung_reads_what_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run = context.run_by_id(world.run(&context, "exit 0", "").run_id).unwrap();
        World::add_sealed(&context, &run, 2..40, |row| AttemptRow {
            rung: if row.attempt_number % 2 == 0 { "10%".into() } else { row.rung },
            wall_seconds: Some(f64::from(row.attempt_number)),
            rung_rows: Some(u64::from(row.attempt_number)),
            ..row
        });
        let next = |number| AttemptRow::planned(AttemptId::new(&context.ids), number, run.kind, &run);
        let rung = "10%".parse().unwrap();
        let read = |context: &Context, number| {
            let before = rows_read();
            let past = past_of_rung(context, &next(number), rung).unwrap();
            (past.attempt_count, past.wall_seconds, past.rows, rows_read() - before)
        };
        assert_eq!(read(&context, 3), (1, 2.0, Some(2), read(&world.context(), 3).3));
        let (count, seconds, rows, _) = read(&context, 40);
        assert_eq!((count, seconds, rows), (19, 380.0, Some(38)));
        assert_eq!(read(&context, 40), (count, seconds, rows, 0));
        World::add_sealed(&context, &run, 40..41, |row| AttemptRow { rung: "10%".into(), ..row });
        assert_eq!(read(&context, 41), (20, 380.0, Some(38), 1));
        let (again, .., all) = read(&world.context(), 41);
        assert_eq!(again, 20);
        assert!(all >= 40, "{all}");
    }
}
