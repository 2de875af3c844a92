//! Folds that keep groups whole and classes balanced.

use trackway_statistics::population_variance;

use super::parts::{FOLD_COUNT_MAX, Part, SplitError};

/// One group and how many rows of each class it has.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupClasses {
    /// Rows by class, in the same order for every group.
    pub rows: Vec<u64>,
    /// Where the group falls among groups of equal spread: [`trackway_formats::subset::unit_of`] of its key.
    pub unit: f64,
}

/// The fold of each group, so that no group is in two folds and each fold has about the same fraction of every class.
///
/// Greedy, as scikit-learn's `StratifiedGroupKFold`: groups whose classes are spread most unevenly come first; each goes
/// to the fold that keeps the spread of every class over the folds smallest, and among equal ones to the smallest.
///
/// # Errors
/// [`SplitError::Folds`]: fewer than 2 folds, more than [`FOLD_COUNT_MAX`], or more than groups.
pub fn stratified_group_folds(groups: &[GroupClasses], folds: usize) -> Result<Vec<Part>, SplitError> {
    if !(2..=FOLD_COUNT_MAX.min(groups.len())).contains(&folds) {
        return Err(SplitError::Folds { folds, groups: groups.len() });
    }
    let classes = groups.iter().map(|group| group.rows.len()).max().unwrap_or(0);
    let totals = totals_of(groups, classes);
    let mut filled = vec![vec![0.0; classes]; folds];
    let mut assigned = vec![0; groups.len()];
    for index in most_uneven_first(groups) {
        let best = best_fold(&filled, &groups[index], &totals);
        for (sum, rows) in filled[best].iter_mut().zip(&groups[index].rows) {
            *sum += *rows as f64;
        }
        assigned[index] = best as Part;
    }
    Ok(assigned)
}

fn totals_of(groups: &[GroupClasses], classes: usize) -> Vec<f64> {
    let of_class = |class: usize| groups.iter().filter_map(|group| group.rows.get(class)).sum::<u64>();
    (0..classes).map(|class| of_class(class).max(1) as f64).collect()
}

fn most_uneven_first(groups: &[GroupClasses]) -> Vec<usize> {
    let spread = |group: &GroupClasses| {
        let rows: Vec<f64> = group.rows.iter().map(|rows| *rows as f64).collect();
        population_variance(&rows)
    };
    let mut order: Vec<_> = (0..groups.len()).map(|index| (spread(&groups[index]), index)).collect();
    order.sort_by(|one, other| {
        other
            .0
            .total_cmp(&one.0)
            .then(groups[one.1].unit.total_cmp(&groups[other.1].unit))
            .then(one.1.cmp(&other.1))
    });
    order.into_iter().map(|(_, index)| index).collect()
}

/// The fold that, given this group, leaves the classes most evenly spread over the folds.
fn best_fold(filled: &[Vec<f64>], group: &GroupClasses, totals: &[f64]) -> usize {
    let unevenness = |fold: usize| -> f64 {
        let of_class = |class: usize| {
            let added = group.rows.get(class).copied().unwrap_or(0) as f64;
            let share = |(index, sums): (usize, &Vec<f64>)| {
                (sums[class] + if index == fold { added } else { 0.0 }) / totals[class]
            };
            population_variance(&filled.iter().enumerate().map(share).collect::<Vec<_>>()).sqrt()
        };
        (0..totals.len()).map(of_class).sum::<f64>() / totals.len() as f64
    };
    let size = |fold: usize| filled[fold].iter().sum::<f64>();
    let better = |one: &usize, other: &usize| {
        unevenness(*one).total_cmp(&unevenness(*other)).then(size(*one).total_cmp(&size(*other)))
    };
    (0..filled.len()).min_by(better).expect("there are at least two folds")
}
