//! The keys of rows as digests that are equal for equal keys on both sides, and their times.

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, Int64Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, SortField};
use trackway_tables::ColumnType;
use trackway_tables::read::Source;

use super::JoinError;
use crate::values::hashed::digest;

/// The key columns of one side: their places, and the type that they have on both.
pub(super) struct Keys {
    places: Vec<usize>,
    types: Vec<DataType>,
}

impl Keys {
    /// Of both sides.
    pub(super) fn of(left: &Source, right: &Source, names: &[String]) -> Result<[Self; 2], JoinError> {
        let mut both =
            [Self { places: Vec::new(), types: Vec::new() }, Self { places: Vec::new(), types: Vec::new() }];
        for name in names {
            let places = [left.index_of(name, "key")?, right.index_of(name, "key")?];
            let kinds = [left.columns()[places[0]].kind, right.columns()[places[1]].kind];
            let common = key_type(kinds[0], kinds[1]).ok_or_else(|| JoinError::Types {
                column: name.clone(),
                left: kinds[0],
                right: kinds[1],
            })?;
            for (keys, place) in both.iter_mut().zip(places) {
                keys.places.push(place);
                keys.types.push(common.clone());
            }
        }
        Ok(both)
    }

    /// The places of the key columns.
    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// A digest per row. None for a row without a value in a key column.
    pub(super) fn digests(&self, columns: &[ArrayRef], rows: usize) -> Result<Vec<Option<u128>>, ArrowError> {
        let cast = |(place, to): (&usize, &DataType)| match to {
            // Only numbers have such a key.
            DataType::Binary => number_keys(&columns[*place]),
            to => as_type(&columns[*place], to),
        };
        let keys: Vec<ArrayRef> = self.places.iter().zip(&self.types).map(cast).collect::<Result<_, _>>()?;
        let fields = self.types.iter().map(|to| SortField::new(to.clone())).collect();
        let encoded = RowConverter::new(fields)?.convert_columns(&keys)?;
        let nulls: Vec<_> = keys.iter().map(|key| key.logical_nulls()).collect();
        let has_value = |row: usize| nulls.iter().flatten().all(|nulls| nulls.is_valid(row));
        Ok((0..rows).map(|row| has_value(row).then(|| digest(encoded.row(row).as_ref()))).collect())
    }
}

/// A type in which equal values of both are equal, and different ones are not.
fn key_type(one: ColumnType, other: ColumnType) -> Option<DataType> {
    use ColumnType::{Float, Int, Null};
    match (one, other) {
        (Int | Float, Int | Float) | (Int | Float, Null) | (Null, Int | Float) => Some(DataType::Binary),
        _ => common_type(one, other),
    }
}

/// A type that holds the values of both, if they can be equal; numbers as floats.
pub(super) fn common_type(one: ColumnType, other: ColumnType) -> Option<DataType> {
    use ColumnType::{Bool, Float, Int, Mixed, Null, Text, Timestamp};
    Some(match (one, other) {
        (Int | Float, Int | Float) => DataType::Float64,
        (Bool, Bool) => DataType::Boolean,
        (Timestamp, Timestamp) => DataType::Timestamp(TimeUnit::Microsecond, None),
        (Text | Mixed, Text | Mixed) => DataType::Utf8,
        // A column without a value fits any.
        (Null, kind) | (kind, Null) if kind != Null => return common_type(kind, kind),
        (Null, Null) => DataType::Utf8,
        _ => return None,
    })
}

/// A number: whole ones are exact, whatever they are stored as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Other(f64),
}

impl Number {
    /// The number in a row that has one.
    pub(super) fn at(array: &ArrayRef, row: usize) -> Option<Self> {
        /// Whole floats below this are exact in 128 bits.
        const WHOLE_END: f64 = 1e30;
        Some(match array.data_type() {
            _ if array.is_null(row) => return None,
            DataType::Int64 => Self::Whole(i128::from(array.as_primitive::<Int64Type>().value(row))),
            DataType::UInt64 => Self::Whole(i128::from(array.as_primitive::<UInt64Type>().value(row))),
            DataType::Float64 => match array.as_primitive::<Float64Type>().value(row) {
                number if number.abs() < WHOLE_END && number.fract() == 0.0 => Self::Whole(number as i128),
                number => Self::Other(number),
            },
            _ => return None,
        })
    }

    pub(super) fn as_float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Other(number) => number,
        }
    }
}

/// Bytes that are equal for equal numbers and for them only.
fn number_keys(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    const KEY_BYTES: usize = 16;
    let mut keys = BinaryBuilder::with_capacity(array.len(), array.len() * (KEY_BYTES + 1));
    for row in 0..array.len() {
        match Number::at(array, row) {
            None => keys.append_null(),
            Some(Number::Whole(number)) => keys.append_value(number.to_le_bytes()),
            // All NaN are one value.
            Some(Number::Other(number)) if number.is_nan() => keys.append_value(b"NaN"),
            Some(Number::Other(number)) => keys.append_value(number.to_bits().to_le_bytes()),
        }
    }
    Ok(std::sync::Arc::new(keys.finish()))
}

/// An array as another type; a value that it does not hold is an error.
pub(super) fn as_type(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Null => Ok(arrow::array::new_null_array(to, column.len())),
        _ => cast_with_options(column, to, &CastOptions { safe: false, ..CastOptions::default() }),
    }
}

/// Where the times of a side are: microseconds since 1970, or whole numbers.
#[derive(Clone, Copy)]
pub(super) struct Times {
    place: usize,
    is_timestamp: bool,
    /// The column has no value, and fits any other.
    is_open: bool,
}

impl Times {
    pub(super) fn of(source: &Source, name: &str) -> Result<Self, JoinError> {
        let place = source.index_of(name, "time")?;
        let kind = source.columns()[place].kind;
        match kind {
            ColumnType::Timestamp => Ok(Self { place, is_timestamp: true, is_open: false }),
            ColumnType::Int => Ok(Self { place, is_timestamp: false, is_open: false }),
            ColumnType::Null => Ok(Self { place, is_timestamp: false, is_open: true }),
            _ => Err(JoinError::NotATime { column: name.to_owned(), kind }),
        }
    }

    /// Whether times of both sides can be compared.
    pub(super) fn fits(self, other: Self) -> bool {
        self.is_open || other.is_open || self.is_timestamp == other.is_timestamp
    }

    /// Where the column is.
    pub(super) fn place(self) -> usize {
        self.place
    }

    /// Whether they are timestamps.
    pub(super) fn is_timestamp(self) -> bool {
        self.is_timestamp
    }

    pub(super) fn values(self, columns: &[ArrayRef]) -> Result<Int64Array, ArrowError> {
        let column = &columns[self.place];
        match self.is_timestamp {
            true => {
                let times = as_type(column, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                Ok(times.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>())
            }
            false => Ok(as_type(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone()),
        }
    }
}
