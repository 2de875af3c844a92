//! How fast steps go: waiting for batches, and getting slower.
//!
//! Starvation is the exposed wait for a batch, as a fraction of the step (TensorFlow's profiler calls 20 %
//! input-bound), over an average of 16 steps, so that one slow batch, or an epoch's beginning, does not count; waits
//! below a millisecond are measuring noise and not worth a user's time. A drop in speed is a row of medians of 8 steps
//! that are each half as long again as the usual one: single slow steps (a checkpoint, an evaluation) do not move a
//! median, and slow ones do not enter the usual time. Slowness of less than a quarter of a second is a neighbour on the
//! machine: steps of a millisecond see one now and then.

use trackway_core::detect::DetectionSeverity::Warn;

use crate::detect::anomaly::{DetectorChange, Sample, number};
use crate::detect::rules::Rule;
use crate::detect::series::level::Level;
use crate::detect::series::streak::Streak;

/// The first steps compile, open files and fill buffers.
const WARM_UP_STEPS: u32 = 10;
const AVERAGE_STEPS: f64 = 16.0;
/// Less waiting in a step, in seconds, is not reported.
const WAIT_SECONDS_MIN: f64 = 1e-3;
/// Steps whose median is compared with the usual one.
const RECENT_STEPS: usize = 8;
/// Steps count as slow once they were so for as long as this.
const SLOW_SECONDS_MIN: f64 = 0.25;
/// Good looks in a row after which a drop is over.
const CALM_LOOKS: u32 = 4;
/// Good steps in a row after which starvation is over.
const CALM: u32 = 32;

/// The fraction of the step that waits for its batch.
#[derive(Debug, Clone, Default)]
pub(in crate::detect) struct Starvation {
    seen: u32,
    wait_seconds: f64,
    step_seconds: f64,
    wait_pending: Option<Sample>,
    step_pending: Option<Sample>,
    streak: Streak,
}

impl Starvation {
    /// The wait of a step. It is evaluated with the step's duration, whichever of them is recorded first.
    pub(in crate::detect) fn wait(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        self.wait_pending = Some(sample);
        self.evaluate(rule)
    }

    /// The duration of a step, its wait included.
    pub(in crate::detect) fn step(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        self.step_pending = Some(sample);
        self.evaluate(rule)
    }

    fn evaluate(&mut self, rule: Rule) -> Option<DetectorChange> {
        let (wait, sample) = self.wait_pending.zip(self.step_pending)?;
        if wait.step != sample.step {
            return None;
        }
        (self.wait_pending, self.step_pending) = (None, None);
        self.seen += 1;
        if self.seen <= WARM_UP_STEPS {
            return None;
        }
        let steps = f64::from(self.seen - WARM_UP_STEPS).min(AVERAGE_STEPS);
        self.wait_seconds += (wait.value - self.wait_seconds) / steps;
        self.step_seconds += (sample.value.max(wait.value) - self.step_seconds) / steps;
        let share = self.wait_seconds / self.step_seconds.max(f64::MIN_POSITIVE);
        let bad = share > rule.threshold && self.wait_seconds > WAIT_SECONDS_MIN;
        let turn = self.streak.take(bad, sample.step, rule.patience, CALM);
        turn.change(Warn, Some(share), rule.threshold, || {
            let (wait, step) = (number(self.wait_seconds), number(self.step_seconds));
            format!("a step waits {wait} s of its {step} s for the batch: {:.0} %", 100.0 * share)
        })
    }
}

/// Steps that take longer than they did, or samples that come slower.
#[derive(Debug, Clone, Default)]
pub(in crate::detect) struct Drop {
    seen: u32,
    seconds: Level,
    recent: [f64; RECENT_STEPS],
    slow_seconds: f64,
    streak: Streak,
}

/// What the durations are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::detect) enum Each {
    Step,
    /// How long a step takes is not known then.
    Sample,
}

impl Drop {
    /// Takes how long a step, or a sample, takes, in seconds. Looks at it every [`RECENT_STEPS`] steps.
    pub(in crate::detect) fn take(
        &mut self,
        rule: Rule,
        sample: Sample,
        each: Each,
    ) -> Option<DetectorChange> {
        self.seen = self.seen.saturating_add(1);
        if self.seen <= WARM_UP_STEPS || sample.value <= 0.0 {
            return None;
        }
        let place = (self.seen - WARM_UP_STEPS) as usize % RECENT_STEPS;
        self.recent[place] = sample.value;
        if place != 0 {
            return None;
        }
        self.recent.sort_unstable_by(f64::total_cmp);
        let seconds = self.recent[RECENT_STEPS / 2];
        let Some(standing) = self.seconds.standing(seconds) else {
            self.seconds.accept(seconds);
            return None;
        };
        let speed = standing.median / seconds;
        let bad = speed < rule.threshold;
        if bad {
            self.seconds.reject(seconds);
        } else {
            self.seconds.accept(seconds);
        }
        self.slow_seconds = if bad { self.slow_seconds + self.recent.iter().sum::<f64>() } else { 0.0 };
        let lasts = bad && (each == Each::Sample || self.slow_seconds >= SLOW_SECONDS_MIN);
        let turn = self.streak.take(lasts, sample.step, rule.patience, CALM_LOOKS);
        turn.change(Warn, Some(speed), rule.threshold, || {
            let (now, usual, percent) = (number(seconds), number(standing.median), 100.0 * speed);
            format!(
                "the median of {RECENT_STEPS} steps is {now} s, {usual} s is usual: {percent:.0} % of the speed"
            )
        })
    }
}
