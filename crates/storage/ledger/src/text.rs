//! The one door for text: what every string passes before a database of either kind gets it. Secrets go, what one of
//! the databases cannot hold is replaced, and what is too long is cut.
//!
//! Only this module makes a [`StoredText`], and the backends take nothing else, so a ledger in SQLite and one in
//! PostgreSQL hold the same, whatever a script printed.

use std::sync::Arc;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use trackway_core::text::hex;
use trackway_redact::Redactor;

use crate::value::{ColumnKind, Table, Value};

/// A text in a key or an index is at most this long: PostgreSQL takes 2,704 bytes for all columns of an index entry,
/// and no key has more than three columns of free text.
pub const KEY_BYTES_MAX: usize = 800;
/// Any other text, and each string within a JSON column, is at most this long.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Replaces NUL, which PostgreSQL cannot hold: U+2400, its symbol.
const NUL_MARK: &str = "\u{2400}";
/// Hexadecimal digits of a cut string's hash that stay, so that two strings with the same beginning stay different.
const CUT_HASH_DIGITS: usize = 16;

/// Columns that an index holds beside the keys.
const INDEXED: &[&str] = &[
    "name",
    "tag",
    "model",
    "model_family",
    "rule",
    "slice",
    "metric",
    "config_sha256",
    "data_sha256",
    "task_set_sha256",
    "checkpoint_manifest_sha256",
    "evaluation_id",
    "project",
    "subject_id",
];

/// Text as a ledger holds it: without NUL, and no longer than its column takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredText(String);

/// A value as a ledger holds it.
pub(crate) type StoredValue = Value<StoredText>;

impl StoredText {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// What every text of a ledger passes. Made when the ledger is opened.
#[derive(Debug, Clone)]
pub(crate) struct TextFilter {
    redactor: Arc<Redactor>,
}

impl TextFilter {
    pub(crate) fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor }
    }

    /// The values of a row, in the order of its table's columns: without secrets, as both databases take them. Ids and
    /// values of closed lists come from the program; all other text is from outside.
    pub(crate) fn row(&self, table: &Table, values: Vec<Value>) -> Vec<StoredValue> {
        let pair = pair_name(table, &values);
        let columns = table.columns.iter().zip(values);
        columns
            .map(|(column, value)| {
                let keyed = table.key.contains(&column.name) || INDEXED.contains(&column.name);
                let bytes_max = if keyed { KEY_BYTES_MAX } else { TEXT_BYTES_MAX };
                value.map(|text| match column.kind {
                    ColumnKind::Word => StoredText(plain(&text, bytes_max)),
                    ColumnKind::Json => StoredText(self.json(text, column.name)),
                    _ if column.name == PAIR.1 => StoredText(plain(
                        &self.redactor.value(pair.as_deref().unwrap_or_default(), &text),
                        bytes_max,
                    )),
                    _ => StoredText(plain(&self.redactor.text(&text), bytes_max)),
                })
            })
            .collect()
    }

    /// A JSON document without secrets whose strings are plain; the same bytes where they were. What is not JSON is a
    /// text.
    fn json(&self, text: String, column: &str) -> String {
        let Ok(before) = serde_json::from_str::<Json>(&text) else {
            return plain(&self.redactor.text(&text), TEXT_BYTES_MAX);
        };
        let mut document = before.clone();
        if !HASHES_BY_NAME.contains(&column) {
            self.redactor.json(&mut document);
        }
        clean(&mut document);
        if document == before { text } else { document.to_string() }
    }
}

/// Parameters of a condition, or of a statement about ids and closed lists: none of them is stored as text.
pub(crate) fn parameters(values: &[Value]) -> Vec<StoredValue> {
    values.iter().cloned().map(|value| value.map(|text| StoredText(plain(&text, TEXT_BYTES_MAX)))).collect()
}

/// Columns of a table of pairs: the name of a value decides whether it is secret.
const PAIR: (&str, &str) = ("name", "value");
/// Columns of JSON that hold content hashes by name.
const HASHES_BY_NAME: &[&str] = &["data_json"];

fn pair_name(table: &Table, values: &[Value]) -> Option<String> {
    let named = table.columns.iter().position(|column| column.name == PAIR.0)?;
    match values.get(named) {
        Some(Value::Text(name)) => Some(name.clone()),
        _ => None,
    }
}

/// A text that both databases accept: without NUL and, where it is too long, cut at a character, with how long it was and
/// its hash.
fn plain(text: &str, bytes_max: usize) -> String {
    let text = text.replace('\0', NUL_MARK);
    if text.len() <= bytes_max {
        return text;
    }
    let hash = hex(&Sha256::digest(text.as_bytes()));
    let mark = format!("… [cut: {} bytes, sha256 {}]", text.len(), &hash[..CUT_HASH_DIGITS]);
    let end = (0..=bytes_max - mark.len()).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{mark}", &text[..end])
}

/// Makes every string plain, the names of fields too.
fn clean(document: &mut Json) {
    match document {
        Json::String(text) => *text = plain(text, TEXT_BYTES_MAX),
        Json::Array(items) => items.iter_mut().for_each(clean),
        Json::Object(fields) => {
            fields.values_mut().for_each(clean);
            if fields.keys().any(|name| plain(name, KEY_BYTES_MAX) != *name) {
                let named = std::mem::take(fields).into_iter();
                *fields = named.map(|(name, field)| (plain(&name, KEY_BYTES_MAX), field)).collect();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::ParameterRow;
    use crate::value::Record as _;

    /// Proves that a text which is too long shows that it was cut, that two with one beginning stay two, that no
    /// character is halved, and that passing the door again changes nothing.
    #[test]
    fn a_long_text_is_cut_visibly_and_stays_itself() {
        let long = |end: &str| plain(&format!("{}{end}", "é".repeat(KEY_BYTES_MAX)), KEY_BYTES_MAX);
        let (one, other) = (long("a"), long("b"));
        assert!(one.contains("… [cut: 1601 bytes, sha256 ") && one.len() <= KEY_BYTES_MAX, "{one}");
        assert_ne!(one, other);
        assert_eq!(plain(&one, KEY_BYTES_MAX), one);
    }

    /// Proves that NUL becomes its symbol in strings and in JSON, names included, and that other JSON keeps its bytes.
    #[test]
    fn nul_becomes_its_picture() {
        assert_eq!(plain("a\0b", TEXT_BYTES_MAX), "a␀b");
        let json = |text: &str| door().json(text.into(), "fields_json");
        assert_eq!(json(r#"{"a\u0000":["\u0000"]}"#), r#"{"a␀":["␀"]}"#);
        assert_eq!(json(r#"{ "a" : 1.50 }"#), r#"{ "a" : 1.50 }"#);
        assert_eq!(json("{torn"), "{torn");
    }

    /// Proves that the strings of a row lose their secrets, that the name of a pair decides about its value, and that
    /// redacting again changes nothing.
    #[test]
    fn a_row_loses_its_secrets() {
        let table = ParameterRow::TABLE;
        let values = |name: &str, value: &str| ["att", "run", name, value].map(Value::from).to_vec();
        let row = |name: &str, value: &str| -> Vec<String> {
            let texts = |value: StoredValue| {
                if let Value::Text(text) = value { text.into_string() } else { String::new() }
            };
            door().row(table, values(name, value)).into_iter().map(texts).skip(2).collect()
        };
        for (name, value, kept) in [
            ("db_password", "hunter2", ["db_password", "[redacted:named]"]),
            ("lr", "uses correct-horse", ["lr", "uses [redacted:environment]"]),
            ("correct-horse", "1", ["[redacted:environment]", "1"]),
        ] {
            assert_eq!(row(name, value), kept);
            assert_eq!(row(kept[0], kept[1]), kept);
        }
    }

    fn door() -> TextFilter {
        TextFilter::new(Arc::new(Redactor::from_environment([("LAB_PASSWORD", "correct-horse")])))
    }
}
