//! JSON files that are read strictly: a mistake is reported with its line and column, and a key that appears twice is
//! one.

pub(super) mod costs;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

/// A file that cannot be read: where, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`:{line}:{column}: {why}")]
pub struct ReportError {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1; in bytes.
    pub column: usize,
    /// What is wrong.
    pub why: String,
}

pub(crate) fn read<'t, T: Deserialize<'t>>(text: &'t str, file: &str) -> Result<T, ReportError> {
    serde_json::from_str(text).map_err(|error| {
        let shown = error.to_string();
        let at = format!(" at line {} column {}", error.line(), error.column());
        let mut why = shown.strip_suffix(&at).unwrap_or(&shown).to_owned();
        let rest = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
        if error.is_syntax() && ["NaN", "Infinity"].iter().any(|word| rest.contains(word)) {
            why.push_str("; JSON has no NaN and no Infinity: write `null`");
        }
        ReportError { file: file.to_owned(), line: error.line(), column: error.column(), why }
    })
}

pub(crate) fn twice<E: de::Error>(key: &str) -> E {
    E::custom(format!("`{key}` appears twice"))
}

/// An object whose keys are all different.
pub(crate) struct Unique<V>(pub BTreeMap<String, V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Unique<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueVisitor(PhantomData))
    }
}

struct UniqueVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for UniqueVisitor<V> {
    type Value = Unique<V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object, a map of names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique<V>, A::Error> {
        let mut members = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value()?;
            if members.insert(key.clone(), value).is_some() {
                return Err(twice(&key));
            }
        }
        Ok(Unique(members))
    }
}
