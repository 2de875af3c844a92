//! Which columns of the two sides are compared, and how their rows are read.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};

use crate::error::DataError;
use crate::infer::ColumnType;
use crate::read::{Chunk, Source};
use crate::rows::RowHashes;

/// What columns mean. Each is optional and switches on what needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// What is predicted. Without it, a row counts with all its columns.
    pub label: Option<String>,
    /// What must not be on both sides: a user, a patient, a household.
    pub group: Option<String>,
    /// When a row came about.
    pub time: Option<String>,
}

/// Names of what is compared, in one order for both sides.
pub(super) struct Columns {
    pub(super) features: Vec<String>,
    pub(super) label: Option<String>,
    pub(super) group: Option<String>,
    pub(super) time: Option<String>,
    pub(super) not_compared: Vec<String>,
}

/// Indexes of [`Columns`] in one source.
#[derive(Clone)]
pub(super) struct Places {
    pub(super) features: Vec<usize>,
    pub(super) label: Option<usize>,
    pub(super) group: Option<usize>,
    pub(super) time: Option<usize>,
}

impl Columns {
    pub(super) fn of(train: &Source, test: &Source, roles: &Roles) -> Result<Self, DataError> {
        for source in [train, test] {
            for (name, role) in [(&roles.label, "label"), (&roles.group, "group"), (&roles.time, "time")] {
                if let Some(name) = name {
                    source.index_of(name, role)?;
                }
            }
        }
        let mut features = Vec::new();
        let mut not_compared = Vec::new();
        for column in train.columns().iter().filter(|column| Some(&column.name) != roles.label.as_ref()) {
            match test.columns().iter().find(|other| other.name == column.name) {
                None => not_compared.push(format!("`{}` is not on the test side", column.name)),
                Some(other) if !comparable(column.kind, other.kind) => not_compared.push(format!(
                    "`{}` is {:?} on one side and {:?} on the other",
                    column.name, column.kind, other.kind
                )),
                Some(_) => features.push(column.name.clone()),
            }
        }
        let Roles { label, group, time } = roles.clone();
        Ok(Self { features, label, group, time, not_compared })
    }

    pub(super) fn places_in(&self, source: &Source) -> Places {
        let find = |name: &String| source.columns().iter().position(|column| column.name == *name);
        let maybe = |name: &Option<String>| name.as_ref().and_then(find);
        Places {
            features: self.features.iter().filter_map(find).collect(),
            label: maybe(&self.label),
            group: maybe(&self.group),
            time: maybe(&self.time),
        }
    }
}

/// Whether equal values of the two types have equal fingerprints.
fn comparable(one: ColumnType, other: ColumnType) -> bool {
    let number = |kind| matches!(kind, ColumnType::Int | ColumnType::Float);
    let null = |kind| kind == ColumnType::Null;
    one == other || (number(one) && number(other)) || null(one) || null(other)
}

/// What was read from one chunk: fingerprints without and with the label, of the label and the group, and timestamps.
pub(super) struct Read {
    pub(super) features: Vec<u64>,
    pub(super) with_label: Vec<u64>,
    /// 0 for a row whose label is missing; empty without a label.
    pub(super) labels: Vec<u64>,
    /// 0 for a row without a group.
    pub(super) groups: Vec<u64>,
    /// NaN for a row without a timestamp.
    pub(super) moments: Vec<f64>,
}

impl Places {
    pub(super) fn read(&self, chunk: &Chunk) -> Read {
        let column = |index: usize| chunk.batch.column(index);
        let mut rows = RowHashes::new(chunk.batch.num_rows());
        self.features.iter().for_each(|index| rows.add(column(*index)));
        let features = rows.values().to_vec();
        if let Some(label) = self.label {
            rows.add(column(label));
        }
        Read {
            features,
            with_label: rows.values().to_vec(),
            labels: self.label.map_or_else(Vec::new, |index| keys(column(index))),
            groups: self.group.map_or_else(Vec::new, |index| keys(column(index))),
            moments: self.time.map_or_else(Vec::new, |index| numbers(column(index))),
        }
    }
}

/// A fingerprint per value, 0 if missing.
pub(super) fn keys(column: &ArrayRef) -> Vec<u64> {
    let mut keys = RowHashes::new(column.len());
    keys.add(column);
    let nulls = column.logical_nulls();
    let keyed = |(row, key): (usize, &u64)| match &nulls {
        Some(nulls) if nulls.is_null(row) => 0,
        _ => (*key).max(1),
    };
    keys.values().iter().enumerate().map(keyed).collect()
}

/// Numbers and timestamps as numbers, NaN if missing: exact for whole numbers below 2⁵³, so for microseconds until the
/// year 2255.
pub(super) fn numbers(column: &ArrayRef) -> Vec<f64> {
    let value = |row: usize| match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row) as f64,
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row) as f64,
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row),
        DataType::Timestamp(_, _) => column.as_primitive::<TimestampMicrosecondType>().value(row) as f64,
        _ => f64::NAN,
    };
    (0..column.len()).map(|row| if column.is_null(row) { f64::NAN } else { value(row) }).collect()
}
