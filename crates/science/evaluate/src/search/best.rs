//! The best slices so far, and what a slice must reach to be looked at.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::score::Stats;

/// What an earlier answer's slices may differ by because of rounding.
const FLOOR_SLACK: f64 = 1e-9;

/// A slice that was scored.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScoredSlice {
    pub(super) score: f64,
    pub(super) stats: Stats,
    /// The same for slices of the same rows.
    pub(super) fingerprint: u64,
    /// Items in ascending order.
    pub(super) items: Vec<u32>,
}

impl ScoredSlice {
    /// The higher score first; of equal ones the fewer predicates, then the earlier features.
    fn order(&self, other: &Self) -> Ordering {
        let by_width = || self.items.len().cmp(&other.items.len());
        other.score.total_cmp(&self.score).then_with(by_width).then_with(|| self.items.cmp(&other.items))
    }
}

/// What a slice must be able to score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bar {
    floor: f64,
    /// The last of the best, where there are as many as wanted: its score and how many predicates it has.
    last: Option<(f64, usize)>,
}

impl Bar {
    /// Whether a slice of so many predicates with this bound may still be among the best.
    pub(super) fn admits(&self, bound: f64, width: usize) -> bool {
        let beats =
            |(score, last_width): (f64, usize)| bound > score || (bound == score && width <= last_width);
        bound > 0.0 && bound >= self.floor && self.last.is_none_or(beats)
    }
}

/// At most so many other descriptions of the same rows are kept, those with the fewest predicates.
const OTHERS_MAX: usize = 8;

/// Slices with the same rows as one of the best, by the fingerprint of these.
#[derive(Debug, Default)]
pub(super) struct Others(HashMap<u64, BTreeSet<(usize, Vec<u32>)>>);

impl Others {
    fn add(&mut self, slice: &ScoredSlice) {
        let same = self.0.entry(slice.fingerprint).or_default();
        same.insert((slice.items.len(), slice.items.clone()));
        if same.len() > OTHERS_MAX {
            same.pop_last();
        }
    }

    /// The items of those with these rows.
    pub(super) fn of(&self, fingerprint: u64) -> impl Iterator<Item = &Vec<u32>> {
        self.0.get(&fingerprint).into_iter().flatten().map(|(_, items)| items)
    }
}

/// The `wanted` best slices: always the same ones, in whatever order they are found.
#[derive(Debug)]
pub(super) struct BestSlices {
    wanted: usize,
    /// Whether of slices with the same rows only the first one counts.
    is_distinct: bool,
    floor: f64,
    found: Vec<ScoredSlice>,
    others: Others,
}

impl BestSlices {
    /// `known` are scores of slices that exist: as many slices score at least as much.
    pub(super) fn new(wanted: usize, is_distinct: bool, mut known: Vec<f64>) -> Self {
        known.sort_by(|one, other| other.total_cmp(one));
        let floor = known.get(wanted.wrapping_sub(1)).map_or(0.0, |score| score - FLOOR_SLACK);
        Self { wanted, is_distinct, floor, found: Vec::new(), others: Others::default() }
    }

    pub(super) fn bar(&self) -> Bar {
        let last = (self.found.len() >= self.wanted).then(|| self.found.last()).flatten();
        Bar { floor: self.floor, last: last.map(|last| (last.score, last.items.len())) }
    }

    pub(super) fn add(&mut self, more: impl IntoIterator<Item = ScoredSlice>) {
        self.found.extend(more);
        self.found.sort_unstable_by(ScoredSlice::order);
        if self.is_distinct {
            let (mut seen, others) = (HashSet::new(), &mut self.others);
            self.found.retain(|slice| {
                let is_first = seen.insert(slice.fingerprint);
                if !is_first {
                    others.add(slice);
                }
                is_first
            });
        }
        self.found.truncate(self.wanted);
    }

    /// The best slices, and those with the same rows where only the first one of these counts.
    pub(super) fn into_found(self) -> (Vec<ScoredSlice>, Others) {
        (self.found, self.others)
    }
}
