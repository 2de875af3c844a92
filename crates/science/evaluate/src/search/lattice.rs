//! The search: level by level, from slices of one predicate to slices of many, with everything left out that cannot
//! lead to one of the best (Sagadeeva and Boehm 2021).
//!
//! Slices of a level are in lexicographic order, so that each candidate is made once, from the one parent that has all
//! but its last item, and all its other parents are found beside each other. Nothing is kept of a slice but its
//! figures: the rows of a parent are computed again, once for all of its children, so that memory does not grow with
//! rows times slices. Parents that may lead furthest come first. They are taken in blocks of fixed sizes, and what must
//! be reached changes only between blocks, so that the answer and the account do not depend on the number of threads.

use std::sync::atomic::Ordering;

use rayon::prelude::*;
use trackway_results::search::LevelAccount;

use super::best::{Bar, BestSlices, Others, ScoredSlice};
use super::level::{Candidate, Level};
use super::score::{Scoring, Stats};
use super::table::{Rows, Table};
use super::{SearchError, SearchObserver};

/// The most memory that the slices of one level may take; with more the search ends, and reports it.
pub const LEVEL_BYTES_MAX: usize = 1 << 30;

/// Candidates of the first block: few, because much is left out once good slices are known.
const FIRST_BLOCK: u64 = 4 << 10;
/// Candidates of a block, at most.
const BLOCK_MAX: u64 = 1 << 20;

/// The best slices, and what was looked at for them.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) best: Vec<ScoredSlice>,
    /// Those with the same rows as one of the best, where only the first one of these counts.
    pub(super) others: Others,
    pub(super) levels: Vec<LevelAccount>,
    /// Whether slices of all requested numbers of predicates were searched.
    pub(super) complete: bool,
}

/// What is searched for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim {
    /// How many slices.
    pub(super) wanted: usize,
    /// Whether of slices with the same rows only the one with the fewest predicates counts.
    pub(super) is_distinct: bool,
    /// The most predicates of a slice.
    pub(super) level_max: usize,
    /// See [`LEVEL_BYTES_MAX`].
    pub(super) level_bytes_max: usize,
}

/// The best slices of the table. `known` are scores of slices that exist: anything that scores less than enough of them
/// is skipped.
pub(super) fn best_slices(
    table: &Table,
    scoring: &Scoring,
    aim: Aim,
    known: Vec<f64>,
    watch: &SearchObserver<'_>,
) -> Result<Outcome, SearchError> {
    let search = Search { table, scoring, is_distinct: aim.is_distinct, watch };
    let mut best = BestSlices::new(aim.wanted, aim.is_distinct, known);
    let mut level = search.first(&mut best);
    let items = level.len() as u64;
    let mut levels = vec![LevelAccount { level: 1, candidates: items, evaluated: items, pruned: 0 }];
    while level.width() < aim.level_max {
        let (bar, width) = (best.bar(), level.width() + 1);
        let parents = level.retained(|stats| bar.admits(scoring.bound(stats), width));
        if parents.len() == 0 {
            return Ok(Outcome::of(best, levels, true));
        }
        let keep_bytes = if width < aim.level_max { Some(aim.level_bytes_max) } else { None };
        let grown = search.grow(&parents, &mut best, keep_bytes)?;
        levels.push(grown.account);
        match grown.level {
            Some(next) => level = next,
            None => return Ok(Outcome::of(best, levels, false)),
        }
    }
    Ok(Outcome::of(best, levels, true))
}

impl Outcome {
    fn of(best: BestSlices, levels: Vec<LevelAccount>, complete: bool) -> Self {
        let (best, others) = best.into_found();
        Self { best, others, levels, complete }
    }
}

struct Search<'s> {
    table: &'s Table,
    scoring: &'s Scoring,
    is_distinct: bool,
    watch: &'s SearchObserver<'s>,
}

/// The children of one parent.
#[derive(Default)]
struct Family {
    /// The last items of those that may have children.
    kept: Vec<(u32, Stats)>,
    best: Vec<ScoredSlice>,
    candidates: u64,
    evaluated: u64,
}

struct Grown {
    /// `None` where it would take too much memory.
    level: Option<Level>,
    account: LevelAccount,
}

impl Search<'_> {
    fn first(&self, best: &mut BestSlices) -> Level {
        let items: Vec<u32> = (0..self.table.items().len() as u32).collect();
        let stats = items.par_iter().map_init(Rows::default, |rows, item| self.table.stats(&[*item], rows).0);
        let stats: Vec<Stats> = stats.collect();
        let mut everything = Rows::default();
        everything.fill(self.table, &[]);
        let mut level = Level::of_width(1);
        for (item, stats) in items.into_iter().zip(stats) {
            level.push(&[], item, stats);
            best.add(self.scored(&[], item, stats, best.bar(), &everything));
        }
        level
    }

    /// The next level; its slices are kept where they may take so many bytes.
    fn grow(
        &self,
        parents: &Level,
        best: &mut BestSlices,
        keep_bytes: Option<usize>,
    ) -> Result<Grown, SearchError> {
        let width = parents.width() + 1;
        let mut order: Vec<(f64, usize)> =
            (0..parents.len()).map(|parent| (self.scoring.bound(parents.stats(parent)), parent)).collect();
        order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let size = |parent: usize| parents.later_siblings(parent).len() as u64;
        let total: u64 = (0..parents.len()).map(size).sum();
        let mut account = LevelAccount { level: width, candidates: 0, evaluated: 0, pruned: 0 };
        let mut kept: Vec<Vec<(u32, Stats)>> = vec![Vec::new(); parents.len()];
        let (mut done, mut kept_bytes, mut block_size) = (0, 0, FIRST_BLOCK);
        let mut waiting = order.as_slice();
        while !waiting.is_empty() {
            let block;
            (block, waiting) = waiting.split_at(block_end(waiting, block_size, &size));
            block_size = (block_size * 2).min(BLOCK_MAX);
            let bar = best.bar();
            let families: Vec<Family> = block
                .par_iter()
                .map_init(Rows::default, |rows, (_, parent)| self.family(parents, *parent, bar, rows))
                .collect();
            if self.watch.cancelled.load(Ordering::Relaxed) {
                return Err(SearchError::Cancelled);
            }
            for ((_, parent), family) in block.iter().zip(families) {
                done += size(*parent);
                account.candidates += family.candidates;
                account.evaluated += family.evaluated;
                best.add(family.best);
                if keep_bytes.is_some() {
                    kept_bytes += family.kept.len() * (size_of::<(u32, Stats)>() + width * 4);
                    kept[*parent] = family.kept;
                }
            }
            (self.watch.progress)(width, done, total);
            if keep_bytes.is_some_and(|most| kept_bytes > most) {
                account.pruned = account.candidates - account.evaluated;
                return Ok(Grown { level: None, account });
            }
        }
        account.pruned = account.candidates - account.evaluated;
        let mut level = Level::of_width(width);
        for (parent, children) in kept.into_iter().enumerate() {
            children.into_iter().for_each(|(item, stats)| level.push(parents.items(parent), item, stats));
        }
        Ok(Grown { level: Some(level), account })
    }

    fn family(&self, parents: &Level, parent: usize, bar: Bar, rows: &mut Rows) -> Family {
        let (items, width) = (parents.items(parent), parents.width() + 1);
        // The scores known by now may be enough to skip all children.
        if self.watch.cancelled.load(Ordering::Relaxed) {
            return Family::default();
        }
        if !bar.admits(self.scoring.bound(parents.stats(parent)), width) {
            return Family { candidates: parents.later_siblings(parent).len() as u64, ..Family::default() };
        }
        let (candidates, orphans) = parents.candidates(parent, self.table.feature_of());
        let mut family = Family { candidates: candidates.len() as u64 + orphans, ..Family::default() };
        let may_be_best = |most: Stats| bar.admits(self.scoring.bound(most), width);
        let hopeful: Vec<Candidate> = candidates.into_iter().filter(|it| may_be_best(it.most)).collect();
        if hopeful.is_empty() {
            return family;
        }
        rows.fill(self.table, items);
        for Candidate { item, most } in hopeful {
            family.evaluated += 1;
            let size = self.table.size(rows, item);
            // As many rows as a parent are the parent's rows, and so for all that is within.
            let is_repeat = self.is_distinct && size.0 == most.size;
            if is_repeat || !may_be_best(Stats { size: size.0, ..most }) {
                continue;
            }
            let stats = self.table.measured(rows, item, size);
            family.best.extend(self.scored(items, item, stats, bar, rows));
            if bar.admits(self.scoring.bound(stats), width + 1) {
                family.kept.push((item, stats));
            }
        }
        family
    }

    fn scored(&self, parent: &[u32], item: u32, stats: Stats, bar: Bar, rows: &Rows) -> Option<ScoredSlice> {
        let score = self.scoring.score(f64::from(stats.size), stats.error);
        let is_wanted = stats.size >= self.scoring.min_support && bar.admits(score, parent.len() + 1);
        is_wanted.then(|| {
            let fingerprint = self.table.fingerprint(rows, item);
            ScoredSlice { score, stats, fingerprint, items: [parent, &[item]].concat() }
        })
    }
}

/// The end of a block of about so many candidates, of at least one parent.
fn block_end(parents: &[(f64, usize)], candidates: u64, size: &impl Fn(usize) -> u64) -> usize {
    let mut sum = 0;
    let enough = parents.iter().position(|(_, parent)| {
        sum += size(*parent);
        sum >= candidates
    });
    enough.map_or(parents.len(), |index| index + 1)
}
