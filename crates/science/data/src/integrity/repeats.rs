//! Rows that a table holds more than once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::merge::merge_option;
use trackway_tables::read::Place;

use crate::values::hashed::AlreadyHashed;

/// The most different rows kept; with more, a random 2⁻ⁿ of all fingerprints represents the rest.
pub const REPEATED_KEYS_MAX: usize = 1 << 18;

/// Rows beyond the first of each kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// Rows whose features appear earlier in the table: what removing duplicates would remove.
    pub by_features: u64,
    /// Those of them with the same label there. Equals `by_features` without a label.
    pub with_label: u64,
    /// Whether every row was counted; otherwise both are estimates from a random part of the rows.
    pub exact: bool,
    /// Some of them with the first place of an equal row.
    pub examples: Vec<(Place, Place)>,
    /// Identifiers, which did not count.
    pub without: Vec<String>,
}

/// Of how many fingerprints one is kept, as a power of two: shared by all accumulators, only ever raised.
#[derive(Debug, Clone, Default)]
pub(super) struct Thinning(Arc<AtomicU32>);

/// Rows by fingerprint.
#[derive(Debug, Clone)]
pub(super) struct RowCounts {
    rows: HashMap<u64, RowOccurrence, AlreadyHashed>,
    /// Only fingerprints with so many trailing zeros are kept.
    zeros: u32,
    shared: Thinning,
}

/// Rows by their features, and by features and label.
#[derive(Debug, Clone)]
pub(super) struct RowKinds {
    pub(super) by_features: RowCounts,
    pub(super) with_label: Option<RowCounts>,
}

impl RowKinds {
    pub(super) fn new(thinned: &Thinning, has_label: bool) -> Self {
        Self { by_features: RowCounts::new(thinned), with_label: has_label.then(|| RowCounts::new(thinned)) }
    }

    pub(super) fn merge(&mut self, later: Self) {
        self.by_features.merge(later.by_features);
        merge_option(&mut self.with_label, later.with_label, RowCounts::merge);
    }

    pub(super) fn repeats(&self) -> Repeats {
        let by_features = self.by_features.surplus();
        let with_label = self.with_label.as_ref();
        Repeats {
            by_features,
            with_label: with_label.map_or(by_features, RowCounts::surplus),
            exact: self.by_features.is_exact() && with_label.is_none_or(RowCounts::is_exact),
            examples: self.by_features.examples(),
            without: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct RowOccurrence {
    count: u64,
    first: Place,
    second: Option<Place>,
}

impl RowCounts {
    pub(super) fn new(shared: &Thinning) -> Self {
        Self { rows: HashMap::default(), zeros: 0, shared: shared.clone() }
    }

    pub(super) fn observe(&mut self, keys: &[u64], place: impl Fn(usize) -> Place) {
        self.thin_to(self.shared.0.load(Ordering::Relaxed));
        for (row, key) in keys.iter().enumerate() {
            if key.trailing_zeros() >= self.zeros {
                self.add(*key, RowOccurrence { count: 1, first: place(row), second: None });
            }
        }
    }

    pub(super) fn merge(&mut self, later: Self) {
        self.thin_to(later.zeros);
        for (key, seen) in later.rows {
            if key.trailing_zeros() >= self.zeros {
                self.add(key, seen);
            }
        }
    }

    /// Rows beyond the first of each, scaled to the whole table.
    pub(super) fn surplus(&self) -> u64 {
        let counted: u64 = self.rows.values().map(|seen| seen.count - 1).sum();
        counted << self.zeros
    }

    pub(super) fn is_exact(&self) -> bool {
        self.zeros == 0
    }

    /// The first repeated rows that are known, each with the place it repeats.
    pub(super) fn examples(&self) -> Vec<(Place, Place)> {
        let mut found: Vec<_> =
            self.rows.values().filter_map(|seen| Some((seen.second?, seen.first))).collect();
        found.sort_unstable();
        found.truncate(EXAMPLES_MAX);
        found
    }

    fn add(&mut self, key: u64, seen: RowOccurrence) {
        self.rows
            .entry(key)
            .and_modify(|known| {
                known.count += seen.count;
                known.second = known.second.or(Some(seen.first));
            })
            .or_insert(seen);
        if self.rows.len() > REPEATED_KEYS_MAX {
            self.thin_to(self.zeros + 1);
        }
    }

    fn thin_to(&mut self, zeros: u32) {
        if zeros > self.zeros {
            self.zeros = zeros;
            self.rows.retain(|key, _| key.trailing_zeros() >= zeros);
            self.shared.0.fetch_max(zeros, Ordering::Relaxed);
        }
    }
}
