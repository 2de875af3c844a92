//! A loss that does not fall from the beginning on.
//!
//! Only the beginning counts: a run that has learned and then stays level has converged, and nothing is wrong with
//! that. Blocks of 50 steps are compared with the first one. It fires when the loss of the last blocks is certainly not
//! lower by the wanted fraction, with the noise of both taken into account; while the noise is too large for that, it
//! waits.

use trackway_core::detect::DetectionSeverity::Warn;

use super::anomaly::{Anomaly, DetectorChange, Sample, number};
use super::rules::Rule;

/// Steps of one block.
const BLOCK: u32 = 50;
/// The first steps are compared with the rest of the first block: a quick learner is done within it.
const HEAD: u32 = 5;
/// Standard errors by which a block must be lower to have learned for certain.
const CERTAIN: f64 = 4.0;
/// Times the wanted fraction that the improvement may at most be, noise included, to count as none.
const AT_MOST: f64 = 3.0;

/// Count, mean and squared deviations (Welford 1962).
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    count: u32,
    mean: f64,
    squares: f64,
}

impl Mean {
    fn push(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / f64::from(self.count);
        self.squares += delta * (value - self.mean);
    }

    /// The squared standard error of the mean.
    fn error_squared(&self) -> f64 {
        let count = f64::from(self.count);
        if self.count < 2 { f64::INFINITY } else { self.squares / (count - 1.0) / count }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Plateau {
    seen: u32,
    head: Mean,
    first: Mean,
    block: Mean,
    settled: bool,
}

impl Plateau {
    /// Takes a finite loss.
    pub(super) fn take(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        if self.settled {
            return None;
        }
        self.seen += 1;
        if self.seen <= HEAD {
            self.head.push(sample.value);
            return None;
        }
        let target = if self.seen <= BLOCK { &mut self.first } else { &mut self.block };
        target.push(sample.value);
        if !self.seen.is_multiple_of(BLOCK) {
            return None;
        }
        self.judge(rule, sample)
    }

    fn judge(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        let (from, to) = if self.seen == BLOCK { (self.head, self.first) } else { (self.first, self.block) };
        let fall = from.mean - to.mean;
        let error = (from.error_squared() + to.error_squared()).sqrt();
        let wanted = rule.threshold * from.mean.abs();
        if fall > wanted + CERTAIN * error || from.mean == 0.0 {
            self.settled = true;
            return None;
        }
        let quiet = 2.0 * error < AT_MOST * wanted;
        let flat = quiet && fall < wanted && fall + 2.0 * error < AT_MOST * wanted;
        if self.seen >= rule.patience.max(2 * BLOCK) && flat {
            self.settled = true;
            return Some(DetectorChange::fires(Anomaly {
                severity: Warn,
                first_step: sample.step.saturating_sub(u64::from(self.seen) - 1),
                value: Some(fall / from.mean.abs()),
                threshold: rule.threshold,
                evidence: format!(
                    "the loss began at {} and is {} after {} steps, noise ± {}",
                    number(self.first.mean),
                    number(to.mean),
                    self.seen,
                    number(error)
                ),
            }));
        }
        if self.seen < rule.patience {
            self.block = Mean::default();
        }
        None
    }
}
