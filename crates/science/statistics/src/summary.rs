//! Summaries of plain numbers.

use crate::{Interval, mean_interval};

/// The mean. NaN of no numbers.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample variance (divided by count − 1). NaN for fewer than two numbers.
#[must_use]
pub fn variance(values: &[f64]) -> f64 {
    squares(values) / (values.len() as f64 - 1.0)
}

/// The variance of numbers that are the whole population (divided by the count). NaN of no numbers.
#[must_use]
pub fn population_variance(values: &[f64]) -> f64 {
    squares(values) / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The mean with Student's interval.
#[must_use]
pub fn mean_with_interval(values: &[f64], confidence: f64) -> (f64, Interval) {
    let mean = mean(values);
    (mean, mean_interval(mean, variance(values).sqrt(), values.len() as f64, confidence))
}

/// The value below which a fraction of the sorted values is, interpolated between its neighbours (NumPy's default). NaN of
/// no numbers.
#[must_use]
pub fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = fraction.clamp(0.0, 1.0) * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The median, of values in any order. NaN of no numbers.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}
