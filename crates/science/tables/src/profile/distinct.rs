//! How many different values: HyperLogLog (Flajolet et al. 2007) with the estimator of O. Ertl, "New cardinality
//! estimation algorithms for HyperLogLog sketches" (2017), which needs no correction table.
//!
//! `hyperloglogplus` is not used: it reads stored registers without a check of their number and range, and profiles
//! that are stored would not be comparable any more.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};

/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = 14;

/// Registers; one byte each.
const REGISTERS: usize = 1 << INDEX_BITS;

/// Bits of a hash that are left for the register's value.
const VALUE_BITS: u32 = 64 - INDEX_BITS;

/// Standard error of the estimate, as a fraction of the true count: 1.04 / sqrt(registers).
pub const DISTINCT_STANDARD_ERROR: f64 = 0.0082;

/// Hashes seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Distinct {
    /// Empty once they are packed.
    registers: Box<[u8]>,
    packed: Option<Packed>,
}

/// Registers in half the memory: they are close together, so four bits are enough for how much each is above the
/// smallest.
#[derive(Debug, Clone)]
struct Packed {
    smallest: u8,
    halves: Box<[u8]>,
    /// The few that are far above it: index and register.
    large: Box<[(u16, u8)]>,
}

/// The most that four bits give for a register that is not among the large ones.
const HALF_MAX: u8 = 14;

impl Packed {
    fn of(registers: &[u8]) -> Self {
        let smallest = registers.iter().copied().min().unwrap_or(0);
        let half = |register: &u8| (register - smallest).min(HALF_MAX + 1);
        let halves = registers.chunks_exact(2).map(|two| half(&two[0]) << 4 | half(&two[1])).collect();
        let is_large = |(_, register): &(u16, u8)| register - smallest > HALF_MAX;
        let large = (0..).zip(registers.iter().copied()).filter(is_large).collect();
        Self { smallest, halves, large }
    }

    fn unpack(&self) -> Box<[u8]> {
        let registers = self.halves.iter().flat_map(|two| [two >> 4, two & 15]);
        let mut registers: Box<[u8]> = registers.map(|half| half + self.smallest).collect();
        for (index, register) in &self.large {
            registers[usize::from(*index)] = *register;
        }
        registers
    }
}

impl PartialEq for Distinct {
    fn eq(&self, other: &Self) -> bool {
        self.registers() == other.registers()
    }
}

impl Eq for Distinct {}

impl Default for Distinct {
    fn default() -> Self {
        Self { registers: vec![0; REGISTERS].into(), packed: None }
    }
}

impl Distinct {
    #[inline]
    pub(crate) fn add(&mut self, hash: u64) {
        let index = (hash >> VALUE_BITS) as usize;
        // The guard bit bounds the number of leading zeros.
        let rank = ((hash << INDEX_BITS) | 1 << (INDEX_BITS - 1)).leading_zeros() as u8 + 1;
        if self.registers.is_empty() {
            self.unpack();
        }
        let register = &mut self.registers[index];
        *register = (*register).max(rank);
    }

    /// Takes half the memory until more is added.
    pub(crate) fn pack(&mut self) {
        if self.packed.is_none() {
            self.packed = Some(Packed::of(&std::mem::take(&mut self.registers)));
        }
    }

    #[cold]
    fn unpack(&mut self) {
        if let Some(packed) = self.packed.take() {
            self.registers = packed.unpack();
        }
    }

    fn registers(&self) -> Cow<'_, [u8]> {
        match &self.packed {
            Some(packed) => Cow::Owned(packed.unpack().into()),
            None => Cow::Borrowed(&self.registers),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.unpack();
        for (register, more) in self.registers.iter_mut().zip(other.registers().iter()) {
            *register = (*register).max(*more);
        }
    }

    /// The estimated number of different hashes.
    pub(crate) fn estimate(&self) -> f64 {
        let mut counts = [0u32; VALUE_BITS as usize + 2];
        for register in self.registers().iter() {
            counts[usize::from(*register)] += 1;
        }
        let size = REGISTERS as f64;
        let share = |count: u32| f64::from(count) / size;
        let mut sum = size * tau(1.0 - share(counts[VALUE_BITS as usize + 1]));
        for count in counts[1..=VALUE_BITS as usize].iter().rev() {
            sum = 0.5 * (sum + f64::from(*count));
        }
        sum += size * sigma(share(counts[0]));
        size * size / (2.0 * std::f64::consts::LN_2 * sum)
    }
}

/// Ertl 2017, algorithm 6: x + x² + 2 x⁴ + 4 x⁸ + …
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut sum) = (1.0, x);
    loop {
        x *= x;
        let before = sum;
        sum += x * y;
        y += y;
        if sum == before {
            return sum;
        }
    }
}

/// Ertl 2017, algorithm 6: the fraction of registers at their end, to third order.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut sum) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = sum;
        y *= 0.5;
        sum -= (1.0 - x).powi(2) * y;
        if sum == before {
            return sum / 3.0;
        }
    }
}

/// Four registers of six bits in three bytes, in base64.
impl From<Distinct> for String {
    fn from(distinct: Distinct) -> Self {
        let pack = |four: &[u8]| {
            let bits = four.iter().fold(0u32, |bits, register| bits << 6 | u32::from(*register));
            let [_, bytes @ ..] = bits.to_be_bytes();
            bytes
        };
        STANDARD_NO_PAD.encode(distinct.registers().chunks_exact(4).flat_map(pack).collect::<Vec<u8>>())
    }
}

impl TryFrom<String> for Distinct {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bytes = STANDARD_NO_PAD.decode(text).map_err(|error| error.to_string())?;
        let unpack = |three: &[u8]| {
            let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
            [18, 12, 6, 0].map(|shift| ((bits >> shift) & 63) as u8)
        };
        let registers: Box<[u8]> = bytes.chunks_exact(3).flat_map(unpack).collect();
        let in_range = registers.iter().all(|register| u32::from(*register) <= VALUE_BITS + 1);
        if registers.len() == REGISTERS && in_range {
            Ok(Self { registers, packed: None })
        } else {
            Err(format!("{} registers instead of {REGISTERS}, or one out of range", registers.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trackway_formats::hash::{hash_bytes, hash_number};

    /// Proves that estimates stay within four standard errors from ten values to a million, for consecutive numbers and
    /// strings alike (which a weak hash would spoil), and that stored and packed registers come back.
    #[test]
    fn estimates_keep_their_promise() {
        for count in [10u64, 1000, 20_000, 1_000_000] {
            for text in [false, true] {
                let mut distinct = Distinct::default();
                for number in 0..count {
                    let hash = if text {
                        hash_bytes(format!("id-{number}").as_bytes())
                    } else {
                        hash_number(number)
                    };
                    distinct.add(hash);
                }
                let error = (distinct.estimate() - count as f64).abs() / count as f64;
                assert!(error < 4.0 * DISTINCT_STANDARD_ERROR, "{count} {text}: {error}");
                let stored = String::from(distinct.clone());
                assert!(stored.len() <= 16_384);
                assert_eq!(Distinct::try_from(stored.clone()).unwrap(), distinct);
                let mut packed = distinct.clone();
                packed.pack();
                assert_eq!((String::from(packed.clone()), packed.estimate()), (stored, distinct.estimate()));
                packed.add(u64::MAX);
                distinct.add(u64::MAX);
                packed.pack();
                assert_eq!(packed, distinct);
            }
        }
        assert_eq!(Distinct::default().estimate(), 0.0);
    }

    /// Proves that the estimate is unbiased: over many sets of strings and numbers the errors cancel out.
    #[test]
    fn estimates_do_not_lean() {
        const SETS: u64 = 40;
        const COUNT: u64 = 20_000;
        for text in [false, true] {
            let errors: Vec<f64> = (0..SETS)
                .map(|set| {
                    let mut distinct = Distinct::default();
                    for number in (set * 1_000_000..).take(COUNT as usize) {
                        let short = || hash_bytes(format!("u{number}").as_bytes());
                        distinct.add(if text { short() } else { hash_number(number) });
                    }
                    distinct.estimate() / COUNT as f64 - 1.0
                })
                .collect();
            let mean = errors.iter().sum::<f64>() / SETS as f64;
            let spread = (errors.iter().map(|error| error * error).sum::<f64>() / SETS as f64).sqrt();
            assert!(mean.abs() < 3.0 * DISTINCT_STANDARD_ERROR / (SETS as f64).sqrt(), "{text}: {mean}");
            assert!(spread < 1.3 * DISTINCT_STANDARD_ERROR, "{text}: {spread}");
        }
    }
}
