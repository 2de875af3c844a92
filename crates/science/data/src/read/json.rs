//! A block of JSON lines into chunks. A line is a row; its object's keys are columns.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::TimestampMicrosecondBuilder;
use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, NullArray, StringArray, StringBuilder,
};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::blocks::Block;
use super::cells::{Missing, parse_timestamp, to_text};
use super::chunk::RowNumbers;
use super::coverage::{CellFaults, Coverage, Place, RejectKind};
use super::csv::chunk_rows;
use super::{ChunkSink, Stop};
use crate::infer::{ColumnType, is_timestamp};

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
    Float(f64),
    Text(Cow<'t, str>),
    /// A list or an object, written out again.
    Nested(ColumnType, String),
}

impl Cell<'_> {
    pub(crate) fn kind(&self) -> ColumnType {
        match self {
            Self::Null => ColumnType::Null,
            Self::Bool(_) => ColumnType::Bool,
            Self::Int(_) => ColumnType::Int,
            Self::Float(_) => ColumnType::Float,
            Self::Text(text) if is_timestamp(text.as_bytes()) => ColumnType::Timestamp,
            Self::Text(_) => ColumnType::Text,
            Self::Nested(kind, _) => *kind,
        }
    }

    /// As the file has it, without the quotes of a string.
    fn original(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Float(number) => Some(Cow::Owned(serde_json::Value::from(*number).to_string())),
            cell => Some(cell.to_text()),
        }
    }

    fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Null => Cow::Borrowed("null"),
            Self::Bool(truth) => Cow::Owned(truth.to_string()),
            Self::Int(number) => Cow::Owned(number.to_string()),
            Self::Float(number) => Cow::Owned(number.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Nested(_, text) => Cow::Borrowed(text),
        }
    }
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
        let column = *self.index.get(key)?;
        if position <= self.usual.len() {
            self.usual.truncate(position);
            self.usual.push((key.to_owned(), column));
        }
        Some(column)
    }
}

/// Reads a block. `columns` has the type of each column of the source; keys name them.
pub(crate) fn read_block(
    block: &Block,
    columns: &[ColumnType],
    keys: &mut Keys,
    missing: &Missing,
    sink: &mut ChunkSink<'_>,
) -> Result<(), Stop> {
    let mut rows = Rows { cells: vec![Vec::new(); columns.len()], lines: Vec::new() };
    let recoded = recode(block, sink);
    let text = recoded.as_deref().unwrap_or(&block.text);
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
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

/// The block with its stray lines decoded as Windows-1252; `None` if there are none.
fn recode(block: &Block, sink: &mut ChunkSink<'_>) -> Option<Vec<u8>> {
    if std::str::from_utf8(&block.text).is_ok() {
        return None;
    }
    let mut text = Vec::with_capacity(block.text.len() + block.text.len() / 8);
    for (number, line) in block.text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if std::str::from_utf8(line).is_err() {
            sink.coverage.recoded(Place { file: sink.file, row: block.first_line + number as u64 });
        }
        text.extend_from_slice(to_text(line).as_bytes());
    }
    Some(text)
}

/// Rows of the next chunk, column by column.
struct Rows<'t> {
    cells: Vec<Vec<Cell<'t>>>,
    lines: Vec<u64>,
}

impl<'t> Rows<'t> {
    fn take(&mut self, line: &'t [u8], number: u64, keys: &mut Keys, file: usize, coverage: &mut Coverage) {
        let rows = self.lines.len();
        match parse_line(line, &mut |position, key, cell| match keys.find(position, &key) {
            Some(column) => {
                let cells = &mut self.cells[column];
                cells.resize(rows, Cell::Null);
                cells.push(cell);
            }
            None => coverage.unknown_key(&key),
        }) {
            Ok(()) => self.lines.push(number),
            Err(error) => {
                self.cells.iter_mut().for_each(|cells| cells.truncate(rows));
                coverage.reject(RejectKind::BadJson, Place { file, row: number }, line, || describe(&error));
            }
        }
    }

    fn give(
        &mut self,
        columns: &[ColumnType],
        missing: &Missing,
        sink: &mut ChunkSink<'_>,
    ) -> Result<(), Stop> {
        let count = self.lines.len();
        let Some(first) = self.lines.first().copied() else { return Ok(()) };
        let mut faults = vec![sink.no_faults(); columns.len()];
        let mut arrays = Vec::with_capacity(columns.len());
        let mut originals: Option<Vec<ArrayRef>> = sink.keeps_originals().then(Vec::new);
        for ((kind, cells), faults) in columns.iter().zip(&mut self.cells).zip(&mut faults) {
            cells.resize(count, Cell::Null);
            let place = |row: usize| Place { file: sink.file, row: self.lines[row] };
            arrays.push(build(*kind, cells, missing, faults, place));
            if let Some(originals) = &mut originals {
                originals.push(Arc::new(cells.iter().map(Cell::original).collect::<StringArray>()));
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

/// Parses one line and hands over its keys and values, with the key's position. Values of a line that turns out to
/// be broken may have been handed over before the error.
pub(crate) fn parse_line<'t>(
    line: &'t [u8],
    take: &mut dyn FnMut(usize, Cow<'t, str>, Cell<'t>),
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    Row(take).deserialize(&mut deserializer).and_then(|()| deserializer.end())
}

fn build(
    kind: ColumnType,
    cells: &[Cell<'_>],
    missing: &Missing,
    faults: &mut CellFaults,
    place: impl Fn(usize) -> Place,
) -> ArrayRef {
    let mut misfit = |row: usize, cell: &Cell<'_>| match cell {
        Cell::Null => {}
        Cell::Text(text) if missing.find(text.as_bytes()).is_some() => faults.missing(text, 1),
        cell => faults.misfit(cell.kind(), place(row), cell.to_text().as_bytes()),
    };
    macro_rules! typed {
        ($builder:ty, $convert:expr) => {{
            let mut builder = <$builder>::with_capacity(cells.len());
            for (row, cell) in cells.iter().enumerate() {
                let value = $convert(cell);
                if value.is_none() {
                    misfit(row, cell);
                }
                builder.append_option(value);
            }
            Arc::new(builder.finish())
        }};
    }
    match kind {
        ColumnType::Int => typed!(Int64Builder, |cell: &Cell<'_>| match cell {
            Cell::Int(number) => Some(*number),
            _ => None,
        }),
        ColumnType::Float => typed!(Float64Builder, |cell: &Cell<'_>| match cell {
            Cell::Int(number) => Some(*number as f64),
            Cell::Float(number) => Some(*number),
            _ => None,
        }),
        ColumnType::Bool => typed!(BooleanBuilder, |cell: &Cell<'_>| match cell {
            Cell::Bool(truth) => Some(*truth),
            _ => None,
        }),
        ColumnType::Timestamp => typed!(TimestampMicrosecondBuilder, |cell: &Cell<'_>| match cell {
            Cell::Text(text) => parse_timestamp(text.as_bytes()),
            _ => None,
        }),
        ColumnType::Null => {
            cells.iter().enumerate().for_each(|(row, cell)| misfit(row, cell));
            Arc::new(NullArray::new(cells.len()))
        }
        _ => {
            let mut builder = StringBuilder::with_capacity(cells.len(), cells.len() * 8);
            for (row, cell) in cells.iter().enumerate() {
                match cell {
                    Cell::Null => builder.append_null(),
                    Cell::Text(text) if missing.find(text.as_bytes()).is_some() => {
                        misfit(row, cell);
                        builder.append_null();
                    }
                    cell => builder.append_value(cell.to_text()),
                }
            }
            Arc::new(builder.finish())
        }
    }
}

type Take<'a, 't> = dyn FnMut(usize, Cow<'t, str>, Cell<'t>) + 'a;

/// Reads one object.
struct Row<'a, 't>(&'a mut Take<'a, 't>);

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
            let cell = map.next_value()?;
            (self.0)(position, key, cell);
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
        Ok(i64::try_from(number).map_or(Cell::Float(number as f64), Cell::Int))
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

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Cell<'de>, A::Error> {
        let value = serde_json::Value::deserialize(SeqAccessDeserializer::new(items))?;
        Ok(Cell::Nested(ColumnType::List, value.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Cell<'de>, A::Error> {
        let value = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Cell::Nested(ColumnType::Object, value.to_string()))
    }
}
