//! Values of a column that are kept, for what has to look at them more than once.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};

use crate::infer::ColumnType;
use crate::read::Texts;
use crate::rows::RowHashes;

/// Strings of a column that are kept as they are.
const TEXTS_KEPT: usize = 32;

/// Of a kept text, so many letters.
const LETTERS_KEPT: usize = 64;

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Values {
    pub(crate) kind: ColumnType,
    pub(crate) content: Content,
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
        Self { kind, content, texts: Vec::new() }
    }

    pub(crate) fn add(&mut self, column: &ArrayRef) {
        match &mut self.content {
            Content::Numbers(values) => values.extend(numbers(column)),
            Content::Codes(values) => values.extend(keys(column)),
        }
        let Some(texts) = Texts::of(column) else { return };
        let room = TEXTS_KEPT - self.texts.len();
        let more = (0..column.len()).filter_map(|row| texts.get(row)).take(room);
        self.texts.extend(more.map(|text| text.chars().take(LETTERS_KEPT).collect::<String>()));
    }

    pub(crate) fn append(&mut self, later: Self) {
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
            // Adding zero makes the two zeros one.
            known.for_each(|(row, number)| with(row, (*number + 0.0).to_bits()));
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

/// Numbers and timestamps as numbers, NaN if missing: exact for whole numbers below 2⁵³, so for microseconds until the
/// year 2255.
pub(crate) fn numbers(column: &ArrayRef) -> Vec<f64> {
    let value = |row: usize| match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row) as f64,
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row) as f64,
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row),
        DataType::Timestamp(_, _) => column.as_primitive::<TimestampMicrosecondType>().value(row) as f64,
        _ => f64::NAN,
    };
    (0..column.len()).map(|row| if column.is_null(row) { f64::NAN } else { value(row) }).collect()
}
