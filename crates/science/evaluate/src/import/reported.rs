//! Results of an evaluator: `metrics.json`, and `evaluation.json` about how it ran. Read strictly: a mistake is
//! reported with its line and column.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;
use trackway_core::RowCoverage;
use trackway_statistics::{Interval, wilson};

pub use crate::documents::ReportError;
use crate::documents::{Unique, read, twice};
use crate::metrics::{is_share, range};
use crate::{Estimate, Method, Metrics};

/// A larger file is not a summary.
pub const REPORT_BYTES_MAX: usize = 16 << 20;
/// How many standard errors the interval of a `stderr` reaches to each side: 95 % of a normal distribution.
const STANDARD_ERRORS: f64 = 1.959_963_984_540_054;
const CONFIDENCE: f64 = 0.95;

/// The contents of `metrics.json`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedMetrics {
    /// Of all rows. A metric that is `null` is not among them.
    pub metrics: Metrics,
    /// Of parts of the rows, by the evaluator's names.
    pub slices: BTreeMap<String, Metrics>,
}

/// The contents of `evaluation.json`. It overrides the run file: the evaluator reports what it did.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReportedEvaluation {
    /// The evaluator's own name and version.
    pub evaluator: Option<ReportedEvaluator>,
    pub task_set_version: Option<String>,
    /// How answers were drawn.
    pub decoding: BTreeMap<String, Json>,
    pub judge: Option<ReportedJudge>,
    pub seed: Option<u64>,
    /// For the reader.
    pub notes: Vec<String>,
}

/// An evaluator, as it reports itself.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedEvaluator {
    pub name: String,
    #[serde(default)]
    pub version: Option<String>,
}

/// A judge, as the evaluator reports it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedJudge {
    pub model: String,
    /// The rubric's version.
    #[serde(default)]
    pub rubric: Option<String>,
}

/// Reads `metrics.json`: an object of metrics, each a number or `{"value", "low", "high", "stderr", "support"}`; they
/// may be under `metrics`, and those of slices under `slices`.
///
/// # Errors
/// [`ReportError`] for anything else.
pub fn read_metrics(text: &str, file: &str) -> Result<ReportedMetrics, ReportError> {
    read(text, file)
}

/// Reads `evaluation.json`.
///
/// # Errors
/// [`ReportError`] for an unknown key, too: a misspelt fact must not be skipped.
pub fn read_evaluation(text: &str, file: &str) -> Result<ReportedEvaluation, ReportError> {
    read(text, file)
}

impl<'de> Deserialize<'de> for ReportedMetrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ReportedVisitor)
    }
}

struct ReportedVisitor;

impl<'de> Visitor<'de> for ReportedVisitor {
    type Value = ReportedMetrics;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of metrics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReportedMetrics, A::Error> {
        let mut reported = ReportedMetrics::default();
        let (mut seen, mut keys) = (BTreeSet::new(), BTreeSet::new());
        while let Some(key) = map.next_key::<String>()? {
            if !keys.insert(key.clone()) {
                return Err(twice(&key));
            }
            let metrics = match key.as_str() {
                "metrics" => map.next_value::<Unique<One>>()?.0,
                "slices" => {
                    for (name, metrics) in map.next_value::<Unique<Unique<One>>>()?.0 {
                        reported.slices.insert(name, given(metrics.0)?);
                    }
                    continue;
                }
                _ => BTreeMap::from([(key, map.next_value()?)]),
            };
            if let Some(name) = metrics.keys().find(|name| !seen.insert((*name).clone())) {
                return Err(twice(name));
            }
            reported.metrics.extend(given(metrics)?);
        }
        Ok(reported)
    }
}

fn given<E: de::Error>(metrics: BTreeMap<String, One>) -> Result<Metrics, E> {
    let known = metrics.into_iter().filter_map(|(name, one)| Some((name, one.0?)));
    known.map(|(name, one)| Ok((name.clone(), one.estimate(&name).map_err(E::custom)?))).collect()
}

/// One metric; `null` is none.
struct One(Option<Members>);

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneVisitor)
    }
}

struct OneVisitor;

/// The members of a metric that is an object.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Members {
    value: Option<f64>,
    #[serde(default)]
    low: Option<f64>,
    #[serde(default)]
    high: Option<f64>,
    #[serde(default)]
    stderr: Option<f64>,
    #[serde(default)]
    support: Option<u64>,
}

impl<'de> Visitor<'de> for OneVisitor {
    type Value = One;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("a number, null, or an object with `value`, `low`, `high`, `stderr` and `support`")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<One, E> {
        Ok(One(Some(bare(value))))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<One, E> {
        Ok(One(Some(bare(value as f64))))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<One, E> {
        Ok(One(Some(bare(value as f64))))
    }

    fn visit_unit<E: de::Error>(self) -> Result<One, E> {
        Ok(One(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<One, A::Error> {
        let members = Members::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(One(members.value.is_some().then_some(members)))
    }
}

impl Members {
    /// The metric of this name, if it can be one.
    fn estimate(self, name: &str) -> Result<Estimate, String> {
        let value = self.value.unwrap_or(f64::NAN);
        let (least, most) = range(name);
        let is_in_range = |number: f64| number.is_finite() && (least..=most).contains(&number);
        if !is_in_range(value) {
            return Err(format!("`{name}` is {value}, which is not {}", in_words(least, most)));
        }
        if self.support == Some(0) {
            return Err(format!("`{name}` has a `support` of 0: a metric needs at least one row"));
        }
        if let Some(stderr) = self.stderr.filter(|stderr| !(stderr.is_finite() && *stderr >= 0.0)) {
            return Err(format!("`{name}` has a `stderr` of {stderr}, which must not be negative"));
        }
        let within = |end: f64| end.clamp(least, most);
        let reach = self.stderr.map(|stderr| stderr * STANDARD_ERRORS);
        let low = self.low.or(reach.map(|reach| within(value - reach)));
        let high = self.high.or(reach.map(|reach| within(value + reach)));
        if let Some(end) = [low, high].into_iter().flatten().find(|end| !is_in_range(*end)) {
            return Err(format!("`{name}` has an end of {end}, which is not {}", in_words(least, most)));
        }
        if low.is_some_and(|low| low > value) || high.is_some_and(|high| value > high) {
            return Err(format!("`{name}`: {value} is not between `low` and `high`"));
        }
        let interval = match low.zip(high).filter(|(low, high)| low == high) {
            Some(_) => without_width(name, value, self.support)?,
            None => Interval::between(low, high),
        };
        let estimate = Estimate::new(value, interval, self.support.unwrap_or(0), Method::Analytic);
        let coverage = self.support.map_or(RowCoverage::UNKNOWN, RowCoverage::complete);
        Ok(Estimate { coverage, ..estimate })
    }
}

/// A metric with its standard error, if it can be one.
///
/// # Errors
/// Why it cannot.
pub(crate) fn with_stderr(
    name: &str,
    value: f64,
    stderr: Option<f64>,
    support: Option<u64>,
) -> Result<Estimate, String> {
    let support = support.filter(|rows| *rows > 0);
    // Without rows an error of 0 does not show how uncertain the number is.
    let stderr = stderr.filter(|stderr| *stderr != 0.0 || support.is_some());
    Members { value: Some(value), stderr, support, ..Members::default() }.estimate(name)
}

/// An interval without width claims that nothing is uncertain. For a fraction its rows give an interval (Wilson); for
/// anything else there is none.
fn without_width(name: &str, value: f64, support: Option<u64>) -> Result<Interval, String> {
    let Some(rows) = support else {
        return Err(format!(
            "`{name}` has an interval without width and no `support`: write the value alone"
        ));
    };
    if !is_share(name) || range(name) != (0.0, 1.0) {
        return Ok(Interval::UNKNOWN);
    }
    Ok(wilson(value * rows as f64, rows as f64, CONFIDENCE))
}

fn in_words(least: f64, most: f64) -> String {
    match (least.is_finite(), most.is_finite()) {
        (true, true) => format!("between {least} and {most}"),
        (true, false) => format!("{least} or more"),
        (false, true) => format!("{most} or less"),
        (false, false) => "a finite number".to_owned(),
    }
}

/// A number without an interval, of an unknown number of rows.
fn bare(value: f64) -> Members {
    Members { value: Some(value), ..Members::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that bare numbers, intervals, standard errors, wrapped metrics and slices are read, and that null is not
    /// a metric.
    #[test]
    fn metrics_are_read() {
        let text = r#"{"accuracy": 0.5, "rows": 3, "auc": null, "f1": {"value": 0.5, "stderr": 0.1, "support": 9},
            "metrics": {"brier": {"value": 0.2, "low": 0.1, "high": 0.3}}, "slices": {"women": {"accuracy": 1}}}"#;
        let reported = read_metrics(text, "metrics.json").unwrap();
        assert_eq!(reported.metrics.keys().collect::<Vec<_>>(), ["accuracy", "brier", "f1", "rows"]);
        let f1 = reported.metrics["f1"];
        assert_eq!((f1.support, f1.method), (9, Method::Analytic));
        assert!((f1.interval.high - 0.696).abs() < 1e-3);
        assert_eq!(reported.metrics["accuracy"].method, Method::None);
        assert_eq!(reported.slices["women"]["accuracy"].value, 1.0);
    }

    /// Proves that an interval without width becomes that of its rows, or none; one row decides nothing.
    #[test]
    fn intervals_without_width() {
        let of =
            |text: &str| read_metrics(text, "metrics.json").unwrap().metrics.into_values().next().unwrap();
        let one = of(r#"{"accuracy": {"value": 0.9, "stderr": 0, "support": 1}}"#);
        assert!(one.interval.low < 0.2, "{one:?}");
        let many = of(r#"{"accuracy": {"value": 1, "low": 1, "high": 1, "support": 400}}"#);
        assert!(many.interval.low > 0.98 && many.interval.low < 1.0, "{many:?}");
        let amount = of(r#"{"mae": {"value": 1, "stderr": 0, "support": 400}}"#);
        assert_eq!((amount.interval, amount.method), (Interval::UNKNOWN, Method::None));
    }

    /// Proves that every mistake is reported with its place and what was expected.
    #[test]
    fn mistakes_have_a_place() {
        for (text, reported) in [
            ("{\n \"a\": \"good\"}", "`m.json`:2:12: invalid type: string \"good\", expected a number"),
            ("{\"a\": NaN}", "JSON has no NaN"),
            ("{\"a\": 1", "`m.json`:1:7: EOF while parsing"),
            ("[1]", "expected an object of metrics"),
            ("{\"a\": {\"value\": 1, \"hihg\": 2}}", "unknown field `hihg`"),
            ("{\"a\": {\"value\": 9, \"low\": 0, \"high\": 1}}", "9 is not between"),
            ("{\"accuracy\": 5}", "`accuracy` is 5, which is not between 0 and 1"),
            ("{\"accuracy\": 1e308}", "which is not between 0 and 1"),
            ("{\"mae\": -1}", "`mae` is -1, which is not 0 or more"),
            ("{\"accuracy\": {\"value\": 1, \"low\": 1, \"high\": 1, \"support\": 0}}", "`support` of 0"),
            ("{\"accuracy\": {\"value\": 1, \"low\": 1, \"high\": 1}}", "without width and no `support`"),
            ("{\"accuracy\": {\"value\": 0.9, \"low\": 0.8, \"high\": 1.2}}", "an end of 1.2"),
            ("{\"a\": {\"value\": 1, \"stderr\": -0.1}}", "must not be negative"),
            ("{\"a\": 1, \"a\": 2}", "`a` appears twice"),
            ("{\"a\": 1, \"metrics\": {\"a\": 2}}", "`a` appears twice"),
            ("{\"metrics\": {\"a\": 1, \"a\": 2}}", "`a` appears twice"),
            ("{\"slices\": {\"w\": {\"a\": 1, \"a\": 2}}}", "`a` appears twice"),
            ("{\"slices\": {\"w\": {}, \"w\": {}}}", "`w` appears twice"),
            ("{\"slices\": {\"w\": 3}}", "invalid type: integer `3`, expected an object"),
        ] {
            let error = read_metrics(text, "m.json").unwrap_err().to_string();
            assert!(error.contains(reported), "{text}: {error}");
        }
        let error = read_evaluation("{\"sed\": 1}", "evaluation.json").unwrap_err().to_string();
        assert!(error.contains("unknown field `sed`"), "{error}");
    }
}
