//! The hash of profiles of data and of the keys of rows. It is part of the formats: profiles made on different machines
//! are merged by it, and subsets are selected by it, so it must never change without a new version of both.

pub(crate) mod digest;

/// Scrambles a whole number; different numbers have different hashes (the finaliser of SplitMix64, Steele et al. 2014).
#[inline]
#[must_use]
pub fn hash_number(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

/// Scrambles the bits of a float. A float that is a whole number has that number's hash, so that a column that is
/// whole in one part of the data and not in another counts the same values as the same.
#[inline]
#[must_use]
pub fn hash_float(bits: u64) -> u64 {
    let value = f64::from_bits(bits);
    let whole = value as i64;
    hash_number(if whole as f64 == value { whole.cast_unsigned() } else { bits })
}

/// Hashes bytes, eight at a time, by multiplying to 128 bits and folding the halves (the step of wyhash).
#[inline]
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut state = 0x2D35_8DCC_AA6C_78A5 ^ bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        state = fold(state ^ word, 0x8BB8_4B93_962E_ACC9);
    }
    let rest = chunks.remainder().iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    hash_number(fold(state ^ rest, 0x4B33_A62E_D433_D4A3))
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}
