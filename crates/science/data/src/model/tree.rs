//! One tree, grown leaf by leaf where it gains most.

use rayon::prelude::*;

use super::bins::{Binned, BinnedColumn};

/// A category takes part in a split from so many rows of the node on (LightGBM's `min_data_per_group` is 100 for far
/// larger tables).
const CATEGORY_ROWS_MIN: f64 = 10.0;

/// Added to a category's curvature when categories are ordered: rare ones stay in the middle (LightGBM's `cat_smooth`).
const CATEGORY_SMOOTHING: f64 = 10.0;

/// Added to the curvature of a split by categories: such splits have more freedom to fit noise (LightGBM's `cat_l2`).
const CATEGORY_L2: f64 = 10.0;

/// Below so many cells a node's columns are gone through by one thread: handing out costs more.
const PARALLEL_CELLS_MIN: usize = 1 << 15;

/// The most leaves of a tree (as scikit-learn).
const LEAVES_MAX: usize = 31;

/// The fewest rows of a leaf (as scikit-learn).
const LEAF_ROWS_MIN: f64 = 20.0;

/// Pulls the values of small leaves to zero (as XGBoost).
const L2: f64 = 1.0;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct BinSet([u64; 4]);

impl BinSet {
    fn insert(&mut self, bin: usize) {
        self.0[bin / 64] |= 1 << (bin % 64);
    }

    #[inline]
    fn holds(&self, bin: u8) -> bool {
        self.0[usize::from(bin / 64)] >> (bin % 64) & 1 == 1
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Leaf(f64),
    Split { column: usize, gain: f64, left_bins: BinSet, left: usize, right: usize },
}

impl Tree {
    /// The value of a row's leaf.
    pub(super) fn value(&self, binned: &Binned, row: usize) -> f64 {
        let mut node = 0;
        loop {
            match &self.nodes[node] {
                Node::Leaf(value) => return *value,
                Node::Split { column, left_bins, left, right, .. } => {
                    let is_left = left_bins.holds(binned.column(*column).bins[row]);
                    node = if is_left { *left } else { *right };
                }
            }
        }
    }

    /// Adds what each split gained to its column's sum.
    pub(super) fn add_gains(&self, gains: &mut [f64]) {
        for node in &self.nodes {
            if let Node::Split { column, gain, .. } = node {
                gains[*column] += gain;
            }
        }
    }
}

/// Sums over the rows of a node, or of one bin in it.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    gradient: f64,
    curvature: f64,
    rows: f64,
}

impl Sums {
    fn plus(self, other: Self) -> Self {
        Self {
            gradient: self.gradient + other.gradient,
            curvature: self.curvature + other.curvature,
            rows: self.rows + other.rows,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            gradient: self.gradient - other.gradient,
            curvature: self.curvature - other.curvature,
            rows: self.rows - other.rows,
        }
    }

    /// By how much one value for these rows lowers the loss, twice.
    fn score(self, l2: f64) -> f64 {
        self.gradient * self.gradient / (self.curvature + l2)
    }
}

/// Sums per bin, one column after the other.
type Histograms = Vec<Vec<Sums>>;

struct BestSplit {
    gain: f64,
    /// Index into the columns used.
    column: usize,
    left_bins: BinSet,
}

struct OpenLeaf {
    node: usize,
    rows: std::ops::Range<usize>,
    sums: Sums,
    histograms: Histograms,
    best: Option<BestSplit>,
}

/// What a tree is grown from.
pub(super) struct Grower<'g> {
    pub(super) binned: &'g Binned,
    pub(super) columns: &'g [usize],
    /// First and second derivative of the loss, for each row of the table.
    pub(super) derivatives: &'g [(f32, f32)],
}

impl Grower<'_> {
    /// Grows a tree over `rows`, which are put in another order. `leaf` is called with `(rows, value)` of each leaf.
    pub(super) fn grow(&self, rows: &mut [u32], mut leaf: impl FnMut(&[u32], f64)) -> Tree {
        let mut spare = vec![0; rows.len()];
        let sums = self.sums(rows);
        let histograms = self.histograms(rows);
        let best = self.best(&histograms, sums);
        let mut nodes = vec![Node::Leaf(0.0)];
        let mut open = vec![OpenLeaf { node: 0, rows: 0..rows.len(), sums, histograms, best }];
        while open.len() < LEAVES_MAX {
            let Some(index) = most_gain(&open) else { break };
            let parent = open.swap_remove(index);
            let children = self.split(parent, rows, &mut spare, &mut nodes);
            open.extend(children);
        }
        for done in open {
            let value = -done.sums.gradient / (done.sums.curvature + L2);
            nodes[done.node] = Node::Leaf(value);
            leaf(&rows[done.rows], value);
        }
        Tree { nodes }
    }

    fn split(
        &self,
        parent: OpenLeaf,
        rows: &mut [u32],
        spare: &mut [u32],
        nodes: &mut Vec<Node>,
    ) -> [OpenLeaf; 2] {
        let best = parent.best.expect("a leaf is split only where that gains");
        let column = self.columns[best.column];
        let bins = &self.binned.column(column).bins;
        let within = &mut rows[parent.rows.clone()];
        let lefts = partition(within, spare, |row| best.left_bins.holds(bins[row as usize]));
        let middle = parent.rows.start + lefts;
        let (left, right) = (nodes.len(), nodes.len() + 1);
        nodes.extend([Node::Leaf(0.0), Node::Leaf(0.0)]);
        nodes[parent.node] = Node::Split { column, gain: best.gain, left_bins: best.left_bins, left, right };
        let ranges = [parent.rows.start..middle, middle..parent.rows.end];
        // The larger side is what the smaller one leaves of the parent.
        let smaller = usize::from(ranges[1].len() < ranges[0].len());
        let small = self.histograms(&rows[ranges[smaller].clone()]);
        let large = difference(parent.histograms, &small);
        let histograms = if smaller == 0 { [small, large] } else { [large, small] };
        let sides = [left, right].into_iter().zip(ranges).zip(histograms);
        let leaf = |((node, range), histograms): ((usize, std::ops::Range<usize>), Histograms)| {
            let sums = self.sums(&rows[range.clone()]);
            let best = self.best(&histograms, sums);
            OpenLeaf { node, rows: range, sums, histograms, best }
        };
        let mut leaves = sides.map(leaf);
        let first = leaves.next().expect("there are two sides");
        [first, leaves.next().expect("there are two sides")]
    }

    fn sums(&self, rows: &[u32]) -> Sums {
        let (mut gradient, mut curvature) = (0.0, 0.0);
        for row in rows {
            let (first, second) = self.derivatives[*row as usize];
            gradient += f64::from(first);
            curvature += f64::from(second);
        }
        Sums { gradient, curvature, rows: rows.len() as f64 }
    }

    fn histograms(&self, rows: &[u32]) -> Histograms {
        let derivatives: Vec<(f32, f32)> = rows.iter().map(|row| self.derivatives[*row as usize]).collect();
        let histogram = |column: &usize| histogram(self.binned.column(*column), rows, &derivatives);
        if rows.len() * self.columns.len() >= PARALLEL_CELLS_MIN {
            self.columns.par_iter().map(histogram).collect()
        } else {
            self.columns.iter().map(histogram).collect()
        }
    }

    /// The split that gains most, the first of equal ones; `None` where none gains.
    fn best(&self, histograms: &Histograms, sums: Sums) -> Option<BestSplit> {
        if sums.rows < 2.0 * LEAF_ROWS_MIN {
            return None;
        }
        let found = histograms.iter().enumerate().filter_map(|(index, histogram)| {
            let is_category = self.binned.column(self.columns[index]).is_category;
            let search = Search { histogram, sums };
            let (gain, left_bins) = if is_category { search.by_categories() } else { search.by_order() }?;
            Some(BestSplit { gain, column: index, left_bins })
        });
        found.reduce(|best, next| if next.gain > best.gain { next } else { best })
    }
}

fn most_gain(open: &[OpenLeaf]) -> Option<usize> {
    let gains = open
        .iter()
        .enumerate()
        .filter_map(|(index, leaf)| Some((index, leaf.best.as_ref()?.gain, leaf.node)));
    // Of equal gains the older node, wherever it is.
    gains.max_by(|one, other| one.1.total_cmp(&other.1).then(other.2.cmp(&one.2))).map(|(index, ..)| index)
}

/// Puts rows that belong left first, each side in its old order; how many there are.
fn partition(rows: &mut [u32], spare: &mut [u32], is_left: impl Fn(u32) -> bool) -> usize {
    let (mut lefts, mut rights) = (0, 0);
    for index in 0..rows.len() {
        let row = rows[index];
        if is_left(row) {
            rows[lefts] = row;
            lefts += 1;
        } else {
            spare[rights] = row;
            rights += 1;
        }
    }
    rows[lefts..].copy_from_slice(&spare[..rights]);
    lefts
}

fn histogram(column: &BinnedColumn, rows: &[u32], derivatives: &[(f32, f32)]) -> Vec<Sums> {
    let mut histogram = vec![Sums::default(); column.count];
    for (row, (gradient, curvature)) in rows.iter().zip(derivatives) {
        let sums = &mut histogram[usize::from(column.bins[*row as usize])];
        sums.gradient += f64::from(*gradient);
        sums.curvature += f64::from(*curvature);
        sums.rows += 1.0;
    }
    histogram
}

fn difference(mut whole: Histograms, part: &Histograms) -> Histograms {
    for (whole, part) in whole.iter_mut().zip(part) {
        whole.iter_mut().zip(part).for_each(|(whole, part)| *whole = whole.minus(*part));
    }
    whole
}

/// Looks for the best split of one column.
struct Search<'s> {
    histogram: &'s [Sums],
    sums: Sums,
}

impl Search<'_> {
    /// By an edge between bins; missing cells go where that gains more.
    fn by_order(&self) -> Option<(f64, BinSet)> {
        let missing = self.histogram[0];
        let mut best: Option<(f64, usize, bool)> = None;
        let mut left = Sums::default();
        for bin in 1..self.histogram.len() {
            left = left.plus(self.histogram[bin]);
            for with_missing in [false, true] {
                if with_missing && missing.rows == 0.0 {
                    continue;
                }
                let side = if with_missing { left.plus(missing) } else { left };
                if let Some(gain) = self.gain(side, 0.0)
                    && best.is_none_or(|(most, ..)| gain > most)
                {
                    best = Some((gain, bin, with_missing));
                }
            }
        }
        best.map(|(gain, last, with_missing)| {
            let mut bins = BinSet::default();
            (usize::from(!with_missing)..=last).for_each(|bin| bins.insert(bin));
            (gain, bins)
        })
    }

    /// By two groups of categories: ordered by what the loss wants of them, the best cut is between two neighbours
    /// (W. Fisher, "On grouping for maximum homogeneity", 1958). Rare categories go right.
    fn by_categories(&self) -> Option<(f64, BinSet)> {
        let wanted = |bin: usize| {
            let sums = self.histogram[bin];
            sums.gradient / (sums.curvature + CATEGORY_SMOOTHING)
        };
        let frequent = |bin: &usize| self.histogram[*bin].rows >= CATEGORY_ROWS_MIN;
        let mut order: Vec<usize> = (0..self.histogram.len()).filter(frequent).collect();
        order.sort_by(|one, other| wanted(*one).total_cmp(&wanted(*other)).then(one.cmp(other)));
        let mut best: Option<(f64, usize)> = None;
        let mut left = Sums::default();
        for (taken, bin) in order.iter().enumerate() {
            left = left.plus(self.histogram[*bin]);
            if let Some(gain) = self.gain(left, CATEGORY_L2)
                && best.is_none_or(|(most, _)| gain > most)
            {
                best = Some((gain, taken));
            }
        }
        best.map(|(gain, last)| {
            let mut bins = BinSet::default();
            order[..=last].iter().for_each(|bin| bins.insert(*bin));
            (gain, bins)
        })
    }

    /// What parting `left` from the rest gains; `None` where a side is too small or nothing is gained.
    fn gain(&self, left: Sums, more_l2: f64) -> Option<f64> {
        let right = self.sums.minus(left);
        let l2 = L2 + more_l2;
        let gain = left.score(l2) + right.score(l2) - self.sums.score(L2);
        (left.rows >= LEAF_ROWS_MIN && right.rows >= LEAF_ROWS_MIN && gain > 0.0).then_some(gain)
    }
}
