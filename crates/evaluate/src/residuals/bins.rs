//! Residuals in the bins of one column.

use std::collections::HashMap;

use trackway_statistics::{Group, mean_interval};

use super::ResidualBin;
use crate::search::Feature;
use crate::{Estimate, Method};

/// Bins with fewer rows are put together with the rare values.
pub(super) const BIN_ROWS_MIN: u32 = 30;
/// Texts beyond these, by frequency, are put together.
const TEXTS_MAX: usize = 20;
/// What rare values are called.
const OTHERS: &str = "(others)";

/// Residuals, what belongs together among them, and how sure intervals are.
#[derive(Clone, Copy)]
pub(super) struct Left<'r> {
    /// One for each row.
    pub residuals: &'r [f64],
    /// The group of each row, where rows are not independent.
    pub groups: Option<&'r [u32]>,
    pub confidence: f64,
}

/// The rows of one bin.
pub(super) struct Members {
    shown: Option<String>,
    rows: Vec<u32>,
}

/// Rows by the values of the feature; bins with too few rows for anything are left out.
pub(super) fn members(feature: &Feature, rows: usize) -> Vec<Members> {
    let missing = feature.codes_end() - 1;
    let mut of_code: Vec<Vec<u32>> = vec![Vec::new(); feature.codes_end()];
    let mut others = Vec::new();
    for row in 0..rows as u32 {
        match feature.code(row) {
            Feature::RARE => others.push(row),
            code => of_code[usize::from(code)].push(row),
        }
    }
    let missing = of_code.swap_remove(missing);
    let mut found: Vec<Members> = Vec::new();
    for (code, rows) in of_code.into_iter().enumerate() {
        let shown = feature.shown(code as u16);
        if !rows.is_empty() {
            found.push(Members { shown, rows });
        }
    }
    if feature.is_text() {
        found.sort_by_key(|it| std::cmp::Reverse(it.rows.len()));
        found.drain(TEXTS_MAX.min(found.len())..).for_each(|it| others.extend(it.rows));
    }
    found.push(Members { shown: None, rows: missing });
    found.push(Members { shown: Some(OTHERS.to_owned()), rows: others });
    found.retain(|it| it.rows.len() >= BIN_ROWS_MIN as usize);
    found
}

impl Members {
    pub(super) fn bin(&self, left: Left<'_>) -> ResidualBin {
        let mut residuals = self.of(left);
        let mean = estimate(group(&residuals, self.groups(left).as_deref()), self.rows.len(), left);
        let mut quantile = |share: f64| {
            let place = ((residuals.len() - 1) as f64 * share).round() as usize;
            *residuals.select_nth_unstable_by(place, f64::total_cmp).1
        };
        ResidualBin { values: self.shown.clone(), mean, low: quantile(0.1), high: quantile(0.9) }
    }

    /// For the test of their means.
    pub(super) fn means(&self, left: Left<'_>) -> Group {
        group(&self.of(left), self.groups(left).as_deref())
    }

    /// For the test of their spread: distances from the bin's median (M. Brown and A. Forsythe 1974).
    pub(super) fn spread(&self, left: Left<'_>) -> Group {
        let mut distances = self.of(left);
        let middle = distances.len() / 2;
        let median = *distances.select_nth_unstable_by(middle, f64::total_cmp).1;
        // The order of the rows again, which that of their groups has.
        let distances: Vec<f64> = self.of(left).iter().map(|it| (it - median).abs()).collect();
        group(&distances, self.groups(left).as_deref())
    }

    fn of(&self, left: Left<'_>) -> Vec<f64> {
        self.rows.iter().map(|row| left.residuals[*row as usize]).collect()
    }

    fn groups(&self, left: Left<'_>) -> Option<Vec<u32>> {
        left.groups.map(|groups| self.rows.iter().map(|row| groups[*row as usize]).collect())
    }
}

/// Count, mean and variance of numbers. Where they belong to groups the count is that of the groups, and the variance such that
/// variance / count is that of the mean, summed by group.
pub(super) fn group(numbers: &[f64], groups: Option<&[u32]>) -> Group {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let Some(groups) = groups else {
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        return Group { count, mean, variance: squares / (count - 1.0) };
    };
    let mut sums: HashMap<u32, f64> = HashMap::new();
    numbers.iter().zip(groups).for_each(|(number, group)| *sums.entry(*group).or_default() += number - mean);
    let of_groups = sums.len() as f64;
    let mut squares: Vec<f64> = sums.into_values().map(|sum| sum * sum).collect();
    // Sums of floats depend on their order, and that of a map on chance.
    squares.sort_unstable_by(f64::total_cmp);
    let of_mean = squares.iter().sum::<f64>() / (count * count) * of_groups / (of_groups - 1.0);
    Group { count: of_groups, mean, variance: of_mean * of_groups }
}

/// The mean with Student's interval.
pub(super) fn estimate(group: Group, rows: usize, left: Left<'_>) -> Estimate {
    let interval = mean_interval(group.mean, group.variance.sqrt(), group.count, left.confidence);
    let is_known = interval.low.is_finite() && interval.high.is_finite();
    let method = if left.groups.is_some() { Method::Clustered } else { Method::Analytic };
    Estimate {
        value: group.mean,
        low: is_known.then_some(interval.low),
        high: is_known.then_some(interval.high),
        support: rows as u64,
        method: if is_known { method } else { Method::None },
    }
}
