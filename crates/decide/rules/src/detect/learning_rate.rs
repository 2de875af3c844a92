//! A learning rate, or an update, that is out of range.
//!
//! Zero is a schedule's first and last step, so only a row of zeros counts. A jump counts when the schedule had fallen,
//! or was constant for 500 steps: a warm-up may rise by any factor from one epoch to the next, and a warm restart does
//! not go above the highest rate there was. The size of an update against the weights (`update_ratio`) is about a
//! thousandth in healthy runs and a few hundredths at their beginning; the limits are those of `trackway rehearse`.

use trackway_core::detect::DetectionSeverity::Warn;

use super::anomaly::{DetectorChange, Sample, number};
use super::rules::Rule;
use super::series::level::Level;
use super::series::streak::Streak;

/// A rate this many times the highest one so far is a jump.
const JUMP_FACTOR: f64 = 10.0;
/// Steps at one rate after which a warm-up is over.
const STILL_STEPS: u32 = 500;
/// The first updates are large.
const UPDATE_WARM_UP: u32 = 20;
/// An update by more than this fraction of the weights is too large.
const UPDATE_HIGH: f64 = 0.3;
/// An update below this fraction of the usual one, for the same learning rate: the weights became huge, or the gradient
/// vanished.
const FALLEN_SHARE: f64 = 0.01;
/// Updates that are looked at after a resume, and the sign of an optimizer that lost its state: Adam's first update has
/// the full size for every weight, a few times the usual one, and the size of updates has next to no noise.
const RESUME_STEPS: u32 = 3;
const RESUME_FACTOR: f64 = 2.0;
const RESUME_SIGMA: f64 = 6.0;
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
    pub(super) fn take(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        let rate = sample.value;
        let settled = self.fell || self.still >= STILL_STEPS;
        let before = self.record;
        // A jump continues while the rate stays up; the record is kept so that it can be seen.
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
        let threshold = if self.jump { JUMP_FACTOR * before } else { rule.threshold };
        self.streak.take(bad, sample.step, patience, CALM).change(Warn, None, threshold, || {
            if self.jump {
                format!("the learning rate is {}; the highest before was {}", number(rate), number(before))
            } else if rate == 0.0 {
                format!("the learning rate has been 0 for {} steps", rule.patience)
            } else {
                format!("the learning rate is {}", number(rate))
            }
        })
    }
}

/// The size of updates against the size of the weights.
#[derive(Debug, Clone, Default)]
pub(super) struct UpdateRatio {
    seen: u32,
    /// The usual size for a learning rate of 1.
    level: Level,
    since_resume: Option<u32>,
    streak: Streak,
}

/// What is wrong with an update.
enum Odd {
    High,
    Nothing,
    Fallen(f64),
    AfterResume(f64),
}

impl UpdateRatio {
    /// Takes a finite ratio.
    pub(super) fn take(&mut self, rule: Rule, sample: Sample, rate: Option<f64>) -> Option<DetectorChange> {
        self.seen = self.seen.saturating_add(1);
        self.since_resume = self.since_resume.map(|steps| steps + 1).filter(|steps| *steps <= RESUME_STEPS);
        let odd = self.odd(sample.value, sample.value / rate.unwrap_or(1.0));
        let patience = if matches!(odd, Some(Odd::AfterResume(_))) { 1 } else { rule.patience };
        // A streak fires at an observation that is bad.
        let (threshold, evidence) = odd.as_ref().map(|odd| odd.words(rule, sample.value)).unwrap_or_default();
        self.streak
            .take(odd.is_some(), sample.step, patience, CALM)
            .change(Warn, None, threshold, || evidence)
    }

    fn odd(&mut self, ratio: f64, relative: f64) -> Option<Odd> {
        let standing = self.level.standing(relative);
        let odd = if ratio > UPDATE_HIGH && self.seen > UPDATE_WARM_UP {
            Some(Odd::High)
        } else if ratio == 0.0 {
            Some(Odd::Nothing)
        } else {
            standing.and_then(|standing| {
                if self.since_resume.is_some()
                    && relative > RESUME_FACTOR * standing.median
                    && standing.z > RESUME_SIGMA
                {
                    Some(Odd::AfterResume(relative / standing.median))
                } else {
                    (relative < FALLEN_SHARE * standing.median)
                        .then_some(Odd::Fallen(relative / standing.median))
                }
            })
        };
        if odd.is_none() && relative.is_finite() {
            self.level.accept(relative);
        }
        odd
    }

    /// The run resumes from a checkpoint.
    pub(super) fn begins_again(&mut self) {
        self.since_resume = Some(0);
    }
}

impl Odd {
    fn words(&self, rule: Rule, ratio: f64) -> (f64, String) {
        match self {
            Self::High => (
                UPDATE_HIGH,
                format!("an update changes the weights by {:.0} % of their size", 100.0 * ratio),
            ),
            Self::Nothing => (0.0, format!("updates have changed nothing for {} steps", rule.patience)),
            Self::Fallen(share) => (
                FALLEN_SHARE,
                format!("for its learning rate, an update is {} of the usual size", number(*share)),
            ),
            Self::AfterResume(factor) => (
                RESUME_FACTOR,
                format!(
                    "after the resume, an update is {} times the usual size for its learning rate: the optimizer's state was not restored",
                    number(*factor)
                ),
            ),
        }
    }
}
