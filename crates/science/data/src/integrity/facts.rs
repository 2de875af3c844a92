//! Facts beyond a profile, gathered in the same reading.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use trackway_tables::merge::{CountedExamples, merge_option};
use trackway_tables::pass::Pass;
use trackway_tables::personal::PersonalCounts;
use trackway_tables::read::{Chunk, Place, Source, Texts};
use trackway_tables::types::{Form, form_of};

use super::groups::{Grouping, Labels};
use super::placeholders::Placeholders;
use super::repeats::{RowKinds, Thinning};
use super::zeros::ZeroRows;
use super::{ColumnRoles, masked};
use crate::leakage::DuplicateCounts;
use crate::values::hashed::{AlreadyHashed, scrambled};
use crate::values::rows::RowHashes;

/// The most values of a column whose rows are fingerprinted value by value, to find recodings of it.
const RECODED_VALUES_MAX: usize = 256;

/// Whole numbers below this are neither card nor account numbers, nor national ones.
const PERSONAL_NUMBER_MIN: i64 = 10_000_000;

/// What a text reads as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Number,
    Truth,
    Time,
    Word,
}

impl TextKind {
    pub(super) const ALL: [Self; 4] = [Self::Number, Self::Truth, Self::Time, Self::Word];

    fn of(text: &str) -> Self {
        match form_of(text.as_bytes().trim_ascii()) {
            form if form.is_numeric() => Self::Number,
            form if form.is_date() => Self::Time,
            Form::Bool => Self::Truth,
            _ => Self::Word,
        }
    }

    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Number => "numbers",
            Self::Truth => "booleans",
            Self::Time => "dates",
            Self::Word => "texts",
        }
    }
}

/// What is known of one column.
#[derive(Debug, Clone, Default)]
pub(super) struct ColumnFacts {
    /// Equal for columns with equal cells in every row.
    pub(super) fingerprint: u64,
    /// For each value a fingerprint of its rows; `None` for too many values.
    partition: Option<HashMap<u64, u64, AlreadyHashed>>,
    /// What is left of it once all rows were read.
    recoding: Option<(usize, u64)>,
    /// Strings by [`TextKind`].
    pub(super) kinds: [CountedExamples<(Place, String)>; 4],
    /// Rows that are NaN, and infinite ones.
    pub(super) nan: CountedExamples<Place>,
    pub(super) infinite: CountedExamples<Place>,
    pub(super) placeholders: Placeholders,
    pub(super) personal: PersonalCounts,
    /// Of numbers.
    pub(super) zeros: ZeroRows,
    /// How often values repeat; of columns that may name rows.
    pub(super) repeated_values: Option<DuplicateCounts>,
}

impl ColumnFacts {
    pub(super) fn new(may_name_rows: bool) -> Self {
        let repeated_values = may_name_rows.then(DuplicateCounts::default);
        Self { partition: Some(HashMap::default()), repeated_values, ..Self::default() }
    }

    /// Equal for columns whose values part the rows alike, whatever they are called: each is the other recoded. `None`
    /// for columns with too many values, or a single one.
    pub(super) fn recoding(&self) -> Option<(usize, u64)> {
        let Some(partition) = &self.partition else { return self.recoding };
        if partition.len() < 2 {
            return None;
        }
        // The order of values must not matter.
        let sum = partition.values().fold(0_u64, |sum, rows| sum.wrapping_add(scrambled(*rows)));
        Some((partition.len(), sum))
    }

    /// Keeps only what is needed once all rows were read.
    pub(super) fn close(&mut self) {
        self.recoding = self.recoding();
        self.partition = None;
    }

    /// Takes the values of more rows. `keys` are fingerprints of the array, `row_marks` [`marks`] of the chunk.
    pub(super) fn observe(&mut self, array: &ArrayRef, keys: &[u64], chunk: &Chunk, row_marks: &[u64]) {
        self.fingerprint(keys, row_marks);
        if let Some(counts) = &mut self.repeated_values {
            counts.observe(keys, &[]);
        }
        match array.data_type() {
            DataType::Int64 => {
                let values = array.as_primitive::<Int64Type>();
                self.placeholders.observe_numbers(values.iter().flatten().map(|value| value as f64));
                self.zeros.observe(values.iter().map(|value| value.map(|value| value as f64)), row_marks);
                for value in values.iter().flatten().filter(|value| *value >= PERSONAL_NUMBER_MIN) {
                    self.personal.observe(&value.to_string(), 1);
                }
            }
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>();
                self.placeholders.observe_numbers(values.iter().flatten().map(|value| value as f64));
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>();
                self.placeholders.observe_numbers(values.iter().flatten());
                self.zeros.observe(values.iter(), row_marks);
                let all_finite = values.values().iter().fold(true, |all, value| all & value.is_finite());
                if !all_finite {
                    self.not_finite(values, chunk);
                }
            }
            DataType::Timestamp(_, _) => {
                let values = array.as_primitive::<TimestampMicrosecondType>();
                self.placeholders.observe_times(values.iter().flatten());
            }
            _ => {
                if let Some(texts) = Texts::of(array) {
                    self.texts(&texts, array.len(), chunk);
                }
            }
        }
    }

    fn fingerprint(&mut self, keys: &[u64], row_marks: &[u64]) {
        for (key, mark) in keys.iter().zip(row_marks) {
            self.fingerprint = self.fingerprint.wrapping_add(key.wrapping_mul(*mark));
        }
        if let Some(partition) = &mut self.partition {
            for (key, mark) in keys.iter().zip(row_marks) {
                let rows = partition.entry(*key).or_default();
                *rows = rows.wrapping_add(*mark);
            }
        }
        self.limit();
    }

    fn limit(&mut self) {
        if self.partition.as_ref().is_some_and(|partition| partition.len() > RECODED_VALUES_MAX) {
            self.partition = None;
        }
    }

    fn not_finite(&mut self, values: &arrow::array::PrimitiveArray<Float64Type>, chunk: &Chunk) {
        for (row, value) in values.iter().enumerate() {
            let found = match value {
                Some(value) if value.is_nan() => &mut self.nan,
                Some(value) if value.is_infinite() => &mut self.infinite,
                _ => continue,
            };
            found.add(1, || chunk.place(row));
        }
    }

    fn texts(&mut self, texts: &Texts<'_>, rows: usize, chunk: &Chunk) {
        match texts {
            Texts::Plain(_) => {
                for row in 0..rows {
                    if let Some(text) = texts.get(row) {
                        self.text(text, 1, || chunk.place(row));
                    }
                }
            }
            Texts::Dictionary(dictionary, values) => {
                let mut seen = vec![(0_u64, 0_usize); values.len()];
                for (row, key) in dictionary.keys().iter().enumerate() {
                    let Some(key) = key else { continue };
                    let (count, first) = &mut seen[key as usize];
                    *first = if *count == 0 { row } else { *first };
                    *count += 1;
                }
                let used =
                    seen.iter().enumerate().filter(|(key, (count, _))| *count > 0 && values.is_valid(*key));
                for (key, (count, first)) in used {
                    self.text(values.value(key), *count, || chunk.place(*first));
                }
            }
        }
    }

    fn text(&mut self, text: &str, times: u64, place: impl FnOnce() -> Place) {
        self.personal.observe(text, times);
        let kind = &mut self.kinds[TextKind::of(text) as usize];
        kind.add(times, || (place(), masked(text)));
    }

    pub(super) fn merge(&mut self, later: Self) {
        self.fingerprint = self.fingerprint.wrapping_add(later.fingerprint);
        self.partition = match (self.partition.take(), later.partition) {
            (Some(mut known), Some(later)) => {
                for (value, rows) in later {
                    let known = known.entry(value).or_default();
                    *known = known.wrapping_add(rows);
                }
                Some(known)
            }
            _ => None,
        };
        self.limit();
        self.kinds.iter_mut().zip(later.kinds).for_each(|(known, later)| known.merge(later));
        self.nan.merge(later.nan);
        self.infinite.merge(later.infinite);
        self.placeholders.merge(later.placeholders);
        self.personal.merge(later.personal);
        self.zeros.merge(later.zeros);
        merge_option(&mut self.repeated_values, later.repeated_values, DuplicateCounts::merge);
    }
}

/// What the accumulators of a table share.
#[derive(Debug, Clone, Default)]
pub(super) struct Thinnings {
    rows: Thinning,
    without_identifiers: Thinning,
}

/// Which columns count when rows are compared.
#[derive(Debug, Clone)]
pub(super) struct RowColumns {
    pub(super) all: Vec<bool>,
    pub(super) without_identifiers: Option<Vec<bool>>,
}

impl RowColumns {
    pub(super) fn of(source: &Source, reading: ColumnRoles<'_>) -> Self {
        let ignored = &reading.roles.ignored;
        let counts = |name: &String| Some(name.as_str()) != reading.label() && !ignored.contains(name);
        let each = || source.columns().iter().map(|column| &column.name);
        let without = || each().map(|name| counts(name) && !reading.identifiers.contains(name)).collect();
        Self {
            all: each().map(counts).collect(),
            without_identifiers: (!reading.identifiers.is_empty()).then(without),
        }
    }

    /// Whether no column counts: then nothing is known of equal rows.
    pub(super) fn are_none(&self) -> bool {
        !self.all.contains(&true)
    }
}

/// The pass.
pub(super) struct TableFacts {
    pub(super) columns: Vec<ColumnFacts>,
    /// Rows without any value.
    pub(super) empty: CountedExamples<Place>,
    pub(super) groupings: Vec<Grouping>,
    pub(super) label: Option<usize>,
    pub(super) row_columns: RowColumns,
    pub(super) rows: RowKinds,
    /// The same without identifiers.
    pub(super) without_identifiers: Option<RowKinds>,
}

impl TableFacts {
    pub(super) fn new(source: &Source, reading: ColumnRoles<'_>, thinned: &Thinnings) -> Self {
        let find = |name: &str| source.columns().iter().position(|column| column.name == name);
        let groups: Vec<usize> = reading.roles.group_by.iter().filter_map(|name| find(name)).collect();
        let label = reading.label().and_then(find);
        let names = source.columns().iter().map(|column| &column.name);
        let row_columns = RowColumns::of(source, reading);
        let kinds = |thinned: &Thinning| RowKinds::new(thinned, label.is_some());
        Self {
            columns: names.map(|name| ColumnFacts::new(reading.identifiers.contains(name))).collect(),
            empty: CountedExamples::default(),
            groupings: Grouping::all(&groups),
            label,
            rows: kinds(&thinned.rows),
            without_identifiers: row_columns
                .without_identifiers
                .as_ref()
                .map(|_| kinds(&thinned.without_identifiers)),
            row_columns,
        }
    }

    fn rows(&mut self, chunk: &Chunk) {
        if self.row_columns.are_none() {
            return;
        }
        count_rows(&mut self.rows, chunk, &self.row_columns.all, self.label);
        if let (Some(rows), Some(columns)) =
            (&mut self.without_identifiers, &self.row_columns.without_identifiers)
        {
            count_rows(rows, chunk, columns, self.label);
        }
    }

    fn empty(&mut self, chunk: &Chunk) {
        let nulls: Option<Vec<_>> = chunk.batch.columns().iter().map(|array| array.logical_nulls()).collect();
        // A column without nulls: no row is empty.
        let Some(nulls) = nulls else { return };
        for row in 0..chunk.batch.num_rows() {
            if nulls.iter().all(|nulls| nulls.is_null(row)) {
                self.empty.add(1, || chunk.place(row));
            }
        }
    }
}

impl Pass for TableFacts {
    fn observe(&mut self, chunk: &Chunk) {
        let row_marks = marks(chunk);
        for (facts, array) in self.columns.iter_mut().zip(chunk.batch.columns()) {
            facts.observe(array, &RowHashes::of_column(array), chunk, &row_marks);
        }
        self.rows(chunk);
        self.empty(chunk);
        if !self.groupings.is_empty() {
            let labels = self.label.map(|label| Labels::of(chunk.batch.column(label)));
            self.groupings.iter_mut().for_each(|it| it.observe(chunk.batch.columns(), labels.as_ref()));
        }
    }

    fn merge(&mut self, later: Self) {
        self.columns.iter_mut().zip(later.columns).for_each(|(facts, later)| facts.merge(later));
        self.empty.merge(later.empty);
        self.groupings.iter_mut().zip(later.groupings).for_each(|(known, later)| known.merge(later));
        self.rows.merge(later.rows);
        merge_option(&mut self.without_identifiers, later.without_identifiers, RowKinds::merge);
    }
}

/// Counts a chunk's rows by the columns that count, and with the label.
fn count_rows(rows: &mut RowKinds, chunk: &Chunk, counts: &[bool], label: Option<usize>) {
    let columns = chunk.batch.columns().iter().zip(counts);
    let columns = columns.filter(|(_, counts)| **counts).map(|(array, _)| array);
    let mut keys = RowHashes::of(chunk.batch.num_rows(), columns);
    rows.by_features.observe(keys.values(), |row| chunk.place(row));
    if let (Some(with_label), Some(label)) = (&mut rows.with_label, label) {
        keys.add(chunk.batch.column(label));
        with_label.observe(keys.values(), |row| chunk.place(row));
    }
}

/// The marks of a chunk's rows.
pub(super) fn marks(chunk: &Chunk) -> Vec<u64> {
    (0..chunk.batch.num_rows()).map(|row| mark(chunk.place(row))).collect()
}

/// A random odd number for each place: multiplying by it loses nothing.
fn mark(place: Place) -> u64 {
    scrambled((place.file as u64) << 48 ^ place.row) | 1
}
