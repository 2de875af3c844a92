//! Fingerprints of rows: 64 bits that are equal for equal rows, whatever the file format and the order.
//!
//! Numbers count by value (`2` and `2.0` are equal, `0.0` and `-0.0` too, all NaN are), strings by their bytes, nulls
//! as one separate value. Two different rows have the same fingerprint with a probability of 2⁻⁶⁴: among a million rows
//! on the one side and a hundred million on the other, of all pairs, 0.0005 %.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type};
use arrow::util::display::array_value_to_string;
use trackway_formats::subset::{FIRST, mix, of_float, of_int, of_text};
use trackway_tables::read::Texts;

/// The fingerprint of a null.
const NULL: u64 = 0x9e37_79b9_7f4a_7c15;
/// Separates kinds of values that have the same bits.
const TIME: u64 = 0x1bd1_1bda_a9fc_1a22;
/// The same for whole numbers that only an unsigned type holds: their bits are those of numbers below 0.
const UNSIGNED: u64 = 0x8ebc_6af0_9c88_c6e3;
/// The same for booleans.
const TRUTH: u64 = 0x6a09_e667_f3bc_c909;

/// Fingerprints of rows, built up column by column in one order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowHashes(Vec<u64>);

impl RowHashes {
    /// For so many rows, of no column yet.
    pub(crate) fn new(rows: usize) -> Self {
        Self(vec![FIRST; rows])
    }

    /// Of these columns.
    pub(crate) fn of<'c>(rows: usize, columns: impl IntoIterator<Item = &'c ArrayRef>) -> Self {
        let mut hashes = Self::new(rows);
        columns.into_iter().for_each(|column| hashes.add(column));
        hashes
    }

    /// A fingerprint for each value of one column.
    pub(crate) fn of_column(column: &ArrayRef) -> Vec<u64> {
        Self::of(column.len(), [column]).0
    }

    /// The fingerprints.
    pub(crate) fn values(&self) -> &[u64] {
        &self.0
    }

    pub(crate) fn add(&mut self, column: &ArrayRef) {
        let states = &mut self.0;
        match column.data_type() {
            DataType::Int64 => {
                let values = column.as_primitive::<Int64Type>();
                mix_in(states, values, |row| of_int(values.value(row)));
            }
            DataType::UInt64 => {
                let values = column.as_primitive::<UInt64Type>();
                mix_in(states, values, |row| of_unsigned(values.value(row)));
            }
            DataType::Float64 => {
                let values = column.as_primitive::<Float64Type>();
                mix_in(states, values, |row| of_float(values.value(row)));
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let values = column.as_primitive::<TimestampMicrosecondType>();
                mix_in(states, values, |row| of_int(values.value(row)) ^ TIME);
            }
            DataType::Boolean => {
                let values = column.as_boolean();
                mix_in(states, values, |row| u64::from(values.value(row)) ^ TRUTH);
            }
            _ => match Texts::of(column) {
                Some(Texts::Plain(texts)) => mix_in(states, texts, |row| of_text(texts.value(row))),
                Some(Texts::Dictionary(keys, distinct)) => {
                    let each: Vec<u64> = distinct.iter().map(|text| text.map_or(NULL, of_text)).collect();
                    let key = |row: usize| each[keys.keys().value(row) as usize];
                    mix_in(states, keys, key);
                }
                None => mix_in(states, column, |row| {
                    of_text(&array_value_to_string(column, row).unwrap_or_default())
                }),
            },
        }
    }
}

/// The fingerprint of a whole number without a sign, equal to that of the same number in another type.
fn of_unsigned(value: u64) -> u64 {
    match i64::try_from(value) {
        Ok(value) => of_int(value),
        Err(_) if value as f64 as u128 == u128::from(value) => of_float(value as f64),
        Err(_) => value ^ UNSIGNED,
    }
}

/// One cell's fingerprint into each row's. The loop without nulls has no branch.
fn mix_in(states: &mut [u64], column: &dyn Array, value: impl Fn(usize) -> u64) {
    match column.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        None => states.iter_mut().enumerate().for_each(|(row, state)| *state = mix(*state, value(row))),
        Some(nulls) => states.iter_mut().enumerate().for_each(|(row, state)| {
            *state = mix(*state, if nulls.is_null(row) { NULL } else { value(row) });
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{BooleanArray, Float64Array, Int64Array, UInt64Array};

    use super::*;

    /// Proves that a number has one fingerprint in each type that holds it, and that no two numbers of different types that have
    /// the same bits have the same one.
    #[test]
    fn numbers_count_by_value_in_every_type() {
        let of = |array: ArrayRef| RowHashes::of_column(&array)[0];
        let (int, unsigned, float) = (
            |value: i64| of(Arc::new(Int64Array::from(vec![value]))),
            |value: u64| of(Arc::new(UInt64Array::from(vec![value]))),
            |value: f64| of(Arc::new(Float64Array::from(vec![value]))),
        );
        assert_eq!((int(7), int(7)), (unsigned(7), float(7.0)));
        assert_eq!(unsigned(1 << 63), float(9_223_372_036_854_775_808.0));
        assert_ne!(int(-1), unsigned(u64::MAX));
        assert_ne!(unsigned(u64::MAX), float(u64::MAX as f64));
    }

    /// Proves that rows of booleans are different wherever one of their cells is: the columns of a category that was split into one
    /// for each value among them.
    #[test]
    fn each_boolean_counts_where_it_is() {
        let cells = [Some(true), Some(false), None];
        let rows: Vec<[Option<bool>; 3]> =
            (0..27).map(|row| [cells[row % 3], cells[row / 3 % 3], cells[row / 9]]).collect();
        let columns: Vec<ArrayRef> = (0..3)
            .map(|column| {
                let values: BooleanArray = rows.iter().map(|row| row[column]).collect();
                Arc::new(values) as ArrayRef
            })
            .collect();
        let hashes = RowHashes::of(rows.len(), &columns);
        let different: std::collections::HashSet<u64> = hashes.values().iter().copied().collect();
        assert_eq!(different.len(), rows.len());
    }
}
