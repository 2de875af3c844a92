//! Memory that grows step by step, and the step at which it will be all.
//!
//! A leak raises the floor: so the lowest value of each block of values is looked at, which batches of different
//! lengths leave alone. Eight blocks in a row must each be higher than the one before, by about the same value per step, and
//! together by the wanted fraction: eight random blocks are in order once in 40,000, and then not evenly.
//!
//! Blocks have two lengths. Those of 16 values see a slow leak under noise; those of 4 see a fast one in a run of some 50 steps,
//! and must rise more evenly. What is allocated in the first 16 values does not count as growth for either.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::{Critical, Warn};

use crate::detect::anomaly::{Anomaly, DetectorChange, Sample};
use crate::detect::rules::Rule;

/// Values of a long block, and of a short one.
const LONG_BLOCK: u32 = 16;
const SHORT_BLOCK: u32 = 4;
/// Blocks that are remembered, and the most patience.
const BLOCKS_MAX: usize = 32;
/// The first values are with buffers that are made once: optimizer state, caches.
const WARM_UP_VALUES: u32 = 16;
/// Each rise must be within this factor of the mean one: of long blocks, and of short ones.
const LONG_EVEN_FACTOR: f64 = 4.0;
const SHORT_EVEN_FACTOR: f64 = 2.0;
/// Long blocks without a rise after which it is over.
const CALM: u32 = 4;
/// What to do about it, at the end of every message.
const ADVICE: &str = "look for tensors that are kept with their graph (`loss.item()` keeps only the number, `detach()` only the values) \
                      and for caches without a bound";

#[derive(Debug, Clone)]
pub(in crate::detect) struct MemoryCreep {
    long: Floors,
    short: Floors,
    fired: bool,
    calm: u32,
}

impl Default for MemoryCreep {
    fn default() -> Self {
        let (long, short) =
            (Floors::new(LONG_BLOCK, LONG_EVEN_FACTOR), Floors::new(SHORT_BLOCK, SHORT_EVEN_FACTOR));
        Self { long, short, fired: false, calm: 0 }
    }
}

impl MemoryCreep {
    /// Takes the bytes in use; `limit_bytes` is what there is, where it is known.
    pub(in crate::detect) fn take(
        &mut self,
        rule: Rule,
        sample: Sample,
        limit_bytes: Option<f64>,
    ) -> Option<DetectorChange> {
        let (long, short) = (self.long.take(sample), self.short.take(sample));
        if self.fired {
            return self.calmed(long?);
        }
        let growth = long.and_then(|_| self.long.growth(rule));
        let growth = growth.or_else(|| short.and_then(|_| self.short.growth(rule)))?;
        self.fired = true;
        Some(DetectorChange::fires(growth.anomaly(rule.threshold, sample, limit_bytes)))
    }

    /// An episode is over after some long blocks without a rise.
    fn calmed(&mut self, rises: bool) -> Option<DetectorChange> {
        self.calm = if rises { 0 } else { self.calm + 1 };
        if self.calm < CALM {
            return None;
        }
        (self.fired, self.calm) = (false, 0);
        Some(DetectorChange::Rearmed)
    }
}

/// The floors of blocks of one length, for as long as they rise.
#[derive(Debug, Clone)]
pub(in crate::detect) struct Floors {
    block: u32,
    even_factor: f64,
    values_seen: u32,
    in_block: u32,
    floor: f64,
    /// The floors of the last blocks, each with its last step, oldest first.
    rising: Vec<(Step, f64)>,
}

impl Floors {
    pub(in crate::detect) fn new(block: u32, even_factor: f64) -> Self {
        Self { block, even_factor, values_seen: 0, in_block: 0, floor: 0.0, rising: Vec::new() }
    }

    /// Takes one value; at the end of a block, whether its floor is above the one before.
    pub(in crate::detect) fn take(&mut self, sample: Sample) -> Option<bool> {
        if self.values_seen < WARM_UP_VALUES {
            self.values_seen += 1;
            return None;
        }
        self.floor = if self.in_block == 0 { sample.value } else { self.floor.min(sample.value) };
        self.in_block += 1;
        if self.in_block < self.block {
            return None;
        }
        self.in_block = 0;
        let rises = self.rising.last().is_none_or(|(_, last)| self.floor > *last);
        if !rises {
            self.rising.clear();
        }
        if self.rising.len() == BLOCKS_MAX {
            self.rising.remove(0);
        }
        self.rising.push((sample.step, self.floor));
        Some(rises)
    }

    /// The growth of the last blocks, if they rose as often, as evenly and as far as the rule wants.
    fn growth(&self, rule: Rule) -> Option<Growth> {
        self.even(rule.patience).filter(|growth| growth.fraction() >= rule.threshold)
    }

    /// How fast the last blocks rose, if they did so as often as that and evenly.
    pub(in crate::detect) fn even_growth(&self, rises: u32) -> Option<f64> {
        self.even(rises).map(|growth| growth.bytes_per_step())
    }

    fn even(&self, rises: u32) -> Option<Growth> {
        let rise_count = (rises.max(1) as usize).min(BLOCKS_MAX - 1);
        let begin = self.rising.len().checked_sub(rise_count + 1)?;
        let floors = &self.rising[begin..];
        let growth = Growth { first: floors[0], last: *floors.last()? };
        let mean = growth.bytes_per_step();
        let is_even = floors.windows(2).all(|pair| {
            let rise = Growth { first: pair[0], last: pair[1] }.bytes_per_step();
            rise * self.even_factor > mean && rise < self.even_factor * mean
        });
        is_even.then_some(growth)
    }

    /// The floor of the last block.
    pub(in crate::detect) fn last(&self) -> Option<f64> {
        self.rising.last().map(|(_, floor)| *floor)
    }

    /// What rose before the last block no longer counts.
    pub(in crate::detect) fn begin_at_last(&mut self) {
        self.rising.drain(..self.rising.len().saturating_sub(1));
    }
}

/// From one floor to a later one.
#[derive(Debug, Clone, Copy)]
struct Growth {
    first: (Step, f64),
    last: (Step, f64),
}

impl Growth {
    fn bytes_per_step(&self) -> f64 {
        (self.last.1 - self.first.1) / self.last.0.saturating_sub(self.first.0).max(1) as f64
    }

    fn fraction(&self) -> f64 {
        (self.last.1 - self.first.1) / self.first.1.max(1.0)
    }

    fn anomaly(&self, threshold: f64, sample: Sample, limit_bytes: Option<f64>) -> Anomaly {
        let ((first_step, first), (_, last)) = (self.first, self.last);
        let per_step = self.bytes_per_step();
        let end = limit_bytes
            .filter(|limit| *limit > last)
            .map(|limit| sample.step.saturating_add(((limit - sample.value).max(0.0) / per_step) as u64));
        let until = match end {
            Some(step) => format!("at this rate memory runs out at step {step}"),
            None => "the total is not known".into(),
        };
        Anomaly {
            severity: if end.is_some() { Critical } else { Warn },
            first_step,
            value: Some(self.fraction()),
            threshold,
            evidence: format!(
                "memory grew from {} to {}, {} a step; {until}; {ADVICE}",
                mebibytes(first),
                mebibytes(last),
                mebibytes(per_step)
            ),
        }
    }
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.2} MiB", bytes / 1_048_576.0)
}
