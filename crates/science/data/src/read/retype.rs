//! A column of a Parquet file in the type that the source gives it. A value that does not fit is a misfit, as in a text file.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, NullArray, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use arrow::util::display::array_value_to_string;

use super::cells::{parse_bool, parse_float, parse_int, parse_timestamp};
use super::coverage::{CellFaults, Place};
use crate::infer::{ColumnType, type_of};

/// The array in the type that belongs to the column's; see [`super::Chunk`]. A value that does not fit becomes null, and a fault
/// at the place of its row.
///
/// # Errors
/// Values of the right type that cannot be converted.
pub(super) fn canonical(
    array: &ArrayRef,
    kind: ColumnType,
    faults: &mut CellFaults,
    place: &dyn Fn(usize) -> Place,
) -> Result<ArrayRef, String> {
    let stored = kind_of(array.data_type());
    let wanted = match (kind, array.data_type()) {
        (_, DataType::Null) | (ColumnType::Int, DataType::UInt64) => return Ok(Arc::clone(array)),
        (ColumnType::Int, _) => DataType::Int64,
        (ColumnType::Float, _) => DataType::Float64,
        (ColumnType::Bool, _) => DataType::Boolean,
        (ColumnType::Timestamp, _) => DataType::Timestamp(TimeUnit::Microsecond, None),
        (ColumnType::Text | ColumnType::Mixed, DataType::Dictionary(_, _)) => dictionary_type(),
        (ColumnType::Text | ColumnType::Mixed, _) => DataType::Utf8,
        (ColumnType::List | ColumnType::Object | ColumnType::Binary, _) if stored != kind => DataType::Null,
        _ => return Ok(Arc::clone(array)),
    };
    if *array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    let mut misfit = |row: usize| {
        let value = array_value_to_string(array, row).unwrap_or_default();
        let kind = if stored == ColumnType::Text { type_of(value.as_bytes()) } else { stored };
        faults.misfit(kind, place(row), value.as_bytes());
    };
    match (stored, kind) {
        (_, ColumnType::Text | ColumnType::Mixed) | (ColumnType::Int, ColumnType::Float) => {
            cast(array, &wanted)
        }
        (stored, kind) if stored == kind => cast(array, &wanted),
        (ColumnType::Float, ColumnType::Int) => whole(array, &mut misfit),
        (ColumnType::Text, _) if wanted != DataType::Null => parsed(array, kind, &mut misfit),
        _ => {
            (0..array.len()).filter(|row| array.is_valid(*row)).for_each(misfit);
            Ok(match wanted {
                DataType::Null => Arc::new(NullArray::new(array.len())),
                wanted => new_null_array(&wanted, array.len()),
            })
        }
    }
}

/// The type of strings that are kept as keys.
pub(super) fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// What the values of a stored type are.
pub(super) fn kind_of(data_type: &DataType) -> ColumnType {
    match data_type {
        DataType::Null => ColumnType::Null,
        DataType::Boolean => ColumnType::Bool,
        data_type if data_type.is_integer() => ColumnType::Int,
        data_type if data_type.is_floating() || data_type.is_decimal() => ColumnType::Float,
        DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 => ColumnType::Timestamp,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        DataType::Dictionary(_, values) => kind_of(values),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => ColumnType::List,
        DataType::Struct(_) | DataType::Map(_, _) => ColumnType::Object,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) => ColumnType::Int,
        _ => ColumnType::Binary,
    }
}

/// The same values in another type: none becomes null on the way.
fn cast(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, String> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, wanted, &options)
        .map_err(|error| format!("a column cannot be read as {wanted}: {error}"))
}

/// Numbers as whole numbers: one with a fraction does not fit.
fn whole(array: &ArrayRef, misfit: &mut dyn FnMut(usize)) -> Result<ArrayRef, String> {
    let numbers = cast(array, &DataType::Float64)?;
    let whole = cast_with_options(&numbers, &DataType::Int64, &CastOptions::default());
    let whole = whole.map_err(|error| error.to_string())?;
    let (numbers, whole) = (numbers.as_primitive::<Float64Type>(), whole.as_primitive::<Int64Type>());
    let fits = |row: usize| whole.is_valid(row) && whole.value(row) as f64 == numbers.value(row);
    let value = |row: usize| {
        let fits = numbers.is_valid(row) && fits(row);
        if numbers.is_valid(row) && !fits {
            misfit(row);
        }
        fits.then(|| whole.value(row))
    };
    Ok(Arc::new((0..numbers.len()).map(value).collect::<Int64Array>()))
}

/// Strings as what they write out.
fn parsed(array: &ArrayRef, kind: ColumnType, misfit: &mut dyn FnMut(usize)) -> Result<ArrayRef, String> {
    let strings = cast(array, &DataType::Utf8)?;
    let strings: &StringArray = strings.as_string();
    Ok(match kind {
        ColumnType::Int => Arc::new(each(strings, parse_int, misfit).collect::<Int64Array>()),
        ColumnType::Float => Arc::new(each(strings, parse_float, misfit).collect::<Float64Array>()),
        ColumnType::Bool => Arc::new(each(strings, parse_bool, misfit).collect::<BooleanArray>()),
        _ => Arc::new(each(strings, parse_timestamp, misfit).collect::<TimestampMicrosecondArray>()),
    })
}

fn each<'s, T>(
    strings: &'s StringArray,
    parse: fn(&[u8]) -> Option<T>,
    misfit: &'s mut dyn FnMut(usize),
) -> impl Iterator<Item = Option<T>> + 's
where
    T: 's,
{
    strings.iter().enumerate().map(move |(row, text)| {
        let value = parse(text?.as_bytes());
        if value.is_none() {
            misfit(row);
        }
        value
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{ListArray, TimestampSecondArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn misfits(array: ArrayRef, kind: ColumnType) -> (ArrayRef, Vec<(u64, String)>) {
        let mut faults = CellFaults::default();
        let place = |row: usize| Place { file: 0, row: row as u64 + 1 };
        let typed = canonical(&array, kind, &mut faults, &place).unwrap();
        assert_eq!(typed.len(), array.len());
        (typed, faults.examples.into_iter().map(|it| (it.place.row, it.detail)).collect())
    }

    /// Proves that a value of another type is a misfit at its row, whatever both types are, and that one which says the same
    /// in another type fits.
    #[test]
    fn a_value_of_another_type_is_a_misfit() {
        let texts = || -> ArrayRef { Arc::new(StringArray::from(vec![Some("1.5"), None, Some("7C")])) };
        let floats = || -> ArrayRef { Arc::new(Float64Array::from(vec![Some(1.0), None, Some(0.5)])) };
        let truths: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
        let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![0]));
        let lists: ArrayRef =
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]));
        for (array, kind, rows, nulls) in [
            (texts(), ColumnType::Float, vec![3], 2),
            (texts(), ColumnType::Int, vec![1, 3], 3),
            (texts(), ColumnType::Timestamp, vec![1, 3], 3),
            (texts(), ColumnType::Text, vec![], 1),
            (floats(), ColumnType::Int, vec![3], 2),
            (floats(), ColumnType::Text, vec![], 1),
            (floats(), ColumnType::List, vec![1, 3], 3),
            (truths.clone(), ColumnType::Int, vec![1, 2], 2),
            (times.clone(), ColumnType::Timestamp, vec![], 0),
            (times, ColumnType::Int, vec![1], 1),
            (lists, ColumnType::Float, vec![1], 1),
            (truths, ColumnType::Bool, vec![], 0),
        ] {
            let (typed, found) = misfits(Arc::clone(&array), kind);
            let found: Vec<u64> = found.into_iter().map(|(row, _)| row).collect();
            assert_eq!((found, typed.logical_null_count()), (rows, nulls), "{kind:?} {array:?}");
        }
        assert_eq!(misfits(texts(), ColumnType::Float).1, [(3, "7C".to_owned())]);
    }
}
