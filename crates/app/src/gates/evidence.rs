//! From what is written down about an evaluation to the numbers that gates name. Pure.
//!
//! | name | from |
//! |---|---|
//! | `accuracy`, … | the metrics of all rows |
//! | `slice.NAME.METRIC` | the curated slices |
//! | `fairness.MEASURE`, `fairness.COLUMN.MEASURE` | fairness; without a column the worst of all columns |
//! | `size_bytes`, `weights_bytes`, `training_seconds`, `gpu_seconds`, `cost_usd` | facts, which need no interval |

use serde::de::DeserializeOwned;
use serde_json::Value;
use trackway_evaluate::{Comparison, Estimate, Fairness, Metrics, Slice};
use trackway_ledger::EvaluationRow;
use trackway_tower::gate::{Evidence, Measured, Numbers};

const RATIO: &str = "_ratio";

/// What is known of a model beside its evaluation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    pub size_bytes: Option<u64>,
    pub weights_bytes: Option<u64>,
    pub training_seconds: Option<f64>,
    pub gpu_seconds: Option<f64>,
    pub cost_usd: Option<f64>,
}

/// The evidence of an evaluation, beside that of the baseline's, and how the two compare on the same rows.
pub(super) fn evidence(
    own: (&EvaluationRow, Facts),
    baseline: Option<(&EvaluationRow, Facts)>,
    compared: Option<&Comparison>,
) -> Evidence {
    Evidence {
        numbers: numbers(own.0, own.1),
        baseline: baseline.map(|(row, facts)| numbers(row, facts)),
        differences: compared.map(differences).unwrap_or_default(),
    }
}

fn numbers(row: &EvaluationRow, facts: Facts) -> Numbers {
    let mut numbers = Numbers::new();
    let metrics: Metrics = read(row.metrics_json.as_ref());
    numbers.extend(metrics.iter().map(|(name, estimate)| (name.clone(), measured(estimate))));
    let slices: Vec<Slice> = read(row.slices_json.as_ref());
    for slice in &slices {
        let named = |name: &String| format!("slice.{}.{name}", slice.name);
        numbers.extend(slice.metrics.iter().map(|(name, estimate)| (named(name), measured(estimate))));
    }
    let fairness: Vec<Fairness> = read(row.fairness_json.as_ref());
    fairness.iter().for_each(|one| take_fairness(one, &mut numbers));
    numbers.extend(facts.numbers());
    numbers
}

fn take_fairness(fairness: &Fairness, numbers: &mut Numbers) {
    for (measure, estimate) in &fairness.measures {
        let measured = measured(estimate);
        numbers.insert(format!("fairness.{}.{measure}", fairness.column), measured);
        let all = numbers.entry(format!("fairness.{measure}")).or_insert(measured);
        *all = worse(*all, measured, measure.ends_with(RATIO));
    }
}

/// The worse of two measures of fairness: the greater difference, the smaller ratio. Both ends of the intervals count, and one that
/// cannot be told leaves the whole untold.
fn worse(left: Measured, right: Measured, is_ratio: bool) -> Measured {
    let pick = |left: Option<f64>, right: Option<f64>| {
        let (left, right) = (left?, right?);
        Some(if is_ratio { left.min(right) } else { left.max(right) })
    };
    Measured {
        value: pick(left.value, right.value),
        low: pick(left.low, right.low),
        high: pick(left.high, right.high),
        support: left.support.min(right.support),
        exact: false,
    }
}

/// What an evaluation was compared with when it was made.
pub(super) fn stored_comparison(row: &EvaluationRow) -> Option<Comparison> {
    read(row.comparison_json.as_ref())
}

fn differences(comparison: &Comparison) -> Numbers {
    comparison.metrics.iter().map(|(name, compared)| (name.clone(), measured(&compared.difference))).collect()
}

fn measured(estimate: &Estimate) -> Measured {
    Measured {
        value: Some(estimate.value).filter(|value| value.is_finite()),
        low: estimate.low,
        high: estimate.high,
        support: Some(estimate.support),
        exact: false,
    }
}

impl Facts {
    fn numbers(self) -> impl Iterator<Item = (String, Measured)> {
        let known = [
            ("size_bytes", self.size_bytes.map(|bytes| bytes as f64)),
            ("weights_bytes", self.weights_bytes.map(|bytes| bytes as f64)),
            ("training_seconds", self.training_seconds),
            ("gpu_seconds", self.gpu_seconds),
            ("cost_usd", self.cost_usd),
        ];
        known.into_iter().filter_map(|(name, value)| {
            let exact = Measured { value: Some(value?), low: None, high: None, support: None, exact: true };
            Some((name.to_owned(), exact))
        })
    }
}

/// What is stored, or nothing where it was never stored.
fn read<T: DeserializeOwned + Default>(json: Option<&Value>) -> T {
    json.and_then(|json| serde_json::from_value(json.clone()).ok()).unwrap_or_default()
}
