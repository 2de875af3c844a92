//! What is known of a metric by its name: which way is better, and which values it can have.

use trackway_statistics::Interval;

use crate::Estimate;

/// The names of all metrics that are computed from rows, but for those with a number in them (`pass_at_5`, `pinball_0.9`).
pub const METRIC_NAMES: [&str; 41] = [
    "accuracy", "balanced_accuracy", "precision", "recall", "f1", "sensitivity", "specificity", "cost",
    "roc_auc", "average_precision", "precision_at_recall", "log_loss", "brier", "ece", "mae", "rmse", "mape",
    "r2", "bias", "relative_bias", "wape", "pinball", "loss", "perplexity", "bits_per_byte", "exact_match",
    "wer", "ndcg", "mrr", "qini", "auuc", "uplift_at_30", "ate", "iou", "dice", "mean_iou", "map", "map_50",
    "map_75", "pass_at_1", "pass_at_10",
];

/// The names of all measures of fairness.
pub const FAIRNESS_NAMES: [&str; 9] = [
    "demographic_parity",
    "equal_opportunity",
    "equalized_odds",
    "calibration",
    "demographic_parity_ratio",
    "equal_opportunity_ratio",
    "equalized_odds_ratio",
    "mean_error_parity",
    "mean_prediction_parity",
];

/// Metrics, and measures of fairness of numbers, of which less is better; of those that can be on either side of 0, less
/// of the absolute value. None but `ece` is a fraction.
const LOWER: [&str; 17] = [
    "log_loss", "brier", "ece", "cost", "mae", "rmse", "mape", "wape", "bias", "relative_bias", "pinball",
    "loss", "perplexity", "bits_per_byte", "wer", "mean_error_parity", "mean_prediction_parity",
];

/// Metrics whose best value is 0, and which can be on either side of it.
const BEST_AT_ZERO: [&str; 2] = ["bias", "relative_bias"];

/// Metrics that can be below 0.
const SIGNED: [&str; 8] = ["r2", "cost", "bias", "relative_bias", "ate", "uplift_at_30", "qini", "auuc"];

/// Whether more is better. Of a metric whose [best value is 0](is_best_at_zero) a smaller absolute value is.
#[must_use]
pub fn is_higher_better(metric: &str) -> bool {
    !LOWER.contains(&metric) && !metric.starts_with("pinball_")
}

/// Whether 0 is its best value and it can be on either side of it: two values are then compared by their absolute
/// values.
#[must_use]
pub fn is_best_at_zero(metric: &str) -> bool {
    BEST_AT_ZERO.contains(&metric)
}

/// Whether all of its values are between 0 and 1.
#[must_use]
pub fn is_share(metric: &str) -> bool {
    is_higher_better(metric) && !SIGNED.contains(&metric) || metric == "ece"
}

/// The least value that an interval of this metric can begin at.
pub(crate) fn lowest(metric: &str) -> f64 {
    if SIGNED.contains(&metric) { f64::NEG_INFINITY } else { 0.0 }
}

/// The number as it is compared with another one: its distance from 0 if 0 is the metric's best value.
pub(crate) fn from_zero(metric: &str, estimate: Estimate) -> Estimate {
    if !is_best_at_zero(metric) {
        return estimate;
    }
    let Interval { low, high } = estimate.interval;
    let nearest = if low <= 0.0 && high >= 0.0 { 0.0 } else { low.abs().min(high.abs()) };
    let interval = Interval { low: nearest, high: low.abs().max(high.abs()) };
    Estimate { value: estimate.value.abs(), interval, ..estimate }
}

/// The least and the greatest value that a metric can have; of one that is not known, any finite number.
#[must_use]
pub fn range(metric: &str) -> (f64, f64) {
    const SHARES: [&str; 16] = [
        "accuracy", "balanced_accuracy", "precision", "recall", "sensitivity", "specificity", "f1",
        "roc_auc", "average_precision", "precision_at_recall", "ece", "exact_match", "ndcg", "mrr", "acc",
        "acc_norm",
    ];
    const AMOUNTS: [&str; 12] = [
        "log_loss", "brier", "mae", "rmse", "mape", "wape", "pinball", "perplexity", "wer",
        "latency_seconds", "latency_p95_seconds", "rows_per_second",
    ];
    match metric {
        "r2" => (f64::NEG_INFINITY, 1.0),
        _ if SHARES.contains(&metric) || metric.starts_with("pass_at_") => (0.0, 1.0),
        _ if AMOUNTS.contains(&metric) || metric.starts_with("pinball_") => (0.0, f64::INFINITY),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// The same, of a metric that Trackway computes: of images too, whose fractions other tools report in per cent.
#[must_use]
pub fn range_of_computed(metric: &str) -> (f64, f64) {
    const OF_IMAGES: [&str; 6] = ["map", "map_50", "map_75", "iou", "mean_iou", "dice"];
    if OF_IMAGES.contains(&metric) { (0.0, 1.0) } else { range(metric) }
}

/// Whether a metric is over all rows: its support is their number.
#[must_use]
pub fn is_over_all_rows(metric: &str) -> bool {
    const OF_SOME: [&str; 7] = ["precision", "recall", "sensitivity", "specificity", "f1", "ndcg", "mrr"];
    const OF_BATCHES: [&str; 3] = ["latency_seconds", "latency_p95_seconds", "rows_per_second"];
    range(metric) != (f64::NEG_INFINITY, f64::INFINITY)
        && !OF_SOME.contains(&metric)
        && !OF_BATCHES.contains(&metric)
        && !metric.starts_with("pass_at_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;

    /// Proves that two biases are compared by their distance from 0, with the interval folded there, and that other
    /// metrics stay as they are.
    #[test]
    fn a_bias_is_compared_by_its_distance_from_zero() {
        let estimate = |value, low, high| Estimate::new(value, Interval { low, high }, 9, Method::Analytic);
        let folded = |value, low, high| {
            let folded = from_zero("bias", estimate(value, low, high));
            (folded.value, folded.interval.low, folded.interval.high)
        };
        assert_eq!(folded(-2.0, -3.0, -1.0), (2.0, 1.0, 3.0));
        assert_eq!(folded(0.5, -1.0, 2.0), (0.5, 0.0, 2.0));
        assert_eq!(folded(2.0, 1.0, 3.0), (2.0, 1.0, 3.0));
        assert_eq!(from_zero("r2", estimate(-2.0, -3.0, -1.0)).value, -2.0);
        assert!(!is_higher_better("bias") && !is_share("bias") && !is_share("wape") && is_share("accuracy"));
        assert!(!is_share("mean_error_parity") && is_share("demographic_parity") && !is_share("qini"));
    }
}
