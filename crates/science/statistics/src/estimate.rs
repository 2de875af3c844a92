//! A number with its interval.

use serde::{Deserialize, Serialize};
use trackway_core::{RowCoverage, closed_list};

use crate::Interval;

/// A value that was estimated from rows, and how uncertain it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The number, of all rows it was computed from.
    pub value: f64,
    /// Its interval, as `low` and `high`. Ends are unknown where no interval can be given (too few rows, one group).
    #[serde(flatten)]
    pub interval: Interval,
    /// The number of rows (or questions, or groups if they are resampled).
    pub support: u64,
    /// Where the interval comes from.
    pub method: Method,
    /// The rows that it was computed from, of those that it should cover.
    #[serde(default)]
    pub coverage: RowCoverage,
}

impl Estimate {
    /// A value whose coverage is not known. Without an interval there is no method either.
    #[must_use]
    pub fn new(value: f64, interval: Interval, support: u64, method: Method) -> Self {
        let interval = Interval::between(Some(interval.low), Some(interval.high));
        let method = if interval.is_known() { method } else { Method::None };
        Self { value, interval, support, method, coverage: RowCoverage::UNKNOWN }
    }

    /// A value by a formula, of all rows that it should cover.
    #[must_use]
    pub fn analytic(value: f64, interval: Interval, rows: u64) -> Self {
        let coverage = RowCoverage::complete(rows);
        Self { coverage, ..Self::new(value, interval, rows, Method::Analytic) }
    }

    /// What follows the number where nothing else shows its rows: ` (10 of 1000 rows)` where rows are missing, else nothing.
    #[must_use]
    pub fn of_some_rows(&self) -> String {
        match self.coverage.is_partial() {
            true => format!(" ({} rows)", self.coverage.words(self.support)),
            false => String::new(),
        }
    }
}

closed_list!(
    /// Where an interval comes from. All are two-sided, at the confidence level of the whole evaluation.
    Method, "method of an interval", {
        /// A formula for this metric.
        Analytic = "analytic",
        /// Bootstrap of rows.
        Bootstrap = "bootstrap",
        /// Bootstrap of whole groups of rows, or a variance summed by group.
        Clustered = "clustered",
        /// There is none: the evaluator reported a bare number.
        None = "none",
    }
);
