//! What rows that the search never saw show of a slice.

use std::collections::BTreeMap;

use trackway_core::{Rng, RowCoverage, SplitMix64};
use trackway_results::search::{HeldOutSlice, Test};
use trackway_statistics::{mean_interval, mean_with_interval, wilson};

use super::significance::{above_zero, more_than_elsewhere};
use crate::{Estimate, Method};

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// Rows that were kept from the search.
pub(super) struct HeldOut<'h> {
    pub(super) rows: &'h [u32],
    /// The error of each row of the table, or its difference from the baseline's.
    pub(super) values: &'h [f64],
    /// The group of each row of the table.
    pub(super) groups: Option<&'h [u64]>,
    /// Whether values are differences.
    pub(super) is_paired: bool,
    pub(super) seed: u64,
}

/// Rows to search and rows to hold out: by a hash of the row, or of its group.
pub(super) fn parted(rows: &[u32], groups: Option<&[u64]>, share: f64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let salt = SplitMix64::new(seed).next_u64();
    let limit = (share.clamp(0.0, 1.0) * u64::MAX as f64) as u64;
    let is_searched = |row: &u32| {
        let key = groups.map_or(u64::from(*row), |groups| groups[*row as usize]);
        SplitMix64::new(salt ^ key).next_u64() >= limit
    };
    rows.iter().partition(|row| is_searched(row))
}

impl HeldOut<'_> {
    /// The slice of the rows for which `is_member`, and its p-value.
    pub(super) fn measure(&self, is_member: impl Fn(u32) -> bool) -> (HeldOutSlice, Option<(f64, Test)>) {
        let members: Vec<bool> = self.rows.iter().map(|row| is_member(*row)).collect();
        let inside: Vec<u32> = self
            .rows
            .iter()
            .zip(&members)
            .filter(|(_, is_member)| **is_member)
            .map(|(row, _)| *row)
            .collect();
        let slice = HeldOutSlice { size: inside.len() as u64, average_error: self.average(&inside) };
        (slice, self.p_value(&inside, &members))
    }

    /// The mean of rows, with its interval.
    pub(super) fn average(&self, rows: &[u32]) -> Option<Estimate> {
        let count = rows.len() as f64;
        let values: Vec<f64> = rows.iter().map(|row| self.values[*row as usize]).collect();
        let mean = values.iter().sum::<f64>() / count;
        if values.is_empty() {
            return None;
        }
        let (interval, method) = if self.groups.is_some() {
            let sums = self.group_sums(rows, |row| (self.values[row as usize] - mean) / count);
            let groups = sums.len() as f64;
            let variance = sums.iter().map(|sum| sum * sum).sum::<f64>() * groups / (groups - 1.0);
            // The deviation of a mean of so many groups that has this variance.
            (mean_interval(mean, (variance * groups).sqrt(), groups, CONFIDENCE), Method::Clustered)
        } else if values.iter().all(|value| *value == 0.0 || *value == 1.0) {
            (wilson(mean * count, count, CONFIDENCE), Method::Analytic)
        } else {
            (mean_with_interval(&values, CONFIDENCE).1, Method::Analytic)
        };
        let rows = rows.len() as u64;
        let estimate = Estimate::new(mean, interval, rows, method);
        Some(Estimate { coverage: RowCoverage::complete(rows), ..estimate })
    }

    fn p_value(&self, inside: &[u32], members: &[bool]) -> Option<(f64, Test)> {
        let value = |row: u32| self.values[row as usize];
        match (self.is_paired, self.groups) {
            (true, None) => {
                above_zero(&inside.iter().map(|row| value(*row)).collect::<Vec<_>>(), false, self.seed)
            }
            (true, Some(_)) => above_zero(&self.group_sums(inside, value), true, self.seed),
            (false, None) => {
                let values: Vec<f64> = self.rows.iter().map(|row| value(*row)).collect();
                more_than_elsewhere(&values, members, self.seed)
            }
            (false, Some(_)) if inside.is_empty() || inside.len() == self.rows.len() => None,
            (false, Some(_)) => {
                // What each row adds to the slice's mean less the mean of all.
                let (size, all) = (inside.len() as f64, self.rows.len() as f64);
                let mean = self.rows.iter().map(|row| value(*row)).sum::<f64>() / all;
                let mut weights = vec![0.0; self.values.len()];
                for (row, is_inside) in self.rows.iter().zip(members) {
                    let weight = if *is_inside { 1.0 / size } else { 0.0 } - 1.0 / all;
                    weights[*row as usize] = (value(*row) - mean) * weight;
                }
                above_zero(&self.group_sums(self.rows, |row| weights[row as usize]), true, self.seed)
            }
        }
    }

    /// Sums over each group, in an order that is always the same.
    fn group_sums(&self, rows: &[u32], value: impl Fn(u32) -> f64) -> Vec<f64> {
        let groups = self.groups.expect("only called for groups");
        let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
        rows.iter().for_each(|row| *sums.entry(groups[*row as usize]).or_default() += value(*row));
        sums.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_out<'h>(rows: &'h [u32], values: &'h [f64], groups: Option<&'h [u64]>) -> HeldOut<'h> {
        HeldOut { rows, values, groups, is_paired: false, seed: 1 }
    }

    /// Proves that rows of one group are on one side, that both sides have about their fraction, and that the same seed
    /// gives the same sides.
    #[test]
    fn groups_stay_together() {
        let rows: Vec<u32> = (0..1000).collect();
        let groups: Vec<u64> = (0..1000).map(|row| row / 10).collect();
        let (searched, held) = parted(&rows, Some(&groups), 0.5, 7);
        assert!((300..700).contains(&searched.len()), "{}", searched.len());
        assert!(
            held.iter()
                .all(|row| !searched.iter().any(|other| groups[*other as usize] == groups[*row as usize]))
        );
        assert_eq!(parted(&rows, Some(&groups), 0.5, 7), (searched, held));
        let (searched, _) = parted(&rows, None, 0.5, 7);
        assert!((430..570).contains(&searched.len()), "{}", searched.len());
    }

    /// Proves intervals by hand: with each row in a separate group the clustered one is Student's, and copies of rows
    /// within groups do not narrow it, while they would if each were independent.
    #[test]
    fn copies_in_groups_add_nothing() {
        let values = [0.1, 0.5, 0.9, 0.2, 0.3];
        let copies: Vec<f64> = values.iter().flat_map(|value| [*value; 4]).collect();
        let rows: Vec<u32> = (0..20).collect();
        let (alone, whole): (Vec<u64>, Vec<u64>) = ((0..20).collect(), (0..20).map(|row| row / 4).collect());
        let width = |estimate: Estimate| estimate.interval.high - estimate.interval.low;
        let of = |rows: &[u32], values: &[f64], groups: Option<&[u64]>| {
            held_out(rows, values, groups).average(rows).unwrap()
        };
        let single = width(of(&rows[..5], &values, None));
        assert!((width(of(&rows[..5], &values, Some(&alone))) - single).abs() < 1e-12);
        assert!((width(of(&rows, &copies, Some(&whole))) - single).abs() < 1e-12);
        assert!(width(of(&rows, &copies, None)) < single / 2.0);
        assert_eq!(of(&rows[..1], &values, None).method, Method::None);
    }
}
