//! Requested slices of the rows, against the rest.

mod differences;

use trackway_statistics::holm;

use crate::metrics::rows::Items;
use crate::metrics::scoring::Scoring;
use crate::metrics::{Judge, from_zero, is_higher_better, is_share, measure};
use crate::{ComparisonVerdict, Estimate, Metrics, Slice};
use differences::difference;

/// A slice: its rows, which the caller found by its predicate.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceRows {
    pub name: String,
    /// The condition as a user wrote it.
    pub predicate: String,
    /// For each row of the table whether it belongs to the slice.
    pub rows: Vec<bool>,
    /// The metric by which it is compared; that of all slices if absent.
    pub metric: Option<String>,
    /// When it is inconclusive, where that differs from all slices.
    pub limits: Option<SliceLimits>,
}

/// When a slice is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceLimits {
    /// Fewer rows (or queries, tasks) than this.
    pub support_min: u64,
    /// A wider interval of the main metric than this if it is between 0 and 1; relative to the whole table's value for
    /// other metrics.
    pub width_max: f64,
}

impl Default for SliceLimits {
    fn default() -> Self {
        Self { support_min: 30, width_max: 0.2 }
    }
}

/// The slices with their numbers. A slice is better or worse than the rest if the difference of the main metric has a
/// p-value below 1 − confidence, corrected for the number of slices (Holm), inconclusive slices included.
pub(crate) fn slices(
    items: &Items,
    asked: &[SliceRows],
    main_metric: &str,
    limits: SliceLimits,
    (whole, judge): (&Metrics, Judge),
) -> Vec<Slice> {
    let mut p_values = Vec::new();
    let mut slices = Vec::new();
    for slice in asked {
        let main_metric = slice.metric.as_deref().unwrap_or(main_metric);
        let limits = slice.limits.unwrap_or(limits);
        let (inside, outside): (Vec<u32>, Vec<u32>) =
            (0..items.len() as u32).partition(|item| slice.rows[items.row_of_item[*item as usize] as usize]);
        let mut metrics =
            if inside.is_empty() { Metrics::new() } else { measure(&scoring(items, &inside, judge), judge) };
        items.rows.cover(&mut metrics, judge.missing, |row| slice.rows[row]);
        let mut rest = if outside.is_empty() {
            Metrics::new()
        } else {
            measure(&scoring(items, &outside, judge).only(main_metric), judge)
        };
        items.rows.cover(&mut rest, judge.missing, |row| !slice.rows[row]);
        let own = metrics.get(main_metric).copied();
        let compared = own
            .zip(rest.get(main_metric))
            .map(|(own, rest)| (from_zero(main_metric, own), from_zero(main_metric, *rest)))
            .and_then(|(own, rest)| difference(&own, &rest, judge.resampling.confidence));
        p_values.push(compared.map_or(f64::NAN, |(_, p_value)| p_value));
        slices.push(Slice {
            name: slice.name.clone(),
            predicate: slice.predicate.clone(),
            support: inside.len() as u64,
            verdict: ComparisonVerdict::Inconclusive,
            why: too_little(inside.len() as u64, own.as_ref(), whole.get(main_metric), main_metric, limits),
            metrics,
            difference: compared.map(|(difference, _)| difference),
            adjusted_p_value: None,
            compared_by: slice.metric.clone(),
        });
    }
    for (slice, p_value) in slices.iter_mut().zip(holm(&p_values)) {
        slice.adjusted_p_value = Some(p_value).filter(|p_value| !p_value.is_nan());
        let metric = slice.compared_by.as_deref().unwrap_or(main_metric);
        slice.verdict = verdict(slice, metric, 1.0 - judge.resampling.confidence);
    }
    slices
}

fn scoring(items: &Items, rows: &[u32], judge: Judge) -> Scoring {
    Scoring::of(&items.subset(rows), judge.recall)
}

/// Why a slice is inconclusive, if so.
fn too_little(
    support: u64,
    own: Option<&Estimate>,
    whole: Option<&Estimate>,
    main_metric: &str,
    limits: SliceLimits,
) -> Option<String> {
    if support < limits.support_min {
        return Some(format!("it has {support} rows, fewer than {}", limits.support_min));
    }
    let Some(own) = own else { return Some(format!("its {main_metric} cannot be computed")) };
    let Some((low, high)) = own.interval.bounds() else {
        return Some(format!("its {main_metric} has no interval"));
    };
    let scale = if is_share(main_metric) { 1.0 } else { whole.map_or(own.value, |whole| whole.value).abs() };
    let width_max = limits.width_max * scale;
    (high - low > width_max).then(|| {
        format!("the interval of its {main_metric} is {:.3} wide, more than {width_max:.3}", high - low)
    })
}

fn verdict(slice: &Slice, main_metric: &str, level: f64) -> ComparisonVerdict {
    let shown = slice.difference.zip(slice.adjusted_p_value).filter(|(_, p_value)| *p_value <= level);
    match (&slice.why, shown) {
        (Some(_), _) => ComparisonVerdict::Inconclusive,
        (None, None) => ComparisonVerdict::NoDifferenceShown,
        (None, Some((difference, _))) if (difference.value > 0.0) == is_higher_better(main_metric) => {
            ComparisonVerdict::Better
        }
        (None, Some(_)) => ComparisonVerdict::Worse,
    }
}
