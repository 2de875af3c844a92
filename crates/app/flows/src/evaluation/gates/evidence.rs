//! From what is written down about an evaluation to the numbers that gates name. Pure.
//!
//! | name | from |
//! |---|---|
//! | `accuracy`, … | the metrics of all rows |
//! | `slice.NAME.METRIC` | the curated slices |
//! | `blind_spot.all.error`, `blind_spot.1.error`, … | the mean error of all rows, and of each blind spot that held-out rows confirm, the worst first |
//! | `probe.FEATURE.CHANGE.flipped`, `probe.FEATURE.importance`, … | what probes found |
//! | `fairness.MEASURE`, `fairness.COLUMN.MEASURE` | fairness; without a column the worst of all columns |
//! | `size_bytes`, `weights_bytes`, `training_seconds`, `gpu_seconds`, `cost_usd` | facts, which need no interval |

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::Value;
use trackway_core::{RowCoverage, UnmatchedTasks};
use trackway_engine::error::AppError;
use trackway_engine::stored::read_stored;
use trackway_evaluate::debug::{Perturbation, ProbeAnswer};
use trackway_evaluate::latency::why_unmeasured;
use trackway_evaluate::search::{BlindSpots, ERROR_METRIC, SliceVerdict};
use trackway_evaluate::{Comparison, Estimate, Fairness, Method, Metrics, Slice};
use trackway_formats::gate::{BLIND_SPOT, LATENCIES, PROBE};
use trackway_ledger::EvaluationRow;
use trackway_rules::gate::{GateEvidence, Measured, Numbers};

use crate::evaluation::baseline::{PROBES, TASKS_UNMATCHED, probed};
use crate::evaluation::score::BATCH_ROWS;

const RATIO: &str = "_ratio";

/// What is known of a model beside its evaluation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModelFacts {
    pub size_bytes: Option<u64>,
    pub weights_bytes: Option<u64>,
    pub training_seconds: Option<f64>,
    pub gpu_seconds: Option<f64>,
    pub cost_usd: Option<f64>,
}

/// The evidence of an evaluation, beside that of the baseline's, and how the two compare on the same rows.
pub(super) fn evidence(
    own: (&EvaluationRow, ModelFacts),
    baseline: Option<(&EvaluationRow, ModelFacts)>,
    compared: Option<&Comparison>,
) -> Result<GateEvidence, AppError> {
    let numbers_of_own = numbers(own.0, own.1)?;
    Ok(GateEvidence {
        inconclusive: inconclusive(own.0, &numbers_of_own)?,
        numbers: numbers_of_own,
        baseline: baseline.map(|(row, facts)| numbers(row, facts)).transpose()?,
        differences: compared.map(differences).unwrap_or_default(),
        unmatched: unmatched(own.0),
    })
}

/// Metrics that the rows cannot decide, and numbers that could not be measured.
fn inconclusive(row: &EvaluationRow, numbers: &Numbers) -> Result<BTreeMap<String, String>, AppError> {
    let found = row.assessment_json.as_ref().and_then(|assessment| assessment.get("inconclusive"));
    let mut inconclusive: BTreeMap<String, String> = read(row, "assessment_json", found)?;
    inconclusive.extend(probes_of(row)?.iter().flat_map(unanswered));
    if row.spec("scorer").is_some() {
        inconclusive.extend(without_latency(row.raw_outputs_rows, numbers));
    }
    Ok(inconclusive)
}

/// The numbers of probes that the model did not answer: what it would have predicted is not known.
fn unanswered(probes: &ProbeAnswer) -> Vec<(String, String)> {
    let of_probe = |it: &Perturbation| {
        let why = it.refused.as_ref()?;
        let why = format!("the model did not answer rows with `{}` {}: {why}", it.feature, it.kind.sent());
        let name = |number| format!("{PROBE}{}.{}.{number}", it.feature, it.kind.as_str());
        Some(["flipped", "increase"].map(|number| (name(number), why.clone())))
    };
    probes.perturbations.iter().filter_map(of_probe).flatten().collect()
}

/// Why the built-in evaluator measured no latency of so few rows.
fn without_latency(rows: Option<u64>, numbers: &Numbers) -> BTreeMap<String, String> {
    let Some(why) = rows.and_then(|rows| why_unmeasured(rows, BATCH_ROWS as u64)) else {
        return BTreeMap::new();
    };
    let missing = LATENCIES.into_iter().filter(|name| !numbers.contains_key(*name));
    missing.map(|name| (name.to_owned(), why.clone())).collect()
}

fn probes_of(row: &EvaluationRow) -> Result<Option<ProbeAnswer>, AppError> {
    let probes = row.assessment_json.as_ref().and_then(|assessment| assessment.get(PROBES));
    read(row, "assessment_json", probes)
}

/// Why the rows were not matched with the task set, unless the run file accepts that.
fn unmatched(row: &EvaluationRow) -> Option<String> {
    let why = row.assessment_json.as_ref()?.get(TASKS_UNMATCHED)?.as_str()?;
    let is_accepted =
        row.spec("unmatched_tasks").is_some_and(|policy| policy == UnmatchedTasks::Accepted.as_str());
    (!is_accepted).then(|| format!("whether each task was answered was not checked: {why}"))
}

/// For a receipt from before metrics had coverage: the rows that were evaluated and those that were left out.
fn coverage_before(row: &EvaluationRow) -> RowCoverage {
    let rows = |member: &str| row.assessment_json.as_ref()?.get(member)?.as_u64();
    let known = rows("rows").zip(rows("rows_skipped"));
    let covered = |(rows, left_out)| RowCoverage { rows_used: rows, rows_expected: rows + left_out };
    known.map(covered).unwrap_or_default()
}

fn numbers(row: &EvaluationRow, facts: ModelFacts) -> Result<Numbers, AppError> {
    let before = coverage_before(row);
    let measured = |estimate: &Estimate| {
        let is_old = !estimate.coverage.is_known() && estimate.method != Method::None;
        measured(&Estimate { coverage: if is_old { before } else { estimate.coverage }, ..*estimate })
    };
    let mut numbers = Numbers::new();
    let metrics: Metrics = read(row, "metrics_json", row.metrics_json.as_ref())?;
    numbers.extend(metrics.iter().map(|(name, estimate)| (name.clone(), measured(estimate))));
    let slices: Vec<Slice> = read(row, "slices_json", row.slices_json.as_ref())?;
    for slice in &slices {
        let named = |name: &String| format!("slice.{}.{name}", slice.name);
        numbers.extend(slice.metrics.iter().map(|(name, estimate)| (named(name), measured(estimate))));
    }
    let found = row.assessment_json.as_ref().and_then(|assessment| assessment.get("blind_spots"));
    let found: Option<BlindSpots> = read(row, "assessment_json", found)?;
    if let Some(found) = &found {
        numbers.insert(format!("{BLIND_SPOT}all.{ERROR_METRIC}"), measured(&found.error));
        for (number, slice) in
            (1..).zip(&found.slices).filter(|(_, it)| it.verdict == SliceVerdict::Confirmed)
        {
            let error = slice.held_out.as_ref().and_then(|it| it.average_error);
            numbers.extend(error.map(|it| (format!("{BLIND_SPOT}{number}.{ERROR_METRIC}"), measured(&it))));
        }
    }
    for (of, metrics) in probes_of(row)?.iter().flat_map(probed) {
        numbers.extend(metrics.iter().map(|(name, estimate)| (format!("{of}.{name}"), measured(estimate))));
    }
    let fairness: Vec<Fairness> = read(row, "fairness_json", row.fairness_json.as_ref())?;
    fairness.iter().for_each(|one| take_fairness(one, &measured, &mut numbers));
    numbers.extend(facts.numbers());
    Ok(numbers)
}

/// The names of the numbers that gates over an evaluation can name, without facts about its model.
pub(crate) fn number_names(row: &EvaluationRow) -> Result<BTreeSet<String>, AppError> {
    Ok(numbers(row, ModelFacts::default())?.into_keys().collect())
}

fn take_fairness(fairness: &Fairness, measured: &dyn Fn(&Estimate) -> Measured, numbers: &mut Numbers) {
    for (measure, estimate) in &fairness.measures {
        let measured = measured(estimate);
        numbers.insert(format!("fairness.{}.{measure}", fairness.column), measured);
        let all = numbers.entry(format!("fairness.{measure}")).or_insert(measured);
        // The greater difference, the smaller ratio.
        *all = all.extreme(measured, !measure.ends_with(RATIO));
    }
}

/// What an evaluation was compared with when it was made.
pub(super) fn stored_comparison(row: &EvaluationRow) -> Result<Option<Comparison>, AppError> {
    read(row, "comparison_json", row.comparison_json.as_ref())
}

fn differences(comparison: &Comparison) -> Numbers {
    comparison.metrics.iter().map(|(name, compared)| (name.clone(), measured(&compared.difference))).collect()
}

fn measured(estimate: &Estimate) -> Measured {
    let value = Some(estimate.value).filter(|value| value.is_finite());
    Measured::estimate(value, estimate.interval, Some(estimate.support), estimate.coverage)
}

impl ModelFacts {
    fn numbers(self) -> impl Iterator<Item = (String, Measured)> {
        let known = [
            ("size_bytes", self.size_bytes.map(|bytes| bytes as f64)),
            ("weights_bytes", self.weights_bytes.map(|bytes| bytes as f64)),
            ("training_seconds", self.training_seconds),
            ("gpu_seconds", self.gpu_seconds),
            ("cost_usd", self.cost_usd),
        ];
        known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Measured::fact(value?))))
    }
}

/// What is stored, or nothing where it was never stored.
fn read<T: DeserializeOwned + Default>(
    row: &EvaluationRow,
    column: &str,
    json: Option<&Value>,
) -> Result<T, AppError> {
    let Some(json) = json.filter(|json| !json.is_null()) else { return Ok(T::default()) };
    read_stored(json, &format!("evaluations.{column}"), || format!("evaluation {}", row.evaluation_id))
}

#[cfg(test)]
mod tests {
    use trackway_evaluate::debug::PerturbationKind;

    use super::*;

    /// Proves that a probe that the model did not answer is why its numbers decide nothing, with what was sent, and that an answered
    /// one is not.
    #[test]
    fn an_unanswered_probe_has_a_reason() {
        let probe = |kind, refused: Option<&str>| Perturbation {
            feature: "x1".into(),
            kind,
            flipped: None,
            shift: None,
            increase: None,
            refused: refused.map(str::to_owned),
        };
        let perturbations = vec![
            probe(PerturbationKind::Missing, Some("`score` ended with `ValueError: ''`")),
            probe(PerturbationKind::TimesTen, None),
        ];
        let found = unanswered(&ProbeAnswer { perturbations, ..ProbeAnswer::default() });
        let why = "the model did not answer rows with `x1` missing (an empty field): `score` ended with `ValueError: ''`";
        let names = ["probe.x1.missing.flipped", "probe.x1.missing.increase"];
        assert_eq!(found, names.map(|name| (name.to_owned(), why.to_owned())));
    }

    /// Proves that a latency that was not measured has its reason, and that a measured one is judged.
    #[test]
    fn a_latency_of_few_rows_has_a_reason() {
        let found = without_latency(Some(100), &Numbers::new());
        assert_eq!(found.len(), 3);
        assert!(found["latency_seconds"].ends_with("the test set has 100"), "{found:?}");
        let measured = Numbers::from([("latency_seconds".to_owned(), Measured::fact(0.1))]);
        assert!(!without_latency(Some(100), &measured).contains_key("latency_seconds"));
        assert!(without_latency(Some(512), &Numbers::new()).is_empty());
        assert!(without_latency(None, &Numbers::new()).is_empty());
    }
}
