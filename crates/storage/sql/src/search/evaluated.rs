//! Numbers of evaluations by name: `eval.METRIC`, `eval.slice.NAME.METRIC`, and `eval.test_set.SET.…` for either on a
//! further test set. After `eval.` a number has the name that gates have for it.
//!
//! A run has the number of its newest completed evaluation that reports it, whichever checkpoint that evaluated;
//! evaluations of known-bad models do not count.

use trackway_core::RunId;
use trackway_formats::gate::{BLIND_SPOT, PROBE, SLICE};
use trackway_ledger::scan::{ColumnKind, Value, marks};
use trackway_ledger::{GATE_TEST_ORIGIN, Ledger, LedgerError};

use super::found;

/// What the names begin with.
pub(super) const EVAL: &str = "eval.";
/// What follows where the number is one on a further test set.
const TEST_SET: &str = "test_set.";
/// A name is parted at so many of its dots at most.
const DOTS_MAX: usize = 16;

/// Where numbers of evaluations are, joined by [`COUNTING`]; `it` has the run.
pub(super) const ROWS: &str = "evaluations it, evaluation_metrics m";
/// The same for a few runs: SQLite reads the tables of a cross join one after the other, so that it looks these runs up.
pub(super) const ROWS_OF_RUNS: &str = "evaluations it CROSS JOIN evaluation_metrics m";
/// The order of the evaluations of a run.
pub(super) const OLDEST_FIRST: &str = "started_at, it.evaluation_id";
/// The numbers of evaluations that count, but for those with the origin of its parameter.
const COUNTING: &str = "m.evaluation_id = it.evaluation_id AND state = 'completed' AND origin <> ?";

/// A number of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EvaluatedNumber {
    /// The further test set; none: that of `[evaluate]` itself.
    pub test_set: Option<String>,
    /// The slice; empty for all rows.
    pub slice: String,
    pub metric: String,
}

impl EvaluatedNumber {
    /// What `rest` of `eval.REST` may mean, the first choice first: names of sets, slices and metrics may have dots,
    /// and the longest set and the longest slice are preferred.
    pub fn meanings(rest: &str) -> Vec<Self> {
        let of_sets = rest.strip_prefix(TEST_SET).into_iter().flat_map(parts);
        of_sets
            .flat_map(|(set, rest)| Self::in_set(Some(set), rest))
            .chain(Self::in_set(None, rest))
            .collect()
    }

    fn in_set(test_set: Option<&str>, rest: &str) -> Vec<Self> {
        let number = |(slice, metric): (&str, &str)| Self {
            test_set: test_set.map(String::from),
            slice: slice.into(),
            metric: metric.into(),
        };
        let of_slice = rest.strip_prefix(SLICE).or_else(|| is_found_slice(rest).then_some(rest));
        let of_slices = of_slice.into_iter().flat_map(parts).map(&number);
        of_slices.chain(std::iter::once(number(("", rest)))).collect()
    }

    /// The name that means it.
    pub fn name(&self) -> String {
        let set = self.test_set.as_ref().map(|set| format!("{TEST_SET}{set}.")).unwrap_or_default();
        let slice = match self.slice.as_str() {
            "" => String::new(),
            slice if is_found_slice(slice) => format!("{slice}."),
            slice => format!("{SLICE}{slice}."),
        };
        format!("{EVAL}{set}{slice}{}", self.metric)
    }

    /// The test of its rows among [`ROWS`].
    pub fn test(&self, parameters: &mut Vec<Value>) -> String {
        let texts = [GATE_TEST_ORIGIN, self.metric.as_str(), self.slice.as_str()];
        parameters.extend(texts.map(Value::from));
        let of_set = match &self.test_set {
            None => "test_set IS NULL",
            Some(set) => {
                parameters.push(Value::from(set.as_str()));
                "test_set = ?"
            }
        };
        format!("{COUNTING} AND metric = ? AND slice = ? AND {of_set}")
    }

    /// The numbers that some run has.
    pub fn all(ledger: &Ledger) -> Result<Vec<Self>, LedgerError> {
        Self::admitted(ledger, "", &[])
    }

    /// Those that one of these runs has.
    pub fn of_runs(ledger: &Ledger, runs: &[RunId]) -> Result<Vec<Self>, LedgerError> {
        let ids: Vec<Value> = runs.iter().map(|run| Value::Text(run.to_string())).collect();
        Self::admitted(ledger, &format!(" AND it.run_id IN ({})", marks(ids.len())), &ids)
    }

    /// Those of the rows that pass a further test.
    fn admitted(ledger: &Ledger, test: &str, parameters: &[Value]) -> Result<Vec<Self>, LedgerError> {
        let sql = format!("SELECT DISTINCT test_set, slice, metric FROM {ROWS} WHERE {COUNTING}{test}");
        let parameters = [&[Value::from(GATE_TEST_ORIGIN)][..], parameters].concat();
        let number = |row: Vec<Value>| match <[Value; 3]>::try_from(row) {
            Ok([set, Value::Text(slice), Value::Text(metric)]) => {
                let test_set = if let Value::Text(set) = set { Some(set) } else { None };
                Some(Self { test_set, slice, metric })
            }
            _ => None,
        };
        found(ledger, &sql, &parameters, &[ColumnKind::Text; 3], number)
    }
}

/// Whether it is a slice that an evaluation found itself, a blind spot or a probe: its name says so already.
fn is_found_slice(name: &str) -> bool {
    [BLIND_SPOT, PROBE].iter().any(|begin| name.starts_with(begin))
}

/// The ways to part a name at one of its dots, the last dot first.
fn parts(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let dots = name.rmatch_indices('.').take(DOTS_MAX);
    dots.map(move |(dot, _)| (&name[..dot], &name[dot + 1..]))
        .filter(|(begin, end)| !begin.is_empty() && !end.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(test_set: Option<&str>, slice: &str, metric: &str) -> EvaluatedNumber {
        EvaluatedNumber { test_set: test_set.map(String::from), slice: slice.into(), metric: metric.into() }
    }

    /// Proves that the name of every number means that number, whatever dots and blanks the names of its set, slice
    /// and metric have.
    #[test]
    fn a_number_is_found_by_its_name() {
        for (test_set, slice, metric, name) in [
            (None, "", "accuracy", "eval.accuracy"),
            (None, "", "top.5", "eval.top.5"),
            (None, "older", "recall", "eval.slice.older.recall"),
            (None, "old men, v1.5", "log loss", "eval.slice.old men, v1.5.log loss"),
            (None, "slice.older", "f1", "eval.slice.slice.older.f1"),
            (None, "probe", "f1", "eval.slice.probe.f1"),
            (None, "blind_spot.1", "error", "eval.blind_spot.1.error"),
            (None, "probe.age.missing", "flipped", "eval.probe.age.missing.flipped"),
            (Some("night"), "", "f1", "eval.test_set.night.f1"),
            (Some("night.v2"), "rain", "f1", "eval.test_set.night.v2.slice.rain.f1"),
        ] {
            let number = number(test_set, slice, metric);
            assert_eq!(number.name(), name);
            let meanings = EvaluatedNumber::meanings(name.strip_prefix(EVAL).unwrap());
            assert!(meanings.contains(&number), "{name}: {meanings:?}");
        }
    }

    /// Proves which meaning is the first choice, and that what lacks a part has none.
    #[test]
    fn the_longest_slice_is_the_first_choice() {
        let of = |slice, metric| number(None, slice, metric);
        assert_eq!(
            EvaluatedNumber::meanings("slice.a.b.f1"),
            [of("a.b", "f1"), of("a", "b.f1"), of("", "slice.a.b.f1")]
        );
        for rest in ["slice.", "slice..", "slice.a.", "slice..f1", "test_set.", "test_set.night.", "", "."] {
            assert_eq!(EvaluatedNumber::meanings(rest), [of("", rest)], "{rest}");
        }
        let many = format!("test_set.{}", "a.".repeat(10_000));
        assert!(EvaluatedNumber::meanings(&many).len() < 1_000);
    }
}
