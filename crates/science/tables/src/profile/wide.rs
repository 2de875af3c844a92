//! Tables of very many columns, in bounded memory: their columns are read in groups, one group after the other.
//!
//! Of Parquet each byte is still read once, because each column is stored separately; only the label is read with every
//! group. Of CSV a group is another reading of the file, so groups are as large as the memory permits.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::{Profiler, Sampling};
use crate::error::DataError;
use crate::limits::FinishedRoom;
use crate::pass::{Pass, PassObserver, affordable_readers, scan};
use crate::read::{Coverage, Layout, Source};

/// What one column of an accumulator takes at most in memory, about.
const COLUMN_BYTES: u64 = 128 << 10;

/// What accumulators, open columns and done ones may take together, about.
const PROFILE_BYTES: u64 = 384 << 20;

/// What a group may take, however many columns are done, and however few there are.
const GROUP_BYTES: std::ops::RangeInclusive<u64> = (96 << 20)..=GROUP_BYTES_MAX;

const GROUP_BYTES_MAX: u64 = 256 << 20;

/// JSON lines of more keys are read in groups of columns too.
const WIDE_COLUMNS: u64 = GROUP_BYTES_MAX / (2 * COLUMN_BYTES);

/// Whether accumulators of all columns at once may take more memory than a profile may.
#[must_use]
pub fn is_wide(source: &Source, watch: &PassObserver<'_>) -> bool {
    let units = source.layout().units.map_or(watch.units_in_flight, |units| units.min(watch.units_in_flight));
    source.columns().len() as u64 * COLUMN_BYTES * (units as u64 + 1) > PROFILE_BYTES
}

/// How the columns of a source are read.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// Indexes of the source's columns.
    groups: Vec<Vec<usize>>,
    /// Groups read at the same time.
    lanes: usize,
    units_in_flight: usize,
}

impl Plan {
    fn of(layout: &Layout, threads: usize, units_in_flight: usize) -> Self {
        let count = layout.open_bytes.len() as u64;
        let budget = PROFILE_BYTES
            .saturating_sub(count * FinishedRoom::of(count).bytes)
            .clamp(*GROUP_BYTES.start(), *GROUP_BYTES.end());
        if layout.open_bytes.iter().all(|bytes| *bytes == 0) {
            // A unit of text has few values of each of many columns. Reading a text several times costs more than
            // fewer threads do, so fewer units are in flight first.
            let cost = |units: usize| COLUMN_BYTES + COLUMN_BYTES / 2 * units as u64;
            let fits = |units: &usize| count * cost(*units) <= budget;
            let units_in_flight = (1..=units_in_flight).rev().find(fits).unwrap_or(1);
            let cost = if layout.by_column { cost(units_in_flight) } else { 0 };
            let groups = group(&layout.open_bytes, usize::MAX, budget, |_| cost);
            return Self { groups, lanes: 1, units_in_flight };
        }
        // With fewer units than threads, such as one row group, or if memory permits fewer threads with all columns
        // open, threads divide the columns.
        let affordable = affordable_readers(layout.open_bytes.iter().sum());
        let readers = layout.units.map_or(threads, |units| units.max(1).min(affordable));
        let lanes = if readers < threads { threads.div_ceil(readers) } else { 1 };
        let units_in_flight = if lanes > 1 { readers } else { units_in_flight };
        let columns_max = if layout.by_column { layout.open_bytes.len().div_ceil(lanes) } else { usize::MAX };
        let readers = threads.min(units_in_flight) as u64;
        let cost = |open| lanes as u64 * (COLUMN_BYTES * (units_in_flight as u64 + 1) + open * readers);
        let groups =
            group(
                &layout.open_bytes,
                columns_max,
                budget,
                |open| if layout.by_column { cost(open) } else { 0 },
            );
        Self { groups, lanes, units_in_flight }
    }
}

/// Columns one after the other in groups of no more than so many, whose cost is within the budget; of one column at least.
fn group(open_bytes: &[u64], columns_max: usize, budget: u64, cost: impl Fn(u64) -> u64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![Vec::new()];
    let mut spent = 0;
    for (index, bytes) in open_bytes.iter().enumerate() {
        spent += cost(*bytes);
        let length = groups.last().map_or(0, Vec::len);
        if length > 0 && (spent > budget || length >= columns_max) {
            groups.push(Vec::new());
            spent = cost(*bytes);
        }
        groups.last_mut().expect("there is one from the start").push(index);
    }
    groups
}

/// What else is gathered while the groups are read.
pub trait GroupObserver: Sync {
    /// Reads the rows of one group.
    type Pass: Pass;
    /// What is kept of a group that was read.
    type GroupResult: Send;

    /// Before the group with these columns of the whole source is read, by the types of `group`.
    fn begin(&self, columns: &[usize], group: &Source) -> Self::Pass;

    /// After it was read.
    fn end(&self, read: Self::Pass) -> Self::GroupResult;
}

/// Nothing else.
impl GroupObserver for () {
    type Pass = ();
    type GroupResult = ();

    fn begin(&self, _: &[usize], _: &Source) {}

    fn end(&self, (): Self::Pass) {}
}

/// Profiles a source, and gathers more in the same reading: what was found of each group, in the order of the columns.
///
/// # Errors
/// As [`crate::pass::scan`].
pub fn scan_beside<B: GroupObserver>(
    source: &mut Source,
    (label, sampling): (Option<&str>, Sampling),
    beside: &B,
    watch: &PassObserver<'_>,
) -> Result<(Profiler, Vec<B::GroupResult>, Coverage), DataError> {
    let threads = rayon::current_num_threads();
    let mut layout = source.layout();
    let mut unknown_keys = None;
    if !layout.by_column && source.columns().len() as u64 > WIDE_COLUMNS {
        // In groups the source's keys are those that are known, so all of them must be known first.
        let ((), coverage) = scan(source, &|_| (), watch)?;
        unknown_keys = Some(coverage.unknown_keys);
        layout = Layout { by_column: true, ..layout };
    }
    let plan = Plan::of(&layout, threads, watch.units_in_flight);
    let watch = PassObserver { units_in_flight: plan.units_in_flight, ..*watch };
    if let [columns] = &plan.groups[..] {
        let make = |source: &Source| (Profiler::with(source, label, sampling), beside.begin(columns, source));
        let ((profiler, read), coverage) = scan(source, &make, &watch)?;
        return Ok((profiler, vec![beside.end(read)], coverage));
    }
    let label_index = label.map(|label| source.index_of(label, "label")).transpose()?;
    let done = AtomicU64::new(0);
    let groups = Groups { source, label, sampling, label_index, beside, watch: &watch, plan: &plan, done };
    let scan = |columns: &Vec<usize>| groups.scan(columns);
    let results: Vec<_> = match plan.lanes {
        1 => plan.groups.iter().map(scan).collect::<Result<_, _>>()?,
        _ => plan.groups.par_iter().map(scan).collect::<Result<_, _>>()?,
    };
    let (results, found): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let (profiler, mut coverage) = assemble(source, label, &plan, results);
    // Each group counts only its keys.
    coverage.unknown_keys = unknown_keys.unwrap_or(coverage.unknown_keys);
    source.remember(&coverage);
    Ok((profiler, found, coverage))
}

/// What came of one group: the source as it was read, and what was found.
type Scanned = (Source, Profiler, Coverage);

struct Groups<'g, B> {
    source: &'g Source,
    label: Option<&'g str>,
    sampling: Sampling,
    label_index: Option<usize>,
    beside: &'g B,
    watch: &'g PassObserver<'g>,
    plan: &'g Plan,
    /// Bytes of all groups.
    done: AtomicU64,
}

impl<B: GroupObserver> Groups<'_, B> {
    fn scan(&self, columns: &[usize]) -> Result<(Scanned, B::GroupResult), DataError> {
        let with_label = self.label_index.filter(|label| !columns.contains(label));
        let read: Vec<usize> = columns.iter().copied().chain(with_label).collect();
        let mut source = self.source.only(&read);
        let last = AtomicU64::new(0);
        let progress = |done_bytes: u64, total_bytes: u64| {
            let more = done_bytes.saturating_sub(last.fetch_max(done_bytes, Ordering::Relaxed));
            let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
            (self.watch.progress)((done / self.plan.groups.len() as u64).min(total_bytes), total_bytes);
        };
        let watch = PassObserver { progress: &progress, ..*self.watch };
        let make = |source: &Source| {
            (Profiler::with(source, self.label, self.sampling), self.beside.begin(columns, source))
        };
        let ((mut profiler, read), mut coverage) = scan(&mut source, &make, &watch)?;
        profiler.columns.truncate(columns.len());
        coverage.columns.truncate(columns.len());
        let room = FinishedRoom::of(self.source.columns().len() as u64);
        profiler.columns.iter_mut().for_each(|column| column.finish(room));
        Ok(((source, profiler, coverage), self.beside.end(read)))
    }
}

/// Puts the columns together again, in their order.
fn assemble(
    source: &mut Source,
    label: Option<&str>,
    plan: &Plan,
    results: Vec<Scanned>,
) -> (Profiler, Coverage) {
    let mut whole: Option<(Profiler, Coverage)> = None;
    for (columns, (scanned, profiler, coverage)) in plan.groups.iter().zip(results) {
        source.adopt(columns, &scanned);
        match &mut whole {
            None => whole = Some((profiler, coverage)),
            Some((first, account)) => {
                first.columns.extend(profiler.columns);
                account.columns.extend(coverage.columns);
            }
        }
    }
    let (mut profiler, coverage) = whole.expect("there is at least one group");
    profiler.label = label.and_then(|name| Some((source.index_of(name, "label").ok()?, name.to_owned())));
    (profiler, coverage)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the plan keeps to the memory at any width: a narrow table is read in one go, a wide Parquet file in
    /// groups and, where it has few units, several groups at a time; a wide text in few readings.
    #[test]
    fn plans_keep_to_the_memory() {
        let layout = |count: usize, open: u64, units: Option<usize>, by_column: bool| Layout {
            open_bytes: vec![open; count],
            units,
            by_column,
        };
        let narrow = Plan::of(&layout(12, 2 << 20, Some(20), true), 2, 4);
        assert_eq!((narrow.groups.len(), narrow.lanes, narrow.units_in_flight), (1, 1, 4));
        for (threads, count) in [(2, 1_000), (16, 1_000), (2, 5_000)] {
            let wide = Plan::of(&layout(count, 2 << 20, Some(1), true), threads, 2 * threads);
            assert_eq!(wide.lanes, threads);
            let largest = wide.groups.iter().map(Vec::len).max().unwrap();
            let bytes = largest * threads * ((2 << 20) + 2 * (COLUMN_BYTES as usize));
            assert!(largest == 1 || bytes <= 256 << 20, "{threads} threads, {count} columns: {bytes}");
            assert_eq!(wide.groups.concat(), (0..count).collect::<Vec<_>>());
        }
        // One row group keeps all threads busy; three row groups need two lanes for that, and so do columns of which
        // memory lets only one thread have all open.
        for (units, threads, groups) in [(1, 2, 2), (1, 16, 12), (3, 4, 2), (4, 4, 1)] {
            let plan = Plan::of(&layout(12, 1 << 20, Some(units), true), threads, 2 * threads);
            assert_eq!(plan.groups.len(), groups, "{units} units, {threads} threads");
        }
        let plan = Plan::of(&layout(50, 2 << 20, Some(4), true), 2, 4);
        assert_eq!((plan.groups.len(), plan.lanes, plan.units_in_flight), (2, 2, 1));
        let text = Plan::of(&layout(1_000, 0, None, true), 2, 4);
        assert_eq!((text.groups.len(), text.units_in_flight), (1, 2));
        assert_eq!(Plan::of(&layout(5_000, 0, None, false), 2, 4).groups.len(), 1);
    }
}
