//! From how many of the rows that it should cover a number was computed.

use serde::{Deserialize, Serialize};

use crate::closed_list;

closed_list!(
    /// How a row without a prediction counts.
    #[derive(Default)]
    MissingPredictions, "policy for missing predictions", {
        /// As a wrong answer, where answers are right or wrong. A number that needs the value itself is inconclusive.
        #[default]
        Wrong = "wrong",
        /// Every number over such a row is inconclusive.
        Inconclusive = "inconclusive",
    }
);

closed_list!(
    /// How gates treat numbers over rows that could not be matched with the task set.
    #[derive(Default)]
    UnmatchedTasks, "policy for unmatched tasks", {
        /// They decide nothing: which tasks were answered is not known.
        #[default]
        Inconclusive = "inconclusive",
        /// They count: the evaluator is relied on to answer every task once.
        Accepted = "accepted",
    }
);

/// The rows that a number was computed from, and the rows that it should cover.
///
/// A number that covers only some of its rows proves nothing about the others, so it decides nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowCoverage {
    /// Rows that are in the number.
    pub rows_used: u64,
    /// Rows that should be; 0 where this is unknown.
    pub rows_expected: u64,
}

impl RowCoverage {
    /// Nothing is known about the rows.
    pub const UNKNOWN: Self = Self { rows_used: 0, rows_expected: 0 };

    /// Of so many rows all.
    #[must_use]
    pub fn complete(rows: u64) -> Self {
        Self { rows_used: rows, rows_expected: rows }
    }

    /// Whether it is known which rows are in the number.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.rows_expected > 0
    }

    /// Whether every row that should be in the number is in it. Never where this is unknown.
    #[must_use]
    pub fn is_complete(self) -> bool {
        self.is_known() && self.rows_used >= self.rows_expected
    }

    /// Whether rows are known to be missing.
    #[must_use]
    pub fn is_partial(self) -> bool {
        self.is_known() && !self.is_complete()
    }

    /// The rows behind a number with this support: `400`, or `10 of 1000` where rows are missing.
    #[must_use]
    pub fn words(self, support: u64) -> String {
        if self.is_partial() {
            format!("{} of {}", self.rows_used, self.rows_expected)
        } else {
            support.to_string()
        }
    }

    /// Of a number that was computed from two others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self.is_known() && other.is_known() {
            Self {
                rows_used: self.rows_used + other.rows_used,
                rows_expected: self.rows_expected + other.rows_expected,
            }
        } else {
            Self::UNKNOWN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only a known coverage of every row is complete, also of two combined numbers.
    #[test]
    fn only_every_row_is_complete() {
        let partial = RowCoverage { rows_used: 9, rows_expected: 10 };
        let all = RowCoverage::complete(10);
        let nothing = RowCoverage::complete(0);
        for (coverage, complete, is_partial) in [
            (all, true, false),
            (partial, false, true),
            (RowCoverage::UNKNOWN, false, false),
            (nothing, false, false),
            (all.and(all), true, false),
            (all.and(partial), false, true),
            (all.and(RowCoverage::UNKNOWN), false, false),
        ] {
            assert_eq!(
                (coverage.is_complete(), coverage.is_partial()),
                (complete, is_partial),
                "{coverage:?}"
            );
        }
    }
}
