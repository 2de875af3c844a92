//! Memory of the run's processes on the machine (RSS) that grows step by step, from the samples of telemetry.
//!
//! A machine's memory grows in healthy runs too: while data is loaded, while a cache fills in the first pass, while the heap
//! fragments. Such growth ends, and a leak does not: early on both look the same. So a growth counts only while
//! the training makes steps, if it is as even as that of a leak, and once it has taken more of the memory than is left: half of what was
//! free is gone, and the other half will be in the same time. Pages of mapped files come and go with the memory that is left, so at least
//! half of the growth must be missing from what is available.
//!
//! Blocks have five lengths, of 4 samples (a second each) for a fast leak to 1024 (17 minutes) for a slow one under noise.

use trackway_core::Step;
use trackway_core::detect::DetectionSeverity::Critical;
use trackway_core::text::{bytes, duration};

use super::memory::Floors;
use crate::detect::anomaly::{Anomaly, Sample};
use crate::detect::rules::Rule;

/// Samples in a block of each length.
const BLOCKS: [u32; 5] = [4, 16, 64, 256, 1024];
/// Each rise must be within this factor of the mean one: of the shortest blocks, and of the others.
const SHORT_EVEN_FACTOR: f64 = 2.0;
const LONG_EVEN_FACTOR: f64 = 4.0;
/// The part of a growth that must be missing from the memory that is available.
const TAKEN_MIN: f64 = 0.5;
/// What to do about it, at the end of the message.
const ADVICE: &str = "look for lists that keep something of every step (outputs, losses with their graph) and for caches without a bound";

/// The memory of a run's processes and of their machine, at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemorySample {
    /// Seconds since the attempt began.
    pub seconds: u64,
    /// The last step of the training by then.
    pub step: Step,
    /// Resident memory of all processes.
    pub resident_bytes: f64,
    /// Memory that they can still take.
    pub available_bytes: f64,
}

#[derive(Debug, Clone)]
pub(in crate::detect) struct ResidentCreep {
    levels: [Level; BLOCKS.len()],
    fired: bool,
}

impl Default for ResidentCreep {
    fn default() -> Self {
        Self { levels: BLOCKS.map(Level::new), fired: false }
    }
}

impl ResidentCreep {
    /// Takes a sample. An attempt is reported once.
    pub(in crate::detect) fn take(&mut self, rule: Rule, sample: MemorySample) -> Option<Anomaly> {
        if self.fired {
            return None;
        }
        // Every level takes the sample, whichever of them finds something.
        let found = self.levels.each_mut().map(|level| level.take(rule, sample));
        let found = found.into_iter().flatten().next()?;
        self.fired = true;
        Some(found.anomaly(rule.threshold))
    }
}

/// The floors of blocks of one length, and where their rise began.
#[derive(Debug, Clone)]
struct Level {
    floors: Floors,
    /// The sample at which the rise that lasts began, with its floor as the resident memory.
    since: Option<MemorySample>,
    /// The step of the training at the end of the last block.
    last_step: Option<Step>,
}

impl Level {
    fn new(block: u32) -> Self {
        let even_factor = if block == BLOCKS[0] { SHORT_EVEN_FACTOR } else { LONG_EVEN_FACTOR };
        Self { floors: Floors::new(block, even_factor), since: None, last_step: None }
    }

    fn take(&mut self, rule: Rule, sample: MemorySample) -> Option<Rise> {
        let rises = self.floors.take(Sample { step: sample.seconds, value: sample.resident_bytes })?;
        // What grows in a whole block without a step is not grown by steps.
        let trains = self.last_step.replace(sample.step).is_none_or(|last| last < sample.step);
        if !trains {
            self.floors.begin_at_last();
        }
        let floor = self.floors.last()?;
        let Some(since) = self.since.filter(|_| rises && trains) else {
            self.since = Some(MemorySample { resident_bytes: floor, ..sample });
            return None;
        };
        let bytes_per_second = self.floors.even_growth(rule.patience)?;
        let rise = Rise { since, now: MemorySample { resident_bytes: floor, ..sample }, bytes_per_second };
        rise.is_leak(rule.threshold).then_some(rise)
    }
}

/// Growth that has not stopped, from one sample to another.
#[derive(Debug, Clone, Copy)]
struct Rise {
    since: MemorySample,
    now: MemorySample,
    bytes_per_second: f64,
}

impl Rise {
    fn grown_bytes(&self) -> f64 {
        self.now.resident_bytes - self.since.resident_bytes
    }

    fn fraction(&self) -> f64 {
        self.grown_bytes() / self.since.resident_bytes.max(1.0)
    }

    fn is_leak(&self, threshold: f64) -> bool {
        let (grown, left) = (self.grown_bytes(), self.now.available_bytes);
        let taken = self.since.available_bytes - left;
        self.fraction() >= threshold && grown >= left && taken >= TAKEN_MIN * grown
    }

    fn anomaly(&self, threshold: f64) -> Anomaly {
        let size = |value: f64| bytes(value.max(0.0) as u64);
        let left = self.now.available_bytes;
        Anomaly {
            severity: Critical,
            first_step: self.since.step,
            value: Some(self.fraction()),
            threshold,
            evidence: format!(
                "the memory of the run's processes grew evenly from {} to {} since step {}, {} a second, and {} are left: at this rate \
                 memory runs out in {}; {ADVICE}",
                size(self.since.resident_bytes),
                size(self.now.resident_bytes),
                self.since.step,
                size(self.bytes_per_second),
                size(left),
                duration(left / self.bytes_per_second)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng as _, SplitMix64};

    use super::*;
    use crate::detect::Rules;
    use trackway_core::detect::Detector;

    const MIB: f64 = 1_048_576.0;
    /// What the machine has left when the attempt begins.
    const FREE: f64 = 16_384.0 * MIB;
    /// What the processes have when they begin to train.
    const BASE: f64 = 1_024.0 * MIB;

    /// The second at which a run of so many seconds is reported. `bytes`: what its processes have above [`BASE`] at a second, and what of
    /// that is taken from the machine; `step`: the step of the training at a second.
    fn found(
        seconds: u64,
        step: impl Fn(u64) -> Step,
        mut bytes: impl FnMut(u64) -> (f64, f64),
    ) -> Option<(u64, Anomaly)> {
        let (mut creep, rule) = (ResidentCreep::default(), Rules::default().of(Detector::MemoryCreep));
        (0..seconds).find_map(|second| {
            let (grown, taken) = bytes(second);
            let sample = MemorySample {
                seconds: second,
                step: step(second),
                resident_bytes: BASE + grown,
                available_bytes: (FREE - taken).max(0.0),
            };
            Some((second, creep.take(rule, sample)?))
        })
    }

    fn both(bytes: f64) -> (f64, f64) {
        (bytes, bytes)
    }

    /// Proves that leaks of every pace are found under noise while at least a quarter of the memory is left, with the
    /// step at which they began and the time that is left.
    #[test]
    fn a_leak_is_found_in_time() {
        for seed in 0..20 {
            for (mib_per_second, noise_mib) in [(200.0, 20.0), (50.0, 100.0), (5.0, 50.0), (0.5, 50.0)] {
                let mut rng = SplitMix64::new(seed);
                let seconds = (16_384.0 / mib_per_second) as u64;
                let leak =
                    |second| both((mib_per_second * second as f64 + noise_mib * rng.next_unit()) * MIB);
                let (at, anomaly) = found(seconds, |second| 10 * second, leak)
                    .unwrap_or_else(|| panic!("seed {seed}: {mib_per_second} MiB a second are not found"));
                assert!(
                    4 * at <= 3 * seconds,
                    "seed {seed}: {mib_per_second} MiB a second at {at} of {seconds}"
                );
                assert!(anomaly.first_step <= 10 * at / 2, "{anomaly:?}");
                assert!(anomaly.evidence.contains("at this rate memory runs out in"), "{anomaly:?}");
            }
        }
    }

    /// Proves that no healthy kind is reported: data that is loaded before the first step or between steps, a cache that fills in the first
    /// pass, a heap that fragments, memory that is collected now and then, workers that come and go, a mapped file, and a machine
    /// that another process fills.
    #[test]
    fn healthy_runs_are_not_reported() {
        let steady = |second: u64| 10 * second;
        for seed in 0..50 {
            let mut rng = SplitMix64::new(seed);
            let mut unit = move || rng.next_unit();
            let scale = 0.5 + unit();
            let until = (200.0 + 3000.0 * unit()).round();
            let free = FREE / MIB;
            let mut quiet =
                |name: &str, step: &dyn Fn(u64) -> Step, of: &mut dyn FnMut(f64, f64) -> (f64, f64)| {
                    let bytes = |second: u64| {
                        let (grown, taken) = of(second as f64, unit());
                        (grown * MIB, taken * MIB)
                    };
                    let found = found(8000, step, bytes);
                    assert!(found.is_none(), "{name}, seed {seed}: {found:?}");
                };
            let loads = |second: u64| 10 * second.saturating_sub(until as u64);
            quiet("data before the first step", &loads, &mut |second, noise| {
                both(0.9 * free * (second / until).min(1.0) + 20.0 * noise)
            });
            quiet("a cache of the first pass", &steady, &mut |second, noise| {
                both(0.45 * free * (second / until).min(1.0) + 20.0 * noise)
            });
            quiet("a heap that fragments", &steady, &mut |second, noise| {
                both(0.8 * free * (1.0 - (-second / (until * scale)).exp()) * 0.6 + 30.0 * noise)
            });
            quiet("collected now and then", &steady, &mut |second, noise| {
                both(0.45 * free * (second % until) / until + 20.0 * noise)
            });
            quiet("workers come and go", &steady, &mut |second, noise| {
                let workers = if second % until < 0.8 * until { 8.0 } else { 0.0 };
                both(workers * 500.0 * scale + 200.0 * noise)
            });
            quiet("a mapped file", &steady, &mut |second, noise| {
                (0.95 * free * (second / until).min(1.0) + 20.0 * noise, 0.05 * free * noise)
            });
            quiet("another process", &steady, &mut |second, noise| {
                (20.0 * noise, 0.99 * free * (second / until).min(1.0))
            });
        }
    }

    /// Proves that the same growth is reported in a training that makes steps and not in one that makes none.
    #[test]
    fn only_a_training_leaks() {
        let leak = |second| both(50.0 * second as f64 * MIB);
        assert!(found(320, |second| second, leak).is_some());
        assert!(found(320, |_| 7, leak).is_none());
    }
}
