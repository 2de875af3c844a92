//! Memory that grows step by step, and the step at which it will be all.
//!
//! A leak raises the floor: so the lowest value of each block of 16 steps is looked at, which batches of different
//! lengths leave alone. Eight blocks in a row must each be higher than the one before, by about the same value, and
//! together by the wanted fraction: eight random blocks are in order once in 40,000, and then not evenly.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::{Critical, Warn};

use super::anomaly::{Anomaly, DetectorChange, Sample};
use super::rules::Rule;

/// Steps of one block.
const BLOCK: u32 = 16;
/// Blocks that are remembered, and the most patience.
const BLOCKS_MAX: usize = 32;
/// The first blocks hold buffers that are made once: optimizer state, caches.
const WARM_UP_BLOCKS: u32 = 1;
/// Each rise must be within this factor of the mean one.
const EVEN_FACTOR: f64 = 4.0;
/// Blocks without a rise after which it is over.
const CALM: u32 = 4;

#[derive(Debug, Clone, Default)]
pub(super) struct MemoryCreep {
    in_block: u32,
    floor: f64,
    blocks_seen: u32,
    /// The floors of the last blocks, each with its last step, oldest first.
    floors: Vec<(Step, f64)>,
    fired: bool,
    calm: u32,
}

impl MemoryCreep {
    /// Takes the bytes in use; `limit_bytes` is what there is, where it is known.
    pub(super) fn take(
        &mut self,
        rule: Rule,
        sample: Sample,
        limit_bytes: Option<f64>,
    ) -> Option<DetectorChange> {
        self.floor = if self.in_block == 0 { sample.value } else { self.floor.min(sample.value) };
        self.in_block += 1;
        if self.in_block < BLOCK {
            return None;
        }
        self.in_block = 0;
        self.blocks_seen = self.blocks_seen.saturating_add(1);
        if self.blocks_seen <= WARM_UP_BLOCKS {
            return None;
        }
        let rises = self.floors.last().is_none_or(|(_, last)| self.floor > *last);
        if !rises {
            self.floors.clear();
        }
        if self.floors.len() == BLOCKS_MAX {
            self.floors.remove(0);
        }
        self.floors.push((sample.step, self.floor));
        self.judge(rule, rises, sample, limit_bytes)
    }

    fn judge(
        &mut self,
        rule: Rule,
        rises: bool,
        sample: Sample,
        limit_bytes: Option<f64>,
    ) -> Option<DetectorChange> {
        if self.fired {
            self.calm = if rises { 0 } else { self.calm + 1 };
            if self.calm >= CALM {
                (self.fired, self.calm) = (false, 0);
                return Some(DetectorChange::Rearmed);
            }
            return None;
        }
        let rise_count = (rule.patience.max(1) as usize).min(BLOCKS_MAX - 1);
        let begin = self.floors.len().checked_sub(rise_count + 1)?;
        let floors = &self.floors[begin..];
        let ((first_step, first), (last_step, last)) = (floors[0], *floors.last()?);
        let mean = (last - first) / rise_count as f64;
        let even = floors.windows(2).all(|pair| {
            let rise = pair[1].1 - pair[0].1;
            rise * EVEN_FACTOR > mean && rise < EVEN_FACTOR * mean
        });
        let grown = (last - first) / first.max(1.0);
        if !even || grown < rule.threshold {
            return None;
        }
        self.fired = true;
        let per_step = (last - first) / (last_step - first_step).max(1) as f64;
        let end = limit_bytes
            .filter(|limit| *limit > last)
            .map(|limit| sample.step.saturating_add(((limit - sample.value).max(0.0) / per_step) as u64));
        let until = match end {
            Some(step) => format!("; at this rate memory is all at step {step}"),
            None => "; the total is not known".into(),
        };
        Some(DetectorChange::fires(Anomaly {
            severity: if end.is_some() { Critical } else { Warn },
            first_step,
            value: Some(grown),
            threshold: rule.threshold,
            evidence: format!(
                "memory grew from {} to {}, {} a step{until}",
                mebibytes(first),
                mebibytes(last),
                mebibytes(per_step)
            ),
        }))
    }
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.2} MiB", bytes / 1_048_576.0)
}
