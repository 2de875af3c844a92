//! The slices of one number of predicates, and what can be made of them with one more.

use std::ops::Range;

use super::score::Stats;

/// Slices of `width` items each, in lexicographic order.
#[derive(Debug, Default)]
pub(super) struct Level {
    width: usize,
    items: Vec<u32>,
    stats: Vec<Stats>,
}

/// A slice that might exist: a parent's items and one more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) item: u32,
    /// What it has at most.
    pub(super) most: Stats,
}

impl Level {
    pub(super) fn of_width(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.stats.len()
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn items(&self, index: usize) -> &[u32] {
        &self.items[index * self.width..(index + 1) * self.width]
    }

    pub(super) fn stats(&self, index: usize) -> Stats {
        self.stats[index]
    }

    /// Adds a slice after all others: `parent`'s items and `item`.
    pub(super) fn push(&mut self, parent: &[u32], item: u32, stats: Stats) {
        self.items.extend_from_slice(parent);
        self.items.push(item);
        self.stats.push(stats);
    }

    /// Only the slices for which `keep`.
    pub(super) fn retained(self, keep: impl Fn(Stats) -> bool) -> Self {
        let mut kept = Self::of_width(self.width);
        for index in (0..self.len()).filter(|index| keep(self.stats[*index])) {
            let (last, parent) = self.items(index).split_last().expect("a slice has an item");
            kept.push(parent, *last, self.stats[index]);
        }
        kept
    }

    /// The slices that have all items but the last in common with this one and come after it.
    pub(super) fn later_siblings(&self, index: usize) -> Range<usize> {
        let prefix = &self.items(index)[..self.width - 1];
        index + 1..self.with_prefix(prefix).end
    }

    /// The slices that begin with these items.
    fn with_prefix(&self, prefix: &[u32]) -> Range<usize> {
        let start = self.partition_point(|items| items[..prefix.len()] < *prefix);
        let end = self.partition_point(|items| items[..prefix.len()] <= *prefix);
        start..end
    }

    fn partition_point(&self, is_before: impl Fn(&[u32]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.items(middle)) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Slices of one more item whose first items are those of slice `parent`: each is made of one parent only, and has
    /// what all its parents have at most. Those that lack a parent (it was too small, or could lead to nothing) are
    /// left out and counted.
    pub(super) fn candidates(&self, parent: usize, feature_of: &[u32]) -> (Vec<Candidate>, u64) {
        let (own, own_stats) = (self.items(parent), self.stats(parent));
        let last_feature = feature_of[own[self.width - 1] as usize];
        let siblings = self.later_siblings(parent).map(|index| (self.last(index), self.stats(index)));
        let mut candidates: Vec<Candidate> = siblings
            .filter(|(item, _)| feature_of[*item as usize] != last_feature)
            .map(|(item, stats)| Candidate { item, most: own_stats.least(stats) })
            .collect();
        let made = candidates.len();
        let mut prefix = own[1..].to_vec();
        for dropped in 0..self.width - 1 {
            // All of the parent's items but one; with the candidate's item these are a parent too.
            if dropped > 0 {
                prefix[dropped - 1] = own[dropped - 1];
            }
            let mut others = self.with_prefix(&prefix).peekable();
            candidates.retain_mut(|candidate| {
                while others.next_if(|index| self.last(*index) < candidate.item).is_some() {}
                let same = others.next_if(|index| self.last(*index) == candidate.item);
                same.inspect(|index| candidate.most = candidate.most.least(self.stats(*index))).is_some()
            });
        }
        let missing = made - candidates.len();
        (candidates, missing as u64)
    }

    fn last(&self, index: usize) -> u32 {
        self.items[(index + 1) * self.width - 1]
    }
}
