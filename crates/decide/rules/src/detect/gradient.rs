//! Gradients that explode or vanish.
//!
//! Norms have heavier tails than losses and often grow at the beginning, so an explosion must be ten times the usual
//! norm for three steps, and three times the highest level there ever was; a single step must be ten times the highest
//! normal norm. A run that has learned its data has next to no gradient and is healthy: nothing is reported while the
//! loss is below a hundredth of what it was. The limit of 1e-7 is that of SageMaker Debugger's `VanishingGradient`.

use trackway_core::detect::DetectionSeverity::{Critical, Warn};

use super::anomaly::{DetectorChange, Sample, number};
use super::rules::Rule;
use super::series::level::{Deviation, Level};
use super::series::streak::Streak;

/// Deviations by which an exploding norm must be above the usual one.
const SIGMA: f64 = 6.0;
/// How many times the highest level there ever was.
const HIGHEST_FACTOR: f64 = 3.0;
/// A norm that climbs step by step, as when gradients accumulate, takes the usual one along; it is reported when it is
/// so many times what it was at the beginning and at its lowest.
const CLIMB_FACTOR: f64 = 10.0;
/// A norm of less than this fraction of the usual one counts as no gradient.
const VANISHED_SHARE: f64 = 1e-4;
/// Normal steps after which it is over.
const CALM: u32 = 32;

/// Rises in a row, up to so many times the beginning, that noise does not make: 16 independent values are in order once
/// in 10¹³. Gradients that accumulate because they are never set to zero do that.
const RISES: u32 = 16;
const RISES_FACTOR: f64 = 4.0;

/// A norm that rises at each step.
#[derive(Debug, Clone, Copy, Default)]
struct Rising {
    from: f64,
    last: f64,
    count: u32,
}

impl Rising {
    /// Whether it has risen long and far enough.
    fn take(&mut self, value: f64) -> bool {
        if value > self.last {
            self.count += 1;
        } else {
            (self.from, self.count) = (value, 0);
        }
        self.last = value;
        self.count >= RISES && value > RISES_FACTOR * self.from
    }
}

/// Both detectors of one norm.
#[derive(Debug, Clone, Default)]
pub(super) struct GradientWatch {
    level: Level,
    rising: Rising,
    explosion: Streak,
    vanishing: Streak,
}

impl GradientWatch {
    /// Takes a finite norm and answers for explosion and vanishing. `learned`: the loss is next to nothing.
    pub(super) fn take(
        &mut self,
        explosion: Rule,
        vanishing: Rule,
        sample: Sample,
        learned: bool,
    ) -> [Option<DetectorChange>; 2] {
        let standing = self.level.standing(sample.value);
        let rising = self.rising.take(sample.value);
        let gone = sample.value <= vanishing.threshold
            || standing.is_some_and(|standing| sample.value < VANISHED_SHARE * standing.median);
        let vanished = self.vanished(vanishing, sample, standing, gone && !learned);
        let Some(standing) = standing else {
            self.level.accept(sample.value);
            return [None, vanished];
        };
        let jumped = sample.value > explosion.threshold * standing.median
            && standing.z > SIGMA
            && sample.value > HIGHEST_FACTOR * self.level.highest;
        let begun = self.level.initial().unwrap_or(f64::INFINITY);
        let climbed = rising || standing.median > CLIMB_FACTOR * begun.max(self.level.lowest) && !learned;
        let bad = jumped || climbed;
        let exploded = self.exploded(explosion, sample, standing, bad);
        if jumped || gone {
            self.level.reject(sample.value);
        } else {
            self.level.accept(sample.value);
        }
        [exploded, vanished]
    }

    fn exploded(
        &mut self,
        rule: Rule,
        sample: Sample,
        standing: Deviation,
        bad: bool,
    ) -> Option<DetectorChange> {
        let beyond_record = bad && sample.value > rule.threshold * self.level.record;
        let patience = if beyond_record { 1 } else { rule.patience };
        let turn = self.explosion.take(bad, sample.step, patience, CALM);
        turn.change(Critical, Some(sample.value / standing.median), rule.threshold, || {
            format!("the gradient norm is {}; {} is usual", number(sample.value), number(standing.median))
        })
    }

    fn vanished(
        &mut self,
        rule: Rule,
        sample: Sample,
        standing: Option<Deviation>,
        bad: bool,
    ) -> Option<DetectorChange> {
        self.vanishing.take(bad, sample.step, rule.patience, CALM).change(Warn, None, rule.threshold, || {
            let usual = match standing {
                Some(standing) => format!("; {} was usual", number(standing.median)),
                None => " from the beginning".into(),
            };
            format!("the gradient norm is {}{usual}", number(sample.value))
        })
    }
}
