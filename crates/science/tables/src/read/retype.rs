//! A column of a Parquet file in the type that the source gives it. A value that does not fit is a misfit, as in a text file.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, NullArray, StringArray,
    TimestampMicrosecondArray, UInt64Array, new_null_array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Decimal128Type, DecimalType as _, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
    TimestampNanosecondType, UInt64Type,
};
use arrow::util::display::array_value_to_string;

use super::coverage::CellTally;
use super::numbers::{is_shortest, parse_any_int, parse_any_unsigned, read_any_float};
use super::text::cells::parse_bool;
use super::{Place, Wanted};
use crate::types::ColumnType;
use crate::types::infer::{Form, Style, form_of};
use crate::types::times;

/// The array in the type that belongs to the column's; see [`super::Chunk`]. A value that does not fit becomes null, and a fault
/// at the place of its row.
///
/// # Errors
/// Values of the right type that cannot be converted.
pub(super) fn canonical(
    array: &ArrayRef,
    wanted: &Wanted,
    faults: &mut CellTally,
    place: &dyn Fn(usize) -> Place,
) -> Result<ArrayRef, String> {
    let kind = wanted.kind;
    let stored = kind_of(array.data_type());
    let to = match (kind, array.data_type()) {
        (_, DataType::Null) => return Ok(Arc::clone(array)),
        (ColumnType::Int, _) if wanted.style == Style::Unsigned => DataType::UInt64,
        (ColumnType::Int, _) => DataType::Int64,
        (ColumnType::Float, _) => DataType::Float64,
        (ColumnType::Bool, _) => DataType::Boolean,
        (ColumnType::Timestamp, _) => DataType::Timestamp(TimeUnit::Microsecond, None),
        (ColumnType::Text | ColumnType::Mixed, DataType::Dictionary(_, _)) => dictionary_type(),
        (ColumnType::Text | ColumnType::Mixed, _) => DataType::Utf8,
        (ColumnType::List | ColumnType::Object | ColumnType::Binary, _) if stored != kind => DataType::Null,
        _ => return Ok(Arc::clone(array)),
    };
    if *array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    if matches!(kind, ColumnType::Text | ColumnType::Mixed) {
        return cast(array, &to);
    }
    // Of categories that are not strings, each value counts.
    if let DataType::Dictionary(_, values) = array.data_type()
        && stored != ColumnType::Text
    {
        return canonical(&cast(array, values)?, wanted, faults, place);
    }
    let mut column = Retyped { array, wanted, faults, place };
    match (stored, kind) {
        _ if array.data_type().is_decimal() && matches!(kind, ColumnType::Int | ColumnType::Float) => {
            column.decimals()
        }
        (ColumnType::Int, ColumnType::Int) => column.other_integers(&to),
        (ColumnType::Int, ColumnType::Float) => column.integers_as_floats(),
        (ColumnType::Timestamp, ColumnType::Timestamp) => column.times(&to),
        (stored, kind) if stored == kind => cast(array, &to),
        (ColumnType::Float, ColumnType::Int) => column.whole(&to),
        (ColumnType::Text, _) if to != DataType::Null => column.parsed(),
        _ => {
            let form = Form::of_kind(stored);
            (0..array.len()).filter(|row| array.is_valid(*row)).for_each(|row| column.misfit(row, form));
            Ok(match to {
                DataType::Null => Arc::new(NullArray::new(array.len())),
                to => new_null_array(&to, array.len()),
            })
        }
    }
}

/// The type of strings that are kept as keys.
pub(super) fn dictionary_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// What the values of a stored type are, as far as the type says it.
pub(super) fn kind_of(data_type: &DataType) -> ColumnType {
    match data_type {
        DataType::Null => ColumnType::Null,
        DataType::Boolean => ColumnType::Bool,
        data_type if data_type.is_integer() => ColumnType::Int,
        data_type if data_type.is_floating() => ColumnType::Float,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => {
            if *scale <= 0 {
                ColumnType::Int
            } else {
                ColumnType::Float
            }
        }
        DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 => ColumnType::Timestamp,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnType::Text,
        DataType::Dictionary(_, values) => kind_of(values),
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _) => ColumnType::List,
        DataType::Struct(_) | DataType::Map(_, _) => ColumnType::Object,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) => ColumnType::Int,
        _ => ColumnType::Binary,
    }
}

/// The form of the values of a stored type, as far as the type says it.
pub(super) fn stored_form(data_type: &DataType) -> Option<Form> {
    match data_type {
        DataType::UInt64 => Some(Form::Unsigned),
        data_type => Form::of_kind(kind_of(data_type)),
    }
}

/// The same values in another type: none becomes null on the way.
fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, String> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options)
        .map_err(|error| format!("a column cannot be read as {to}: {error}"))
}

/// An array that is read as another type.
struct Retyped<'r> {
    array: &'r ArrayRef,
    wanted: &'r Wanted,
    faults: &'r mut CellTally,
    place: &'r dyn Fn(usize) -> Place,
}

impl Retyped<'_> {
    /// A value that does not fit; without a form, that of the text that it is.
    fn misfit(&mut self, row: usize, form: Option<Form>) {
        let value = array_value_to_string(self.array, row).unwrap_or_default();
        let form = form.unwrap_or_else(|| form_of(value.as_bytes()));
        self.faults.misfit(form, (self.place)(row), value.as_bytes());
    }

    fn rounded(&mut self, row: usize) {
        self.faults.count_rounded((self.place)(row));
    }

    /// Each value of the rows that have one; one that does not fit is a misfit.
    fn each<T>(&mut self, mut value: impl FnMut(&mut Self, usize) -> Option<T>) -> Vec<Option<T>> {
        let (rows, nulls) = (0..self.array.len(), self.array.logical_nulls());
        rows.map(|row| {
            let is_valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let found = is_valid.then(|| value(self, row)).flatten();
            if is_valid && found.is_none() {
                self.misfit(row, None);
            }
            found
        })
        .collect()
    }

    /// Whole numbers of another width.
    fn other_integers(&mut self, to: &DataType) -> Result<ArrayRef, String> {
        let array = self.array;
        match (array.data_type(), to) {
            (DataType::UInt64, _) => {
                let numbers = array.as_primitive::<UInt64Type>();
                let values = self.each(|_, row| i64::try_from(numbers.value(row)).ok());
                Ok(Arc::new(Int64Array::from(values)))
            }
            (_, DataType::UInt64) => {
                let wide = cast(array, &DataType::Int64)?;
                let numbers = wide.as_primitive::<Int64Type>();
                let values = self.each(|_, row| u64::try_from(numbers.value(row)).ok());
                Ok(Arc::new(UInt64Array::from(values)))
            }
            _ => cast(array, to),
        }
    }

    /// Whole numbers beside floats: one that a float would round does not fit.
    fn integers_as_floats(&mut self) -> Result<ArrayRef, String> {
        const EXACT_MAX: u64 = 1 << 53;
        let array = self.array;
        let floats = cast(array, &DataType::Float64)?;
        let size = |row: usize| match array.data_type() {
            DataType::Int64 => array.as_primitive::<Int64Type>().value(row).unsigned_abs(),
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row),
            _ => 0,
        };
        let is_rounded =
            |row: usize| size(row) > EXACT_MAX && size(row) as f64 as u128 != u128::from(size(row));
        let rounded: Vec<usize> =
            (0..array.len()).filter(|row| array.is_valid(*row) && is_rounded(*row)).collect();
        if rounded.is_empty() {
            return Ok(floats);
        }
        if self.wanted.is_given {
            rounded.iter().for_each(|row| self.rounded(*row));
            return Ok(floats);
        }
        let floats = floats.as_primitive::<Float64Type>();
        let values = self.each(|_, row| (!is_rounded(row)).then(|| floats.value(row)));
        Ok(Arc::new(Float64Array::from(values)))
    }

    /// Times in microseconds; what is written beyond these is cut, and a time that no such number of 64 bits reaches does not fit:
    /// writers mark infinity so.
    fn times(&mut self, to: &DataType) -> Result<ArrayRef, String> {
        let micros = match self.array.data_type() {
            DataType::Date32 => 86_400_000_000,
            DataType::Timestamp(TimeUnit::Second, _) => 1_000_000,
            DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000,
            _ => return self.short_times(to),
        };
        let numbers = cast(self.array, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        let times = numbers.unary_opt::<_, TimestampMicrosecondType>(|number| number.checked_mul(micros));
        if times.null_count() > numbers.null_count() {
            for row in (0..numbers.len()).filter(|row| numbers.is_valid(*row) && times.is_null(*row)) {
                let number = numbers.value(row).to_string();
                self.faults.misfit(Form::Time, (self.place)(row), number.as_bytes());
            }
        }
        Ok(Arc::new(times))
    }

    /// Times in microseconds or less.
    fn short_times(&mut self, to: &DataType) -> Result<ArrayRef, String> {
        if let DataType::Timestamp(TimeUnit::Nanosecond, _) = self.array.data_type() {
            let nanos = self.array.as_primitive::<TimestampNanosecondType>();
            let is_cut = |row: &usize| nanos.is_valid(*row) && nanos.value(*row) % 1000 != 0;
            for row in (0..nanos.len()).filter(is_cut) {
                self.rounded(row);
            }
        }
        cast(self.array, to)
    }

    /// Floats as whole numbers: one with a fraction does not fit.
    fn whole(&mut self, to: &DataType) -> Result<ArrayRef, String> {
        let numbers = cast(self.array, &DataType::Float64)?;
        let whole = cast_with_options(&numbers, to, &CastOptions::default());
        let whole = whole.map_err(|error| error.to_string())?;
        let back = cast(&whole, &DataType::Float64)?;
        let (numbers, back) = (numbers.as_primitive::<Float64Type>(), back.as_primitive::<Float64Type>());
        let fits = |row: usize| back.is_valid(row) && back.value(row) == numbers.value(row);
        let misfits: Vec<usize> =
            (0..numbers.len()).filter(|row| numbers.is_valid(*row) && !fits(*row)).collect();
        misfits.iter().for_each(|row| self.misfit(*row, Some(Form::Float)));
        Ok(match to {
            DataType::UInt64 => {
                let whole = whole.as_primitive::<UInt64Type>();
                let value = |row: usize| fits(row).then(|| whole.value(row));
                Arc::new((0..whole.len()).map(value).collect::<UInt64Array>())
            }
            _ => {
                let whole = whole.as_primitive::<Int64Type>();
                let value = |row: usize| fits(row).then(|| whole.value(row));
                Arc::new((0..whole.len()).map(value).collect::<Int64Array>())
            }
        })
    }

    /// Decimal numbers as whole ones or as floats: one that these do not hold exactly does not fit.
    fn decimals(&mut self) -> Result<ArrayRef, String> {
        let array = self.array;
        let DataType::Decimal128(precision, scale) = *array.data_type() else { return self.parsed() };
        let numbers = array.as_primitive::<Decimal128Type>();
        let whole = |row: usize| whole_part(numbers.value(row), scale);
        Ok(match (self.wanted.kind, self.wanted.style) {
            (ColumnType::Int, Style::Unsigned) => {
                let values = self.each(|_, row| u64::try_from(whole(row)?).ok());
                Arc::new(UInt64Array::from(values))
            }
            (ColumnType::Int, _) => {
                let values = self.each(|_, row| i64::try_from(whole(row)?).ok());
                Arc::new(Int64Array::from(values))
            }
            _ => {
                let text = |row: usize| Decimal128Type::format_decimal(numbers.value(row), precision, scale);
                Arc::new(Float64Array::from(self.floats(|row| {
                    short_decimal(numbers.value(row), scale).map_or_else(|| Err(text(row)), Ok)
                })))
            }
        })
    }

    /// Floats from decimal numbers, of which those that are not short are given as texts.
    fn floats(&mut self, number: impl Fn(usize) -> Result<f64, String>) -> Vec<Option<f64>> {
        let rows = 0..self.array.len();
        rows.map(|row| {
            if self.array.is_null(row) {
                return None;
            }
            let text = match number(row) {
                Ok(number) => return Some(number),
                Err(text) => text,
            };
            let nearest = text.parse::<f64>().ok()?;
            if is_shortest(&text, nearest) {
                return Some(nearest);
            }
            if self.wanted.is_given {
                self.rounded(row);
                return Some(nearest);
            }
            self.misfit(row, Some(Form::Digits));
            None
        })
        .collect()
    }

    /// Strings as what they write out.
    fn parsed(&mut self) -> Result<ArrayRef, String> {
        let strings = cast(self.array, &DataType::Utf8)?;
        let strings: &StringArray = strings.as_string();
        let bytes = |row: usize| strings.value(row).as_bytes();
        Ok(match (self.wanted.kind, self.wanted.style) {
            (ColumnType::Int, Style::Unsigned) => {
                Arc::new(UInt64Array::from(self.each(|_, row| parse_any_unsigned(bytes(row)))))
            }
            (ColumnType::Int, _) => Arc::new(Int64Array::from(self.each(|_, row| parse_any_int(bytes(row))))),
            (ColumnType::Float, _) if self.array.data_type().is_decimal() => {
                let values = self.floats(|row| Err(strings.value(row).to_owned()));
                Arc::new(Float64Array::from(values))
            }
            (ColumnType::Float, _) => Arc::new(Float64Array::from(self.each(|column, row| {
                let read = read_any_float(bytes(row))?;
                if read.is_rounded {
                    column.rounded(row);
                }
                Some(read.number)
            }))),
            (ColumnType::Bool, _) => Arc::new(BooleanArray::from(self.each(|_, row| parse_bool(bytes(row))))),
            (_, style) => Arc::new(TimestampMicrosecondArray::from(self.each(|column, row| {
                let moment = times::parse(bytes(row), style.first_of_date())?;
                if moment.is_cut {
                    column.rounded(row);
                }
                Some(moment.micros)
            }))),
        })
    }
}

/// A decimal number without its fraction, unless it has one.
fn whole_part(digits: i128, scale: i8) -> Option<i128> {
    let power = 10i128.checked_pow(u32::from(scale.unsigned_abs()))?;
    if scale > 0 { (digits % power == 0).then(|| digits / power) } else { digits.checked_mul(power) }
}

/// A decimal number of at most 15 digits: a float is exactly one of these. `None` for others.
fn short_decimal(digits: i128, scale: i8) -> Option<f64> {
    const DIGITS_END: u128 = 1_000_000_000_000_000;
    const SCALE_MAX: i8 = 22;
    let is_short = digits.unsigned_abs() < DIGITS_END && (0..=SCALE_MAX).contains(&scale);
    is_short.then(|| digits as f64 / 10f64.powi(i32::from(scale)))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Date32Array, Decimal128Array, Decimal256Array, ListArray, TimestampNanosecondArray,
        TimestampSecondArray,
    };
    use arrow::datatypes::{Int32Type, i256};

    use super::*;

    fn read(array: &ArrayRef, kind: ColumnType, style: Style) -> (ArrayRef, CellTally) {
        let mut faults = CellTally::default();
        let place = |row: usize| Place { file: 0, row: row as u64 + 1 };
        let wanted = Wanted { field: Some(0), kind, style, is_given: false, is_kept: false };
        let typed = canonical(array, &wanted, &mut faults, &place).unwrap();
        assert_eq!(typed.len(), array.len());
        (typed, faults)
    }

    fn misfits(array: ArrayRef, kind: ColumnType) -> (ArrayRef, Vec<(u64, String)>) {
        let (typed, faults) = read(&array, kind, Style::Usual);
        (typed, faults.faults.examples.into_iter().map(|it| (it.place.row, it.detail)).collect())
    }

    /// Proves that no decimal number and no whole one becomes another on the way: what the type does not hold exactly is a
    /// misfit, which says that the column needs another type.
    #[test]
    fn numbers_are_exact_or_misfits() {
        let decimal = |digits: Vec<i128>, scale: i8| -> ArrayRef {
            Arc::new(Decimal128Array::from(digits).with_precision_and_scale(38, scale).unwrap())
        };
        let long = 9_007_199_254_740_993;
        let wide: ArrayRef = Arc::new(
            Decimal256Array::from(vec![i256::from_i128(7), i256::from_i128(i128::MAX)])
                .with_precision_and_scale(76, 0)
                .unwrap(),
        );
        let integers: ArrayRef = Arc::new(Int64Array::from(vec![long as i64, 4, -1]));
        let unsigned: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX, 4]));
        for (array, kind, style, forms) in [
            (decimal(vec![1, long, i128::MAX / 2], 0), ColumnType::Int, Style::Usual, vec![Form::Digits]),
            (decimal(vec![1, i128::from(u64::MAX)], 0), ColumnType::Int, Style::Unsigned, vec![]),
            (
                decimal(vec![1, i128::from(u64::MAX)], 0),
                ColumnType::Int,
                Style::Usual,
                vec![Form::LongUnsigned],
            ),
            (decimal(vec![-1], 0), ColumnType::Int, Style::Unsigned, vec![Form::Negative]),
            (
                decimal(vec![150, 12_345_678_901_234_567_891], 2),
                ColumnType::Float,
                Style::Usual,
                vec![Form::Digits],
            ),
            (decimal(vec![1_500_000_000_000_000_000, -1], 18), ColumnType::Float, Style::Usual, vec![]),
            (wide, ColumnType::Int, Style::Usual, vec![Form::Digits]),
            (integers.clone(), ColumnType::Float, Style::Usual, vec![Form::LongWhole]),
            (integers, ColumnType::Int, Style::Unsigned, vec![Form::Negative]),
            (unsigned.clone(), ColumnType::Int, Style::Unsigned, vec![]),
            (unsigned.clone(), ColumnType::Int, Style::Usual, vec![Form::LongUnsigned]),
            (unsigned, ColumnType::Float, Style::Usual, vec![Form::LongUnsigned]),
        ] {
            let (typed, faults) = read(&array, kind, style);
            let found: Vec<Form> = faults.misfit_forms.keys().copied().collect();
            assert_eq!(
                (found, typed.null_count() as u64),
                (forms, faults.faults.misfits),
                "{kind:?} {array:?}"
            );
        }
        let (typed, _) = read(&decimal(vec![1_500_000_000_000_000_000], 18), ColumnType::Float, Style::Usual);
        assert_eq!(typed.as_primitive::<Float64Type>().value(0), 1.5);
        let (typed, _) = read(&decimal(vec![i128::MAX / 2], 0), ColumnType::Text, Style::Usual);
        assert_eq!(array_value_to_string(&typed, 0).unwrap(), (i128::MAX / 2).to_string());
    }

    /// Proves that nanoseconds, which are cut, are counted with their first row.
    #[test]
    fn cut_nanoseconds_are_counted() {
        let times: ArrayRef =
            Arc::new(TimestampNanosecondArray::from(vec![Some(1_000), None, Some(1_001), Some(1)]));
        let (_, faults) = read(&times, ColumnType::Timestamp, Style::Usual);
        let rounded = faults.faults.rounded;
        let first = rounded.first.map(|place| place.row);
        assert_eq!((rounded.count, first, faults.faults.misfits), (2, Some(3), 0));
    }

    /// Proves that a date or a time beyond those that microseconds reach, with which writers mark infinity, is a misfit at its row and
    /// that the others of the column are read.
    #[test]
    fn times_beyond_microseconds_are_misfits() {
        let dates: ArrayRef =
            Arc::new(Date32Array::from(vec![Some(i32::MAX), None, Some(1), Some(i32::MIN)]));
        let (typed, found) = misfits(dates, ColumnType::Timestamp);
        assert_eq!(found, [(1, i32::MAX.to_string()), (4, i32::MIN.to_string())]);
        assert_eq!(typed.as_primitive::<TimestampMicrosecondType>().value(2), 86_400_000_000);
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![1, i64::MAX]));
        let (typed, found) = misfits(seconds, ColumnType::Timestamp);
        assert_eq!(found, [(2, i64::MAX.to_string())]);
        assert_eq!(typed.as_primitive::<TimestampMicrosecondType>().value(0), 1_000_000);
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
