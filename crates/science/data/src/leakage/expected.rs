//! How many rows would be equal by coincidence, if the columns were independent of each other: what is not much more than that
//! says nothing about copies.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use trackway_core::{Rng, SplitMix64};

use crate::values::hashed::AlreadyHashed;
use crate::values::sampled::{Values, each_bits};

/// Up to so many times the expected fraction is expected.
const EXPECTED_FACTOR: f64 = 2.0;

/// Random rows that estimate the fractions.
const SAMPLED_ROWS: usize = 1_000;

/// Fractions of rows that independent columns would show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectedOverlap {
    /// Of the test rows, those that equal a training row by their features.
    pub shared: f64,
    /// Of the test rows, those of these whose label no equal training row has.
    pub conflicting: f64,
    /// Of the training rows, those that equal another one with another label.
    pub conflicting_in_train: f64,
    /// The same of the test rows.
    pub conflicting_in_test: f64,
}

/// Whether a fraction is not much more than the expected one.
pub(super) fn explains(expected: f64, fraction: f64) -> bool {
    fraction <= expected * EXPECTED_FACTOR
}

/// From samples of the columns by which rows are compared, and of the label, for so many rows of each side.
pub(super) fn expected(
    features: &[&Values],
    label: Option<&Values>,
    (train_rows, test_rows): (u64, u64),
) -> ExpectedOverlap {
    let features: Vec<Shares> = features.iter().map(|values| Shares::of(values)).collect();
    let label = label.map(Shares::of);
    let mut random = SplitMix64::new(0);
    let mut sums = ExpectedOverlap::default();
    for _ in 0..SAMPLED_ROWS {
        let equal: f64 = features.iter().map(|shares| shares.drawn(random.next_unit())).product();
        let same = label.as_ref().map_or(1.0, |shares| shares.drawn(random.next_unit()));
        // The probability that one of so many rows is equal, each with this probability.
        let one_of = |rows: u64, probability: f64| -(-(rows as f64) * probability).exp_m1();
        let shared = one_of(train_rows, equal);
        sums.shared += shared;
        sums.conflicting += (shared - one_of(train_rows, equal * same)).max(0.0);
        sums.conflicting_in_train += one_of(train_rows, equal * (1.0 - same));
        sums.conflicting_in_test += one_of(test_rows, equal * (1.0 - same));
    }
    let mean = |sum: f64| sum / SAMPLED_ROWS as f64;
    ExpectedOverlap {
        shared: mean(sums.shared),
        conflicting: mean(sums.conflicting),
        conflicting_in_train: mean(sums.conflicting_in_train),
        conflicting_in_test: mean(sums.conflicting_in_test),
    }
}

/// The values of a column: up to which fraction of the rows each goes, one after the other, and the fraction of all *other* rows
/// that have it. What occurs once is not expected again. Missing is a value.
struct Shares(Vec<(f64, f64)>);

impl Shares {
    fn of(values: &Values) -> Self {
        let rows = values.content.len();
        let mut counts: HashMap<u64, u64, AlreadyHashed> = HashMap::default();
        let mut known = 0;
        each_bits(values, |_, bits| {
            known += 1;
            // Bits of numbers are no hashes; the product spreads them over the high bits that a map looks at.
            *counts.entry(bits.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)).or_default() += 1;
        });
        let mut counts: Vec<u64> = counts.into_values().chain([rows as u64 - known]).collect();
        // The order of the map is not always the same.
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let (all, others) = (rows.max(1) as f64, rows.saturating_sub(1).max(1) as f64);
        let mut reached = 0.0;
        let share = |count: u64| {
            reached += count as f64 / all;
            (reached, count.saturating_sub(1) as f64 / others)
        };
        Self(counts.into_iter().map(share).collect())
    }

    /// How often the value that a number in `[0, 1)` falls on occurs in other rows.
    fn drawn(&self, unit: f64) -> f64 {
        let at = self.0.partition_point(|(reached, _)| *reached <= unit);
        self.0.get(at).map_or(0.0, |(_, others)| *others)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use trackway_tables::ColumnType;

    use super::*;

    fn column(values: impl Iterator<Item = i64>) -> Values {
        let mut column = Values::new(ColumnType::Int);
        let array: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        column.add(&array);
        column
    }

    /// Proves that few columns of few values are expected to repeat, and that a column which is different in each row is not.
    #[test]
    fn few_values_are_expected_to_repeat() {
        let few = |of: i64| column((0..6_000).map(move |row| row % of));
        let label = column((0..6_000).map(|row| row % 2));
        let found = expected(&[&few(3), &few(4)], Some(&label), (6_000, 600));
        assert!(found.shared > 0.99 && found.conflicting < 0.01, "{found:?}");
        assert!(found.conflicting_in_train > 0.99 && found.conflicting_in_test > 0.99, "{found:?}");
        let rare = expected(&[&few(3), &column(0..6_000)], Some(&label), (6_000, 600));
        assert_eq!(rare, ExpectedOverlap::default());
        // 1,000 kinds of rows, each equally frequent: of 1,000 rows 1 - 1/e are met.
        let some = expected(&[&few(10), &few(100)], None, (1_000, 100));
        assert!((some.shared - 0.632).abs() < 0.01, "{some:?}");
        assert!(explains(some.shared, 1.0) && !explains(some.shared / 2.0, 1.0));
    }
}
