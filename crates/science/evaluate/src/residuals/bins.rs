//! Residuals in the bins of one column.

use std::collections::HashMap;

use trackway_statistics::{Group, mean_interval, wilson};

use super::{ResidualBin, ResidualOf};
use crate::search::Feature;
use crate::{Estimate, Method};

/// Bins with fewer rows are combined with the rare values.
pub(super) const BIN_ROWS_MIN: u32 = 30;
/// Strings beyond these, by frequency, are combined.
const TEXTS_MAX: usize = 20;
/// For booleans, the mean of a bin with less variance in all is not tested: as a table of counts needs five expected
/// ones in each cell (W. Cochran 1954).
const VARIANCE_MIN: f64 = 5.0;
/// What rare values are called.
const OTHERS: &str = "(others)";

/// Residuals, their groups, and the confidence level of intervals.
#[derive(Clone, Copy)]
pub(super) struct Left<'r> {
    pub of: ResidualOf,
    /// One for each row.
    pub residuals: &'r [f64],
    /// For booleans the variance of each row if the predictions are right, because it depends on the probability,
    /// however few of a bin are 1. Absent for regression.
    pub expected: Option<&'r [f64]>,
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
        let mean = self.mean(left);
        let mut quantile = |share: f64| {
            let place = ((residuals.len() - 1) as f64 * share).round() as usize;
            *residuals.select_nth_unstable_by(place, f64::total_cmp).1
        };
        ResidualBin { values: self.shown.clone(), mean, low: quantile(0.1), high: quantile(0.9) }
    }

    /// The mean with its interval.
    fn mean(&self, left: Left<'_>) -> Estimate {
        let own = group(&self.of(left), self.groups(left).as_deref());
        if left.of == ResidualOf::WrongClass && left.groups.is_none() {
            return share(own, left);
        }
        let variance = self.expected(left, own).map_or(own.variance, |it| it.max(own.variance));
        estimate(Group { variance, ..own }, self.rows.len(), left)
    }

    /// For the test of their means; `None` if they have too little variance.
    pub(super) fn means(&self, left: Left<'_>) -> Option<Group> {
        let own = group(&self.of(left), self.groups(left).as_deref());
        let Some(expected) = left.expected else { return Some(own) };
        let all: f64 = self.rows.iter().map(|row| expected[*row as usize]).sum();
        let variance = self.expected(left, own)?;
        let variance = if left.groups.is_some() { variance.max(own.variance) } else { variance };
        (all >= VARIANCE_MIN).then_some(Group { variance, ..own })
    }

    /// The expected variance, on the scale of the group's own.
    fn expected(&self, left: Left<'_>, own: Group) -> Option<f64> {
        let all: f64 = self.rows.iter().map(|row| left.expected.map_or(0.0, |it| it[*row as usize])).sum();
        let count = self.rows.len() as f64;
        left.expected.map(|_| all / (count * count) * own.count)
    }

    /// For the test of their spread: distances from the bin's median (M. Brown and A. Forsythe 1974).
    pub(super) fn spread(&self, left: Left<'_>) -> Option<Group> {
        let mut distances = self.of(left);
        let middle = distances.len() / 2;
        let median = *distances.select_nth_unstable_by(middle, f64::total_cmp).1;
        // The order of the rows again, which that of their groups has.
        let distances: Vec<f64> = self.of(left).iter().map(|it| (it - median).abs()).collect();
        Some(group(&distances, self.groups(left).as_deref()))
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
    // Sums of floats depend on their order, and that of a map is random.
    squares.sort_unstable_by(f64::total_cmp);
    let of_mean = squares.iter().sum::<f64>() / (count * count) * of_groups / (of_groups - 1.0);
    Group { count: of_groups, mean, variance: of_mean * of_groups }
}

/// A fraction of independent rows with Wilson's interval.
fn share(group: Group, left: Left<'_>) -> Estimate {
    let interval = wilson(group.mean * group.count, group.count, left.confidence);
    Estimate::new(group.mean, interval, group.count as u64, Method::Analytic)
}

/// The mean with Student's interval.
pub(super) fn estimate(group: Group, rows: usize, left: Left<'_>) -> Estimate {
    let interval = mean_interval(group.mean, group.variance.sqrt(), group.count, left.confidence);
    let method = if left.groups.is_some() { Method::Clustered } else { Method::Analytic };
    Estimate::new(group.mean, interval, rows as u64, method)
}
