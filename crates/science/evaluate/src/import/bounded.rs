//! JSON of other tools, read into bounded memory: members that are not needed are skipped as they are read.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// Memory that values may still take, in bytes.
#[derive(Debug)]
pub(super) struct Budget(Cell<usize>);

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Cell::new(bytes))
    }

    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.0.get().checked_sub(bytes + size_of::<Json>());
        self.0.set(left.ok_or_else(|| E::custom("its values need more memory than a log may take"))?);
        Ok(())
    }
}

/// An object of which only some members are read.
pub(super) struct Members<'b> {
    pub budget: &'b Budget,
    pub needed: &'b [&'b str],
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Map<String, Json>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Map<String, Json>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.needed.contains(&name.as_str()) {
                members.insert(name, map.next_value_seed(Bounded(self.budget))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(members)
    }
}

/// Any value, within the budget.
#[derive(Clone, Copy)]
struct Bounded<'b>(&'b Budget);

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        self.0.take(0).map(|()| Json::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        self.0.take(0).map(|()| value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        self.0.take(0).map(|()| value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        self.0.take(0).map(|()| value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        self.0.take(0).map(|()| Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        self.0.take(value.len()).map(|()| value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        self.0.take(0)?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            self.0.take(name.len())?;
            members.insert(name, map.next_value_seed(self)?);
        }
        self.0.take(0).map(|()| members.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only the needed members are kept and cost memory, and that more than the budget is an error and not
    /// an allocation.
    #[test]
    fn values_stay_within_the_budget() {
        let read = |text: &str, bytes: usize| {
            let budget = Budget::new(bytes);
            let members = Members { budget: &budget, needed: &["a"] };
            members.deserialize(&mut serde_json::Deserializer::from_str(text))
        };
        let text = format!(
            r#"{{"messages": ["{}"], "a": {{"b": [1, -2.5, null, "x", true]}}}}"#,
            "m".repeat(10_000)
        );
        let found = read(&text, 1_000).unwrap();
        assert_eq!(Json::Object(found), serde_json::json!({"a": {"b": [1, -2.5, null, "x", true]}}));
        let hostile = format!(r#"{{"a": [{}0]}}"#, "0,".repeat(10_000));
        let error = read(&hostile, 100_000).unwrap_err().to_string();
        assert!(error.contains("more memory than a log may take"), "{error}");
    }
}
