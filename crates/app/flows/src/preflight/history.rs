//! What earlier runs of the same name measured: how long a step takes, how fast they were on one device and on all, and how much
//! memory they needed. A rehearsal of this very run counts for more.

use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::stored::stored_plan;
use trackway_formats::runfile::Plan;
use trackway_ledger::{AttemptRow, MetricSummaryRow, RunFilter};
use trackway_tower::config_checks::Throughput;
use trackway_tower::memory::Counter;

use crate::memory::Measured;

/// Runs that are looked at, newest first.
const RUNS_MAX: usize = 20;

/// What earlier runs measured; none where no run did.
#[derive(Debug, Default, Clone, Copy)]
pub struct Earlier {
    /// Seconds of a step, on as many devices as this run has.
    pub step_seconds: Option<f64>,
    /// The rate on all devices and on one.
    pub throughput: Option<Throughput>,
    /// The peak of device memory of a run with the same `[training]`.
    pub peak: Option<Measured>,
}

/// One attempt and its metrics.
struct Seen {
    gpus: u32,
    has_same_settings: bool,
    summaries: Vec<MetricSummaryRow>,
    seconds_per_step: Option<f64>,
}

/// Looks at the newest runs of the plan's name.
pub fn earlier(context: &Context, plan: &Plan) -> Result<Earlier, AppError> {
    let filter =
        RunFilter { name: Some(plan.run.name.clone()), limit: Some(RUNS_MAX), ..RunFilter::default() };
    let mut seen = Vec::new();
    for run in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
        let has_same_settings =
            stored_plan(&run).ok().flatten().is_some_and(|before| before.training == plan.training);
        for attempt in context.attempts_of(run.run_id)?.into_iter().rev() {
            let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of(attempt.attempt_id))?;
            seen.push(Seen {
                gpus: attempt.gpu_count.unwrap_or(0),
                has_same_settings,
                summaries,
                seconds_per_step: seconds_per_step(&attempt),
            });
        }
    }
    Ok(measured(&seen, plan.resources.gpus))
}

/// From the first step that was reported to the end; none for less than two steps.
fn seconds_per_step(attempt: &AttemptRow) -> Option<f64> {
    let steps = attempt.last_step?.checked_sub(attempt.first_step?)?;
    let seconds = attempt.ended_at?.seconds_since(attempt.first_step_at?);
    (steps > 0 && seconds > 0.0).then(|| seconds / steps as f64)
}

fn measured(seen: &[Seen], gpus: u32) -> Earlier {
    let rate_on = |count: u32| {
        seen.iter().filter(|one| one.gpus == count).find_map(|one| one.mean("samples_per_second"))
    };
    let here = seen.iter().filter(|one| one.gpus == gpus);
    let recorded = here.clone().find_map(|one| one.mean("step_seconds"));
    let of_same = |name: &'static str| {
        seen.iter().filter(|one| one.has_same_settings).find_map(|one| one.greatest(name))
    };
    let reserved = of_same("memory_reserved_bytes").map(|bytes| (bytes, Counter::Reserved));
    let peak = reserved.or(of_same("memory_allocated_bytes").map(|bytes| (bytes, Counter::Allocated)));
    Earlier {
        step_seconds: recorded.or_else(|| here.clone().find_map(|one| one.seconds_per_step)),
        throughput: rate_on(gpus).zip(rate_on(1)).map(|(all, one)| Throughput {
            samples_per_second: all,
            samples_per_second_of_one: one,
            nvlink: None,
        }),
        peak: peak.map(|(bytes, counter)| Measured { bytes: bytes as u64, counter }),
    }
}

impl Seen {
    fn summary(&self, name: &str) -> Option<&MetricSummaryRow> {
        self.summaries.iter().find(|summary| summary.name == name)
    }

    fn mean(&self, name: &str) -> Option<f64> {
        self.summary(name)?.mean_value.filter(|value| value.is_finite() && *value > 0.0)
    }

    fn greatest(&self, name: &str) -> Option<f64> {
        self.summary(name)?.max_value.filter(|value| value.is_finite() && *value > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(gpus: u32, has_same_settings: bool, values: &[(&str, f64)]) -> Seen {
        let summary = |(name, value): &(&str, f64)| MetricSummaryRow {
            attempt_id: "att_00000000000000000000000001".parse().unwrap(),
            run_id: "run_00000000000000000000000001".parse().unwrap(),
            name: (*name).into(),
            point_count: 9,
            non_finite_count: 0,
            non_finite_from_step: None,
            non_finite_end_count: None,
            first_step: 1,
            last_step: 9,
            first_value: None,
            last_value: None,
            min_value: None,
            max_value: Some(*value),
            mean_value: Some(*value),
        };
        let summaries = values.iter().map(summary).collect();
        Seen { gpus, has_same_settings, summaries, seconds_per_step: Some(7.0) }
    }

    /// Proves that the newest attempt with as many devices counts, that a rate needs one on a single device too, and that only a
    /// peak of the same settings is taken.
    #[test]
    fn earlier_runs_are_measures_of_what_is_alike() {
        let seen = [
            seen(4, false, &[("samples_per_second", 300.0), ("memory_reserved_bytes", 9e9)]),
            seen(4, true, &[("step_seconds", 0.5), ("memory_allocated_bytes", 4e9)]),
            seen(1, true, &[("samples_per_second", 100.0)]),
        ];
        let found = measured(&seen, 4);
        assert_eq!(found.step_seconds, Some(0.5));
        let rate = found.throughput.unwrap();
        assert_eq!((rate.samples_per_second, rate.samples_per_second_of_one), (300.0, 100.0));
        let peak = found.peak.unwrap();
        assert_eq!((peak.bytes, peak.counter), (4_000_000_000, Counter::Allocated));
        assert!(measured(&seen[..2], 4).throughput.is_none(), "nothing is known of one device");
        assert_eq!(measured(&seen[..1], 4).step_seconds, Some(7.0), "from its first to its last step");
    }
}
