//! Numbers and dates that mean "not known": `-1`, `999`, `1900-01-01`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Numbers that people and old formats write where they have none, ascending.
const NUMBERS: [i64; 22] = [
    i64::MIN,
    -2_147_483_648,
    -999_999,
    -99_999,
    -32_768,
    -9_999,
    -999,
    -99,
    -9,
    -1,
    99,
    999,
    9_999,
    32_767,
    65_535,
    99_999,
    999_999,
    9_999_999,
    99_999_999,
    999_999_999,
    2_147_483_647,
    i64::MAX,
];

const DAY_MICROS: i64 = 86_400_000_000;

/// 0001-01-01, 1899-12-30 (day 0 of spreadsheets), 1900-01-01, 1970-01-01, 2099-12-31, 9999-12-31; ascending.
const TIMES: [i64; 6] = [
    -719_162 * DAY_MICROS,
    -25_569 * DAY_MICROS,
    -25_567 * DAY_MICROS,
    0,
    47_481 * DAY_MICROS,
    2_932_896 * DAY_MICROS,
];

/// Fewer rows than this, or a smaller fraction of them, may be true values.
const ROWS_MIN: u64 = 5;
const SHARE_MIN: f64 = 1e-4;

/// A placeholder is away from all other values by more than this part of their range, and by more than several ranges
/// if that is short: -1 is a value like 0 and 1, -9 is not.
const GAP_RANGES: f64 = 0.5;
const GAP_SHORT_RANGES: f64 = 3.0;

/// So many times as many rows as an average value has are a pile.
const PILE_FACTOR: f64 = 20.0;

/// A range below this is short.
const RANGE_MIN: f64 = 10.0;

/// Candidates of one column with their rows, and the bounds of all other values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Placeholders {
    counts: BTreeMap<i64, u64>,
    low: f64,
    high: f64,
}

impl Default for Placeholders {
    fn default() -> Self {
        Self { counts: BTreeMap::new(), low: f64::INFINITY, high: f64::NEG_INFINITY }
    }
}

impl Placeholders {
    pub(super) fn observe_numbers(&mut self, values: impl Iterator<Item = f64>) {
        for value in values {
            // Most values of most columns are excluded here.
            let is_candidate = !(value > -1.0 && value < 99.0)
                && value.fract() == 0.0
                && NUMBERS.binary_search(&(value as i64)).is_ok();
            self.observe(value, is_candidate);
        }
    }

    /// Microseconds since 1970.
    pub(super) fn observe_times(&mut self, values: impl Iterator<Item = i64>) {
        values.for_each(|value| self.observe(value as f64, TIMES.binary_search(&value).is_ok()));
    }

    fn observe(&mut self, value: f64, is_candidate: bool) {
        if is_candidate {
            *self.counts.entry(value as i64).or_default() += 1;
        } else if value.is_finite() {
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
    }

    pub(super) fn merge(&mut self, later: Self) {
        later.counts.into_iter().for_each(|(value, count)| *self.counts.entry(value).or_default() += count);
        self.low = self.low.min(later.low);
        self.high = self.high.max(later.high);
    }

    /// Candidates that pile up outside of all other values, with their rows. `values` are the column's values,
    /// `distinct` how many different ones.
    pub(super) fn found(&self, values: u64, distinct: u64, is_time: bool) -> Vec<(i64, u64)> {
        let range = self.high - self.low;
        // All values are candidates, or one: there is no placeholder.
        if range.is_nan() || range <= 0.0 {
            return Vec::new();
        }
        let ranges = if range < RANGE_MIN && !is_time { GAP_SHORT_RANGES } else { GAP_RANGES };
        let average = values as f64 / distinct.max(1) as f64;
        let is_isolated = |value: f64, rows: u64| {
            let gap = (self.low - value).max(value - self.high);
            let alone_below_zero = !is_time && value == -1.0 && self.low >= 0.0 && range >= RANGE_MIN;
            let is_pile = rows as f64 >= average * PILE_FACTOR;
            gap > 0.0 && (gap > range * ranges || alone_below_zero || (is_time && is_pile))
        };
        let found = self.counts.iter().filter(|(value, rows)| {
            **rows >= ROWS_MIN
                && **rows as f64 >= values as f64 * SHARE_MIN
                && is_isolated(**value as f64, **rows)
        });
        found.map(|(value, rows)| (*value, *rows)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[f64]) -> Vec<(i64, u64)> {
        let mut seen = Placeholders::default();
        seen.observe_numbers(values.iter().copied());
        let mut different = values.to_vec();
        different.sort_by(f64::total_cmp);
        different.dedup();
        seen.found(values.len() as u64, different.len() as u64, false)
    }

    /// Proves that the lists are ascending, as the search needs them, and the days of the times.
    #[test]
    fn the_lists_are_sorted() {
        assert!(NUMBERS.is_sorted() && TIMES.is_sorted());
        let shown = TIMES.map(|time| {
            arrow::temporal_conversions::timestamp_us_to_datetime(time).unwrap().date().to_string()
        });
        assert_eq!(
            shown,
            ["0001-01-01", "1899-12-30", "1900-01-01", "1970-01-01", "2099-12-31", "9999-12-31"]
        );
    }

    /// Proves that piles beyond the other values are placeholders, and the same numbers among them are not.
    #[test]
    fn a_placeholder_is_away_from_other_values() {
        let with = |usual: &[f64], extra: f64, times: usize| {
            let usual = usual.iter().copied().cycle().take(1_000);
            numbers(&usual.chain(std::iter::repeat_n(extra, times)).collect::<Vec<_>>())
        };
        let ages: Vec<f64> = (17..91).map(f64::from).collect();
        assert_eq!(with(&ages, 999.0, 20), [(999, 20)]);
        assert_eq!(with(&ages, -1.0, 20), [(-1, 20)]);
        assert_eq!(with(&ages, 99.0, 20), [], "a person may be 99");
        assert_eq!(with(&ages, 999.0, 3), [], "three may be a slip of the pen");
        assert_eq!(with(&[0.0, 1.0], -1.0, 300), [], "a vote of -1, 0 or 1");
        assert_eq!(with(&[-2.5, 0.1, 1.7, 30.0], -1.0, 300), [], "others are below zero too");
        assert_eq!(with(&[1.0, 2.0, 3.0, 4.0, 5.0], 99.0, 40), [(99, 40)], "an answer not given");
        assert_eq!(numbers(&[99.0; 100]), []);
    }
}
