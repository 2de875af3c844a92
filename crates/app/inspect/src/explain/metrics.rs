//! The metrics of an attempt.

use serde::Serialize;

/// One metric of the attempt.
#[derive(Debug, Clone, Serialize)]
pub struct MetricLine {
    /// Its name.
    pub name: String,
    /// Points recorded.
    pub count: u64,
    /// The first value.
    pub first: Option<f64>,
    /// The last value.
    pub last: Option<f64>,
    /// The least finite value.
    pub min: Option<f64>,
    /// The greatest finite value.
    pub max: Option<f64>,
    /// Points that were not finite.
    pub non_finite_count: u64,
}
