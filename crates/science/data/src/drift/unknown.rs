//! Values that the reference does not have: how many rows of the current data have one, and how many would if both sides
//! were samples of one distribution.
//!
//! If they were, each split of all rows into two parts of these sizes would be as likely as any other. A value is then
//! unknown where all of its `c` rows fall into the current part, with a probability of at most `q^c` (`q`: the current part of
//! all rows). So rare values are expected to be unknown, and a column in which every row differs is expected to be
//! unknown as a whole, whatever the number of values; frequent ones are not. The events are negatively associated, so the
//! bound of Chernoff holds for the sum of their rows.

use std::collections::{BTreeMap, HashMap};

use trackway_results::drift::{FALSE_DISCOVERY_RATE, UnknownValues};
use trackway_tables::profile::{ColumnProfile, DISTINCT_STANDARD_ERROR, PROFILE_VERSION, Profile};

use super::UNKNOWN_FRACTION_MIN;

/// So far the number of values that both sides have may be off, in its standard errors.
const STANDARD_ERRORS: f64 = 3.0;
/// That must be less than this part of the current values, or nothing is known.
const UNCERTAIN_MAX: f64 = 0.25;
/// Sides with at most this part of the current values in common are taken to have none.
const COMMON_MAX: f64 = 0.05;
/// With at least one value for so many rows of the reference, its values may be mostly of one row: others are then expected.
const VALUES_PER_ROW_MAX: f64 = 0.5;

/// Of columns whose values and counts are all known.
pub(super) fn exact(before: &HashMap<String, f64>, after: &HashMap<String, f64>) -> Option<UnknownValues> {
    let (reference_rows, current_rows): (f64, f64) = (before.values().sum(), after.values().sum());
    if reference_rows <= 0.0 || current_rows <= 0.0 {
        return None;
    }
    let unknown = after.iter().filter(|(value, _)| !before.contains_key(*value)).map(|(_, rows)| rows);
    let rows: f64 = unknown.sum();
    let all = values_by_rows(before, after);
    let current_part = current_rows / (reference_rows + current_rows);
    let expected: f64 = all.iter().map(|(rows, values)| values * rows_of(*rows, current_part)).sum();
    let p_value = chernoff(&all, current_part, rows, expected);
    Some(UnknownValues {
        rows: rows as u64,
        fraction: rows / current_rows,
        expected_fraction: (expected / current_rows).min(1.0),
        is_exact: true,
        p_value: Some(p_value),
        adjusted_p_value: Some(p_value),
        drifted: false,
    })
}

/// Of columns of too many values to know all of them, from sketches of which there are: only where the sides have as
/// good as none in common though the reference has several rows for each. `None`: that is not shown.
pub(super) fn about(before: &ColumnProfile, after: &ColumnProfile) -> Option<UnknownValues> {
    let (one, other) = (distinct(before), distinct(after));
    let either = distinct_of_both(before, after)?;
    let error =
        STANDARD_ERRORS * DISTINCT_STANDARD_ERROR * (one.powi(2) + other.powi(2) + either.powi(2)).sqrt();
    let common = (one + other - either).max(0.0);
    let frequent = before.top_values(usize::MAX);
    let rows_of_frequent: u64 = frequent.iter().map(|it| it.count).sum();
    let other_rows = before.value_count().saturating_sub(rows_of_frequent) as f64;
    let values_per_row = (one - frequent.len() as f64).max(0.0) / other_rows.max(1.0);
    let is_known = error <= other * UNCERTAIN_MAX && values_per_row <= VALUES_PER_ROW_MAX;
    if !is_known || common > other * COMMON_MAX + error {
        return None;
    }
    let known: HashMap<String, f64> =
        frequent.iter().map(|it| (it.value.to_string(), it.count as f64)).collect();
    let of_known =
        after.top_values(usize::MAX).into_iter().filter(|it| known.contains_key(&it.value.to_string()));
    let rows = after.value_count().saturating_sub(of_known.map(|it| it.count).sum());
    Some(UnknownValues {
        rows,
        fraction: rows as f64 / after.value_count().max(1) as f64,
        expected_fraction: values_per_row,
        is_exact: false,
        p_value: None,
        adjusted_p_value: None,
        drifted: false,
    })
}

/// Decides with the p-value, corrected for the number of tests.
pub(super) fn decide(unknown: &mut UnknownValues, adjusted: Option<f64>) {
    unknown.adjusted_p_value = adjusted;
    let matters = unknown.fraction - unknown.expected_fraction > UNKNOWN_FRACTION_MIN;
    unknown.drifted = matters && adjusted.is_none_or(|p_value| p_value <= FALSE_DISCOVERY_RATE);
}

/// How many values have so many rows on both sides together.
fn values_by_rows(before: &HashMap<String, f64>, after: &HashMap<String, f64>) -> BTreeMap<u64, f64> {
    let mut all = BTreeMap::new();
    for (value, rows) in before {
        let rows = rows + after.get(value).copied().unwrap_or(0.0);
        *all.entry(rows as u64).or_default() += 1.0;
    }
    for rows in after.iter().filter(|(value, _)| !before.contains_key(*value)).map(|(_, rows)| rows) {
        *all.entry(*rows as u64).or_default() += 1.0;
    }
    all
}

/// The expected rows of a value that is unknown only where all of its rows are in the current part.
fn rows_of(rows: u64, current_part: f64) -> f64 {
    rows as f64 * current_part.powf(rows as f64)
}

/// The most likely that the unknown values have `found` rows or more (Chernoff): the least of
/// `exp(−t found) ∏ (1 − p + p exp(t c))` over all t above 0, with the values' rows `c` and probabilities `p = q^c`.
fn chernoff(all: &BTreeMap<u64, f64>, current_part: f64, found: f64, expected: f64) -> f64 {
    /// Halvings of the interval of t.
    const STEPS: usize = 60;
    if found <= expected {
        return 1.0;
    }
    // The logarithms of 1 − p and of p exp(t c) for a value with so many rows.
    let parts = |rows: u64, t: f64| {
        let log_p = rows as f64 * current_part.ln();
        ((-log_p.exp()).ln_1p(), log_p + t * rows as f64)
    };
    let sum = |one: f64, other: f64| {
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        high + (low - high).exp().ln_1p()
    };
    // The mean of the tilted sum rises with t; at the least bound it is what was found.
    let tilted = |t: f64| -> f64 {
        let of = |(rows, values): (&u64, &f64)| {
            let (outside, inside) = parts(*rows, t);
            values * *rows as f64 * (inside - sum(outside, inside)).exp()
        };
        all.iter().map(of).sum()
    };
    let (mut low, mut high) = (0.0, 1.0);
    while tilted(high) < found && high < 1e3 {
        high *= 2.0;
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if tilted(middle) < found { low = middle } else { high = middle }
    }
    let of = |(rows, values): (&u64, &f64)| {
        let (outside, inside) = parts(*rows, high);
        values * sum(outside, inside)
    };
    let log_bound = all.iter().map(of).sum::<f64>() - high * found;
    if log_bound.is_nan() { 1.0 } else { log_bound.min(0.0).exp() }
}

fn distinct(column: &ColumnProfile) -> f64 {
    column.summary().distinct_estimate as f64
}

/// About how many different values both sides have together.
fn distinct_of_both(before: &ColumnProfile, after: &ColumnProfile) -> Option<f64> {
    let of = |column: &ColumnProfile| Profile {
        version: PROFILE_VERSION,
        rows: column.rows,
        rows_rejected: 0,
        rows_sampled: None,
        label: None,
        masked_with: None,
        columns: vec![column.clone()],
    };
    let mut both = of(before);
    both.merge(of(after)).ok()?;
    both.columns.first().map(distinct)
}

#[cfg(test)]
mod tests {
    use trackway_core::{Rng, SplitMix64};

    use super::*;

    fn counts(values: impl Iterator<Item = u64>) -> HashMap<String, f64> {
        let mut counts = HashMap::new();
        values.for_each(|value| *counts.entry(value.to_string()).or_default() += 1.0);
        counts
    }

    fn unknown(before: impl Iterator<Item = u64>, after: impl Iterator<Item = u64>) -> UnknownValues {
        let mut found = exact(&counts(before), &counts(after)).unwrap();
        let p_value = found.p_value;
        decide(&mut found, p_value);
        found
    }

    /// Proves that values that were all replaced are found for few and for many values, in few and in many rows, with
    /// the fraction of rows.
    #[test]
    fn replaced_values_are_unknown() {
        for (values, before, after) in [(3, 40, 30), (30, 300, 100), (60, 5_000, 5_000), (800, 9_000, 4_000)]
        {
            let found =
                unknown((0..before).map(|row| row % values), (0..after).map(|row| values + row % values));
            assert!(found.drifted && found.fraction == 1.0 && found.rows == after, "{values}: {found:?}");
            let half = unknown(
                (0..before).map(|row| row % values),
                (0..after).map(|row| row % values + if row % 2 == 0 { values } else { 0 }),
            );
            assert!(half.drifted && half.fraction > 0.4, "{values}: {half:?}");
            let same = unknown((0..before).map(|row| row % values), (0..after).map(|row| row % values));
            assert!(!same.drifted && same.rows == 0 && same.p_value == Some(1.0), "{values}: {same:?}");
        }
    }

    /// Proves that what differs in each row is expected to be unknown, and that it is not drift.
    #[test]
    fn what_differs_in_each_row_is_expected() {
        for (before, after) in [(20, 20), (300, 100), (1_500, 1_500), (100, 1_000)] {
            let found = unknown(0..before, before..before + after);
            assert!(!found.drifted && found.fraction == 1.0, "{found:?}");
            assert!(found.expected_fraction > 0.99, "{found:?}");
        }
    }

    /// Proves by simulation that small samples of heavy-tailed values are not drift: of 400 pairs of samples of one
    /// distribution at most one in a hundred.
    #[test]
    fn heavy_tails_are_no_drift() {
        let mut rng = SplitMix64::new(7);
        let mut draw = |rows: usize, power: f64| -> Vec<u64> {
            (0..rows)
                .map(|_| (1.0 / (1.0 - rng.next_unit()).max(1e-9)).powf(power).min(1e12) as u64)
                .collect()
        };
        let mut alarms = 0;
        for round in 0..400 {
            let (before, after) = [(30, 30), (100, 40), (60, 300), (500, 500)][round % 4];
            let power = [0.7, 1.0, 1.5][round % 3];
            let (before, after) = (draw(before, power), draw(after, power));
            alarms += usize::from(unknown(before.into_iter(), after.into_iter()).drifted);
        }
        assert!(alarms <= 4, "{alarms} of 400");
    }

    /// Proves that the bound is not below the true probability, where that can be counted: one value with all of its two
    /// rows among the current half has a quarter.
    #[test]
    fn the_bound_is_not_too_small() {
        let all = BTreeMap::from([(2, 1.0)]);
        let bound = chernoff(&all, 0.5, 2.0, 2.0 * 0.25);
        assert!((0.2499..0.26).contains(&bound), "{bound}");
        assert_eq!(chernoff(&all, 0.5, 0.0, 0.5), 1.0);
    }
}
