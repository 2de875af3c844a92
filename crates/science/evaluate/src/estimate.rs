//! A number with its interval.

use serde::{Deserialize, Serialize};
use trackway_core::RowCoverage;

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The number, of all rows it was computed from.
    pub value: f64,
    /// The lower end of the interval. `None` where no interval can be given (too few rows, one group).
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// The number of rows (or questions, or groups if they are resampled).
    pub support: u64,
    /// Where the interval comes from.
    pub method: Method,
    /// The rows that it was computed from, of those that it should cover. Receipts of earlier versions have none.
    #[serde(default)]
    pub coverage: RowCoverage,
}

/// Where an interval comes from. All are two-sided, at the confidence level of the whole evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "IntervalMethod")]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A formula for this metric.
    Analytic,
    /// Bootstrap of rows.
    Bootstrap,
    /// Bootstrap of whole groups of rows, or a variance summed by group.
    Clustered,
    /// There is none: the evaluator reported a bare number.
    None,
}

impl Method {
    /// The value in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Analytic => "analytic",
            Self::Bootstrap => "bootstrap",
            Self::Clustered => "clustered",
            Self::None => "none",
        }
    }
}
