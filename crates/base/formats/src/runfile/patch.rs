//! Typed changes of a run file: what `--set`, a fold of a cross-validation or an entry of a retry plan changes, each with its origin. They
//! change the document before it is read, so that a change obeys the same rules as the file and its mistakes are shown in the same way.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use super::error::RunFileError;
use super::keys::tree::{Entry, Node, Place, Sources, Table, Value, from_toml, from_toml_value};
use super::keys::walker::Problems;

/// Changes of a run file, in the order in which they are made: of two at one key the later one counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanPatch(Vec<PlanChange>);

impl PlanPatch {
    /// The values of `--set`. A value is TOML if it parses as TOML, else a text, so that `--set run.name=income` needs no quotes.
    ///
    /// # Errors
    /// Every text that is not `key.path=value`, in order.
    pub fn of_command_line(texts: &[String]) -> Result<Self, Vec<RunFileError>> {
        let (mut changes, mut errors) = (Vec::new(), Vec::new());
        for text in texts {
            match PlanChange::written(text) {
                Ok(change) => changes.push(change),
                Err(fault) => errors.push(fault.of(text)),
            }
        }
        if errors.is_empty() { Ok(Self(changes)) } else { Err(errors) }
    }

    /// The changes, in order.
    #[must_use]
    pub fn changes(&self) -> &[PlanChange] {
        &self.0
    }

    /// The same with every value put through `change`, which gets the key too: for secrets.
    #[must_use]
    pub fn with_values(&self, change: impl Fn(&KeyPath, &PatchValue) -> PatchValue) -> Self {
        let changed = |one: &PlanChange| {
            let value = change(&one.key, &one.value);
            // What was written has the value in it.
            let written = one.written.clone().filter(|_| value == one.value);
            PlanChange { value, written, ..one.clone() }
        };
        Self(self.0.iter().map(changed).collect())
    }

    /// Whether a text of a value contains `part`.
    #[must_use]
    pub fn contains_text(&self, part: &str) -> bool {
        self.0.iter().any(|change| change.value.contains_text(part))
    }
}

impl Extend<PlanChange> for PlanPatch {
    fn extend<I: IntoIterator<Item = PlanChange>>(&mut self, changes: I) {
        self.0.extend(changes);
    }
}

impl FromIterator<PlanChange> for PlanPatch {
    fn from_iter<I: IntoIterator<Item = PlanChange>>(changes: I) -> Self {
        Self(changes.into_iter().collect())
    }
}

impl IntoIterator for PlanPatch {
    type Item = PlanChange;
    type IntoIter = std::vec::IntoIter<PlanChange>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// What makes a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum ChangeOrigin {
    /// `--set`, `--param` or `--tag`.
    CommandLine,
    /// A fold of a cross-validation.
    CrossValidation {
        /// Its number, from 1.
        fold: usize,
    },
    /// Entries of `retry.REASON.plan`.
    RetryPlan,
}

/// As messages name it before the text of the change.
impl fmt::Display for ChangeOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => formatter.write_str("--set"),
            Self::CrossValidation { fold } => write!(formatter, "fold {fold} of the cross-validation:"),
            Self::RetryPlan => formatter.write_str("the retry plan:"),
        }
    }
}

/// One change: a key and its new value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredChange")]
pub struct PlanChange {
    pub key: KeyPath,
    pub value: PatchValue,
    pub origin: ChangeOrigin,
    /// The text that a person wrote, which messages show.
    #[serde(skip)]
    written: Option<String>,
}

/// A change as plans hold it. Those of before changes had types hold texts of `--set` alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredChange {
    Typed { key: KeyPath, value: PatchValue, origin: ChangeOrigin },
    Written(String),
}

impl TryFrom<StoredChange> for PlanChange {
    type Error = RunFileError;

    fn try_from(stored: StoredChange) -> Result<Self, RunFileError> {
        match stored {
            StoredChange::Typed { key, value, origin } => Ok(Self { key, value, origin, written: None }),
            StoredChange::Written(text) => Self::written(&text).map_err(|fault| fault.of(&text)),
        }
    }
}

/// Why a text is not a change.
struct TextFault {
    span: Range<usize>,
    message: String,
    hint: &'static str,
}

impl TextFault {
    fn of(self, text: &str) -> RunFileError {
        let name = format!("{} {text}", ChangeOrigin::CommandLine);
        let error = RunFileError::at(&name, text, self.span, self.message, Some(self.hint.to_owned()));
        RunFileError { override_text: Some(text.to_owned()), ..error }
    }
}

impl PlanChange {
    #[must_use]
    pub fn new(key: KeyPath, value: impl Into<PatchValue>, origin: ChangeOrigin) -> Self {
        Self { key, value: value.into(), origin, written: None }
    }

    fn written(text: &str) -> Result<Self, TextFault> {
        let (key_text, value_text) = split(text).ok_or_else(|| TextFault {
            span: 0..text.len(),
            message: "an override has the form `key.path=value`".into(),
            hint: "such as `--set run.seed=7`",
        })?;
        let key = key_path(key_text).ok_or_else(|| TextFault {
            span: 0..key_text.len(),
            message: format!("invalid key path `{key_text}`"),
            hint: "write keys joined by dots, such as `run.seed`",
        })?;
        let read = PatchValue::of(&written_value(value_text, 0, 0));
        // No key takes a date, or a number that is not finite; the reader refuses it by what was written.
        let value = read.unwrap_or_else(|| PatchValue::Text(value_text.to_owned()));
        Ok(Self { key, value, origin: ChangeOrigin::CommandLine, written: Some(text.to_owned()) })
    }

    /// Its text, `key.path=value`, and how many bytes of that are the key.
    fn text(&self) -> (String, usize) {
        match &self.written {
            Some(text) => (text.clone(), split(text).map_or(text.len(), |(key, _)| key.len())),
            None => {
                let key = self.key.to_string();
                (format!("{key}={}", self.value), key.len())
            }
        }
    }

    /// The new value, with its place in the text of the change.
    fn node(&self, source_index: usize) -> Node {
        let (text, key_bytes) = self.text();
        let from = (key_bytes + 1).min(text.len());
        match &self.written {
            Some(_) => written_value(&text[from..], source_index, from),
            None => self.value.node(&Place { source_index, span: from..text.len() }),
        }
    }

    /// Makes the change in a document. A table on the way to the key is made if it is absent; everything else stays as it is.
    pub(super) fn apply(&self, root: &mut Node, source_index: usize, problems: &mut Problems) {
        let (_, key_bytes) = self.text();
        let place = Place { source_index, span: 0..key_bytes };
        insert(root, &self.key.0, &place, self.node(source_index), problems);
    }
}

/// `key.path=value`, with the value in TOML: what `--set` takes.
impl fmt::Display for PlanChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text().0)
    }
}

impl Sources {
    /// The text of a run file and those of its changes.
    pub(super) fn of(name: &str, source: String, changes: &[PlanChange]) -> Self {
        let texts = std::iter::once(source).chain(changes.iter().map(|change| change.text().0)).collect();
        let names = std::iter::once(name.to_owned()).chain(changes.iter().map(|change| {
            let (text, _) = change.text();
            format!("{} {text}", change.origin)
        }));
        Self { names: names.collect(), texts }
    }
}

/// The path of a key in a run file, from its section on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The keys on the way, outermost first.
    #[must_use]
    pub fn parts(&self) -> &[String] {
        &self.0
    }

    /// Whether it is that of this table, or of a key in it.
    #[must_use]
    pub fn is_in(&self, table: &[&str]) -> bool {
        self.0.len() >= table.len() && self.0.iter().zip(table).all(|(part, of_table)| part == of_table)
    }
}

impl<const N: usize> From<[&str; N]> for KeyPath {
    fn from(parts: [&str; N]) -> Self {
        Self(parts.iter().map(|part| (*part).to_owned()).collect())
    }
}

/// Joined by dots, with quotes where TOML needs them.
impl fmt::Display for KeyPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, key) in self.0.iter().enumerate() {
            let dot = if place == 0 { "" } else { "." };
            write!(formatter, "{dot}{}", Key(key))?;
        }
        Ok(())
    }
}

/// A key as TOML writes it.
struct Key<'k>(&'k str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_bare = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        match !self.0.is_empty() && self.0.chars().all(is_bare) {
            true => formatter.write_str(self.0),
            false => formatter.write_str(&quoted(self.0)),
        }
    }
}

/// A string of TOML. One of JSON is one too, but for the letter that TOML has only as an escape.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// The value of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PatchValue {
    Bool(bool),
    Integer(i64),
    /// A finite number.
    Float(f64),
    Text(String),
    List(Vec<Self>),
    Table(BTreeMap<String, Self>),
}

impl PatchValue {
    /// The value without its places; none for one that no key takes.
    fn of(node: &Node) -> Option<Self> {
        Some(match &node.value {
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Integer(integer) => Self::Integer(*integer),
            Value::Float(float) if float.is_finite() => Self::Float(*float),
            Value::Float(_) | Value::Other(_) => return None,
            Value::Text(text) => Self::Text(text.clone()),
            Value::List(items) => Self::List(items.iter().map(Self::of).collect::<Option<_>>()?),
            Value::Table(table) => {
                let entry = |(key, entry): (&String, &Entry)| Some((key.clone(), Self::of(&entry.node)?));
                Self::Table(table.iter().map(entry).collect::<Option<_>>()?)
            }
        })
    }

    /// The value in a document; all of it has one place.
    fn node(&self, place: &Place) -> Node {
        let value = match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Integer(integer) => Value::Integer(*integer),
            Self::Float(float) => Value::Float(*float),
            Self::Text(text) => Value::Text(text.clone()),
            Self::List(items) => Value::List(items.iter().map(|item| item.node(place)).collect()),
            Self::Table(table) => Value::Table(
                table
                    .iter()
                    .map(|(key, value)| {
                        (key.clone(), Entry { key_place: place.clone(), node: value.node(place) })
                    })
                    .collect(),
            ),
        };
        Node { place: place.clone(), value }
    }

    /// Whether a text of it contains `part`.
    #[must_use]
    pub fn contains_text(&self, part: &str) -> bool {
        match self {
            Self::Text(text) => text.contains(part),
            Self::List(items) => items.iter().any(|item| item.contains_text(part)),
            Self::Table(table) => table.values().any(|value| value.contains_text(part)),
            Self::Bool(_) | Self::Integer(_) | Self::Float(_) => false,
        }
    }
}

/// In TOML, on one line.
impl fmt::Display for PatchValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(flag) => write!(formatter, "{flag}"),
            Self::Integer(integer) => write!(formatter, "{integer}"),
            // It has a point or an exponent, so that it stays one.
            Self::Float(float) => write!(formatter, "{float:?}"),
            Self::Text(text) => formatter.write_str(&quoted(text)),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                write!(formatter, "[{}]", items.join(", "))
            }
            Self::Table(table) => {
                let entries: Vec<String> =
                    table.iter().map(|(key, value)| format!("{} = {value}", Key(key))).collect();
                write!(formatter, "{{{}}}", entries.join(", "))
            }
        }
    }
}

impl From<bool> for PatchValue {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<i64> for PatchValue {
    fn from(integer: i64) -> Self {
        Self::Integer(integer)
    }
}

impl From<u32> for PatchValue {
    fn from(integer: u32) -> Self {
        Self::Integer(integer.into())
    }
}

impl From<&str> for PatchValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&[String]> for PatchValue {
    fn from(texts: &[String]) -> Self {
        Self::List(texts.iter().map(|text| Self::Text(text.clone())).collect())
    }
}

/// Splits at the first `=` outside quotes.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (index, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if letter == open => quote = None,
            (None, '=') => return Some((&text[..index], &text[index + 1..])),
            _ => {}
        }
    }
    None
}

/// The keys of a dotted path, read by the TOML parser itself so that quoted keys work.
fn key_path(text: &str) -> Option<KeyPath> {
    if text.contains(['\n', '\r', '#', '=', '[', ']']) {
        return None;
    }
    let document = format!("{text} = 0");
    let table = DeTable::parse(&document).ok()?;
    let mut node = from_toml(&table, 0, 0);
    let mut path = Vec::new();
    while let Value::Table(table) = node.value {
        let (key, entry) = table.into_iter().next()?;
        path.push(key);
        node = entry.node;
    }
    Some(KeyPath(path))
}

/// A value that a person wrote, which begins at byte `offset` of the change.
fn written_value(text: &str, source_index: usize, offset: usize) -> Node {
    let place = Place { source_index, span: offset..offset + text.len() };
    match DeValue::parse(text) {
        Ok(value) => from_toml_value(&value, source_index, offset),
        Err(_) => Node { place, value: Value::Text(text.to_owned()) },
    }
}

fn insert(root: &mut Node, path: &[String], place: &Place, value: Node, problems: &mut Problems) {
    let mut node = root;
    for (depth, key) in path.iter().enumerate() {
        let kind = node.value.kind();
        let Value::Table(table) = &mut node.value else {
            let parent = path[..depth].join(".");
            problems.add(
                place.clone(),
                format!("`{parent}` is {kind}, so nothing can be set inside it"),
                None,
            );
            return;
        };
        if depth + 1 == path.len() {
            table.insert(key.clone(), Entry { key_place: place.clone(), node: value });
            return;
        }
        let empty = || Entry {
            key_place: place.clone(),
            node: Node { place: place.clone(), value: Value::Table(Table::new()) },
        };
        node = &mut table.entry(key.clone()).or_insert_with(empty).node;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "[run]\nname = \"a\"\ncommand = [\"true\", \"x\"]\n[data.train]\npath = \"rows.csv\"\nheader = true\n\
                        [retry]\nhang = { attempts = 2 }\n";

    fn document() -> Node {
        from_toml(&DeTable::parse(FILE).unwrap(), 0, 0)
    }

    /// Every value of a document that is not a table, by its path, with its place.
    fn leaves(node: &Node, path: &[String], found: &mut BTreeMap<Vec<String>, String>) {
        match &node.value {
            Value::Table(table) => {
                for (key, entry) in table {
                    leaves(&entry.node, &[path, std::slice::from_ref(key)].concat(), found);
                }
            }
            _ => {
                found.insert(path.to_owned(), format!("{node:?}"));
            }
        }
    }

    fn all_leaves(root: &Node) -> BTreeMap<Vec<String>, String> {
        let mut found = BTreeMap::new();
        leaves(root, &[], &mut found);
        found
    }

    fn at<'n>(root: &'n Node, path: &[String]) -> Option<&'n Node> {
        path.iter().try_fold(root, |node, key| match &node.value {
            Value::Table(table) => Some(&table.get(key)?.node),
            _ => None,
        })
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn value() -> impl Strategy<Value = PatchValue> {
        let finite = prop::num::f64::NORMAL | prop::num::f64::ZERO;
        let leaf = prop_oneof![
            any::<bool>().prop_map(PatchValue::Bool),
            any::<i64>().prop_map(PatchValue::Integer),
            finite.prop_map(PatchValue::Float),
            any::<String>().prop_map(PatchValue::Text),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(PatchValue::List),
                prop::collection::btree_map(any::<String>(), inner, 0..3).prop_map(PatchValue::Table),
            ]
        })
    }

    fn key() -> impl Strategy<Value = Vec<String>> {
        let section = prop_oneof![Just("run"), Just("data"), Just("retry"), Just("owner")];
        let part = prop_oneof![Just("name".to_owned()), Just("train".to_owned()), any::<String>()];
        (section, prop::collection::vec(part, 1..3))
            .prop_map(|(section, parts)| [vec![section.to_owned()], parts].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Proves that after a change its key has the value, that every other value of the document is as it was, with its place, and that
        /// a change which cannot be made leaves everything as it was and is reported.
        #[test]
        fn a_change_sets_its_key_and_nothing_else(key in key(), value in value()) {
            let change = PlanChange::new(KeyPath(key.clone()), "", ChangeOrigin::CommandLine);
            let change = PlanChange { value, ..change };
            let before = document();
            let mut root = before.clone();
            let sources = Sources::of("f", FILE.to_owned(), std::slice::from_ref(&change));
            let mut problems = Problems::new(&sources);
            change.apply(&mut root, 1, &mut problems);
            if problems.into_errors().is_empty() {
                prop_assert_eq!(PatchValue::of(at(&root, &key).unwrap()), Some(change.value));
                let apart = |path: &[String]| !path.starts_with(&key);
                let kept = |root: &Node| -> Vec<_> {
                    all_leaves(root).into_iter().filter(|(path, _)| apart(path)).collect()
                };
                prop_assert_eq!(kept(&root), kept(&before));
            } else {
                prop_assert_eq!(all_leaves(&root), all_leaves(&before));
            }
        }

        /// Proves that a typed value is the same after it was written as TOML and read again, and after it was stored.
        #[test]
        fn a_value_survives_its_texts(value in value()) {
            let read = PatchValue::of(&written_value(&value.to_string(), 0, 0));
            prop_assert_eq!(read.as_ref(), Some(&value));
            let stored = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(&serde_json::from_str::<PatchValue>(&stored).unwrap(), &value);
        }
    }

    /// Proves which types the values of `--set` have, that the text a person wrote is kept for messages, and that a change is stored
    /// with its origin.
    #[test]
    fn a_text_becomes_a_typed_change() {
        let given = texts(&[
            "run.seed=7",
            "run.name=income",
            "data.\"a.b\".columns=['x', 'y']",
            "training.total_steps=1e3",
        ]);
        let patch = PlanPatch::of_command_line(&given).unwrap();
        let values: Vec<&PatchValue> = patch.changes().iter().map(|change| &change.value).collect();
        let list = PatchValue::from(texts(&["x", "y"]).as_slice());
        let expected = [PatchValue::from(7_i64), "income".into(), list, PatchValue::Float(1000.0)];
        assert_eq!(values, expected.iter().collect::<Vec<_>>());
        assert_eq!(patch.changes()[2].key.parts(), ["data", "a.b", "columns"]);
        let shown: Vec<String> = patch.changes().iter().map(ToString::to_string).collect();
        assert_eq!(shown, given);

        let stored = serde_json::to_value(&patch).unwrap();
        let first =
            serde_json::json!({ "key": ["run", "seed"], "value": 7, "origin": { "by": "command_line" } });
        assert_eq!(stored[0], first);
        let again: PlanPatch = serde_json::from_value(stored).unwrap();
        let shown: Vec<String> = again.changes().iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "run.seed=7",
                "run.name=\"income\"",
                "data.\"a.b\".columns=[\"x\", \"y\"]",
                "training.total_steps=1000.0"
            ]
        );
    }

    /// Proves that the texts which older plans hold are read, and that a text without a value is an error.
    #[test]
    fn texts_of_older_plans_are_read() {
        let older: PlanPatch = serde_json::from_str(r#"["run.seed=7", "run.name=income"]"#).unwrap();
        assert_eq!(older, PlanPatch::of_command_line(&texts(&["run.seed=7", "run.name=income"])).unwrap());
        let error = serde_json::from_str::<PlanPatch>(r#"["nothing"]"#).unwrap_err();
        assert!(error.to_string().contains("key.path=value"), "{error}");
    }

    /// Proves that a changed value leaves no trace of the one before, and that one which did not change keeps its text.
    #[test]
    fn values_are_replaced_with_their_texts() {
        let given = texts(&["run.environment.KEY=hunter2", "run.name=a"]);
        let patch = PlanPatch::of_command_line(&given).unwrap();
        let hidden =
            patch.with_values(|key, value| match key.parts().last().is_some_and(|key| key == "KEY") {
                true => "[hidden]".into(),
                false => value.clone(),
            });
        let shown: Vec<String> = hidden.changes().iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["run.environment.KEY=\"[hidden]\"", "run.name=a"]);
        assert!(hidden.contains_text("hidden") && !format!("{hidden:?}").contains("hunter2"));
    }
}
