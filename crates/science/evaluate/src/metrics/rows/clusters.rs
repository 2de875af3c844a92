//! Rows that are not independent of one another: they are resampled together, so that repeated rows do not narrow an
//! interval.

use std::collections::HashMap;
use std::hash::Hash;

use trackway_data::model::{Cells, Frame};

use super::{column, pick, renumbered};
use crate::error::Result;
use crate::{Columns, Task};

/// In a table without ids, more exact copies than this part of its rows are no coincidence.
pub(crate) const COPIES_MAX: f64 = 0.05;

/// For each item its cluster, and how many clusters there are; `None` if every item is independent. Rows are in one
/// cluster if they have a group or an id in common; without ids, if they are exact copies of one another.
pub(super) fn clusters(
    frame: &Frame,
    task: Task,
    columns: &Columns,
    rows: &[u32],
) -> Result<Option<(Vec<u32>, usize)>> {
    let keys = |name: &String| -> Result<Vec<u64>> {
        column(frame, name)?;
        let index = frame.index_of(name).expect("the column is there");
        Ok(pick(&frame.group_keys(index), rows))
    };
    let groups = columns.group.as_ref().map(keys).transpose()?;
    // The items of the other tasks are queries, images, or the ids themselves.
    let is_separate = task == Task::Ranking || columns.correct.is_some() || columns.image.is_some();
    let again = match columns.id.as_ref().filter(|_| !is_separate) {
        Some(id) => Some(keys(id)?).filter(|ids| has_repeats(ids)),
        None if is_separate => None,
        None => copies(frame, columns, rows),
    };
    Ok(match (groups, again) {
        (None, None) => None,
        (Some(keys), None) | (None, Some(keys)) => Some(renumbered(&keys)),
        (Some(groups), Some(again)) => Some(renumbered(&joined(&groups, &again))),
    })
}

fn has_repeats<K: Hash + Eq + Copy>(keys: &[K]) -> bool {
    different(keys) < keys.len()
}

fn different<K: Hash + Eq + Copy>(keys: &[K]) -> usize {
    keys.iter().copied().collect::<std::collections::HashSet<K>>().len()
}

/// Fingerprints of whole rows if many are copies. Only measured features distinguish a copy from another row that
/// happens to be equal.
fn copies(frame: &Frame, columns: &Columns, rows: &[u32]) -> Option<Vec<u64>> {
    let is_measured = |cells: &Cells| match cells {
        Cells::Numbers(values) => values.iter().any(|value| value.is_finite() && value.fract() != 0.0),
        Cells::Categories { .. } => false,
    };
    let is_feature = |name: &str| columns.given().all(|role| role != name);
    if !frame.columns().iter().any(|column| is_feature(&column.name) && is_measured(&column.cells)) {
        return None;
    }
    let keys = pick(frame.keys(), rows);
    let copies = keys.len() - different(&keys);
    (copies as f64 > COPIES_MAX * keys.len() as f64).then_some(keys)
}

/// Clusters of rows that have one of two keys in common, directly or through others.
fn joined(one: &[u64], other: &[u64]) -> Vec<u32> {
    let mut parents: Vec<u32> = (0..one.len() as u32).collect();
    for keys in [one, other] {
        let mut first: HashMap<u64, u32> = HashMap::new();
        for (row, key) in (0..).zip(keys) {
            let (before, now) =
                (root(&mut parents, *first.entry(*key).or_insert(row)), root(&mut parents, row));
            parents[now as usize] = before;
        }
    }
    (0..one.len() as u32).map(|row| root(&mut parents, row)).collect()
}

fn root(parents: &mut [u32], mut row: u32) -> u32 {
    while parents[row as usize] != row {
        parents[row as usize] = parents[parents[row as usize] as usize];
        row = parents[row as usize];
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that rows which have a group or an id in common, directly or through another row, are one cluster.
    #[test]
    fn groups_and_ids_are_joined() {
        let clusters = |groups: &[u64], ids: &[u64]| renumbered(&joined(groups, ids)).1;
        assert_eq!(clusters(&[1, 2, 3], &[1, 2, 3]), 3);
        assert_eq!(clusters(&[1, 2, 3], &[7, 7, 7]), 1);
        assert_eq!(clusters(&[1, 1, 2, 3], &[1, 2, 2, 4]), 2);
    }
}
