//! How many rows of one table have an equal one in it, and how many of those another label.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::values::hashed::{AlreadyHashed, Keys};

/// The most fingerprints kept; with more, a random part of all fingerprints represents the rest.
pub const DUPLICATE_KEYS_MAX: usize = 1 << 18;

/// Rows by fingerprint, of all fingerprints or, in larger tables, of a random 2⁻ⁿ of them: an exact count within that
/// part, and an unbiased estimate of the whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct DuplicateCounts {
    keys: HashMap<u64, Copies, AlreadyHashed>,
    /// Only fingerprints with so many trailing zeros are kept.
    zeros: u32,
    rows: u64,
}

/// Rows of one fingerprint.
#[derive(Debug, Clone, Copy)]
struct Copies {
    count: u32,
    label: u32,
}

/// No copy has a label.
const NO_LABEL: u32 = 0;

/// Copies have different labels.
const CONFLICT: u32 = u32::MAX;

/// Half of a label's fingerprint: enough to distinguish the few labels of equal rows. A missing label is 0.
fn short(label: u64) -> u32 {
    if label == 0 { NO_LABEL } else { ((label >> 32) as u32).clamp(1, CONFLICT - 1) }
}

impl Copies {
    fn add(&mut self, more: Self) {
        self.count = self.count.saturating_add(more.count);
        self.label = match (self.label, more.label) {
            (NO_LABEL, label) | (label, NO_LABEL) => label,
            (one, other) if one == other => one,
            _ => CONFLICT,
        };
    }
}

/// Equal rows within one table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Rows in all.
    pub rows: u64,
    /// The fraction of rows that appear in the table at least twice, all copies counted.
    pub share: f64,
    /// Rows beyond the first of each: what removing duplicates would remove.
    pub surplus_rows: u64,
    /// The fraction of rows that have an equal one (the label aside) with another label. 0 without a label.
    pub conflicting_share: f64,
    /// Whether every row was counted; otherwise the numbers are estimates.
    pub exact: bool,
}

impl DuplicateCounts {
    /// `labels` is empty, or has the fingerprint of each row's label, 0 where it is missing.
    pub(crate) fn observe(&mut self, fingerprints: &[u64], labels: &[u64]) {
        self.rows += fingerprints.len() as u64;
        for (row, fingerprint) in fingerprints.iter().enumerate() {
            if fingerprint.trailing_zeros() >= self.zeros {
                let label = labels.get(row).map_or(NO_LABEL, |label| short(*label));
                self.add(*fingerprint, Copies { count: 1, label });
            }
        }
    }

    pub(crate) fn merge(&mut self, later: Self) {
        self.rows += later.rows;
        self.thin_to(later.zeros);
        for (fingerprint, copies) in later.keys {
            if fingerprint.trailing_zeros() >= self.zeros {
                self.add(fingerprint, copies);
            }
        }
    }

    pub(crate) fn duplicates(&self) -> Duplicates {
        let rows_where = |holds: &dyn Fn(&Copies) -> bool| -> u64 {
            self.keys.values().filter(|copies| holds(copies)).map(|copies| u64::from(copies.count)).sum()
        };
        let counted = rows_where(&|_| true);
        let surplus = counted - self.keys.len() as u64;
        let share_of = |part: u64| if counted == 0 { 0.0 } else { part as f64 / counted as f64 };
        let exact = self.zeros == 0;
        let surplus_rows =
            if exact { surplus } else { (share_of(surplus) * self.rows as f64).round() as u64 };
        Duplicates {
            rows: self.rows,
            share: share_of(rows_where(&|copies| copies.count > 1)),
            surplus_rows,
            conflicting_share: share_of(rows_where(&|copies| copies.label == CONFLICT)),
            exact,
        }
    }

    fn add(&mut self, fingerprint: u64, copies: Copies) {
        self.keys.entry(fingerprint).and_modify(|known| known.add(copies)).or_insert(copies);
        if self.keys.len() > DUPLICATE_KEYS_MAX {
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
