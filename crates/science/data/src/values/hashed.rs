//! Hashes, and sets and maps of what is a hash already.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use trackway_core::{Rng, SplitMix64};

/// Takes a `u64` as its own hash.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only u64 keys are hashed by themselves")
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// For maps whose keys are hashes.
pub(crate) type AlreadyHashed = BuildHasherDefault<Itself>;

pub(crate) type Keys = HashSet<u64, AlreadyHashed>;

/// A hash of a number; different numbers have different ones.
pub(crate) fn scrambled(number: u64) -> u64 {
    SplitMix64::new(number).next_u64()
}

/// 128 bits of BLAKE3: two different ones of 10¹⁰ are taken for equal with a probability of 10⁻¹⁹.
pub(crate) fn digest(bytes: &[u8]) -> u128 {
    let mut first = [0; 16];
    first.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
    u128::from_le_bytes(first)
}
