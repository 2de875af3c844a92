//! The TOML document as a tree whose every key and value has its place: in the file or in a change of it.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::runfile::error::RunFileError;

/// The place of a key or a value: bytes of one of the [`Sources`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) source_index: usize,
    pub(crate) span: Range<usize>,
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

impl Node {
    /// The place of a part of the string that this node holds. A string with escapes, or on several lines, is only
    /// reported as a whole: its bytes in the file are others.
    pub(crate) fn within(&self, text: &str, part: Range<usize>) -> Place {
        let quotes = match self.place.span.len().checked_sub(text.len()) {
            Some(0) => 0,
            Some(2) => 1,
            _ => return self.place.clone(),
        };
        let start = self.place.span.start + quotes;
        Place { source_index: self.place.source_index, span: start + part.start..start + part.end }
    }
}

/// A TOML value. Integers past 64 bits and datetimes keep their text; no key wants them.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    Other(&'static str),
    List(Vec<Node>),
    Table(Table),
}

/// A table in key order.
pub(crate) type Table = BTreeMap<String, Entry>;

/// A key's place and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Value {
    /// The value's type, as error messages name it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Other(kind) => kind,
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// The texts that spans point into: the run file first, then one per change.
pub(crate) struct Sources {
    /// What each text is called in messages.
    pub(crate) names: Vec<String>,
    pub(crate) texts: Vec<String>,
}

impl Sources {
    /// An error at a place, with line and column worked out.
    pub(crate) fn error(&self, place: &Place, message: String, hint: Option<String>) -> RunFileError {
        let text = self.texts.get(place.source_index).map_or("", String::as_str);
        let in_override = place.source_index > 0;
        let name = self.names.get(place.source_index).map_or("", String::as_str);
        let error = RunFileError::at(name, text, place.span.clone(), message, hint);
        RunFileError { override_text: in_override.then(|| text.to_owned()), ..error }
    }
}

/// The tree of a parsed document. `offset` is added to every span.
pub(crate) fn from_toml(table: &Spanned<DeTable<'_>>, source_index: usize, offset: usize) -> Node {
    Converter { source_index, offset }.table(table.get_ref(), table.span())
}

/// The tree of a single parsed value.
pub(crate) fn from_toml_value(value: &Spanned<DeValue<'_>>, source_index: usize, offset: usize) -> Node {
    Converter { source_index, offset }.value(value)
}

struct Converter {
    source_index: usize,
    offset: usize,
}

impl Converter {
    fn place(&self, span: Range<usize>) -> Place {
        Place { source_index: self.source_index, span: span.start + self.offset..span.end + self.offset }
    }

    fn table(&self, table: &DeTable<'_>, span: Range<usize>) -> Node {
        let entries = table.iter().map(|(key, value)| {
            let entry = Entry { key_place: self.place(key.span()), node: self.value(value) };
            (key.get_ref().to_string(), entry)
        });
        Node { place: self.place(span), value: Value::Table(entries.collect()) }
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let converted = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(integer) => Value::Integer(integer),
                Err(_) => Value::Other("a number beyond 64 bits"),
            },
            DeValue::Float(float) => float.as_str().parse().map_or(Value::Other("a number"), Value::Float),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.value(item)).collect()),
            DeValue::Table(table) => return self.table(table, value.span()),
        };
        Node { place: self.place(value.span()), value: converted }
    }
}
