//! What an evaluator says itself: `metrics.json`, and `evaluation.json` about what it did. Read strictly: a mistake is told with
//! its line and column.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;

use crate::{Estimate, Method, Metrics};

/// A file that is larger is no summary.
pub const TOLD_BYTES_MAX: usize = 16 << 20;
/// How many standard errors the interval of a `stderr` reaches to each side: 95 % of a normal distribution.
const STANDARD_ERRORS: f64 = 1.959_963_984_540_054;

/// What stands in `metrics.json`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToldMetrics {
    /// Of all rows. A metric that is `null` is not among them.
    pub metrics: Metrics,
    /// Of parts of the rows, by the evaluator's names.
    pub slices: BTreeMap<String, Metrics>,
}

/// What stands in `evaluation.json`. It goes before what the run file says: the evaluator knows what it did.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToldEvaluation {
    /// The evaluator's own name and version.
    pub evaluator: Option<ToldEvaluator>,
    /// The version of the tasks.
    pub task_set_version: Option<String>,
    /// How answers were drawn.
    pub decoding: BTreeMap<String, Json>,
    /// Who judged.
    pub judge: Option<ToldJudge>,
    /// The seed.
    pub seed: Option<u64>,
    /// For the reader.
    pub notes: Vec<String>,
}

/// An evaluator by its own word.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldEvaluator {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: Option<String>,
}

/// A judge by the evaluator's word.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldJudge {
    /// The model.
    pub model: String,
    /// The rubric's version.
    #[serde(default)]
    pub rubric: Option<String>,
}

/// A file of the evaluator that cannot be read: where, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`:{line}:{column}: {why}")]
pub struct ToldError {
    /// The file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1; in bytes.
    pub column: usize,
    /// What is wrong.
    pub why: String,
}

/// Reads `metrics.json`: an object of metrics, each a number or `{"value", "low", "high", "stderr", "support"}`; they may stand
/// under `metrics`, and those of slices under `slices`.
///
/// # Errors
/// [`ToldError`] for anything else.
pub fn read_metrics(text: &str, file: &str) -> Result<ToldMetrics, ToldError> {
    read(text, file)
}

/// Reads `evaluation.json`.
///
/// # Errors
/// [`ToldError`] for a key that is not known, too: what was meant as a fact must not be passed over.
pub fn read_evaluation(text: &str, file: &str) -> Result<ToldEvaluation, ToldError> {
    read(text, file)
}

fn read<'t, T: Deserialize<'t>>(text: &'t str, file: &str) -> Result<T, ToldError> {
    serde_json::from_str(text).map_err(|error| {
        let shown = error.to_string();
        let at = format!(" at line {} column {}", error.line(), error.column());
        let mut why = shown.strip_suffix(&at).unwrap_or(&shown).to_owned();
        let rest = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
        if error.is_syntax() && ["NaN", "Infinity"].iter().any(|word| rest.contains(word)) {
            why.push_str("; JSON has no NaN and no Infinity: write `null`");
        }
        ToldError { file: file.to_owned(), line: error.line(), column: error.column(), why }
    })
}

impl<'de> Deserialize<'de> for ToldMetrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ToldVisitor)
    }
}

struct ToldVisitor;

impl<'de> Visitor<'de> for ToldVisitor {
    type Value = ToldMetrics;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of metrics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ToldMetrics, A::Error> {
        let mut told = ToldMetrics::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metrics" => told.metrics.extend(given(map.next_value()?)),
                "slices" => {
                    let slices: BTreeMap<String, BTreeMap<String, One>> = map.next_value()?;
                    told.slices.extend(slices.into_iter().map(|(name, metrics)| (name, given(metrics))));
                }
                _ => {
                    let one: One = map.next_value()?;
                    told.metrics.extend(one.0.map(|estimate| (key, estimate)));
                }
            }
        }
        Ok(told)
    }
}

fn given(metrics: BTreeMap<String, One>) -> Metrics {
    metrics.into_iter().filter_map(|(name, one)| Some((name, one.0?))).collect()
}

/// One metric; `null` is none.
struct One(Option<Estimate>);

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneVisitor)
    }
}

struct OneVisitor;

/// The members of a metric that is an object.
#[derive(Deserialize)]
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
        let Some(value) = members.value else { return Ok(One(None)) };
        let reach = members.stderr.map(|stderr| stderr.abs() * STANDARD_ERRORS);
        let low = members.low.or(reach.map(|reach| value - reach));
        let high = members.high.or(reach.map(|reach| value + reach));
        if low.zip(high).is_some_and(|(low, high)| !(low <= value && value <= high)) {
            return Err(de::Error::custom(format!("{value} does not lie between `low` and `high`")));
        }
        let method = if low.is_some() || high.is_some() { Method::Analytic } else { Method::None };
        Ok(One(Some(Estimate { value, low, high, support: members.support.unwrap_or(0), method })))
    }
}

/// A number without an interval, of an unknown number of rows.
fn bare(value: f64) -> Estimate {
    Estimate { value, low: None, high: None, support: 0, method: Method::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that bare numbers, intervals, standard errors, wrapped metrics and slices are read, and that null is no metric.
    #[test]
    fn metrics_are_read() {
        let text = r#"{"accuracy": 0.5, "rows": 3, "auc": null, "f1": {"value": 0.5, "stderr": 0.1, "support": 9},
            "metrics": {"brier": {"value": 0.2, "low": 0.1, "high": 0.3}}, "slices": {"women": {"accuracy": 1}}}"#;
        let told = read_metrics(text, "metrics.json").unwrap();
        assert_eq!(told.metrics.keys().collect::<Vec<_>>(), ["accuracy", "brier", "f1", "rows"]);
        let f1 = told.metrics["f1"];
        assert_eq!((f1.support, f1.method), (9, Method::Analytic));
        assert!((f1.high.unwrap() - 0.696).abs() < 1e-3);
        assert_eq!(told.metrics["accuracy"].method, Method::None);
        assert_eq!(told.slices["women"]["accuracy"].value, 1.0);
    }

    /// Proves that every mistake is told with its place and what was expected.
    #[test]
    fn mistakes_have_a_place() {
        for (text, told) in [
            ("{\n \"a\": \"good\"}", "`m.json`:2:12: invalid type: string \"good\", expected a number"),
            ("{\"a\": NaN}", "JSON has no NaN"),
            ("{\"a\": 1", "`m.json`:1:7: EOF while parsing"),
            ("[1]", "expected an object of metrics"),
            ("{\"a\": {\"value\": 1, \"hihg\": 2}}", "unknown field `hihg`"),
            ("{\"a\": {\"value\": 9, \"low\": 0, \"high\": 1}}", "9 does not lie between"),
            ("{\"slices\": {\"w\": 3}}", "invalid type: integer `3`, expected a map"),
        ] {
            let error = read_metrics(text, "m.json").unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
        let error = read_evaluation("{\"sed\": 1}", "evaluation.json").unwrap_err().to_string();
        assert!(error.contains("unknown field `sed`"), "{error}");
    }
}
