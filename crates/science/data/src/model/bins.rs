//! Cells as single bytes: what the trees see.

use std::collections::HashMap;

use rayon::prelude::*;

use super::frame::{Cells, Frame, FrameColumn, MISSING_CODE};

/// The most bins of a column; bin 0 is for missing cells.
pub const BINS_MAX: usize = 255;

/// What the histograms of one node may take: with very many columns each has fewer bins.
const NODE_BINS_MAX: usize = 1 << 16;

/// The fewest bins of a column, however many columns there are.
const BINS_MIN: usize = 16;

/// A frame, each cell as the number of its bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Binned {
    columns: Vec<BinnedColumn>,
    rows: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct BinnedColumn {
    /// A bin for each row.
    pub(super) bins: Vec<u8>,
    /// One more than the highest bin.
    pub(super) count: usize,
    /// Whether the order of bins means nothing.
    pub(super) is_category: bool,
    scale: Scale,
}

/// What the bins mean.
#[derive(Debug, Clone, PartialEq)]
enum Scale {
    /// Bin `i + 1` holds what is above edge `i - 1` and at most at edge `i`.
    Edges(Vec<f64>),
    /// The bins of the frequent strings; all others are in the last one.
    Texts(HashMap<String, u8>),
}

impl Binned {
    /// Bins of about equally many rows for numbers (one for each value if there are few), one for each frequent string.
    /// Targets are not used, so bins over all rows leak no labels into a fold.
    #[must_use]
    pub fn of(frame: &Frame) -> Self {
        let bins_max = (NODE_BINS_MAX / frame.columns().len().max(1)).clamp(BINS_MIN, BINS_MAX);
        let binned = |column: &FrameColumn| {
            let scale = match &column.cells {
                Cells::Numbers(values) => Scale::Edges(edges(values, bins_max - 1)),
                Cells::Categories { codes, names } => Scale::Texts(frequent(codes, names, bins_max - 2)),
            };
            scale.apply(column)
        };
        Self { columns: frame.columns().par_iter().map(binned).collect(), rows: frame.rows() }
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn column(&self, index: usize) -> &BinnedColumn {
        &self.columns[index]
    }
}

impl Scale {
    fn apply(&self, column: &FrameColumn) -> BinnedColumn {
        let (bins, count) = match (self, &column.cells) {
            (Self::Edges(edges), Cells::Numbers(values)) => {
                let bin = |value: &f64| match value.is_nan() {
                    true => 0,
                    false => (edges.partition_point(|edge| edge < value) + 1) as u8,
                };
                (values.iter().map(bin).collect(), edges.len() + 2)
            }
            (Self::Texts(known), Cells::Categories { codes, names }) => {
                let others = known.len() as u8 + 1;
                let bin_of: Vec<u8> =
                    names.iter().map(|name| known.get(name).copied().unwrap_or(others)).collect();
                let bin = |code: &u32| bin_of.get(*code as usize).copied().unwrap_or(0);
                (codes.iter().map(bin).collect(), known.len() + 2)
            }
            // All missing on one side, so that its type is another one there.
            (Self::Edges(_), Cells::Categories { codes, .. }) => (vec![0; codes.len()], 1),
            (Self::Texts(_), Cells::Numbers(values)) => (vec![0; values.len()], 1),
        };
        BinnedColumn { bins, count, is_category: matches!(self, Self::Texts(_)), scale: self.clone() }
    }
}

/// At most `bins - 1` edges between values.
fn edges(values: &[f64], bins: usize) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut different = sorted.clone();
    different.dedup();
    let mut edges: Vec<f64> = if different.len() <= bins {
        different
    } else {
        (1..bins).map(|bin| sorted[bin * sorted.len() / bins]).collect()
    };
    edges.dedup();
    // What is above the last edge needs no edge.
    if edges.last() == sorted.last() {
        edges.pop();
    }
    edges
}

/// Bins from 1 on for the most frequent strings.
fn frequent(codes: &[u32], names: &[String], bins: usize) -> HashMap<String, u8> {
    let mut rows = vec![0u32; names.len()];
    codes.iter().filter(|code| **code != MISSING_CODE).for_each(|code| rows[*code as usize] += 1);
    let mut order: Vec<usize> = (0..names.len()).filter(|index| rows[*index] > 0).collect();
    order.sort_by(|one, other| rows[*other].cmp(&rows[*one]).then(names[*one].cmp(&names[*other])));
    order
        .into_iter()
        .take(bins)
        .enumerate()
        .map(|(bin, index)| (names[index].clone(), bin as u8 + 1))
        .collect()
}
