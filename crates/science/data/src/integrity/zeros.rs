//! Zeros that mean "not known": a pile at 0, apart from values that are all above it.
//!
//! A measured zero is the end of a distribution: values come near it. A zero that was not measured is away from the
//! smallest value by many times what the small values are apart, and has more rows than they have. Measured zeros may look so
//! too (no garage has an area of 0), so that alone is a note. Where several columns are 0 in the same rows more often
//! than by coincidence, what was not measured there was not measured at all: that is a warning. Columns that are mostly
//! 0, or count from 0, are left alone.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use trackway_tables::profile::{ColumnProfile, Value};

use crate::values::hashed::scrambled;

/// Rows of a column that are 0, of which the lowest marks are kept: a random part, the same for all columns.
const MARKS_MAX: usize = 64;

/// Fewer rows than this, or a smaller fraction of them, may be true values.
const ROWS_MIN: u64 = 5;
const SHARE_MIN: f64 = 0.005;

/// With fewer different values, how far apart they are says little.
const VALUES_MIN: usize = 20;

/// The smallest values that show how far apart values are.
const SMALLEST: usize = 11;

/// The gap above 0, in distances of the smallest values.
const GAP_DISTANCES: f64 = 5.0;

/// Rows at 0 for each row up to twice the smallest value.
const PILE_FACTOR: f64 = 2.0;

/// Or so many deviations below the middle.
const DEVIATIONS: f64 = 4.0;

/// Rows that two columns share at 0, at least, and for each that is expected by coincidence.
const SHARED_MIN: usize = 5;
const SHARED_FACTOR: f64 = 1.5;

/// The rows of a column that are 0, by their lowest marks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ZeroRows(BTreeSet<u64>);

impl ZeroRows {
    pub(super) fn observe(&mut self, values: impl Iterator<Item = Option<f64>>, row_marks: &[u64]) {
        for (_, mark) in values.zip(row_marks).filter(|(value, _)| *value == Some(0.0)) {
            self.add(scrambled(*mark));
        }
    }

    fn add(&mut self, mark: u64) {
        if self.0.len() == MARKS_MAX && self.0.last().is_some_and(|last| mark >= *last) {
            return;
        }
        self.0.insert(mark);
        if self.0.len() > MARKS_MAX {
            self.0.pop_last();
        }
    }

    pub(super) fn merge(&mut self, later: Self) {
        later.0.into_iter().for_each(|mark| self.add(mark));
    }

    /// Whether the rows are those of another column more often than by coincidence, which `share` of its rows would be.
    pub(super) fn are_shared_with(&self, other: &Self, share: f64) -> bool {
        let end =
            |of: &Self| if of.0.len() < MARKS_MAX { u64::MAX } else { of.0.last().copied().unwrap_or(0) };
        let end = end(self).min(end(other));
        let own = self.0.range(..=end).count();
        let shared = self.0.range(..=end).filter(|mark| other.0.contains(mark)).count();
        shared >= SHARED_MIN && shared as f64 >= own as f64 * share * SHARED_FACTOR
    }
}

/// A pile of zeros.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zeros {
    pub(super) rows: u64,
    pub(super) share: f64,
    /// The smallest other value.
    pub(super) next: f64,
}

/// The zeros of a column, if they are apart; only where every value is known.
pub(super) fn zeros_apart(column: &ColumnProfile) -> Option<Zeros> {
    let values = column.value_count();
    let summary = column.summary();
    let (rows, share) = (summary.zero_count, summary.zero_count as f64 / values.max(1) as f64);
    let is_minority = rows >= ROWS_MIN && (SHARE_MIN..0.5).contains(&share);
    if !is_minority || summary.negative_count > 0 || !column.values_are_exact() {
        return None;
    }
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    let counted = column.top_values(usize::MAX);
    let above = counted.iter().filter_map(|it| Some((number(&it.value)?, it.count))).filter(|it| it.0 > 0.0);
    let mut above: Vec<(f64, u64)> = above.collect();
    above.sort_by(|one, other| one.0.total_cmp(&other.0));
    if above.len() < VALUES_MIN {
        return None;
    }
    let next = above[0].0;
    let mut distances: Vec<f64> = above[..SMALLEST].windows(2).map(|two| two[1].0 - two[0].0).collect();
    distances.sort_by(f64::total_cmp);
    let is_gap = next >= distances[distances.len() / 2] * GAP_DISTANCES;
    let near: u64 = above.iter().take_while(|(value, _)| *value <= next * 2.0).map(|(_, count)| count).sum();
    let is_pile = rows as f64 >= near as f64 * PILE_FACTOR;
    (is_gap && (is_pile || is_far_below(&above))).then_some(Zeros { rows, share, next })
}

/// Whether 0 is many deviations below the middle, by the quarters.
fn is_far_below(above: &[(f64, u64)]) -> bool {
    const QUARTERS_OF_NORMAL: f64 = 1.349;
    let all: u64 = above.iter().map(|(_, count)| count).sum();
    let at = |share: f64| {
        let mut below = 0;
        let reached = above.iter().find(|(_, count)| {
            below += count;
            below as f64 >= all as f64 * share
        });
        reached.map_or(0.0, |(value, _)| *value)
    };
    let deviation = (at(0.75) - at(0.25)) / QUARTERS_OF_NORMAL;
    at(0.5) >= deviation * DEVIATIONS && deviation > 0.0
}
