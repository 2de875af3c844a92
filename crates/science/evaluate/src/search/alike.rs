//! Slices that name the same rows: of a married man who is a husband, each of the three is a slice, and all are one finding.

use super::best::{Others, ScoredSlice};
use super::bits::count_both;
use super::table::{Rows, Table};

/// Slices with at least this part of the rows of either in common name the same rows.
pub const ALIKE_MIN: f64 = 0.95;

/// A finding: the best of the slices that name its rows, and the others.
pub(super) struct Finding<'s> {
    pub(super) slice: &'s ScoredSlice,
    pub(super) others: Vec<Other>,
}

/// Another description of a finding's rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Other {
    pub(super) items: Vec<u32>,
    /// Searched rows.
    pub(super) size: u32,
    /// Rows of both, of the rows of either.
    pub(super) overlap: f64,
}

/// At most so many findings, the best first; `best` are slices by falling score, no two with the very same rows, and `same` has
/// those that have.
pub(super) fn findings<'s>(
    table: &Table,
    best: &'s [ScoredSlice],
    same: &Others,
    wanted: usize,
) -> Vec<Finding<'s>> {
    let mut found: Vec<(Finding<'s>, Vec<u64>)> = Vec::new();
    let mut rows = Rows::default();
    for slice in best {
        let own = table.rows_of(&slice.items, &mut rows);
        let overlap = |(finding, rows): &(Finding<'_>, Vec<u64>)| {
            overlap(count_both(&own, rows), slice.stats.size, finding.slice.stats.size)
        };
        let alike = found.iter().map(overlap).enumerate().find(|(_, overlap)| *overlap >= ALIKE_MIN);
        let of =
            |items: &Vec<u32>, overlap: f64| Other { items: items.clone(), size: slice.stats.size, overlap };
        let with_same_rows = |overlap| same.of(slice.fingerprint).map(move |items| (items, overlap));
        match alike {
            Some((place, overlap)) => {
                let others = &mut found[place].0.others;
                others.push(of(&slice.items, overlap));
                others.extend(with_same_rows(overlap).map(|(items, overlap)| of(items, overlap)));
            }
            None if found.len() < wanted => {
                let others = with_same_rows(1.0).map(|(items, overlap)| of(items, overlap)).collect();
                found.push((Finding { slice, others }, own));
            }
            None => {}
        }
    }
    found.into_iter().map(|(finding, _)| finding).collect()
}

fn overlap(both: u32, one: u32, other: u32) -> f64 {
    let either = u64::from(one) + u64::from(other) - u64::from(both);
    f64::from(both) / either.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves by hand-made figures which part of the rows of either two slices have in common.
    #[test]
    fn rows_in_common() {
        assert_eq!(overlap(95, 100, 95), 0.95);
        assert_eq!(overlap(0, 10, 10), 0.0);
        assert_eq!(overlap(0, 0, 0), 0.0);
        assert!(overlap(90, 100, 100) < ALIKE_MIN);
    }
}
