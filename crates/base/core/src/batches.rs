//! Batches of the training data by number, and those that a run skips.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ranges that a run skips at most.
pub const SKIPPED_RANGES_MAX: usize = 256;

/// Batches from `first` on, up to but without `end`. A batch is counted from 0 over all passes through the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BatchRange {
    pub first: u64,
    /// The batch after the last one; above `first`.
    pub end: u64,
}

impl BatchRange {
    /// How many batches they are.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.end - self.first
    }
}

impl fmt::Display for BatchRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}..{}", self.first, self.end)
    }
}

impl FromStr for BatchRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid batch range `{text}`: write FIRST..END (END is not included)");
        let (first, end) = text.split_once("..").ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let (first, end) = (number(first)?, number(end)?);
        if first < end { Ok(Self { first, end }) } else { Err(wrong()) }
    }
}

/// The batches that a run skips. As a string: ranges, ascending, separated by commas (`TRACKWAY_SKIP_BATCHES`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedBatches {
    /// Ascending, and with batches between them.
    ranges: Vec<BatchRange>,
}

impl SkippedBatches {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, ascending and disjoint.
    #[must_use]
    pub fn ranges(&self) -> &[BatchRange] {
        &self.ranges
    }

    /// Skips these too; false if there would be more than [`SKIPPED_RANGES_MAX`] ranges, and then nothing changes.
    pub fn add(&mut self, range: BatchRange) -> bool {
        let (touched, mut apart): (Vec<BatchRange>, Vec<BatchRange>) =
            self.ranges.iter().partition(|known| known.first <= range.end && range.first <= known.end);
        let joined = touched.iter().fold(range, |all, part: &BatchRange| BatchRange {
            first: all.first.min(part.first),
            end: all.end.max(part.end),
        });
        if apart.len() >= SKIPPED_RANGES_MAX {
            return false;
        }
        apart.push(joined);
        apart.sort_by_key(|range| range.first);
        self.ranges = apart;
        true
    }

    /// Whether this batch is skipped.
    #[must_use]
    pub fn contains(&self, batch: u64) -> bool {
        self.ranges.iter().any(|range| (range.first..range.end).contains(&batch))
    }

    /// The batch of a step, if each step takes the next one that is not skipped. Steps count from 1.
    #[must_use]
    pub fn batch_of_step(&self, step: u64) -> u64 {
        let mut batch = step.saturating_sub(1);
        for range in &self.ranges {
            if batch < range.first {
                break;
            }
            batch = batch.saturating_add(range.count());
        }
        batch
    }
}

impl fmt::Display for SkippedBatches {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.ranges.iter().enumerate() {
            write!(out, "{}{range}", if place > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for SkippedBatches {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            if !all.add(part.trim().parse()?) {
                return Err(format!("more than {SKIPPED_RANGES_MAX} ranges of batches"));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that ranges that overlap or touch become one, whatever their order, and come back from their text.
    #[test]
    fn ranges_are_joined() {
        let skipped: SkippedBatches = "40..50, 10..20,20..25,45..60,5..7".parse().unwrap();
        assert_eq!(skipped.to_string(), "5..7,10..25,40..60");
        assert_eq!(skipped.to_string().parse(), Ok(skipped.clone()));
        assert!(
            skipped.contains(10) && skipped.contains(24) && !skipped.contains(25) && !skipped.contains(9)
        );
        for wrong in ["5..5", "7..3", "a..b", "5", "1..2,x", "-1..3"] {
            let refused = wrong.parse::<SkippedBatches>().unwrap_err();
            assert!(refused.starts_with("invalid batch range `"), "{wrong}: {refused}");
        }
        assert_eq!("".parse(), Ok(SkippedBatches::default()));
    }

    /// Proves against counting one by one which batch each step takes.
    #[test]
    fn steps_take_the_batches_that_are_left() {
        let skipped: SkippedBatches = "0..2,5..6,8..12".parse().unwrap();
        let left: Vec<u64> = (0..30).filter(|batch| !skipped.contains(*batch)).collect();
        let taken: Vec<u64> = (1..=left.len() as u64).map(|step| skipped.batch_of_step(step)).collect();
        assert_eq!(taken, left);
        assert_eq!(SkippedBatches::default().batch_of_step(7), 6);
    }

    /// Proves that the number of ranges is bounded, and that a range that joins others still fits.
    #[test]
    fn there_is_a_bound() {
        let mut skipped = SkippedBatches::default();
        let at = |number: u64| BatchRange { first: 10 * number, end: 10 * number + 1 };
        assert!((0..SKIPPED_RANGES_MAX as u64).all(|number| skipped.add(at(number))));
        assert!(!skipped.add(at(9999)));
        assert!(skipped.add(BatchRange { first: 0, end: 11 }));
    }
}
