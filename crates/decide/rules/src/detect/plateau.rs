//! A loss that does not fall from the beginning on.
//!
//! Only the beginning counts: a run that has learned and then stays level has converged, and nothing is wrong with
//! that. Blocks of values are compared with the first one: 50 of them, or fewer where a script records its loss every
//! so many steps only. It fires when the loss of the last blocks is certainly not lower by the wanted fraction, with
//! the noise of both taken into account; while the noise is too large for that, it waits, and the blocks become longer:
//! a first block of few values would hide every plateau.
//!
//! Where many steps are between two values, a quick learner is done at the second one: a first value far above the
//! block after it has fallen.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::Warn;

use super::anomaly::{Anomaly, DetectorChange, Sample, number};
use super::rules::Rule;

/// Values of one block.
const BLOCK: u32 = 50;
/// Values of a block that spans many steps.
const SPARSE_BLOCK: u32 = 10;
/// The first values are compared with the rest of the first block: a quick learner is done within it.
const HEAD: u32 = 5;
/// Steps between two values from which one of them alone can be learning.
const SPARSE_STEPS: u64 = 5;
/// Deviations by which the first value must be higher to have fallen for certain: they are of few values.
const CERTAIN_OF_ONE: f64 = 6.0;
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

    /// The values of both (Chan, Golub and LeVeque 1979).
    fn with(self, other: Self) -> Self {
        let (own, further) = (f64::from(self.count), f64::from(other.count));
        let delta = other.mean - self.mean;
        let share = further / (own + further);
        Self {
            count: self.count + other.count,
            mean: self.mean + delta * share,
            squares: self.squares + other.squares + delta * delta * own * share,
        }
    }

    /// The variance of the values.
    fn variance(&self) -> f64 {
        if self.count < 2 { f64::INFINITY } else { self.squares / (f64::from(self.count) - 1.0) }
    }

    /// The squared standard error of the mean.
    fn error_squared(&self) -> f64 {
        self.variance() / f64::from(self.count)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Plateau {
    seen: u32,
    first_value: f64,
    head: Mean,
    first: Mean,
    /// Whether the first block is complete.
    begun: bool,
    block: Mean,
    /// The first step, and that before the block that is being filled.
    first_step: Step,
    block_step: Step,
    settled: bool,
}

impl Plateau {
    /// Takes a finite loss.
    pub(super) fn take(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        if self.settled {
            return None;
        }
        self.seen += 1;
        if self.seen == 1 {
            (self.first_step, self.block_step, self.first_value) = (sample.step, sample.step, sample.value);
        }
        if self.seen <= HEAD {
            self.head.push(sample.value);
            return None;
        }
        let block = if self.begun { &mut self.block } else { &mut self.first };
        block.push(sample.value);
        let in_block = block.count + if self.begun { 0 } else { HEAD };
        let block_steps = sample.step.saturating_sub(self.block_step);
        let is_long = block_steps >= u64::from(rule.patience) / 2 && in_block >= SPARSE_BLOCK;
        if in_block < BLOCK && !is_long {
            return None;
        }
        self.block_step = sample.step;
        self.judge(rule, sample)
    }

    fn judge(&mut self, rule: Rule, sample: Sample) -> Option<DetectorChange> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        let (from, to) = if is_first { (self.head, self.first) } else { (self.first, self.block) };
        let fall = from.mean - to.mean;
        let error = (from.error_squared() + to.error_squared()).sqrt();
        let wanted = rule.threshold * from.mean.abs();
        let fell_at_once = is_first && self.fell_at_once(wanted, sample.step);
        if fall > wanted + CERTAIN * error || fell_at_once || from.mean == 0.0 {
            self.settled = true;
            return None;
        }
        let steps = sample.step.saturating_sub(self.first_step) + 1;
        let is_over = steps >= u64::from(rule.patience);
        let quiet = 2.0 * error < AT_MOST * wanted;
        let flat = quiet && fall < wanted && fall + 2.0 * error < AT_MOST * wanted;
        if is_over && !is_first && flat {
            self.settled = true;
            return Some(DetectorChange::fires(Anomaly {
                severity: Warn,
                first_step: self.first_step,
                value: Some(fall / from.mean.abs()),
                threshold: rule.threshold,
                evidence: format!(
                    "the loss began at {} and is {} after {steps} steps, noise ± {}",
                    number(self.first.mean),
                    number(to.mean),
                    number(error)
                ),
            }));
        }
        let is_too_noisy = !is_first && !quiet && self.block.count >= self.first.count;
        if is_over && is_too_noisy {
            self.first = self.first.with(self.block);
        }
        if !is_over || is_too_noisy {
            self.block = Mean::default();
        }
        None
    }

    /// Whether the loss fell with the first of values that are many steps apart, against the rest of the first block.
    fn fell_at_once(&self, wanted: f64, step: Step) -> bool {
        let steps_each = step.saturating_sub(self.first_step) / u64::from(self.seen.max(2) - 1);
        let fall = self.first_value - self.first.mean;
        steps_each >= SPARSE_STEPS && fall > wanted + CERTAIN_OF_ONE * self.first.variance().sqrt()
    }
}
