//! A loss that jumps, and a loss that stays high.
//!
//! Two detectors with different memory, as the published rules have them: a robust z-score for what leaves the noise within
//! steps (OLMo-core: 6 deviations in 128 steps), and a ratio for what stays at another level (llm-foundry: twice the mean for 5 steps).
//! Both look at a median and a spread that outliers do not enter.
//!
//! Why a healthy run does not set them off: the loss of a batch of one is distributed about exponentially, and leaves 6
//! deviations once in 140 steps; so one such step is not reported, three in a row are (1 in 3 million), more of them if
//! single ones are frequent, and each must also be half of the usual loss above it. One step alone counts when it is
//! three times as far up as the loss ever was: with an exponential tail that is less than 1 in 10⁹ after a hundred
//! steps. Near the end of training, when the loss is next to nothing and single hard samples dominate, a rise counts
//! only if it is large against the loss at the beginning.

use trackway_core::detect::DetectionSeverity::{Critical, Warn};
use trackway_formats::record::is_rounded_zero;

use super::anomaly::{DetectorChange, Sample, number};
use super::rules::Rule;
use super::series::level::{Deviation, Level};
use super::series::streak::Streak;

/// A single step counts from so many times the range seen so far.
const RECORD_FACTOR: f64 = 3.0;
/// Twice as many while the range is only so many steps old.
const RECORD_STEPS: f64 = 100.0;
/// A jump must be at least this fraction of the usual loss.
const JUMP_SHARE: f64 = 0.5;
/// A rise must be at least this fraction of the loss at the beginning.
const INITIAL_SHARE: f64 = 0.05;
/// The same where the loss at the beginning was printed as a zero with decimals: ten times what it was at most, as `0.00`.
const ROUNDED_RISE: f64 = 0.05;
/// The same for a rise that stays.
const SHIFT_INITIAL_SHARE: f64 = 0.1;
/// Deviations by which a new level must be above the old one.
const SHIFT_SIGMA: f64 = 3.0;
/// A loss that climbs slowly takes the median along; it must have risen by this fraction of the first loss from its
/// lowest level.
const CLIMB_INITIAL_SHARE: f64 = 0.15;
/// The same, as a fraction of the lowest level; by the noise of one step as well, which is ten times that of a median.
const CLIMB_SHARE: f64 = 0.6;
/// The probability that healthy jumps come in a row, which determines how many are needed.
const FALSE_ALARM_PROBABILITY: f64 = 1e-8;
/// Steps of the running mean, and of the mean at the beginning.
const MEAN_STEPS: f64 = 128.0;
const BEGINNING_STEPS: u64 = 30;
/// Normal steps after which it is over.
const CALM: u32 = 32;

/// Both detectors of one loss.
#[derive(Debug, Clone, Default)]
pub(super) struct LossWatch {
    pub level: Level,
    /// Means, to compare with those of an evaluation: a median of skewed losses is lower.
    pub mean: f64,
    pub initial_mean: f64,
    spike: Streak,
    shift: Streak,
    seen: u64,
    /// Rows of jumps, and of steps at a higher level, that began.
    jumps_begun: u32,
    rises_begun: u32,
}

impl LossWatch {
    /// Takes a finite loss and answers for spike and shift.
    pub(super) fn take(&mut self, spike: Rule, shift: Rule, sample: Sample) -> [Option<DetectorChange>; 2] {
        self.seen += 1;
        self.mean += (sample.value - self.mean) / (self.seen as f64).min(MEAN_STEPS);
        if self.seen <= BEGINNING_STEPS {
            self.initial_mean = self.mean;
        }
        let Some(standing) = self.level.standing(sample.value) else {
            self.level.accept(sample.value);
            return [None, None];
        };
        // Most steps are ordinary, and the rest of the thought is saved.
        let outside = standing.z > spike.threshold;
        let changes = [self.spiked(spike, sample, standing, outside), self.shifted(shift, sample, standing)];
        if outside && standing.rise > JUMP_SHARE * standing.median.abs() {
            self.level.reject(sample.value);
        } else {
            self.level.accept(sample.value);
        }
        changes
    }

    /// How many such steps in a row are significant: the more often it begins, the more it takes.
    fn patience(&self, rule: Rule, begun: u32) -> u32 {
        let share = (f64::from(begun) + 0.2) / (self.seen as f64 + 20.0);
        let needed = FALSE_ALARM_PROBABILITY.ln() / share.min(0.5).ln();
        rule.patience.max(needed.ceil() as u32)
    }

    /// Whether a rise is large against the loss at the beginning.
    fn worth(&self, rise: f64, share: f64) -> bool {
        let initial = self.level.initial().unwrap_or(0.0);
        let hidden = if is_rounded_zero(initial) { ROUNDED_RISE } else { 0.0 };
        rise > (share * initial.abs()).max(hidden)
    }

    fn spiked(
        &mut self,
        rule: Rule,
        sample: Sample,
        standing: Deviation,
        outside: bool,
    ) -> Option<DetectorChange> {
        let bad = outside
            && standing.rise > JUMP_SHARE * standing.median.abs()
            && self.worth(standing.rise, INITIAL_SHARE);
        // A young record is easily beaten.
        let factor = RECORD_FACTOR * (1.0 + RECORD_STEPS / self.seen as f64);
        let beyond_record = bad && standing.rise > factor * (self.level.record - standing.median);
        let patience = if beyond_record { 1 } else { self.patience(rule, self.jumps_begun) };
        if bad && !self.spike.is_bad() {
            self.jumps_begun = self.jumps_begun.saturating_add(1);
        }
        let severity = if beyond_record { Critical } else { Warn };
        let turn = self.spike.take(bad, sample.step, patience, CALM);
        turn.change(severity, Some(standing.z), rule.threshold, || {
            let (now, z, median) = (number(sample.value), number(standing.z), number(standing.median));
            format!("the loss is {now}, {z} deviations above its median of {median}")
        })
    }

    fn shifted(&mut self, rule: Rule, sample: Sample, standing: Deviation) -> Option<DetectorChange> {
        let beyond = |rise: f64, from: f64| rise > (rule.threshold - 1.0) * from.abs();
        let jumped = standing.z > SHIFT_SIGMA
            && beyond(standing.rise, standing.median)
            && self.worth(standing.rise, SHIFT_INITIAL_SHARE);
        let lowest = self.level.lowest;
        let climb = standing.median - lowest;
        let climbed = climb > standing.sigma
            && climb > CLIMB_SHARE * lowest.abs()
            && self.worth(climb, CLIMB_INITIAL_SHARE);
        let patience = self.patience(rule, self.rises_begun);
        if jumped && !self.shift.is_bad() {
            self.rises_begun = self.rises_begun.saturating_add(1);
        }
        let (from, to) = if climbed { (lowest, standing.median) } else { (standing.median, sample.value) };
        let turn = self.shift.take(jumped || climbed, sample.step, patience, CALM);
        turn.change(Warn, Some(to / from), rule.threshold, || {
            format!("the loss went from {} to {} and stays there", number(from), number(to))
        })
    }
}
