//! What a split needs of every row, from one reading.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType, UInt64Type};
use arrow::util::display::array_value_to_string;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Coverage, Place, Source};
use trackway_tables::{ColumnType, DataError};

use crate::values::rows::RowHashes;

/// The most different labels of a split that keeps their fractions.
pub const CLASSES_MAX: usize = 1_000;

/// The columns that a split looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitColumns {
    /// Identifies a row; its whole content where absent.
    pub key: Option<String>,
    /// What is to be predicted.
    pub label: Option<String>,
    /// What must stay on one side, such as a user.
    pub group: Option<String>,
    /// When the row is from: times or whole numbers.
    pub time: Option<String>,
}

/// Every row of a table, in its order: about 40 bytes each.
#[derive(Debug, Default)]
pub struct SplitRows {
    /// Where each row is.
    pub places: Vec<Place>,
    /// The fingerprint of each row's key.
    pub keys: Vec<u64>,
    /// The fingerprint of each row's group; empty without one.
    pub groups: Vec<u64>,
    /// The class of each row, an index into [`SplitRows::class_names`]; empty without a label.
    pub classes: Vec<u32>,
    /// The labels, in order of their text.
    pub class_names: Vec<String>,
    /// The timestamp of each row, `None` if it is missing; empty without a time column.
    pub moments: Vec<Option<i64>>,
}

/// Reads the table.
///
/// # Errors
/// [`DataError`]: a column that is not there or cannot be what it is to be; what reading meets.
pub fn read_rows(
    source: &mut Source,
    columns: &SplitColumns,
    watch: &PassObserver<'_>,
) -> Result<(SplitRows, Coverage), DataError> {
    for (name, role) in
        [(&columns.key, "key"), (&columns.label, "label"), (&columns.group, "group"), (&columns.time, "time")]
    {
        if let Some(name) = name {
            source.index_of(name, role)?;
        }
    }
    let make = |source: &Source| {
        let index = |name: &Option<String>| {
            name.as_ref().and_then(|name| source.columns().iter().position(|column| column.name == *name))
        };
        Gather {
            key: index(&columns.key),
            label: index(&columns.label),
            group: index(&columns.group),
            time: index(&columns.time),
            ..Gather::default()
        }
    };
    let (gathered, coverage) = scan(source, &make, watch)?;
    let wrong = |message: String| DataError::Corrupt {
        set: source.set().to_owned(),
        path: source.files()[0].path.clone(),
        format: "table to be split",
        message,
    };
    if let Some(time) = gathered.time {
        let column = &source.columns()[time];
        if !matches!(column.kind, ColumnType::Int | ColumnType::Timestamp | ColumnType::Null) {
            return Err(wrong(format!(
                "the time column `{}` contains neither timestamps nor whole numbers",
                column.name
            )));
        }
    }
    if gathered.names.len() > CLASSES_MAX {
        return Err(wrong(format!("the label has more than {CLASSES_MAX} different values")));
    }
    Ok((gathered.into_rows(), coverage))
}

#[derive(Default)]
struct Gather {
    key: Option<usize>,
    label: Option<usize>,
    group: Option<usize>,
    time: Option<usize>,
    rows: SplitRows,
    labels: Vec<u64>,
    names: BTreeMap<u64, String>,
}

impl Pass for Gather {
    fn observe(&mut self, chunk: &Chunk) {
        let rows = chunk.batch.num_rows();
        let columns = chunk.batch.columns();
        self.rows.places.extend((0..rows).map(|row| chunk.place(row)));
        let key = match self.key {
            Some(key) => RowHashes::of_column(&columns[key]),
            None => RowHashes::of(rows, columns).values().to_vec(),
        };
        self.rows.keys.extend(key);
        if let Some(group) = self.group {
            self.rows.groups.extend(RowHashes::of_column(&columns[group]));
        }
        if let Some(label) = self.label {
            let hashes = RowHashes::of_column(&columns[label]);
            for (row, hash) in hashes.iter().enumerate() {
                if self.names.len() <= CLASSES_MAX && !self.names.contains_key(hash) {
                    let is_null = columns[label].logical_nulls().is_some_and(|nulls| nulls.is_null(row));
                    let text = array_value_to_string(&columns[label], row).unwrap_or_default();
                    self.names.insert(*hash, if is_null { String::new() } else { text });
                }
            }
            self.labels.extend(hashes);
        }
        if let Some(time) = self.time {
            self.rows.moments.extend(moments(&columns[time]));
        }
    }

    fn merge(&mut self, later: Self) {
        self.rows.places.extend(later.rows.places);
        self.rows.keys.extend(later.rows.keys);
        self.rows.groups.extend(later.rows.groups);
        self.rows.moments.extend(later.rows.moments);
        self.labels.extend(later.labels);
        for (hash, name) in later.names {
            if self.names.len() <= CLASSES_MAX {
                self.names.entry(hash).or_insert(name);
            }
        }
    }
}

impl Gather {
    /// Classes are numbered by their text, so that the order of the rows does not count.
    fn into_rows(self) -> SplitRows {
        let mut sorted: Vec<(&String, u64)> = self.names.iter().map(|(hash, name)| (name, *hash)).collect();
        sorted.sort();
        let number: BTreeMap<u64, u32> =
            sorted.iter().enumerate().map(|(index, (_, hash))| (*hash, index as u32)).collect();
        let class_names = sorted.iter().map(|(name, _)| (*name).clone()).collect();
        let classes = self.labels.iter().map(|hash| number[hash]).collect();
        SplitRows { classes, class_names, ..self.rows }
    }
}

fn moments(array: &ArrayRef) -> Vec<Option<i64>> {
    match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().iter().collect(),
        DataType::UInt64 => {
            let numbers = array.as_primitive::<UInt64Type>().iter();
            numbers.map(|number| i64::try_from(number?).ok()).collect()
        }
        DataType::Timestamp(_, _) => array.as_primitive::<TimestampMicrosecondType>().iter().collect(),
        _ => vec![None; array.len()],
    }
}
