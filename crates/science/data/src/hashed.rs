//! Sets and maps of what is a hash already.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

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
