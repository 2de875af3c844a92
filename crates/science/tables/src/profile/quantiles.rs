//! Quantiles of any number of values in bounded memory: the sketch of Karnin, Lang and Liberty, "Optimal quantile
//! approximation in streams" (2016), with a large buffer in front.
//!
//! Values wait in a buffer. When it is full it is sorted, and one random value of each [`BUFFER_STEP`] neighbours is
//! kept with their weight. A level holds sorted values of weight 2^level; one that is too long hands every second of
//! its values, even or odd at random, to the level above. The generator is seeded, so that the same values in the same
//! order give the same sketch.
//!
//! DDSketch (`sketches-ddsketch`) is not used: it bounds the error of a value, not that of its rank, which drift is
//! computed from. The timestamps of one day are a single bucket at an accuracy of 0.1 %: each quantile is then the same
//! value, where the rank error here is 0.3 %.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use trackway_core::{Rng, SplitMix64};
use trackway_formats::hash::hash_number;

/// Length of the topmost level.
const TOP_LENGTH: usize = 1024;

/// No level is shorter than this.
const MIN_LENGTH: usize = 16;

/// Each level is this much shorter than the one above.
const SHRINK: f64 = 2.0 / 3.0;

/// Values that wait.
const BUFFER_LENGTH: usize = 4096;

/// Of so many neighbours in the sorted buffer one is kept: 2^3.
const BUFFER_STEP: usize = 1 << BUFFER_LEVEL;

/// The level the buffer goes to.
const BUFFER_LEVEL: usize = 3;

/// Weights are below 2^64.
const MAX_LEVELS: usize = 60;

/// The fraction of all values by which the rank of a quantile may be off, in 99 of 100 cases. Measured over orders and
/// distributions: see the tests of this module.
pub const QUANTILE_RANK_ERROR: f64 = 0.003;

/// Ranks of finite values.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantiles {
    count: u64,
    min: f64,
    max: f64,
    buffer: Vec<f64>,
    levels: Vec<Vec<f64>>,
    random: u64,
    /// Length of the topmost level: [`TOP_LENGTH`], or less in a very wide table.
    top_length: usize,
}

impl Default for Quantiles {
    fn default() -> Self {
        Self {
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            buffer: Vec::new(),
            levels: Vec::new(),
            random: 0,
            top_length: TOP_LENGTH,
        }
    }
}

impl Quantiles {
    /// How many values it represents.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds finite values whose smallest and largest are known. Of each `step` neighbours one represents all; `step` is
    /// a power of two, 1 to take every value.
    pub(crate) fn add(&mut self, values: &[f64], (min, max): (f64, f64), step: usize) {
        let Some(first) = values.first() else { return };
        // The values determine the seed: sketches of parts would otherwise all make the same choices, and the errors of
        // a merged one add up.
        self.random = hash_number(self.random ^ first.to_bits());
        self.count += values.len() as u64;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
        if step <= 1 {
            self.buffer_up(values);
            return;
        }
        let blocks = values.chunks_exact(step);
        // Fewer than `step` values are left over; they count for themselves.
        self.buffer_up(blocks.remainder());
        let mut random = SplitMix64::new(self.random);
        let mut chosen: Vec<f64> =
            blocks.map(|block| block[random.next_u64() as usize & (step - 1)]).collect();
        self.random = random.next_u64();
        chosen.sort_unstable_by(f64::total_cmp);
        self.add_sorted(chosen, step.trailing_zeros() as usize);
    }

    fn buffer_up(&mut self, mut values: &[f64]) {
        while !values.is_empty() {
            let room = BUFFER_LENGTH - self.buffer.len();
            let (now, later) = values.split_at(room.min(values.len()));
            self.buffer.extend_from_slice(now);
            values = later;
            if self.buffer.len() == BUFFER_LENGTH {
                self.flush();
            }
        }
    }

    /// Sends the buffer on. What does not fill a step goes to the lowest level as it is.
    fn flush(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.sort_unstable_by(f64::total_cmp);
        let whole = buffer.len() - buffer.len() % BUFFER_STEP;
        let offset = self.next_random() as usize % BUFFER_STEP;
        let chosen = buffer[..whole].iter().skip(offset).step_by(BUFFER_STEP).copied().collect();
        let rest = buffer[whole..].to_vec();
        self.add_sorted(chosen, BUFFER_LEVEL);
        self.add_sorted(rest, 0);
        buffer.clear();
        self.buffer = buffer;
    }

    /// The fraction of all values by which the rank of a quantile may be off, in 99 of 100 cases.
    #[must_use]
    pub fn rank_error(&self) -> f64 {
        QUANTILE_RANK_ERROR * (TOP_LENGTH / self.top_length) as f64
    }

    /// Keeps what is stored, in as little memory as that takes: a topmost level of no more than `top_length` values, a
    /// power of two.
    pub(crate) fn finish(&mut self, top_length: usize) {
        self.shorten();
        let kept: usize = self.levels.iter().map(Vec::len).sum();
        if top_length < self.top_length && kept > top_length {
            self.top_length = top_length;
            self.compress();
        }
        self.levels.iter_mut().for_each(Vec::shrink_to_fit);
    }

    /// Keeps what is stored: no value waits any more.
    pub(crate) fn shorten(&mut self) {
        if self.buffer.len() > TOP_LENGTH {
            self.flush();
        }
        let mut sorted = std::mem::take(&mut self.buffer);
        sorted.sort_unstable_by(f64::total_cmp);
        match self.levels.first_mut() {
            Some(lowest) => *lowest = merge_sorted(std::mem::take(lowest), sorted),
            None if sorted.is_empty() => {}
            None => self.levels.push(sorted),
        }
        self.levels.iter_mut().for_each(Vec::shrink_to_fit);
    }

    fn add_sorted(&mut self, values: Vec<f64>, level: usize) {
        if values.is_empty() {
            return;
        }
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        let known = std::mem::take(&mut self.levels[level]);
        self.levels[level] = merge_sorted(known, values);
        self.compress();
    }

    /// Shortens every level that is too long, from below.
    fn compress(&mut self) {
        let mut level = 0;
        while level < self.levels.len() {
            if self.levels[level].len() > self.allowed(level) && level < MAX_LEVELS {
                self.halve(level);
            }
            level += 1;
        }
    }

    fn allowed(&self, level: usize) -> usize {
        let below_top = (self.levels.len() - 1 - level) as i32;
        ((self.top_length as f64 * SHRINK.powi(below_top)) as usize).max(MIN_LENGTH)
    }

    fn halve(&mut self, level: usize) {
        let mut values = std::mem::take(&mut self.levels[level]);
        // An odd one stays, so that the weights keep adding up to the count.
        let odd = (values.len() % 2 == 1).then(|| values.pop()).flatten();
        let offset = self.next_random() as usize & 1;
        let chosen: Vec<f64> = values.iter().skip(offset).step_by(2).copied().collect();
        self.levels[level].extend(odd);
        if self.levels.len() == level + 1 {
            self.levels.push(Vec::new());
        }
        let above = std::mem::take(&mut self.levels[level + 1]);
        self.levels[level + 1] = merge_sorted(above, chosen);
    }

    fn next_random(&mut self) -> u64 {
        let mut random = SplitMix64::new(self.random);
        self.random = random.next_u64();
        self.random
    }

    /// Adds the values of another sketch.
    pub(crate) fn merge(&mut self, later: Self) {
        self.count += later.count;
        self.top_length = self.top_length.min(later.top_length);
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
        self.random ^= later.random.rotate_left(1);
        for (level, values) in later.levels.into_iter().enumerate() {
            self.add_sorted(values, level);
        }
        self.buffer_up(&later.buffer);
    }

    /// Every value that is kept, ascending, with the number of values it represents. The numbers add up to
    /// [`Quantiles::count`]. Drift statistics are computed from this.
    #[must_use]
    pub fn weighted(&self) -> Vec<(f64, u64)> {
        let levels = self.levels.iter().enumerate();
        let leveled =
            levels.flat_map(|(level, values)| values.iter().map(move |value| (*value, 1u64 << level)));
        let mut all: Vec<_> = leveled.chain(self.buffer.iter().map(|value| (*value, 1))).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        all
    }

    /// The values at these fractions of the sorted values (0 to 1, ascending); `None` if there are no values. Smallest
    /// and largest are exact.
    #[must_use]
    pub fn at(&self, shares: &[f64]) -> Option<Vec<f64>> {
        if self.count == 0 {
            return None;
        }
        let weighted = self.weighted();
        let mut values = Vec::with_capacity(shares.len());
        let mut index = 0;
        let mut below = 0;
        for share in shares {
            let rank = share * self.count as f64;
            while index + 1 < weighted.len() && ((below + weighted[index].1) as f64) < rank {
                below += weighted[index].1;
                index += 1;
            }
            values.push(match share {
                share if *share <= 0.0 => self.min,
                share if *share >= 1.0 => self.max,
                _ => weighted[index].0.clamp(self.min, self.max),
            });
        }
        Some(values)
    }

    /// How many values are in each of the bins between these ascending edges; the last bin includes its upper edge.
    #[must_use]
    pub fn histogram(&self, edges: &[f64]) -> Vec<u64> {
        let mut counts = vec![0; edges.len().saturating_sub(1)];
        let Some(last) = counts.len().checked_sub(1) else { return counts };
        for (value, weight) in self.weighted() {
            let bin = edges.partition_point(|edge| *edge <= value).saturating_sub(1);
            counts[bin.min(last)] += weight;
        }
        counts
    }
}

fn merge_sorted(one: Vec<f64>, other: Vec<f64>) -> Vec<f64> {
    if one.is_empty() {
        return other;
    }
    let mut merged = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    while let (Some(left), Some(right)) = (one.peek(), other.peek()) {
        let from = if left <= right { &mut one } else { &mut other };
        merged.extend(from.next());
    }
    merged.extend(one);
    merged.extend(other);
    merged
}

/// As stored: each level's values as little-endian bytes in base64, bounds as bits, so that every float comes back.
#[derive(Serialize, Deserialize)]
struct StoredQuantiles {
    count: u64,
    min: u64,
    max: u64,
    random: u64,
    levels: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top_length: Option<usize>,
}

impl Serialize for Quantiles {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut flushed = self.clone();
        flushed.shorten();
        let encode = |values: &Vec<f64>| {
            STANDARD_NO_PAD.encode(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
        };
        StoredQuantiles {
            count: self.count,
            min: self.min.to_bits(),
            max: self.max.to_bits(),
            random: self.random,
            levels: flushed.levels.iter().map(encode).collect(),
            top_length: Some(self.top_length).filter(|length| *length < TOP_LENGTH),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Quantiles {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredQuantiles::deserialize(deserializer)?;
        let levels = stored.levels.iter().map(|text| decode(text)).collect::<Result<Vec<_>, _>>();
        let levels = levels.map_err(serde::de::Error::custom)?;
        let total = levels.iter().enumerate().try_fold(0u64, |sum, (level, values)| {
            let weight = 1u64.checked_shl(level as u32)?;
            sum.checked_add(weight.checked_mul(values.len() as u64)?)
        });
        if total != Some(stored.count) || levels.len() > MAX_LEVELS + 1 {
            return Err(serde::de::Error::custom(
                "the weights of a quantile sketch do not add up to its count",
            ));
        }
        Ok(Self {
            count: stored.count,
            min: f64::from_bits(stored.min),
            max: f64::from_bits(stored.max),
            buffer: Vec::new(),
            levels,
            random: stored.random,
            top_length: stored.top_length.unwrap_or(TOP_LENGTH).clamp(MIN_LENGTH, TOP_LENGTH),
        })
    }
}

fn decode(text: &str) -> Result<Vec<f64>, String> {
    let bytes = STANDARD_NO_PAD.decode(text).map_err(|error| error.to_string())?;
    let value = |eight: &[u8]| f64::from_le_bytes(eight.try_into().expect("eight bytes"));
    let values: Vec<f64> = bytes.chunks_exact(8).map(value).collect();
    let sorted = values.is_sorted_by(|one, other| one <= other);
    if bytes.len() % 8 == 0 && sorted { Ok(values) } else { Err("a level is not sorted numbers".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(count: usize) -> Vec<(&'static str, Vec<f64>)> {
        let mut random = SplitMix64::new(7);
        let ascending: Vec<f64> = (0..count).map(|rank| rank as f64).collect();
        let descending = ascending.iter().rev().copied().collect();
        let mut shuffled = ascending.clone();
        for index in (1..count).rev() {
            shuffled.swap(index, random.next_u64() as usize % (index + 1));
        }
        let zigzag =
            (0..count).map(|index| if index % 2 == 0 { index / 2 } else { count - 1 - index / 2 } as f64);
        vec![
            ("ascending", ascending.clone()),
            ("descending", descending),
            ("shuffled", shuffled),
            ("zigzag", zigzag.collect()),
        ]
    }

    fn worst_error(sketch: &Quantiles, count: usize) -> f64 {
        let shares: Vec<f64> = (0..=1000).map(|step| f64::from(step) / 1000.0).collect();
        let values = sketch.at(&shares).unwrap();
        let errors =
            values.iter().zip(&shares).map(|(value, share)| (value / (count - 1) as f64 - share).abs());
        errors.fold(0.0, f64::max)
    }

    /// Proves that ranks keep their promise in every order of values, in one sketch, merged from many, and with one of
    /// four values for all; that weights add up; and that the stored form stays small and comes back whole.
    #[test]
    fn ranks_keep_their_promise() {
        for count in [100usize, 5000, 500_000] {
            for (order, values) in orders(count) {
                // One of four represents all only if there are many.
                for step in [1, 4].into_iter().filter(|step| count > 100_000 * (step - 1)) {
                    let mut one = Quantiles::default();
                    values.chunks(8192).for_each(|chunk| one.add(chunk, bounds(chunk), step));
                    let mut merged = Quantiles::default();
                    for part in values.chunks(count.div_ceil(13)) {
                        let mut sketch = Quantiles::default();
                        sketch.add(part, bounds(part), step);
                        merged.merge(sketch);
                    }
                    // A sample of few values has an additional error.
                    let sampling =
                        if step > 1 { 1.5 / (count as f64 / step as f64).sqrt() } else { 1.0 / count as f64 };
                    for sketch in [one, merged] {
                        let error = worst_error(&sketch, count);
                        assert!(error < QUANTILE_RANK_ERROR + sampling, "{order} {count} {step}: {error}");
                        assert_eq!(
                            sketch.weighted().iter().map(|(_, weight)| weight).sum::<u64>(),
                            count as u64
                        );
                        let stored = serde_json::to_string(&sketch).unwrap();
                        assert!(stored.len() < 60_000, "{}", stored.len());
                        let back: Quantiles = serde_json::from_str(&stored).unwrap();
                        assert!((worst_error(&back, count) - error).abs() < 0.001);
                    }
                }
            }
        }
    }

    fn bounds(values: &[f64]) -> (f64, f64) {
        values
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| (min.min(*value), max.max(*value)))
    }

    /// Proves that a sketch of few values is exact, and that a stored one that does not add up is refused.
    #[test]
    fn few_values_are_exact_and_false_sketches_refused() {
        let mut sketch = Quantiles::default();
        sketch.add(&[3.0, 1.0, 2.0, 10.0], (1.0, 10.0), 1);
        assert_eq!(sketch.at(&[0.0, 0.25, 0.5, 0.75, 1.0]), Some(vec![1.0, 1.0, 2.0, 3.0, 10.0]));
        assert_eq!(sketch.histogram(&[1.0, 2.0, 10.0]), [1, 3]);
        assert_eq!(Quantiles::default().at(&[0.5]), None);
        let stored = serde_json::to_string(&sketch).unwrap().replace("\"count\":4", "\"count\":5");
        let refused = serde_json::from_str::<Quantiles>(&stored).unwrap_err().to_string();
        assert!(refused.contains("do not add up to its count"), "{refused}");
    }
}
