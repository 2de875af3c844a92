//! What earlier runs of the same name measured: how long a step takes, how fast they were on one device and on all, how much
//! memory they needed, what they logged, what their saves took and how often they were interrupted. A rehearsal of this very run counts
//! for more.

use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::stored::stored_plan;
use trackway_formats::runfile::Plan;
use trackway_ledger::{AttemptRow, MetricSummaryRow, RunFilter, RunRow};
use trackway_rules::preflight::config_checks::{Interruptions, Logging, SaveTime, Throughput};
use trackway_rules::preflight::memory::Counter;

use crate::training::cadence::cadence_advice;
use crate::training::memory::MeasuredPeak;

/// Runs that are looked at, newest first.
const RUNS_MAX: usize = 20;
/// Fewer seconds give no rate.
const LOGGED_SECONDS_MIN: f64 = 5.0;
/// What Trackway itself records, and no script.
const OWN_METRICS: [&str; 2] = ["trackway/", "system/"];

/// What earlier runs measured; none where no run did.
#[derive(Debug, Default, Clone, Copy)]
pub struct EarlierMeasures {
    /// Seconds of a step, on as many devices as this run has.
    pub step_seconds: Option<f64>,
    /// The rate on all devices and on one.
    pub throughput: Option<Throughput>,
    /// The peak of device memory of a run with the same `[training]`.
    pub peak: Option<MeasuredPeak>,
    /// Seconds by which the first step was longer than the mean one: compiling, above all.
    pub first_step_seconds: Option<f64>,
    pub logging: Option<Logging>,
    /// What a save took.
    pub save: Option<SaveTime>,
    /// How often attempts ended from outside.
    pub interruptions: Option<Interruptions>,
}

/// One attempt and its metrics.
struct MeasuredAttempt {
    gpus: u32,
    has_same_settings: bool,
    summaries: Vec<MetricSummaryRow>,
    seconds_per_step: Option<f64>,
    /// Bytes of output, in so many seconds of training.
    output: Option<(u64, f64)>,
}

/// Looks at the newest runs of the plan's name.
pub fn earlier(context: &Context, plan: &Plan) -> Result<EarlierMeasures, AppError> {
    let filter =
        RunFilter { name: Some(plan.run.name.clone()), limit: Some(RUNS_MAX), ..RunFilter::default() };
    let (mut seen, mut saving) = (Vec::new(), Saving::default());
    for run in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
        if saving.save.is_none() {
            saving = saving_of(context, &run)?;
        }
        let has_same_settings =
            stored_plan(&run).ok().flatten().is_some_and(|before| before.training == plan.training);
        for attempt in context.attempts_of(run.run_id)?.into_iter().rev() {
            let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of(attempt.attempt_id))?;
            seen.push(MeasuredAttempt {
                gpus: attempt.gpu_count.unwrap_or(0),
                has_same_settings,
                summaries,
                seconds_per_step: seconds_per_step(&attempt),
                output: output(&attempt),
            });
        }
    }
    let Saving { save, interruptions } = saving;
    Ok(EarlierMeasures { save, interruptions, ..measured(&seen, plan.resources.gpus) })
}

/// What a save takes, and how often attempts like those of a run end from outside.
#[derive(Default)]
struct Saving {
    save: Option<SaveTime>,
    interruptions: Option<Interruptions>,
}

fn saving_of(context: &Context, run: &RunRow) -> Result<Saving, AppError> {
    let attempts = context.attempts_of(run.run_id)?;
    let Some(newest) = attempts.last() else { return Ok(Saving::default()) };
    // How long uploads take does not matter here.
    let Some(advice) = cadence_advice(context, run, newest, &attempts, &[])? else {
        return Ok(Saving::default());
    };
    Ok(Saving {
        save: Some(SaveTime {
            cost_seconds: advice.save_cost_seconds,
            commit_seconds: advice.costs.commit_lag_seconds,
            interval_seconds: advice.costs.interval_seconds,
        }),
        interruptions: Some(Interruptions {
            mean_seconds: advice.mttf_hours.map(|hours| hours * 3600.0),
            count: advice.history.failures,
        }),
    })
}

/// The bytes that an attempt printed, and its seconds from the first step on.
fn output(attempt: &AttemptRow) -> Option<(u64, f64)> {
    let seconds = attempt.ended_at?.seconds_since(attempt.first_step_at?);
    let bytes = attempt.stdout_bytes.unwrap_or(0) + attempt.stderr_bytes.unwrap_or(0);
    (seconds >= LOGGED_SECONDS_MIN).then_some((bytes, seconds))
}

/// From the first step that was reported to the end; none for less than two steps.
fn seconds_per_step(attempt: &AttemptRow) -> Option<f64> {
    let steps = attempt.last_step?.checked_sub(attempt.first_step?)?;
    let seconds = attempt.ended_at?.seconds_since(attempt.first_step_at?);
    (steps > 0 && seconds > 0.0).then(|| seconds / steps as f64)
}

fn measured(seen: &[MeasuredAttempt], gpus: u32) -> EarlierMeasures {
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
    EarlierMeasures {
        step_seconds: recorded.or_else(|| here.clone().find_map(|one| one.seconds_per_step)),
        throughput: rate_on(gpus).zip(rate_on(1)).map(|(all, one)| Throughput {
            samples_per_second: all,
            samples_per_second_of_one: one,
            nvlink: None,
        }),
        peak: peak.map(|(bytes, counter)| MeasuredPeak { bytes: bytes as u64, counter }),
        first_step_seconds: here.clone().find_map(MeasuredAttempt::first_step_seconds),
        logging: seen.iter().find_map(MeasuredAttempt::logging),
        save: None,
        interruptions: None,
    }
}

impl MeasuredAttempt {
    fn summary(&self, name: &str) -> Option<&MetricSummaryRow> {
        self.summaries.iter().find(|summary| summary.name == name)
    }

    fn mean(&self, name: &str) -> Option<f64> {
        self.summary(name)?.mean_value.filter(|value| value.is_finite() && *value > 0.0)
    }

    fn first_step_seconds(&self) -> Option<f64> {
        let summary = self.summary("step_seconds").filter(|summary| summary.point_count > 1)?;
        Some(summary.first_value? - self.mean("step_seconds")?).filter(|seconds| *seconds > 0.0)
    }

    fn logging(&self) -> Option<Logging> {
        let (bytes, seconds) = self.output?;
        let by_script =
            |summary: &&MetricSummaryRow| !OWN_METRICS.iter().any(|own| summary.name.starts_with(own));
        let values: u64 = self.summaries.iter().filter(by_script).map(|summary| summary.point_count).sum();
        let (values_per_second, output_bytes_per_second) = (values as f64 / seconds, bytes as f64 / seconds);
        Some(Logging { values_per_second, output_bytes_per_second })
    }

    fn greatest(&self, name: &str) -> Option<f64> {
        self.summary(name)?.max_value.filter(|value| value.is_finite() && *value > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(gpus: u32, has_same_settings: bool, values: &[(&str, f64)]) -> MeasuredAttempt {
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
        MeasuredAttempt {
            gpus,
            has_same_settings,
            summaries,
            seconds_per_step: Some(7.0),
            output: Some((600, 6.0)),
        }
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

    /// Proves that what a script logged is a rate over the seconds of its training, without what Trackway records itself, and that the
    /// first step is compared with the mean one.
    #[test]
    fn logging_and_the_first_step_are_measured() {
        let mut one = seen(
            0,
            true,
            &[("loss", 1.0), ("step_seconds", 0.5), ("trackway/checkpoint_stall_seconds", 1.0)],
        );
        one.summaries[1].first_value = Some(20.5);
        let found = measured(&[one], 0);
        let logging = found.logging.unwrap();
        assert_eq!((logging.values_per_second, logging.output_bytes_per_second), (3.0, 100.0));
        assert_eq!(found.first_step_seconds, Some(20.0));
        let short = MeasuredAttempt { output: None, ..seen(0, true, &[("loss", 1.0)]) };
        assert!(measured(&[short], 0).logging.is_none(), "too short for a rate");
    }
}
