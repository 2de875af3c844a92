//! JSON lines in one streaming pass: rows, keys and types, and lines that are no JSON object.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use crate::infer::{Column, ColumnType, is_timestamp};
use crate::manifest::{Example, FindingKind, Findings};
use crate::scan::{Content, MAX_RECORD_BYTES, Parser};

/// The most different keys that become columns; data with more is keyed by values.
pub(crate) const MAX_COLUMNS: usize = 10_000;

/// Parses a JSONL file.
#[derive(Default)]
pub(crate) struct JsonlParser {
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    line: u64,
    rows: u64,
    columns: Columns,
    findings: Findings,
}

/// The keys seen so far, in order of appearance.
#[derive(Default)]
struct Columns {
    list: Vec<Column>,
    index: HashMap<String, usize>,
    overflow: bool,
}

impl Parser for JsonlParser {
    fn feed(&mut self, mut chunk: &[u8]) -> Result<(), String> {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            if self.partial.is_empty() {
                self.take_line(line);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.take_line(&whole);
                whole.clear();
                self.partial = whole;
            }
            chunk = rest;
        }
        self.partial.extend_from_slice(chunk);
        if self.partial.len() > MAX_RECORD_BYTES {
            let (line, max) = (self.line + 1, MAX_RECORD_BYTES >> 20);
            return Err(format!("line {line} is longer than {max} MiB"));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Content, String> {
        if !self.partial.is_empty() {
            let last = std::mem::take(&mut self.partial);
            self.take_line(&last);
        }
        if self.columns.overflow {
            return Err(format!("its objects have more than {MAX_COLUMNS} different keys"));
        }
        if self.rows == 0 {
            let example = self.findings.into_list().into_iter().flat_map(|finding| finding.examples).next();
            let detail =
                example.map_or_else(String::new, |bad| format!(" (line {}: {})", bad.line, bad.detail));
            return Err(format!("no line holds a JSON object{detail}"));
        }
        Ok(Content {
            rows: Some(self.rows),
            schema: Some(self.columns.list),
            findings: self.findings.into_list(),
            ..Content::default()
        })
    }
}

impl JsonlParser {
    fn take_line(&mut self, line: &[u8]) {
        self.line += 1;
        let line = if self.line == 1 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line };
        if line.trim_ascii().is_empty() {
            return;
        }
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let row = Row(&mut self.columns).deserialize(&mut deserializer).and_then(|()| deserializer.end());
        let Err(error) = row else {
            self.rows += 1;
            return;
        };
        let example = || Example { line: self.line, detail: describe(&error) };
        if std::str::from_utf8(line).is_err() {
            self.findings.add(FindingKind::NotUtf8, example);
        } else {
            self.findings.add(FindingKind::BadJson, example);
        }
    }
}

/// What is wrong with a line, without its content: a manifest is stored, and data may be private.
pub(crate) fn describe(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => "a JSON value that is no object".into(),
        Category::Eof => "ends in the middle of a value".into(),
        Category::Syntax | Category::Io => {
            let message = error.to_string();
            let what = message.split(" at line ").next().unwrap_or_default();
            format!("{what}, column {}", error.column())
        }
    }
}

impl Columns {
    /// Adds a value of a key. Most lines have the same keys in the same order, so `position` is tried first.
    fn add(&mut self, position: usize, key: Cow<'_, str>, kind: ColumnType) {
        let at_position = self.list.get(position).is_some_and(|column| column.name == key);
        let known = if at_position { Some(position) } else { self.index.get(key.as_ref()).copied() };
        match known {
            Some(index) => self.list[index].kind = self.list[index].kind.join(kind),
            None if self.list.len() >= MAX_COLUMNS => self.overflow = true,
            None => {
                self.index.insert(key.clone().into_owned(), self.list.len());
                self.list.push(Column { name: key.into_owned(), kind });
            }
        }
    }
}

/// Reads one object into the columns without building it.
struct Row<'c>(&'c mut Columns);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut position = 0;
        while let Some(Key(key)) = map.next_key()? {
            let Kind(kind) = map.next_value()?;
            self.0.add(position, key, kind);
            position += 1;
        }
        Ok(())
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

/// The type of a value that is itself passed over.
struct Kind(ColumnType);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor).map(Kind)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = ColumnType;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<ColumnType, E> {
        Ok(ColumnType::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<ColumnType, E> {
        Ok(ColumnType::Bool)
    }

    fn visit_i64<E>(self, _: i64) -> Result<ColumnType, E> {
        Ok(ColumnType::Int)
    }

    fn visit_u64<E>(self, number: u64) -> Result<ColumnType, E> {
        Ok(if i64::try_from(number).is_ok() { ColumnType::Int } else { ColumnType::Float })
    }

    fn visit_f64<E>(self, _: f64) -> Result<ColumnType, E> {
        Ok(ColumnType::Float)
    }

    fn visit_str<E>(self, text: &str) -> Result<ColumnType, E> {
        Ok(if is_timestamp(text.as_bytes()) { ColumnType::Timestamp } else { ColumnType::Text })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ColumnType, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(ColumnType::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ColumnType, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(ColumnType::Object)
    }
}
