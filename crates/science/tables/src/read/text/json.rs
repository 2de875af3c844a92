//! A block of JSON lines into chunks. A line is a row; its object's keys are columns.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, BooleanBuilder, Float64Builder, Int64Builder, NullArray, StringArray,
    StringBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::blocks::Block;
use super::cells::{Missing, to_text};
use super::csv::chunk_rows;
use super::long_numbers::has_long_number;
use super::not_finite;
use crate::read::chunk::{Originals, RowNumbers, holds_strings};
use crate::read::coverage::{CellTally, Coverage};
use crate::read::numbers::{read_any_float, read_float};
use crate::read::{ChunkSink, Place, RejectKind, Stop, Wanted};
use crate::types::ColumnType;
use crate::types::infer::{Form, Style, date_form, form_of, whole_form};
use crate::types::times;

/// What is wrong with a line, without its content: a manifest is stored, and data may be private.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => "a JSON value that is not an object".into(),
        Category::Eof => "ends in the middle of a value".into(),
        Category::Syntax | Category::Io => {
            let message = error.to_string();
            let what = message.split(" at line ").next().unwrap_or_default();
            format!("{what}, column {}", error.column())
        }
    }
}

/// A key, borrowed from the line unless it holds escapes.
pub(crate) struct Key<'k>(pub(crate) Cow<'k, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// One value of a line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'t> {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number beyond those with a sign.
    Unsigned(u64),
    Float(f64),
    /// A number that a 64-bit one would round, as it is written.
    Long(Cow<'t, str>),
    Text(Cow<'t, str>),
    /// A list or an object, written out again.
    Nested(ColumnType, String),
}

impl<'t> Cell<'t> {
    /// What it shows of its column's type; `None` without a value.
    pub(crate) fn form(&self) -> Option<Form> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(_) => Form::Bool,
            Self::Int(number) if is_small(*number) => match *number < 0 {
                true => Form::Negative,
                false => Form::Whole,
            },
            Self::Int(number) => {
                let text = number.to_string();
                whole_form(text.as_bytes(), text.trim_start_matches('-').as_bytes())
            }
            Self::Unsigned(number) => {
                let text = number.to_string();
                whole_form(text.as_bytes(), text.as_bytes())
            }
            Self::Float(_) => Form::Float,
            Self::Long(text) => form_of(text.as_bytes()),
            Self::Text(text) => date_form(text.as_bytes()),
            Self::Nested(kind, _) => return Form::of_kind(*kind),
        })
    }

    /// As the file has it, without the quotes of a string.
    fn original(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Float(number) if number.is_finite() => {
                Some(Cow::Owned(serde_json::Value::from(*number).to_string()))
            }
            cell => Some(cell.to_text()),
        }
    }

    /// As it is within a list or an object that is written out: without blanks.
    fn written(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Owned(serde_json::Value::from(text.as_ref()).to_string()),
            cell => cell.original().unwrap_or(Cow::Borrowed("null")),
        }
    }

    pub(crate) fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Null => Cow::Borrowed("null"),
            Self::Bool(truth) => Cow::Owned(truth.to_string()),
            Self::Int(number) => Cow::Owned(number.to_string()),
            Self::Unsigned(number) => Cow::Owned(number.to_string()),
            Self::Float(number) => {
                not_finite::word(*number).map_or_else(|| Cow::Owned(number.to_string()), Cow::Borrowed)
            }
            Self::Long(text) | Self::Text(text) => Cow::Borrowed(text),
            Self::Nested(_, text) => Cow::Borrowed(text),
        }
    }

    /// The nearest float, and whether it is rounded; `None` where it is not a number, or, unless the type was given, a whole one
    /// that a float would round.
    fn as_float(&self, is_given: bool) -> Option<(f64, bool)> {
        let whole = |number: f64, is_exact: bool| (is_exact || is_given).then_some((number, !is_exact));
        match self {
            Self::Int(number) => {
                let float = *number as f64;
                whole(float, is_small(*number) || float as i128 == i128::from(*number))
            }
            Self::Unsigned(number) => {
                let float = *number as f64;
                whole(float, float as u128 == u128::from(*number))
            }
            Self::Float(number) => Some((*number, false)),
            Self::Long(text) => {
                let text = text.as_bytes();
                let read = if is_given { read_any_float(text) } else { read_float(text) };
                read.map(|read| (read.number, read.is_rounded))
            }
            _ => None,
        }
    }

    /// The same of a line that is not kept, with marked strings as the numbers that they are.
    fn unmarked(self) -> Cell<'static> {
        match self {
            Self::Null => Cell::Null,
            Self::Bool(truth) => Cell::Bool(truth),
            Self::Int(number) => Cell::Int(number),
            Self::Unsigned(number) => Cell::Unsigned(number),
            Self::Float(number) => Cell::Float(number),
            Self::Long(text) => Cell::Long(Cow::Owned(text.into_owned())),
            Self::Text(text) => match not_finite::number(&text) {
                Some(number) => Cell::Float(number),
                None => Cell::Text(Cow::Owned(text.into_owned())),
            },
            Self::Nested(kind, text) => Cell::Nested(kind, not_finite::unmarked(text)),
        }
    }

    /// From the text of a value in a line with numbers of many digits. Lists and objects that hold one stay as they are written.
    fn of_raw(text: &'t str) -> Result<Self, serde_json::Error> {
        let nested = |kind| Ok(Self::Nested(kind, text.to_owned()));
        match text.as_bytes().first() {
            Some(b'[') if has_long_number(text.as_bytes()) => nested(ColumnType::List),
            Some(b'{') if has_long_number(text.as_bytes()) => nested(ColumnType::Object),
            Some(b'-' | b'0'..=b'9') if has_long_number(text.as_bytes()) => {
                Ok(text.parse().map_or(Self::Long(Cow::Borrowed(text)), Self::Unsigned))
            }
            _ => serde_json::from_str(text),
        }
    }
}

/// Whether a 64-bit float surely holds a whole number.
fn is_small(number: i64) -> bool {
    number.unsigned_abs() <= 1 << 53
}

/// What the column of a key is called that a row has again.
pub(crate) fn repeated_name(key: &str, again: usize) -> String {
    format!("{key}.{again}")
}

/// Which column a key is.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    index: HashMap<String, usize>,
    /// The column of each key of the row before: most rows have the same keys in the same order.
    usual: Vec<(String, usize)>,
}

impl Keys {
    pub(crate) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let index = names.enumerate().map(|(index, name)| (name.to_owned(), index)).collect();
        Self { index, usual: Vec::new() }
    }

    fn find(&mut self, position: usize, key: &str) -> Option<usize> {
        if let Some((usual, column)) = self.usual.get(position)
            && usual == key
        {
            return Some(*column);
        }
        let column = self.named(key)?;
        if position <= self.usual.len() {
            self.usual.truncate(position);
            self.usual.push((key.to_owned(), column));
        }
        Some(column)
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

/// Reads a block. `columns` are those of the source; keys name them.
pub(crate) fn read_block(
    block: &Block,
    columns: &[Wanted],
    keys: &mut Keys,
    missing: &Missing,
    sink: &mut ChunkSink<'_>,
) -> Result<(), Stop> {
    let text = recode(block, sink);
    let mut parse: ParseLine<'_> = parse_line;
    if not_finite::may_have(text.as_bytes()) {
        parse = |line, take| parse_any_line(line.as_bytes(), take);
    }
    let mut rows = Rows { cells: vec![Vec::new(); columns.len()], lines: Vec::new(), parse };
    for (number, line) in text.split('\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        rows.take(line, block.first_line + number as u64, keys, sink.file, &mut sink.coverage);
        if rows.lines.len() == chunk_rows(columns.len()) {
            rows.give(columns, missing, sink)?;
        }
    }
    rows.give(columns, missing, sink)
}

/// The block, with its stray lines decoded as Windows-1252.
fn recode<'b>(block: &'b Block, sink: &mut ChunkSink<'_>) -> Cow<'b, str> {
    if let Ok(text) = std::str::from_utf8(&block.text) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(block.text.len() + block.text.len() / 8);
    for (number, line) in block.text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if std::str::from_utf8(line).is_err() {
            sink.coverage.recoded(Place { file: sink.file, row: block.first_line + number as u64 });
        }
        text.push_str(&to_text(line));
    }
    Cow::Owned(text)
}

/// Rows of the next chunk, column by column.
struct Rows<'t> {
    cells: Vec<Vec<Cell<'t>>>,
    lines: Vec<u64>,
    parse: ParseLine<'t>,
}

/// [`parse_line`], or [`parse_any_line`].
type ParseLine<'t> = fn(&'t str, &mut Take<'_, 't>) -> Result<(), serde_json::Error>;

impl<'t> Rows<'t> {
    fn take(&mut self, line: &'t str, number: u64, keys: &mut Keys, file: usize, coverage: &mut Coverage) {
        let rows = self.lines.len();
        let parse = self.parse;
        let read = parse(line, &mut |position, key, cell| {
            let Some(column) = keys.find(position, &key) else { return coverage.unknown_key(&key) };
            let column = match self.cells[column].len() > rows {
                false => Ok(column),
                true => self.place_again(&key, keys),
            };
            match column {
                Ok(column) => {
                    let cells = &mut self.cells[column];
                    if cells.len() < rows {
                        cells.resize(rows, Cell::Null);
                    }
                    cells.push(cell);
                }
                Err(name) => coverage.unknown_key(&name),
            }
        });
        match read {
            Ok(()) => self.lines.push(number),
            Err(error) => {
                self.cells.iter_mut().for_each(|cells| cells.truncate(rows));
                let place = Place { file, row: number };
                coverage.reject(RejectKind::BadJson, place, line.as_bytes(), || describe(&error));
            }
        }
    }

    /// The column of a key that the row has again, or what it would be called.
    fn place_again(&self, key: &str, keys: &Keys) -> Result<usize, String> {
        let names = (1..).map(|again| repeated_name(key, again));
        let mut places = names.map(|name| keys.named(&name).ok_or(name));
        let is_free = |place: &Result<usize, String>| match place {
            Ok(column) => self.cells[*column].len() <= self.lines.len(),
            Err(_) => true,
        };
        places.find(is_free).expect("a row has fewer keys than there are numbers")
    }

    fn give(&mut self, columns: &[Wanted], missing: &Missing, sink: &mut ChunkSink<'_>) -> Result<(), Stop> {
        let count = self.lines.len();
        let Some(first) = self.lines.first().copied() else { return Ok(()) };
        let mut faults = vec![sink.no_faults(); columns.len()];
        let mut arrays = Vec::with_capacity(columns.len());
        let mut originals = sink.keeps_originals().then(Originals::default);
        for (column, ((wanted, cells), faults)) in
            columns.iter().zip(&mut self.cells).zip(&mut faults).enumerate()
        {
            cells.resize(count, Cell::Null);
            let place = |row: usize| Place { file: sink.file, row: self.lines[row] };
            arrays.push(build(wanted, cells, missing, faults, place));
            if let Some(originals) = &mut originals {
                originals.take_cells(column, wanted.kind, cells);
            }
            cells.clear();
        }
        let offsets =
            self.lines.iter().map(|line| u32::try_from(line - first).expect("a block has fewer lines"));
        let numbers = RowNumbers::new(first, offsets.collect());
        self.lines.clear();
        sink.give((arrays, originals), count, numbers, faults)
    }
}

impl Originals {
    /// Takes over the cells of a column of this type.
    fn take_cells(&mut self, column: usize, kind: ColumnType, cells: &[Cell<'_>]) {
        self.columns.push(Arc::new(cells.iter().map(Cell::original).collect::<StringArray>()));
        let strings: Vec<bool> = cells.iter().map(|cell| matches!(cell, Cell::Text(_))).collect();
        if holds_strings(kind) {
            let is_value = |row: &usize| !strings[*row] && cells[*row] != Cell::Null;
            (0..cells.len()).filter(is_value).for_each(|row| self.marks.add(row, column, b""));
        }
        self.marks.strings.push(BooleanArray::from(strings));
    }
}

/// Parses one line and hands over its keys and values, with the key's position. Values of a line that turns out to
/// be broken may have been handed over before the error.
fn parse_line<'t>(line: &'t str, take: &mut Take<'_, 't>) -> Result<(), serde_json::Error> {
    parse(serde_json::Deserializer::from_str(line), has_long_number(line.as_bytes()), take)
}

fn parse<'t, R: serde_json::de::Read<'t>>(
    mut deserializer: serde_json::Deserializer<R>,
    has_long_numbers: bool,
    take: &mut Take<'_, 't>,
) -> Result<(), serde_json::Error> {
    Row { take, has_long_numbers }.deserialize(&mut deserializer).and_then(|()| deserializer.end())
}

/// The same of a line that may be no UTF-8, and may have numbers which JSON does not have.
pub(crate) fn parse_any_line<'t>(line: &'t [u8], take: &mut Take<'_, 't>) -> Result<(), serde_json::Error> {
    let has_long_numbers = has_long_number(line);
    let Some(marked) = not_finite::marked(line) else {
        return parse(serde_json::Deserializer::from_slice(line), has_long_numbers, take);
    };
    parse(serde_json::Deserializer::from_slice(&marked), has_long_numbers, &mut |position, key, cell| {
        take(position, Cow::Owned(key.into_owned()), cell.unmarked());
    })
}

fn build(
    wanted: &Wanted,
    cells: &[Cell<'_>],
    missing: &Missing,
    faults: &mut CellTally,
    place: impl Fn(usize) -> Place,
) -> ArrayRef {
    let misfit = |faults: &mut CellTally, row: usize, cell: &Cell<'_>| match (cell, cell.form()) {
        (_, None) => {}
        (Cell::Text(text), _) if missing.find(text.as_bytes()).is_some() => faults.missing(text, 1),
        (cell, Some(form)) => faults.misfit(form, place(row), cell.to_text().as_bytes()),
    };
    // The conversion gives a value, and whether it is rounded.
    macro_rules! typed {
        ($builder:ty, $convert:expr) => {{
            let mut builder = <$builder>::with_capacity(cells.len());
            for (row, cell) in cells.iter().enumerate() {
                match $convert(cell) {
                    Some((value, is_rounded)) => {
                        if is_rounded {
                            faults.count_rounded(place(row));
                        }
                        builder.append_value(value);
                    }
                    None => {
                        misfit(faults, row, cell);
                        builder.append_null();
                    }
                }
            }
            Arc::new(builder.finish())
        }};
    }
    match (wanted.kind, wanted.style) {
        (ColumnType::Int, Style::Unsigned) => typed!(UInt64Builder, |cell: &Cell<'_>| match cell {
            Cell::Int(number) => u64::try_from(*number).ok().map(|number| (number, false)),
            Cell::Unsigned(number) => Some((*number, false)),
            _ => None,
        }),
        (ColumnType::Int, _) => typed!(Int64Builder, |cell: &Cell<'_>| match cell {
            Cell::Int(number) => Some((*number, false)),
            _ => None,
        }),
        (ColumnType::Float, _) => typed!(Float64Builder, |cell: &Cell<'_>| cell.as_float(wanted.is_given)),
        (ColumnType::Bool, _) => typed!(BooleanBuilder, |cell: &Cell<'_>| match cell {
            Cell::Bool(truth) => Some((*truth, false)),
            _ => None,
        }),
        (ColumnType::Timestamp, style) => typed!(TimestampMicrosecondBuilder, |cell: &Cell<'_>| match cell {
            Cell::Text(text) => {
                times::parse(text.as_bytes(), style.first_of_date())
                    .map(|moment| (moment.micros, moment.is_cut))
            }
            _ => None,
        }),
        (ColumnType::Null, _) => {
            cells.iter().enumerate().for_each(|(row, cell)| misfit(faults, row, cell));
            Arc::new(NullArray::new(cells.len()))
        }
        _ => build_texts(wanted, cells, missing, faults, place),
    }
}

/// The same of a column of texts.
fn build_texts(
    wanted: &Wanted,
    cells: &[Cell<'_>],
    missing: &Missing,
    faults: &mut CellTally,
    place: impl Fn(usize) -> Place,
) -> ArrayRef {
    let mut builder = StringBuilder::with_capacity(cells.len(), cells.len() * 8);
    for (row, cell) in cells.iter().enumerate() {
        match cell {
            Cell::Null => builder.append_null(),
            Cell::Text(text) if missing.find(text.as_bytes()).is_some() => {
                if cell.form().is_some() {
                    faults.missing(text, 1);
                }
                builder.append_null();
            }
            cell => {
                let is_other = !matches!(cell, Cell::Text(_)) && !wanted.is_kept;
                if is_other && holds_strings(wanted.kind) {
                    faults.count_rounded(place(row));
                }
                builder.append_value(cell.to_text());
            }
        }
    }
    Arc::new(builder.finish())
}

pub(crate) type Take<'a, 't> = dyn FnMut(usize, Cow<'t, str>, Cell<'t>) + 'a;

/// Reads one object. Where it has numbers of many digits, its values are read as the texts that they are: the library would
/// round such numbers.
struct Row<'a, 't> {
    take: &'a mut Take<'a, 't>,
    has_long_numbers: bool,
}

impl<'de> DeserializeSeed<'de> for Row<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut position = 0;
        while let Some(Key(key)) = map.next_key()? {
            let cell = match self.has_long_numbers {
                false => map.next_value()?,
                true => Cell::of_raw(map.next_value::<&'de RawValue>()?.get()).map_err(A::Error::custom)?,
            };
            (self.take)(position, key, cell);
            position += 1;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Cell<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Cell<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Cell<'de>, E> {
        Ok(Cell::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Cell<'de>, E> {
        Ok(Cell::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Cell<'de>, E> {
        Ok(Cell::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Cell<'de>, E> {
        Ok(i64::try_from(number).map_or(Cell::Unsigned(number), Cell::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Cell<'de>, E> {
        Ok(Cell::Float(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cell<'de>, E> {
        Ok(Cell::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cell<'de>, E> {
        Ok(Cell::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Cell<'de>, A::Error> {
        let mut texts = Vec::new();
        while let Some(item) = items.next_element::<Cell<'de>>()? {
            texts.push(item.written().into_owned());
        }
        Ok(Cell::Nested(ColumnType::List, format!("[{}]", texts.join(","))))
    }

    /// Keys are sorted. One that an object has twice is there twice.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cell<'de>, A::Error> {
        let mut members: Vec<(Cow<'de, str>, String)> = Vec::new();
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, Cell<'de>>()? {
            members.push((key, value.written().into_owned()));
        }
        members.sort_by(|one, other| one.0.cmp(&other.0));
        let texts = members.into_iter().map(|(key, text)| format!("{}:{text}", serde_json::Value::from(key)));
        let text = format!("{{{}}}", texts.collect::<Vec<_>>().join(","));
        Ok(Cell::Nested(ColumnType::Object, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(line: &str) -> Vec<Cell<'_>> {
        let mut cells = Vec::new();
        parse_line(line, &mut |_, _, cell| cells.push(cell)).unwrap();
        cells
    }

    /// Proves that a number of many digits is kept as it is written, beside values and in lists, and that others are read as
    /// before.
    #[test]
    fn numbers_of_many_digits_keep_them() {
        let long = |text: &'static str| Cell::Long(Cow::Borrowed(text));
        let found = cells(
            r#"{"a":18446744073709551617,"b":0.1234567890123456789,"c":[1,18446744073709551617],"d":1.5,"e":"x","f":null}"#,
        );
        let nested = Cell::Nested(ColumnType::List, "[1,18446744073709551617]".to_owned());
        let expected = [
            long("18446744073709551617"),
            long("0.1234567890123456789"),
            nested,
            Cell::Float(1.5),
            Cell::Text(Cow::Borrowed("x")),
            Cell::Null,
        ];
        assert_eq!(found, expected);
        assert_eq!(cells(r#"{"a":18446744073709551615}"#), [Cell::Unsigned(u64::MAX)]);
        assert_eq!(cells(r#"{"a":-9223372036854775808}"#), [Cell::Int(i64::MIN)]);
        assert_eq!(cells(r#"{"a":0.30000000000000004}"#), [Cell::Float(0.1 + 0.2)]);
        assert_eq!(cells(r#"{"a":123456789012345.68}"#), [long("123456789012345.68")]);
        assert_eq!(cells(r#"{"a":123456789012345.67}"#), [Cell::Float(123_456_789_012_345.67)]);
        assert_eq!(cells(r#"{"a":-1.2345678901234567e-25}"#), [long("-1.2345678901234567e-25")]);
    }
}
