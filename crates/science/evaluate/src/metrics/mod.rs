//! The numbers of a set of rows, each with its interval.
//!
//! ```text
//! Frame ── rows::items::items ─► Items ── Scoring::of ──► Scoring ── measure ──► Metrics
//!          (what a task             (sorted, binned,          (a formula where there is a good one,
//!           needs, no gaps)          counted once)             else rows drawn again)
//! ```
//!
//! A formula gives the interval of a fraction (Wilson), a mean (Student), a mean over classes (MOVER) and the area
//! under the ROC curve (DeLong, on the logit scale). Everything else uses a Poisson bootstrap: each row gets a count of
//! mean 1, all metrics are computed in one pass through rows that were sorted once, and the interval has the central
//! percentiles of these values as its ends. Rows of one group are resampled together. Where only the confusion matrix
//! matters its cells are resampled, not the rows.

pub(crate) mod boxes;
mod calibrated;
mod cells;
mod images;
pub(crate) mod pixels;
mod properties;
mod ranked;
pub(crate) mod ratio;
pub(crate) mod resample;
pub(crate) mod rows;
pub(crate) mod scoring;
mod table;
pub(crate) mod uplift;

use trackway_core::MissingPredictions;
use trackway_statistics::{Interval, normal_quantile, quantile, wilson};

pub use crate::limits::CLASSES_MAX;
use crate::{Estimate, Method, Metrics};
pub use boxes::DETECTIONS_MAX;
pub use calibrated::CALIBRATION_BINS;
pub(crate) use calibrated::bin_of;
pub(crate) use cells::{cell_table, of_classes};
pub use properties::{
    FAIRNESS_NAMES, METRIC_NAMES, is_best_at_zero, is_higher_better, is_over_all_rows, is_share, range,
    range_of_computed,
};
pub(crate) use properties::{from_zero, lowest};
use resample::{Resampling, draw_counts, sorted_column};
pub use rows::ranking::NDCG_PLACES;
pub(crate) use scoring::class_ratios;
use scoring::{Metric, Recipe, Scoring};
use uplift::Effect;

/// How intervals are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge {
    pub resampling: Resampling,
    /// The recall of `precision_at_recall`.
    pub recall: f64,
    /// Bootstrap even where there is a formula.
    pub always_resample: bool,
    /// How rows without a prediction count.
    pub missing: MissingPredictions,
}

/// All metrics of the items, each with its interval; those that cannot be computed are absent.
pub(crate) fn measure(scoring: &Scoring, judge: Judge) -> Metrics {
    let once = vec![1; scoring.items];
    let values = scoring.values(&once, |_| true);
    let counts = scoring.counts(&once);
    let by_formula: Vec<Option<Estimate>> = scoring
        .metrics
        .iter()
        .zip(&values)
        .map(
            |(metric, value)| {
                if judge.always_resample { None } else { formula(scoring, metric, *value, &counts, judge) }
            },
        )
        .collect();
    let open = |metric: &Metric| {
        let place = scoring.place(&metric.name).expect("it is one of them");
        by_formula[place].is_none() && values[place].is_finite()
    };
    let drawn = drawn(scoring, &counts, judge, &open);
    let mut metrics = Metrics::new();
    for (place, metric) in scoring.metrics.iter().enumerate().filter(|(place, _)| values[*place].is_finite())
    {
        let estimate = by_formula[place].unwrap_or_else(|| {
            let sorted = sorted_column(&drawn, place);
            by_draws(scoring, metric, values[place], &sorted, judge.resampling.confidence)
        });
        metrics.insert(metric.name.clone(), within_reach(&metric.name, estimate));
    }
    metrics
}

/// The interval without impossible values: for fractions and errors below 0, and for fractions above 1.
fn within_reach(metric: &str, estimate: Estimate) -> Estimate {
    let lowest = lowest(metric).min(estimate.value);
    let highest = if is_share(metric) { 1.0 } else { f64::INFINITY };
    Estimate { interval: estimate.interval.within(lowest, highest), ..estimate }
}

/// The draws of the metrics that are open; nothing where none is.
fn drawn(
    scoring: &Scoring,
    counts: &[f64],
    judge: Judge,
    open: &(dyn Fn(&Metric) -> bool + Sync),
) -> Vec<Vec<f64>> {
    let mut wanted = scoring.metrics.iter().filter(|metric| open(metric)).peekable();
    if wanted.peek().is_none() {
        return Vec::new();
    }
    let units = scoring.units();
    if units.are_items() && wanted.all(|metric| matches!(metric.recipe, Recipe::ClassMean(_))) {
        let counts: Vec<u64> = counts.iter().map(|count| *count as u64).collect();
        return draw_counts(&counts, judge.resampling, |counts| {
            let classes = of_classes(counts, scoring.classes);
            let value = |metric: &Metric| match &metric.recipe {
                Recipe::ClassMean(mean) => mean.value(&classes),
                _ => f64::NAN,
            };
            scoring.metrics.iter().map(value).collect()
        });
    }
    scoring.draw(judge.resampling, |weights| scoring.values(weights, open))
}

/// The interval by a formula, where there is one for such a metric of such items.
fn formula(scoring: &Scoring, metric: &Metric, value: f64, counts: &[f64], judge: Judge) -> Option<Estimate> {
    let (units, confidence) = (scoring.units(), judge.resampling.confidence);
    let is_alone = units.are_items();
    let support = scoring.items as u64;
    let analytic = |interval| Estimate::new(value, interval, support, Method::Analytic);
    match &metric.recipe {
        // Student's interval of images that are all alike has no width.
        Recipe::Ratio(_) if scoring.pixels.is_some() => None,
        Recipe::Ratio(ratio) => ratio.estimate(&scoring.cells, counts, units, confidence),
        Recipe::ClassMean(mean) if is_alone => {
            mean.interval(&of_classes(counts, scoring.classes), confidence).map(analytic)
        }
        Recipe::RocAuc if is_alone => {
            let [ranked] = &scoring.ranked[..] else { return None };
            let error = ranked.standard_error();
            logit_interval(value, error, confidence).map(analytic)
        }
        Recipe::Effect(Effect::Average) if is_alone => {
            scoring.experiment.as_ref()?.rows().average_effect(confidence)
        }
        _ => None,
    }
}

/// The normal interval of a fraction on the logit scale, and back: it stays between 0 and 1. `None` at the ends.
fn logit_interval(value: f64, error: f64, confidence: f64) -> Option<Interval> {
    let slope = value * (1.0 - value);
    if slope <= 0.0 || error.is_nan() || error <= 0.0 {
        return None;
    }
    let half = normal_quantile(f64::midpoint(1.0, confidence)) * error / slope;
    let (centre, back) = ((value / (1.0 - value)).ln(), |logit: f64| 1.0 / (1.0 + (-logit).exp()));
    Some(Interval { low: back(centre - half), high: back(centre + half) })
}

/// The percentile interval of the resamples. The calibration error of resamples is biased upwards as much as its value,
/// so they are mirrored at the value; if all resamples are equal, the interval is Wilson's of the number of rows.
fn by_draws(scoring: &Scoring, metric: &Metric, value: f64, sorted: &[f64], confidence: f64) -> Estimate {
    let tail = (1.0 - confidence) / 2.0;
    let (low, high) = (quantile(sorted, tail), quantile(sorted, 1.0 - tail));
    let units = scoring.units();
    let (method, count) = (units.method(Method::Bootstrap), units.count());
    let interval = if matches!(metric.recipe, Recipe::Calibration) {
        Interval { low: (2.0 * value - high).clamp(0.0, value), high: (2.0 * value - low).clamp(value, 1.0) }
    } else if low == high && is_share(&metric.name) {
        wilson(value * count as f64, count as f64, confidence)
    } else {
        Interval { low, high }
    };
    // One unit, or resamples that nearly all miss a class, give no interval.
    let says = count > 1 && sorted.len() > 1 && interval.low < interval.high;
    let interval = if says { interval } else { Interval::UNKNOWN };
    Estimate { method, ..Estimate::new(value, interval, scoring.items as u64, method) }
}
