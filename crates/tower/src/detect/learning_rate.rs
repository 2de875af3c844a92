//! A learning rate, or an update, that is out of range.
//!
//! Zero is a schedule's first and last step, so only a row of zeros counts. A jump counts when the schedule had fallen, or stood still
//! for 500 steps: a warm-up may rise by any factor from one epoch to the next, and a warm restart does not go above the highest rate
//! there was. The size of an update against the weights (`update_ratio`) is about a thousandth in healthy runs and a few
//! hundredths at their beginning; the limits are those of `trackway rehearse`.

use trackway_core::detect::DetectionSeverity::Warn;

use super::found::{Change, Found, Sample, number};
use super::rules::Rule;
use super::streak::{Streak, Turn};

/// A rate this many times the highest one so far is a jump.
const JUMP_FACTOR: f64 = 10.0;
/// Steps at one rate after which a warm-up is over.
const STILL_STEPS: u32 = 500;
/// The first updates are large.
const UPDATE_WARM_UP: u32 = 20;
/// An update by more than this share of the weights throws them about.
const UPDATE_HIGH: f64 = 0.3;
/// Values in range in a row after which it is over.
const CALM: u32 = 20;

#[derive(Debug, Clone, Default)]
pub(super) struct LearningRateWatch {
    last: f64,
    record: f64,
    still: u32,
    fell: bool,
    jump: bool,
    streak: Streak,
}

impl LearningRateWatch {
    /// Takes a finite learning rate.
    pub(super) fn take(&mut self, rule: Rule, sample: Sample) -> Option<Change> {
        let rate = sample.value;
        let settled = self.fell || self.still >= STILL_STEPS;
        let before = self.record;
        // A jump goes on while the rate stays up; the record is kept so that it can be seen.
        self.jump = (settled || self.jump) && before > 0.0 && rate > JUMP_FACTOR * before;
        if !self.jump {
            self.fell |= rate < self.last && rate > 0.0;
            self.still = if rate == self.last { self.still.saturating_add(1) } else { 0 };
            self.last = rate;
            self.record = self.record.max(rate);
        }
        let beyond = rate < 0.0 || rate > rule.threshold;
        let bad = beyond || self.jump || rate == 0.0;
        let patience = if beyond || self.jump { 1 } else { rule.patience };
        match self.streak.take(bad, sample.step, patience, CALM) {
            Turn::Nothing => None,
            Turn::Rearmed => Some(Change::Rearmed),
            Turn::Fires(first_step) => {
                let evidence = if self.jump {
                    format!(
                        "the learning rate is {}; the highest before was {}",
                        number(rate),
                        number(before)
                    )
                } else if rate == 0.0 {
                    format!("the learning rate has been 0 for {} steps", rule.patience)
                } else {
                    format!("the learning rate is {}", number(rate))
                };
                let threshold = if self.jump { JUMP_FACTOR * before } else { rule.threshold };
                Some(Change::fires(Found { severity: Warn, first_step, value: None, threshold, evidence }))
            }
        }
    }
}

/// The size of updates against the size of the weights.
#[derive(Debug, Clone, Default)]
pub(super) struct UpdateRatio {
    seen: u32,
    streak: Streak,
}

impl UpdateRatio {
    /// Takes a finite ratio.
    pub(super) fn take(&mut self, rule: Rule, sample: Sample) -> Option<Change> {
        self.seen = self.seen.saturating_add(1);
        let high = sample.value > UPDATE_HIGH && self.seen > UPDATE_WARM_UP;
        match self.streak.take(high || sample.value == 0.0, sample.step, rule.patience, CALM) {
            Turn::Nothing => None,
            Turn::Rearmed => Some(Change::Rearmed),
            Turn::Fires(first_step) => {
                let evidence = if high {
                    format!("an update changes the weights by {:.0} % of their size", 100.0 * sample.value)
                } else {
                    format!("updates have changed nothing for {} steps", rule.patience)
                };
                let threshold = if high { UPDATE_HIGH } else { 0.0 };
                Some(Change::fires(Found { severity: Warn, first_step, value: None, threshold, evidence }))
            }
        }
    }
}
