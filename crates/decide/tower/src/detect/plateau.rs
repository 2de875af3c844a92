//! A loss that does not fall from the beginning on.
//!
//! Only the beginning counts: a run that has learned and then stays level has converged, and nothing is wrong with
//! that. Blocks of values are compared with the first one: 50 of them, or fewer where a script records its loss every so many steps only. It fires
//! when the loss of the last blocks is certainly not lower by the wanted fraction, with the noise of both taken into account; while the noise is
//! too large for that, it waits.

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
            (self.first_step, self.block_step) = (sample.step, sample.step);
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
        if fall > wanted + CERTAIN * error || from.mean == 0.0 {
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
        if !is_over {
            self.block = Mean::default();
        }
        None
    }
}
