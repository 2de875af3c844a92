//! A number of the evidence. It is a fact, or an estimate with the rows it covers: there is no third kind.

use serde::{Deserialize, Serialize};
use trackway_core::RowCoverage;

/// A number of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "MeasuredNumber")]
#[serde(from = "Stored")]
pub struct Measured {
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    support: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    exact: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<RowCoverage>,
}

/// A number in a fixture: a file that people write by hand. For a model that is only described, every row is covered by
/// default.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stored {
    value: Option<f64>,
    #[serde(default)]
    low: Option<f64>,
    #[serde(default)]
    high: Option<f64>,
    #[serde(default)]
    support: Option<u64>,
    #[serde(default)]
    exact: bool,
    #[serde(default)]
    coverage: Option<RowCoverage>,
}

impl From<Stored> for Measured {
    fn from(stored: Stored) -> Self {
        let Stored { value, low, high, support, exact, coverage } = stored;
        let described = RowCoverage::complete(support.unwrap_or(1).max(1));
        let coverage = (!exact).then(|| coverage.unwrap_or(described));
        Self { value, low, high, support, exact, coverage }
    }
}

impl Measured {
    /// A fact that is not drawn from anything: a size, a cost.
    #[must_use]
    pub fn fact(value: f64) -> Self {
        Self { value: Some(value), low: None, high: None, support: None, exact: true, coverage: None }
    }

    /// What was estimated from rows: the number (`None`: it is not finite), the ends of its interval, its number of
    /// rows, and how many of the rows that it should cover it does.
    #[must_use]
    pub fn estimate(
        value: Option<f64>,
        (low, high): (Option<f64>, Option<f64>),
        support: Option<u64>,
        coverage: RowCoverage,
    ) -> Self {
        Self { value, low, high, support, exact: false, coverage: Some(coverage) }
    }

    /// The number.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// Both ends of its interval, where it has one that is finite.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high).filter(|(low, high)| low.is_finite() && high.is_finite())
    }

    /// Its number of rows.
    #[must_use]
    pub fn support(&self) -> Option<u64> {
        self.support
    }

    /// The rows that it covers. `None`: it is a fact.
    #[must_use]
    pub fn coverage(&self) -> Option<RowCoverage> {
        self.coverage
    }

    /// The same rows with another number, its interval as wide as before.
    #[must_use]
    pub fn moved_to(self, value: f64) -> Self {
        let moved = |end: Option<f64>| Some(end? - self.value? + value);
        Self { value: Some(value), low: moved(self.low), high: moved(self.high), ..self }
    }

    /// The more extreme of two numbers and of both ends of their intervals: the greater where `greatest`, else the smaller. What one of them
    /// lacks the whole lacks.
    #[must_use]
    pub fn extreme(self, other: Self, greatest: bool) -> Self {
        let pick = |one: Option<f64>, other: Option<f64>| {
            let (one, other) = (one?, other?);
            Some(if greatest { one.max(other) } else { one.min(other) })
        };
        let coverage = self.coverage.zip(other.coverage).map(|(one, other)| one.and(other));
        Self {
            value: pick(self.value, other.value),
            low: pick(self.low, other.low),
            high: pick(self.high, other.high),
            support: self.support.min(other.support),
            exact: false,
            coverage: Some(coverage.unwrap_or_default()),
        }
    }
}
