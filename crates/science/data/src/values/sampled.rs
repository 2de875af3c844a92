//! Values of a column that are kept, for what has to look at them more than once.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use trackway_tables::ColumnType;
use trackway_tables::read::Texts;

use crate::values::rows::RowHashes;

/// Strings of a column that are kept as they are.
const TEXTS_KEPT: usize = 32;

/// Of a kept text, so many letters.
const LETTERS_KEPT: usize = 64;

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    pub(crate) kind: ColumnType,
    pub(crate) content: Content,
    /// How much larger each whole number is than the float that it is kept as; empty while all are exact.
    remainders: Vec<i64>,
    /// The first few strings, as they are.
    pub(crate) texts: Vec<String>,
}

/// Numbers count by value, everything else by its fingerprint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// NaN if missing.
    Numbers(Vec<f64>),
    /// 0 if missing.
    Codes(Vec<u64>),
}

impl Content {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers(values) => values.len(),
            Self::Codes(values) => values.len(),
        }
    }
}

impl Values {
    pub(crate) fn new(kind: ColumnType) -> Self {
        let is_number = matches!(kind, ColumnType::Int | ColumnType::Float | ColumnType::Timestamp);
        let content = if is_number { Content::Numbers(Vec::new()) } else { Content::Codes(Vec::new()) };
        Self { kind, content, remainders: Vec::new(), texts: Vec::new() }
    }

    pub(crate) fn add(&mut self, column: &ArrayRef) {
        match &mut self.content {
            Content::Numbers(values) => {
                let before = values.len();
                let exact = exact_numbers(column);
                values.extend(exact.iter().map(|number| number.nearest));
                if !self.remainders.is_empty() || exact.iter().any(|number| number.remainder != 0) {
                    self.remainders.resize(before, 0);
                    self.remainders.extend(exact.iter().map(|number| number.remainder));
                }
            }
            Content::Codes(values) => values.extend(keys(column)),
        }
        let Some(texts) = Texts::of(column) else { return };
        let room = TEXTS_KEPT - self.texts.len();
        let more = (0..column.len()).filter_map(|row| texts.get(row)).take(room);
        self.texts.extend(more.map(|text| text.chars().take(LETTERS_KEPT).collect::<String>()));
    }

    pub(crate) fn append(&mut self, later: Self) {
        if !self.remainders.is_empty() || !later.remainders.is_empty() {
            self.remainders.resize(self.content.len(), 0);
            let rows = self.content.len() + later.content.len();
            self.remainders.extend(later.remainders);
            self.remainders.resize(rows, 0);
        }
        match (&mut self.content, later.content) {
            (Content::Numbers(values), Content::Numbers(more)) => values.extend(more),
            (Content::Codes(values), Content::Codes(more)) => values.extend(more),
            _ => unreachable!("one source gives a column one type"),
        }
        let room = TEXTS_KEPT - self.texts.len();
        self.texts.extend(later.texts.into_iter().take(room));
    }

    pub(crate) fn retain(&mut self, keep: &[bool]) {
        match &mut self.content {
            Content::Numbers(values) => retain(values, keep),
            Content::Codes(values) => retain(values, keep),
        }
        if !self.remainders.is_empty() {
            retain(&mut self.remainders, keep);
        }
    }
}

pub(crate) fn retain<T>(values: &mut Vec<T>, keep: &[bool]) {
    let mut kept = keep.iter();
    values.retain(|_| *kept.next().expect("as many as there are rows"));
}

/// Calls with each row that has a value, and bits that identify values.
pub(crate) fn each_bits(values: &Values, mut with: impl FnMut(usize, u64)) {
    match &values.content {
        Content::Numbers(numbers) => {
            let known = numbers.iter().enumerate().filter(|(_, number)| !number.is_nan());
            let remainder = |row: usize| values.remainders.get(row).map_or(0, |it| it.cast_unsigned());
            // Adding zero makes the two zeros one.
            let bits = |row: usize, number: f64| (number + 0.0).to_bits() ^ remainder(row).rotate_left(32);
            known.for_each(|(row, number)| with(row, bits(row, *number)));
        }
        Content::Codes(codes) => {
            codes.iter().enumerate().filter(|(_, code)| **code != 0).for_each(|(row, code)| with(row, *code));
        }
    }
}

/// A fingerprint per value, 0 if missing.
pub(crate) fn keys(column: &ArrayRef) -> Vec<u64> {
    let nulls = column.logical_nulls();
    let keyed = |(row, key): (usize, u64)| match &nulls {
        Some(nulls) if nulls.is_null(row) => 0,
        _ => key.max(1),
    };
    RowHashes::of_column(column).into_iter().enumerate().map(keyed).collect()
}

/// A number that is not rounded: the nearest float, and how much larger it is. In their order, numbers are in theirs.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(crate) struct ExactNumber {
    /// NaN if missing.
    pub(crate) nearest: f64,
    pub(crate) remainder: i64,
}

/// Whole numbers up to this one are exact in a 64-bit float.
const EXACT_MAX: u64 = 1 << 53;

impl ExactNumber {
    fn signed(value: i64) -> Self {
        let nearest = value as f64;
        let remainder = if value.unsigned_abs() <= EXACT_MAX { 0 } else { distance(value.into(), nearest) };
        Self { nearest, remainder }
    }

    fn unsigned(value: u64) -> Self {
        let nearest = value as f64;
        let remainder = if value <= EXACT_MAX { 0 } else { distance(value.into(), nearest) };
        Self { nearest, remainder }
    }

    fn of(nearest: f64) -> Self {
        Self { nearest, remainder: 0 }
    }
}

/// How much larger a whole number of 64 bits is than the float nearest to it: at most 2¹⁰.
fn distance(value: i128, nearest: f64) -> i64 {
    i64::try_from(value - nearest as i128).unwrap_or_default()
}

/// Numbers and timestamps without rounding.
pub(crate) fn exact_numbers(column: &ArrayRef) -> Vec<ExactNumber> {
    let value = |row: usize| match column.data_type() {
        DataType::Int64 => ExactNumber::signed(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt64 => ExactNumber::unsigned(column.as_primitive::<UInt64Type>().value(row)),
        DataType::Float64 => ExactNumber::of(column.as_primitive::<Float64Type>().value(row)),
        DataType::Timestamp(_, _) => {
            ExactNumber::signed(column.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        _ => ExactNumber::of(f64::NAN),
    };
    (0..column.len())
        .map(|row| if column.is_null(row) { ExactNumber::of(f64::NAN) } else { value(row) })
        .collect()
}

/// The same as floats: exact for whole numbers below 2⁵³, so for microseconds until the year 2255.
pub(crate) fn numbers(column: &ArrayRef) -> Vec<f64> {
    exact_numbers(column).into_iter().map(|number| number.nearest).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;

    use super::*;

    /// Proves that whole numbers that a float would make one are counted apart and kept in order, whatever was added before.
    #[test]
    fn long_whole_numbers_stay_apart() {
        let column = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let long = 9_007_199_254_740_992;
        let mut values = Values::new(ColumnType::Int);
        values.add(&column(vec![1, 2]));
        values.add(&column(vec![long, long + 1]));
        let mut more = Values::new(ColumnType::Int);
        more.add(&column(vec![3]));
        values.append(more);
        let mut bits = Vec::new();
        each_bits(&values, |_, it| bits.push(it));
        bits.sort_unstable();
        bits.dedup();
        assert_eq!(bits.len(), 5);
        values.retain(&[false, false, true, true, true]);
        assert_eq!((values.remainders.as_slice(), values.content.len()), ([0, 1, 0].as_slice(), 3));
        let numbers = exact_numbers(&column(vec![long, long + 1, long + 2]));
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    }
}
