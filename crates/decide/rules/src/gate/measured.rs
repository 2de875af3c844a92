//! A number of the evidence. It is a fact, or an estimate with the rows it covers: there is no third kind.

use serde::{Deserialize, Serialize};
use trackway_core::RowCoverage;
use trackway_statistics::Interval;

/// A number of the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "MeasuredNumber")]
#[serde(from = "Stored")]
pub struct Measured {
    value: Option<f64>,
    /// As `low` and `high`; absent where neither end is known.
    #[serde(flatten)]
    interval: Option<Interval>,
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
        let interval = Some(Interval::between(low, high)).filter(Interval::is_known);
        Self { value, interval, support, exact, coverage }
    }
}

impl Measured {
    /// A fact that is not drawn from anything: a size, a cost.
    #[must_use]
    pub fn fact(value: f64) -> Self {
        Self { value: Some(value), interval: None, support: None, exact: true, coverage: None }
    }

    /// What was estimated from rows: the number (`None`: it is not finite), the ends of its interval, its number of
    /// rows, and how many of the rows that it should cover it does.
    #[must_use]
    pub fn estimate(
        value: Option<f64>,
        interval: Interval,
        support: Option<u64>,
        coverage: RowCoverage,
    ) -> Self {
        let interval = Some(interval).filter(Interval::is_known);
        Self { value, interval, support, exact: false, coverage: Some(coverage) }
    }

    /// The number.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        self.value
    }

    /// Its interval, where both ends are known.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        self.interval.filter(|interval| interval.bounds().is_some())
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
        let distance = self.value.map(|before| Interval::point(value - before));
        let interval = self.interval.zip(distance).map(|(interval, distance)| interval.plus(distance));
        Self { value: Some(value), interval, ..self }
    }

    /// The more extreme of two numbers and of both ends of their intervals: the greater where `greatest`, else the
    /// smaller. What one of them lacks the whole lacks.
    #[must_use]
    pub fn extreme(self, other: Self, greatest: bool) -> Self {
        let pick = |one: f64, other: f64| if greatest { one.max(other) } else { one.min(other) };
        let both = |(one, other): (Interval, Interval)| Interval {
            low: pick(one.low, other.low),
            high: pick(one.high, other.high),
        };
        let coverage = self.coverage.zip(other.coverage).map(|(one, other)| one.and(other));
        Self {
            value: self.value.zip(other.value).map(|(one, other)| pick(one, other)),
            interval: self.interval().zip(other.interval()).map(both),
            support: self.support.min(other.support),
            exact: false,
            coverage: Some(coverage.unwrap_or_default()),
        }
    }
}
