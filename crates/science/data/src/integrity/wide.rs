//! Facts of tables of very many columns, in bounded memory: the columns are read in groups, and of each row a fingerprint is
//! kept until all groups were read.

use std::sync::{Arc, Mutex, PoisonError};

use trackway_tables::DataError;
use trackway_tables::merge::CountedExamples;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::profile::Sampling;
use trackway_tables::profile::wide::{GroupObserver, scan_beside};
use trackway_tables::read::{Chunk, Place, Source};

use super::facts::{ColumnFacts, RowColumns, TableFacts, Thinnings, marks};
use super::groups::Grouping;
use super::repeats::{RowCounts, RowKinds, Thinning};
use super::{ColumnRoles, TableReading};
use crate::values::hashed::scrambled;
use crate::values::rows::RowHashes;

/// The most rows of which a fingerprint is kept. Of longer tables, and of text files, whose rows are not counted
/// beforehand, all columns are read at the same time.
const ROWS_MAX: u64 = 2 << 20;

/// Rows one after the other in a file.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Rows before it.
    before: usize,
    first: Place,
}

/// What is kept of each row while groups of columns are read. The order of the columns changes nothing.
#[derive(Debug, Default)]
struct Rows {
    /// Fingerprints without the label.
    features: Vec<u64>,
    /// The same without identifiers; empty without any.
    without_identifiers: Vec<u64>,
    /// Of the label; empty where it is none of the columns.
    label: Vec<u64>,
    /// Whether a column has a value there.
    filled: Vec<bool>,
    stretches: Vec<Stretch>,
}

impl Rows {
    fn observe(&mut self, chunk: &Chunk) {
        let begin = self.features.len();
        for row in 0..chunk.batch.num_rows() {
            let place = chunk.place(row);
            let continues = self.stretches.last().is_some_and(|last| {
                last.first.file == place.file
                    && last.first.row + (begin + row - last.before) as u64 == place.row
            });
            if !continues {
                self.stretches.push(Stretch { before: begin + row, first: place });
            }
        }
        self.features.resize(begin + chunk.batch.num_rows(), 0);
        self.filled.resize(begin + chunk.batch.num_rows(), false);
        for array in chunk.batch.columns() {
            let filled = &mut self.filled[begin..];
            match array.logical_nulls() {
                None => filled.fill(true),
                Some(nulls) => filled.iter_mut().enumerate().for_each(|(row, it)| *it |= nulls.is_valid(row)),
            }
        }
    }

    fn append(&mut self, later: Self) {
        let before = self.features.len();
        let moved = later.stretches.into_iter().map(|it| Stretch { before: before + it.before, ..it });
        self.stretches.extend(moved);
        self.features.extend(later.features);
        self.without_identifiers.extend(later.without_identifiers);
        self.label.extend(later.label);
        self.filled.extend(later.filled);
    }

    /// Adds other columns of the same rows.
    fn add(&mut self, columns: Self) {
        if self.features.is_empty() {
            *self = columns;
            return;
        }
        let sums = self.features.iter_mut().zip(columns.features);
        sums.for_each(|(sum, more)| *sum = sum.wrapping_add(more));
        let sums = self.without_identifiers.iter_mut().zip(columns.without_identifiers);
        sums.for_each(|(sum, more)| *sum = sum.wrapping_add(more));
        self.filled.iter_mut().zip(columns.filled).for_each(|(known, more)| *known |= more);
        if self.label.is_empty() {
            self.label = columns.label;
        }
    }

    fn place(&self, row: usize) -> Place {
        let index = self.stretches.partition_point(|it| it.before <= row) - 1;
        let Stretch { before, first } = self.stretches[index];
        Place { row: first.row + (row - before) as u64, ..first }
    }

    fn counts(&self, keys: &[u64]) -> RowCounts {
        let mut counts = RowCounts::new(&Thinning::default());
        counts.observe(keys, |row| self.place(row));
        counts
    }

    fn kinds(&self, features: &[u64], label: Option<usize>, columns: &RowColumns) -> RowKinds {
        if columns.are_none() {
            return RowKinds::new(&Thinning::default(), label.is_some());
        }
        let both = features.iter().zip(&self.label);
        let with_label: Vec<u64> = both.map(|(features, label)| features.wrapping_add(*label)).collect();
        RowKinds { by_features: self.counts(features), with_label: label.map(|_| self.counts(&with_label)) }
    }
}

/// The pass of one group.
struct GroupFacts {
    /// Of the whole table.
    indexes: Vec<usize>,
    label: Option<usize>,
    row_columns: Arc<RowColumns>,
    columns: Vec<ColumnFacts>,
    rows: Rows,
}

impl Pass for GroupFacts {
    fn observe(&mut self, chunk: &Chunk) {
        let row_marks = marks(chunk);
        let begin = self.rows.features.len();
        self.rows.observe(chunk);
        if self.row_columns.without_identifiers.is_some() {
            self.rows.without_identifiers.resize(self.rows.features.len(), 0);
        }
        let columns = self.columns.iter_mut().zip(&self.indexes).zip(chunk.batch.columns());
        for ((facts, index), array) in columns {
            let keys = RowHashes::of_column(array);
            facts.observe(array, &keys, chunk, &row_marks);
            let seed = scrambled(*index as u64);
            let mixed = || keys.iter().map(|key| scrambled(key ^ seed));
            let add = |sums: &mut [u64]| {
                sums.iter_mut().zip(mixed()).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
            };
            if self.label == Some(*index) {
                self.rows.label.extend(mixed());
            }
            if self.row_columns.all[*index] {
                add(&mut self.rows.features[begin..]);
            }
            if self.row_columns.without_identifiers.as_ref().is_some_and(|counts| counts[*index]) {
                add(&mut self.rows.without_identifiers[begin..]);
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.columns.iter_mut().zip(later.columns).for_each(|(facts, later)| facts.merge(later));
        self.rows.append(later.rows);
    }
}

/// Collects the groups.
struct Gathering {
    label: Option<usize>,
    row_columns: Arc<RowColumns>,
    /// Columns that may name rows.
    identifiers: Vec<usize>,
    rows: Mutex<Rows>,
}

impl GroupObserver for Gathering {
    type Pass = GroupFacts;
    type GroupResult = Vec<ColumnFacts>;

    fn begin(&self, columns: &[usize], _: &Source) -> GroupFacts {
        GroupFacts {
            indexes: columns.to_vec(),
            label: self.label,
            row_columns: Arc::clone(&self.row_columns),
            columns: columns.iter().map(|index| ColumnFacts::new(self.identifiers.contains(index))).collect(),
            rows: Rows::default(),
        }
    }

    fn end(&self, mut read: GroupFacts) -> Vec<ColumnFacts> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).add(read.rows);
        read.columns.iter_mut().for_each(ColumnFacts::close);
        read.columns
    }
}

/// Reads a table of very many columns.
pub(super) fn gather(
    source: &mut Source,
    reading: ColumnRoles<'_>,
    watch: &PassObserver<'_>,
) -> Result<TableReading, DataError> {
    if source.rows().is_none_or(|rows| rows > ROWS_MAX) {
        // One after the other, facts and profile take the memory of the larger one.
        let thinned = Thinnings::default();
        let make = |source: &Source| TableFacts::new(source, reading, &thinned);
        let (facts, coverage) = scan(source, &make, &PassObserver { units_in_flight: 1, ..*watch })?;
        return Ok((scan_beside(source, (None, Sampling::None), &(), watch)?.0, facts, coverage));
    }
    let find = |name: &str| source.columns().iter().position(|column| column.name == name);
    let label = reading.label().and_then(find);
    let row_columns = Arc::new(RowColumns::of(source, reading));
    let identifiers = reading.identifiers.iter().filter_map(|name| find(name)).collect();
    let gathering =
        Gathering { label, row_columns: Arc::clone(&row_columns), identifiers, rows: Mutex::default() };
    let (profiler, found, coverage) = scan_beside(source, (None, Sampling::None), &gathering, watch)?;
    let rows = gathering.rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut empty = CountedExamples::default();
    let unfilled = (0..rows.filled.len()).filter(|row| !rows.filled[*row]);
    unfilled.for_each(|row| empty.add(1, || rows.place(row)));
    let facts = TableFacts {
        columns: found.into_iter().flatten().collect(),
        empty,
        groupings: groupings(source, reading, watch)?,
        label,
        rows: rows.kinds(&rows.features, label, &row_columns),
        without_identifiers: row_columns
            .without_identifiers
            .as_ref()
            .map(|_| rows.kinds(&rows.without_identifiers, label, &row_columns)),
        row_columns: (*row_columns).clone(),
    };
    Ok((profiler, facts, coverage))
}

/// Groups are of few columns, which are read by themselves.
fn groupings(
    source: &Source,
    reading: ColumnRoles<'_>,
    watch: &PassObserver<'_>,
) -> Result<Vec<Grouping>, DataError> {
    let group_by = &reading.roles.group_by;
    if group_by.is_empty() {
        return Ok(Vec::new());
    }
    let names = group_by.iter().map(String::as_str).chain(reading.label());
    let mut columns = names.map(|name| source.index_of(name, "group")).collect::<Result<Vec<_>, _>>()?;
    columns.sort_unstable();
    columns.dedup();
    let thinned = Thinnings::default();
    let reading = ColumnRoles { identifiers: &[], ..reading };
    let make = |source: &Source| TableFacts::new(source, reading, &thinned);
    let (facts, _) = scan(&mut source.only(&columns), &make, watch)?;
    let mut groupings = facts.groupings;
    groupings.iter_mut().flat_map(|it| &mut it.columns).for_each(|index| *index = columns[*index]);
    Ok(groupings)
}
