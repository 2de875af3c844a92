//! Subsets that hold one another: 1 % ⊂ 10 % ⊂ 100 %; and the keys of rows that they are drawn by.
//!
//! `trackway data split --rungs` draws them over the rows of a table, and a training script over what it trains on.
//! Both take the same rows where the table's `--key` is what the script names, or the number of the row (from 0).

use crate::hash::hash_bytes;

/// The seed of subsets where none is given.
pub const DEFAULT_SEED: u64 = 17;

/// Odd numbers without a pattern (the first digits of π and e); any others would do. The first is the fingerprint of a
/// row of no column.
pub const FIRST: u64 = 0x243f_6a88_85a3_08d3;
/// The other one.
pub const SECOND: u64 = 0xb7e1_5162_8aed_2a6b;

/// Where a key falls in `[0, 1)`, evenly and independently for each seed. `purpose` makes uses independent: a row that
/// is early in the subsets is not for that reason in the training part.
#[must_use]
pub fn unit_of(seed: u64, purpose: &str, key: &[u8]) -> f64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(&(purpose.len() as u64).to_le_bytes());
    hasher.update(purpose.as_bytes());
    hasher.update(key);
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    (u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64
}

/// Whether a row belongs to the subset of this fraction (0 to 1). One that does belongs to every larger one too.
#[must_use]
pub fn subset_of(seed: u64, key: &[u8], fraction: f64) -> bool {
    subset_unit(seed, key) < fraction
}

fn subset_unit(seed: u64, key: &[u8]) -> f64 {
    unit_of(seed, "subset", key)
}

/// Those of `count` rows, numbered from 0, that belong to the subset, in order. A subset of any rows holds one at
/// least: the one that every larger subset holds too.
#[must_use]
pub fn indexes_of(seed: u64, count: u64, fraction: f64) -> Vec<u64> {
    let unit = |index: &u64| subset_unit(seed, &key_of_number(index.cast_signed()).to_le_bytes());
    let chosen: Vec<u64> = (0..count).filter(|index| fraction >= 1.0 || unit(index) < fraction).collect();
    if !chosen.is_empty() {
        return chosen;
    }
    let first = (0..count).min_by(|one, other| unit(one).total_cmp(&unit(other)));
    first.into_iter().collect()
}

/// The key of a row that is identified by a whole number.
#[must_use]
pub fn key_of_number(number: i64) -> u64 {
    mix(FIRST, of_int(number))
}

/// The key of a row that is identified by a string.
#[must_use]
pub fn key_of_text(text: &str) -> u64 {
    mix(FIRST, of_text(text))
}

/// One cell's fingerprint into its row's: multiplies to 128 bits and folds them, as wyhash does. The turn keeps the
/// order of columns.
#[inline]
#[must_use]
pub fn mix(state: u64, value: u64) -> u64 {
    let product = u128::from(state.rotate_left(23) ^ FIRST) * u128::from(value ^ SECOND);
    // The sum keeps the state where the value happens to be `SECOND` and the product nothing.
    ((product as u64) ^ (product >> 64) as u64).wrapping_add(state)
}

/// The fingerprint of a whole number.
#[inline]
#[must_use]
pub fn of_int(value: i64) -> u64 {
    value.cast_unsigned()
}

/// The fingerprint of a number. A whole number hashes as the integer it is; all NaN are equal.
#[inline]
#[must_use]
pub fn of_float(value: f64) -> u64 {
    let whole = value as i64;
    if whole as f64 == value && whole != i64::MAX {
        return of_int(whole);
    }
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

/// The fingerprint of a text.
#[inline]
#[must_use]
pub fn of_text(text: &str) -> u64 {
    hash_bytes(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that subsets contain one another for every seed, have the requested fraction, and are never empty.
    #[test]
    fn subsets_of_indexes_are_nested_and_as_large_as_asked_for() {
        for seed in [0, 17, u64::MAX] {
            let one = indexes_of(seed, 100_000, 0.01);
            let ten = indexes_of(seed, 100_000, 0.1);
            assert!(one.iter().all(|index| ten.binary_search(index).is_ok()));
            assert!((one.len() as f64 - 1_000.0).abs() < 130.0, "{}", one.len());
            assert!((ten.len() as f64 - 10_000.0).abs() < 380.0, "{}", ten.len());
            assert_eq!(indexes_of(seed, 1_000, 1.0).len(), 1_000);
            for count in 1..40 {
                let smallest = indexes_of(seed, count, 0.000_1);
                assert_eq!(smallest.len(), 1);
                let larger = indexes_of(seed, count, 0.2);
                assert!(larger.contains(&smallest[0]), "{count}: {smallest:?} is not in {larger:?}");
            }
        }
        assert!(indexes_of(0, 0, 0.5).is_empty());
    }

    /// Proves that the subsets stay what they are: another program may have drawn them.
    #[test]
    fn subsets_never_change() {
        assert_eq!(key_of_number(7), 14_182_425_889_244_780_960);
        assert_eq!(key_of_text("patient-7"), 16_513_952_598_530_458_225);
        assert_eq!(indexes_of(17, 200, 0.05), [19, 33, 54, 108, 110, 155, 156, 168]);
    }
}
