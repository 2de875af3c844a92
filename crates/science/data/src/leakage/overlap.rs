//! Rows, groups and timestamps on both sides of a split.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use trackway_tables::limits::EXAMPLES_MAX;
use trackway_tables::merge::merge_option;
use trackway_tables::pass::Pass;
use trackway_tables::read::{Chunk, Coverage, Place};

use super::columns::{Columns, Places, RowKeys};
use super::duplicates::{DuplicateCounts, Duplicates, keys_of};
use crate::values::hashed::{AlreadyHashed, Keys};
use crate::values::identifier::are_few;
use crate::values::sampled::{ExactNumber, keys};

/// What both sides have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// Rows on both sides.
    pub rows: RowOverlap,
    /// Groups on both sides; `None` without a group column.
    pub groups: Option<GroupOverlap>,
    /// Timestamps on both sides; `None` without a time column, or if it is neither a timestamp nor a number.
    pub time: Option<TimeOverlap>,
    /// Columns that could not be compared, with the reason.
    pub not_compared: Vec<String>,
    /// What was read of the training side.
    pub train: Coverage,
    /// What was read of the test side.
    pub test: Coverage,
}

/// Rows of the test side that the training side holds too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowOverlap {
    /// Rows of the test side.
    pub test_rows: u64,
    /// Those whose features are in the training side.
    pub shared_rows: u64,
    /// Those of them whose label is the same there at least once. Equals `shared_rows` without a label.
    pub shared_with_label: u64,
    /// Equal rows (by features) within the training side: with a random split of such data, about this fraction of the
    /// test rows is expected to have a copy among the training rows.
    pub train_duplicates: Duplicates,
    /// Equal rows within the test side.
    pub test_duplicates: Duplicates,
    /// Identifiers, which did not count.
    pub without: Vec<String>,
    /// The first shared rows, in the order of the test side.
    pub examples: Vec<SharedRow>,
}

/// A row on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedRow {
    /// Where on the test side.
    pub test: Place,
    /// Its first place on the training side.
    pub train: Place,
    /// Whether the labels agree in at least one place.
    pub same_label: bool,
}

/// Groups on both sides. Rows without a group count to none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupOverlap {
    /// Groups of the test side.
    pub test_groups: u64,
    /// Those that the training side has too.
    pub shared_groups: u64,
    /// Rows of the test side in these.
    pub test_rows_in_shared: u64,
}

/// Rows of the test side from before the training side's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeOverlap {
    /// The last timestamp of the training side: microseconds since 1970, or the value of a number.
    pub train_last: f64,
    /// The first timestamp of the test side.
    pub test_first: f64,
    /// Test rows at or before `train_last`: equal timestamps count.
    pub test_rows_not_after: u64,
    /// Those of them exactly at `train_last`.
    pub test_rows_equal: u64,
    /// Test rows with a timestamp.
    pub test_rows_timed: u64,
}

/// Where fewer of the training rows are distinct by the other columns, equality without identifiers means nothing.
const DISTINCT_SHARE_MIN: f64 = 0.5;

impl Overlap {
    pub(super) fn of(
        seen: &TestRows,
        met: &OverlapMatches<'_>,
        columns: &Columns,
        [train, test]: [Coverage; 2],
    ) -> Self {
        Self {
            rows: seen.rows_shared(met, columns),
            groups: columns.group.as_ref().map(|_| seen.groups_shared(met)),
            time: seen.time_shared(met),
            not_compared: columns.not_compared.clone(),
            train,
            test,
        }
    }
}

/// Fingerprints of the test side's rows.
#[derive(Default)]
struct SeenRows {
    keys: RowKeys,
    duplicates: DuplicateCounts,
}

impl SeenRows {
    fn observe(&mut self, rows: RowKeys, labels: &[u64]) {
        self.duplicates.observe(&rows.features, labels);
        self.keys.features.extend(rows.features);
        self.keys.with_label.extend(rows.with_label);
    }

    fn merge(&mut self, later: Self) {
        self.duplicates.merge(later.duplicates);
        self.keys.features.extend(later.keys.features);
        self.keys.with_label.extend(later.keys.with_label);
    }

    fn shared(&self, met: &MetRows, places: &[Place]) -> RowOverlap {
        let mut found = RowOverlap {
            test_rows: self.keys.features.len() as u64,
            shared_rows: 0,
            shared_with_label: 0,
            train_duplicates: met.duplicates.duplicates(),
            test_duplicates: self.duplicates.duplicates(),
            without: Vec::new(),
            examples: Vec::new(),
        };
        for (row, features) in self.keys.features.iter().enumerate() {
            let Some(train) = met.features.get(features) else { continue };
            let same_label = met.with_label.contains(&self.keys.with_label[row]);
            found.shared_rows += 1;
            found.shared_with_label += u64::from(same_label);
            if found.examples.len() < EXAMPLES_MAX {
                found.examples.push(SharedRow { test: places[row], train: *train, same_label });
            }
        }
        found
    }
}

/// All of the test side.
pub(super) struct TestRows {
    places: Places,
    rows: SeenRows,
    without_identifiers: Option<SeenRows>,
    groups: Vec<u64>,
    moments: Vec<ExactNumber>,
    row_places: Vec<Place>,
}

impl TestRows {
    pub(super) fn new(places: Places) -> Self {
        let without_identifiers = places.without_identifiers.as_ref().map(|_| SeenRows::default());
        let (rows, groups, moments, row_places) = Default::default();
        Self { places, rows, without_identifiers, groups, moments, row_places }
    }

    /// Rows on both sides: by all columns that count, or without identifiers if rows are distinct by the others.
    fn rows_shared(&self, met: &OverlapMatches<'_>, columns: &Columns) -> RowOverlap {
        if self.places.compared.is_empty() && !columns.ignored.is_empty() {
            let nothing = SeenRows { keys: RowKeys::default(), duplicates: DuplicateCounts::default() };
            return RowOverlap {
                test_rows: self.row_places.len() as u64,
                ..nothing.shared(&MetRows::default(), &[])
            };
        }
        if let (Some(seen), Some(met)) = (&self.without_identifiers, &met.without_identifiers) {
            let found = seen.shared(met, &self.row_places);
            let rows = found.train_duplicates.rows;
            if found.train_duplicates.surplus_rows as f64 <= rows as f64 * (1.0 - DISTINCT_SHARE_MIN) {
                return RowOverlap { without: columns.identifiers.clone(), ..found };
            }
        }
        self.rows.shared(&met.rows, &self.row_places)
    }

    fn groups_shared(&self, met: &OverlapMatches<'_>) -> GroupOverlap {
        let mut groups = keys_of(&self.groups);
        groups.remove(&0);
        GroupOverlap {
            test_groups: groups.len() as u64,
            shared_groups: met.groups.len() as u64,
            test_rows_in_shared: self.groups.iter().filter(|group| met.groups.contains(group)).count() as u64,
        }
    }

    fn time_shared(&self, met: &OverlapMatches<'_>) -> Option<TimeOverlap> {
        let timed = || self.moments.iter().copied().filter(|moment| !moment.nearest.is_nan());
        let earlier = |one: ExactNumber, other: ExactNumber| if other < one { other } else { one };
        let (train_last, test_first) = (met.last_moment?, timed().reduce(earlier)?);
        let count =
            |holds: &dyn Fn(ExactNumber) -> bool| timed().filter(|moment| holds(*moment)).count() as u64;
        Some(TimeOverlap {
            train_last: train_last.nearest,
            test_first: test_first.nearest,
            test_rows_not_after: count(&|moment| moment <= train_last),
            test_rows_equal: count(&|moment| moment == train_last),
            test_rows_timed: count(&|_| true),
        })
    }
}

impl Pass for TestRows {
    fn observe(&mut self, chunk: &Chunk) {
        let read = self.places.read(chunk);
        self.rows.observe(read.rows, &read.labels);
        if let (Some(seen), Some(rows)) = (&mut self.without_identifiers, read.without_identifiers) {
            seen.observe(rows, &read.labels);
        }
        self.groups.extend(read.groups);
        self.moments.extend(read.moments);
        self.row_places.extend((0..chunk.batch.num_rows()).map(|row| chunk.place(row)));
    }

    fn merge(&mut self, later: Self) {
        self.rows.merge(later.rows);
        merge_option(&mut self.without_identifiers, later.without_identifiers, SeenRows::merge);
        self.groups.extend(later.groups);
        self.moments.extend(later.moments);
        self.row_places.extend(later.row_places);
    }
}

/// The later one of two moments.
fn later_of(one: ExactNumber, other: ExactNumber) -> ExactNumber {
    if other > one { other } else { one }
}

/// What the training side is looked up in.
pub(super) struct Lookup {
    rows: LookupRows,
    without_identifiers: Option<LookupRows>,
    groups: Keys,
}

struct LookupRows {
    features: Keys,
    with_label: Keys,
}

impl LookupRows {
    fn of(seen: &SeenRows) -> Self {
        Self { features: keys_of(&seen.keys.features), with_label: keys_of(&seen.keys.with_label) }
    }
}

impl Lookup {
    pub(super) fn of(seen: &TestRows) -> Self {
        Self {
            rows: LookupRows::of(&seen.rows),
            without_identifiers: seen.without_identifiers.as_ref().map(LookupRows::of),
            groups: keys_of(&seen.groups),
        }
    }
}

/// Rows of the training side that the test side has too.
#[derive(Default)]
struct MetRows {
    /// With the first place of each.
    features: HashMap<u64, Place, AlreadyHashed>,
    with_label: Keys,
    duplicates: DuplicateCounts,
}

impl MetRows {
    fn observe(&mut self, rows: &RowKeys, labels: &[u64], lookup: &LookupRows, chunk: &Chunk) {
        self.duplicates.observe(&rows.features, labels);
        for (row, features) in rows.features.iter().enumerate() {
            if lookup.features.contains(features) {
                self.features.entry(*features).or_insert_with(|| chunk.place(row));
                if lookup.with_label.contains(&rows.with_label[row]) {
                    self.with_label.insert(rows.with_label[row]);
                }
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.duplicates.merge(later.duplicates);
        for (features, place) in later.features {
            self.features.entry(features).or_insert(place);
        }
        self.with_label.extend(later.with_label);
    }
}

/// What the training side has of the test side.
pub(super) struct OverlapMatches<'l> {
    places: Places,
    lookup: &'l Lookup,
    rows: MetRows,
    without_identifiers: Option<MetRows>,
    /// How often the values of each identifier repeat.
    identifiers: Vec<DuplicateCounts>,
    groups: Keys,
    last_moment: Option<ExactNumber>,
}

impl<'l> OverlapMatches<'l> {
    pub(super) fn new(places: Places, lookup: &'l Lookup) -> Self {
        let without_identifiers = places.without_identifiers.as_ref().map(|_| MetRows::default());
        let identifiers = vec![DuplicateCounts::default(); places.identifiers.len()];
        let (rows, groups) = Default::default();
        Self { places, lookup, rows, without_identifiers, identifiers, groups, last_moment: None }
    }

    /// Of the columns that were taken for identifiers, those that are none: their values repeat further on.
    pub(super) fn refuted(&self, columns: &Columns) -> Vec<String> {
        let repeats = |(_, counts): &(&String, &DuplicateCounts)| {
            let found = counts.duplicates();
            !are_few(found.surplus_rows, found.rows)
        };
        let refuted = columns.identifiers.iter().zip(&self.identifiers).filter(repeats);
        refuted.map(|(name, _)| name.clone()).collect()
    }
}

impl Pass for OverlapMatches<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        let read = self.places.read(chunk);
        self.rows.observe(&read.rows, &read.labels, &self.lookup.rows, chunk);
        if let (Some(met), Some(rows), Some(lookup)) =
            (&mut self.without_identifiers, &read.without_identifiers, &self.lookup.without_identifiers)
        {
            met.observe(rows, &read.labels, lookup, chunk);
        }
        for (counts, index) in self.identifiers.iter_mut().zip(&self.places.identifiers) {
            counts.observe(&keys(chunk.batch.column(*index)), &[]);
        }
        let shared = read.groups.iter().filter(|group| **group != 0 && self.lookup.groups.contains(*group));
        self.groups.extend(shared);
        let moments = read.moments.into_iter().filter(|moment| !moment.nearest.is_nan());
        self.last_moment = moments.chain(self.last_moment).reduce(later_of);
    }

    fn merge(&mut self, later: Self) {
        self.rows.merge(later.rows);
        merge_option(&mut self.without_identifiers, later.without_identifiers, MetRows::merge);
        self.identifiers.iter_mut().zip(later.identifiers).for_each(|(known, more)| known.merge(more));
        self.groups.extend(later.groups);
        self.last_moment = later.last_moment.into_iter().chain(self.last_moment).reduce(later_of);
    }
}
