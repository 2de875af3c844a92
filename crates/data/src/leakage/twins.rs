//! How many rows of one table have an equal one in it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::hashed::{AlreadyHashed, Keys};

/// The most fingerprints kept; with more, a random part of all fingerprints stands for the rest.
pub const TWIN_KEYS_MAX: usize = 1 << 18;

/// Rows by fingerprint, of all fingerprints or, in larger tables, of a random 2⁻ⁿ of them: an exact count within that
/// part, and an unbiased estimate of the whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct TwinCounts {
    keys: HashMap<u64, u64, AlreadyHashed>,
    /// Only fingerprints with so many trailing zeros are kept.
    zeros: u32,
    rows: u64,
}

/// Equal rows within one table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Twins {
    /// Rows in all.
    pub rows: u64,
    /// The share of rows that stand in the table at least twice, all copies counted.
    pub share: f64,
    /// Rows beyond the first of each: what removing duplicates would remove.
    pub surplus_rows: u64,
    /// Whether every row was counted; otherwise the numbers are estimates from this many distinct rows.
    pub exact: bool,
    /// Distinct rows that were counted.
    pub keys_counted: usize,
}

impl TwinCounts {
    pub(crate) fn observe(&mut self, fingerprints: &[u64]) {
        self.rows += fingerprints.len() as u64;
        for fingerprint in fingerprints {
            if fingerprint.trailing_zeros() >= self.zeros {
                self.add(*fingerprint, 1);
            }
        }
    }

    pub(crate) fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.thin_to(later.zeros);
        for (fingerprint, count) in later.keys {
            if fingerprint.trailing_zeros() >= self.zeros {
                self.add(fingerprint, count);
            }
        }
    }

    pub(crate) fn twins(&self) -> Twins {
        let counted: u64 = self.keys.values().sum();
        let twice: u64 = self.keys.values().filter(|count| **count > 1).sum();
        let surplus = counted - self.keys.len() as u64;
        let share_of = |part: u64| if counted == 0 { 0.0 } else { part as f64 / counted as f64 };
        let exact = self.zeros == 0;
        let surplus_rows =
            if exact { surplus } else { (share_of(surplus) * self.rows as f64).round() as u64 };
        Twins { rows: self.rows, share: share_of(twice), surplus_rows, exact, keys_counted: self.keys.len() }
    }

    fn add(&mut self, fingerprint: u64, count: u64) {
        *self.keys.entry(fingerprint).or_default() += count;
        if self.keys.len() > TWIN_KEYS_MAX {
            self.thin_to(self.zeros + 1);
        }
    }

    fn thin_to(&mut self, zeros: u32) {
        if zeros > self.zeros {
            self.zeros = zeros;
            self.keys.retain(|fingerprint, _| fingerprint.trailing_zeros() >= zeros);
        }
    }
}

/// Fingerprints of one side, to look up those of the other.
pub(crate) fn keys_of(fingerprints: &[u64]) -> Keys {
    fingerprints.iter().copied().collect()
}
