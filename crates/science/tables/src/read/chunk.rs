//! A piece of a table as a pass sees it.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int32Type};

use super::Place;
use super::coverage::CellTally;
use crate::types::ColumnType;

/// Consecutive rows of one file.
///
/// The batch has one column per column of the source, in its order, each of the type that belongs to the column's
/// [`ColumnType`](crate::ColumnType):
///
/// | column type | array |
/// |---|---|
/// | `Int` | `Int64` (`UInt64` for a Parquet column of that type) |
/// | `Float` | `Float64` |
/// | `Bool` | `Boolean` |
/// | `Timestamp` | `Timestamp(Microsecond)`; times without a zone are taken as UTC |
/// | `Text`, `Mixed` | `Utf8`, or `Dictionary(Int32, Utf8)` if a Parquet file stores one; see [`Texts`] |
/// | `Null` | `Null` |
/// | `Binary`, `List`, `Object` | as the Parquet file has it; JSON's nested values are `Utf8` |
///
/// A column that the file does not have is all null whatever its type (`Null` array).
pub struct Chunk {
    /// Index of the file in [`super::Source::files`].
    pub file: usize,
    /// Never empty.
    pub batch: RecordBatch,
    /// The same cells as they are in the file, if the source keeps them: see [`super::Source::with_originals`].
    pub(crate) originals: Option<RecordBatch>,
    /// What the originals do not show of how the cells are written.
    pub marks: Marks,
    pub(crate) rows: RowNumbers,
    /// Faults of the cells of these rows, per column.
    pub cells: Vec<CellTally>,
}

/// The cells of a chunk as they are in the file.
#[derive(Default)]
pub(crate) struct Originals {
    pub(crate) columns: Vec<ArrayRef>,
    pub(crate) marks: Marks,
}

/// What originals do not show: two cells with equal ones may be written in other ways.
#[derive(Default)]
pub struct Marks {
    /// Of JSON, for each column, which cells are strings: the others are numbers, booleans, lists or objects as they are written.
    pub strings: Vec<BooleanArray>,
    /// Of rows with such cells, the columns and what is written. Rows with equal originals are equal only if these are equal too.
    pub rows: BTreeMap<usize, Vec<u8>>,
}

/// Whether strings, and what is read as one, are values of columns of this type.
pub(super) fn holds_strings(kind: ColumnType) -> bool {
    matches!(kind, ColumnType::Text | ColumnType::Mixed)
}

impl Marks {
    /// Marks a cell with what is written there.
    pub(crate) fn add(&mut self, row: usize, column: usize, written: &[u8]) {
        let mark = self.rows.entry(row).or_default();
        mark.extend_from_slice(&column.to_le_bytes());
        mark.extend_from_slice(&written.len().to_le_bytes());
        mark.extend_from_slice(written);
    }
}

/// The numbers of a chunk's rows.
pub(crate) enum RowNumbers {
    /// One after the other from here.
    From(u64),
    /// As listed, relative to the first number.
    Listed(u64, Vec<u32>),
}

impl RowNumbers {
    /// The shortest form of ascending numbers.
    pub(crate) fn new(first: u64, offsets: Vec<u32>) -> Self {
        let consecutive =
            offsets.iter().enumerate().all(|(index, offset)| index as u64 == u64::from(*offset));
        if consecutive { Self::From(first) } else { Self::Listed(first, offsets) }
    }
}

impl Chunk {
    /// The cells as they are in the file; as they were read where the source does not keep them.
    #[must_use]
    pub fn originals(&self) -> &RecordBatch {
        self.originals.as_ref().unwrap_or(&self.batch)
    }

    /// Where a row of the batch is.
    #[must_use]
    pub fn place(&self, row: usize) -> Place {
        let row = match &self.rows {
            RowNumbers::From(first) => first + row as u64,
            RowNumbers::Listed(first, offsets) => first + u64::from(offsets[row]),
        };
        Place { file: self.file, row }
    }
}

/// A text column, however it is stored.
pub enum Texts<'a> {
    /// Every value written out.
    Plain(&'a StringArray),
    /// Each distinct value once, and a key per row. A null is a null key.
    Dictionary(&'a DictionaryArray<Int32Type>, &'a StringArray),
}

impl<'a> Texts<'a> {
    /// The strings of an array; `None` if it holds something else.
    #[must_use]
    pub fn of(array: &'a ArrayRef) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8 => Some(Self::Plain(array.as_string())),
            DataType::Dictionary(_, _) => {
                let dictionary = array.as_dictionary_opt::<Int32Type>()?;
                Some(Self::Dictionary(dictionary, dictionary.values().as_string_opt()?))
            }
            _ => None,
        }
    }

    /// The value of a row; `None` where it is null.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::Plain(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Dictionary(keys, values) => {
                let key = keys.is_valid(row).then(|| keys.keys().value(row) as usize)?;
                values.is_valid(key).then(|| values.value(key))
            }
        }
    }
}
