//! Whether a document is what its schema says, with nothing in it that the schema does not name.
//!
//! Readers must accept new fields, so the published schemas are open; the tests of Trackway close every object to prove
//! that every field is described. Only the keywords that `schemars` writes are known; any other one is a fault, so that
//! no part of a schema is ignored. A library for all of JSON Schema would change the features of packages that most of
//! the workspace is built from.

use std::collections::BTreeSet;
use std::fmt::Display;

use serde_json::{Map, Value};

const DEFINITIONS: &str = "#/$defs/";
/// The keys of maps by number, as `schemars` describes them.
const NUMBER_KEYS: &str = r"^\d+$";
/// Keywords that restrict nothing here: annotations, and formats that types prove when they read a value.
const ANNOTATIONS: [&str; 10] = [
    "$schema", "$defs", "title", "description", "default", "examples", "format", "pattern", "minimum",
    "maximum",
];

/// Every fault of a document: a path in it, and what is wrong there.
#[must_use]
pub fn faults(schema: &Value, document: &Value) -> Vec<String> {
    CheckedValue::new(schema, document, "").whole(schema)
}

/// One value of the document, and what schemas say about it.
struct CheckedValue<'d> {
    /// The whole schema, in which others are defined.
    root: &'d Value,
    value: &'d Value,
    /// Where it is in the document.
    path: &'d str,
    /// The properties that are described.
    names: BTreeSet<String>,
    /// Whether it is described as an object by its properties, so that others are faults.
    is_closed: bool,
    faults: Vec<String>,
}

impl<'d> CheckedValue<'d> {
    fn new(root: &'d Value, value: &'d Value, path: &'d str) -> Self {
        Self { root, value, path, names: BTreeSet::new(), is_closed: false, faults: Vec::new() }
    }

    /// Checks the value against everything that describes it, then for properties that nothing describes.
    fn whole(mut self, schema: &Value) -> Vec<String> {
        self.apply(schema);
        if self.is_closed {
            let unknown = members(self.value).filter(|(name, _)| !self.names.contains(*name));
            self.faults.extend(unknown.map(|(name, _)| format!("{}/{name}: is not described", self.path)));
        }
        self.faults
    }

    /// A fault of the value itself.
    fn fault(&mut self, what: impl Display) {
        self.faults.push(format!("{}: {what}", self.path));
    }

    /// Checks a value within this one.
    fn inner(&mut self, schema: &Value, key: impl Display, value: &Value) {
        let path = format!("{}/{key}", self.path);
        self.faults.extend(CheckedValue::new(self.root, value, &path).whole(schema));
    }

    fn apply(&mut self, schema: &Value) {
        let value = self.value;
        let Value::Object(keywords) = schema else {
            if *schema != Value::Bool(true) {
                self.fault("no value is allowed");
            }
            return;
        };
        for (keyword, argument) in keywords {
            match keyword.as_str() {
                "$ref" => self.refer(argument),
                "type" if !has_type(argument, value) => self.fault(format!("{value} is not {argument}")),
                "const" if argument != value => self.fault(format!("{value} is not {argument}")),
                "enum" if !list(argument).contains(value) => {
                    self.fault(format!("{value} is not in {argument}"));
                }
                "type" | "const" | "enum" => {}
                "properties" => self.properties(argument),
                "required" => self.required(argument),
                "patternProperties" => self.by_pattern(argument),
                "additionalProperties" => self.additional(keywords, argument),
                "items" => {
                    let described = keywords.get("prefixItems").map_or(0, |items| list(items).len());
                    let items = list(value).iter().enumerate().skip(described);
                    items.for_each(|(place, item)| self.inner(argument, place, item));
                }
                "prefixItems" => {
                    let items = list(argument).iter().zip(list(value)).enumerate();
                    items.for_each(|(place, (schema, item))| self.inner(schema, place, item));
                }
                "uniqueItems" => {
                    let repeats = |(at, item)| list(value).iter().take(at).any(|other| other == item);
                    if *argument == Value::Bool(true) && list(value).iter().enumerate().any(repeats) {
                        self.fault("an item is repeated");
                    }
                }
                "minItems" | "maxItems" => self.length(keyword, argument),
                "anyOf" | "oneOf" => self.choice(argument),
                "allOf" => list(argument).iter().for_each(|part| self.apply(part)),
                known if ANNOTATIONS.contains(&known) => {}
                unknown => self.fault(format!("the keyword `{unknown}` is not known")),
            }
        }
    }

    fn refer(&mut self, target: &Value) {
        let name = target.as_str().and_then(|target| target.strip_prefix(DEFINITIONS));
        match name.and_then(|name| self.root.get("$defs")?.get(name)) {
            Some(schema) => self.apply(schema),
            None => self.fault(format!("the schema refers to {target}, which it does not define")),
        }
    }

    fn properties(&mut self, properties: &Value) {
        self.is_closed = true;
        for (name, schema) in members(properties) {
            self.names.insert(name.clone());
            if let Some(member) = self.value.get(name) {
                self.inner(schema, name, member);
            }
        }
    }

    fn required(&mut self, names: &Value) {
        if !self.value.is_object() {
            return;
        }
        let names = list(names).iter().filter_map(Value::as_str);
        let missing = names.filter(|name| self.value.get(name).is_none());
        self.faults.extend(missing.map(|name| format!("{}/{name}: is missing", self.path)));
    }

    /// The members of a map whose keys are numbers.
    fn by_pattern(&mut self, patterns: &Value) {
        for (pattern, schema) in members(patterns) {
            if pattern != NUMBER_KEYS {
                self.fault(format!("the pattern `{pattern}` is not known"));
            }
            for (name, member) in members(self.value).filter(|(name, _)| is_number(name)) {
                self.names.insert(name.clone());
                self.inner(schema, name, member);
            }
        }
    }

    /// The members of a map: those that `properties` and `patternProperties` do not name.
    fn additional(&mut self, keywords: &Map<String, Value>, schema: &Value) {
        let named = keywords.get("properties").and_then(Value::as_object);
        let is_by_number = keywords.contains_key("patternProperties");
        for (name, member) in members(self.value) {
            let is_matched = is_by_number && is_number(name);
            if !is_matched && named.is_none_or(|named| !named.contains_key(name)) {
                self.names.insert(name.clone());
                self.inner(schema, name, member);
            }
        }
    }

    fn length(&mut self, keyword: &str, limit: &Value) {
        let (Some(items), Some(limit)) = (self.value.as_array(), limit.as_u64()) else { return };
        let count = items.len() as u64;
        let is_wrong = if keyword == "minItems" { count < limit } else { count > limit };
        if is_wrong {
            self.fault(format!("has {count} items, `{keyword}` is {limit}"));
        }
    }

    /// One of several schemas must accept the value; the faults shown are those of the one that came closest.
    fn choice(&mut self, schemas: &Value) {
        let tried = list(schemas).iter().map(|schema| {
            let mut tried = CheckedValue::new(self.root, self.value, self.path);
            tried.apply(schema);
            tried
        });
        let Some(chosen) = tried.min_by_key(|tried| tried.faults.len()) else { return };
        self.names.extend(chosen.names);
        self.is_closed |= chosen.is_closed;
        self.faults.extend(chosen.faults);
    }
}

/// The members of an object; none of another value.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn is_number(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match wanted {
        Value::String(name) => is(name),
        several => list(several).iter().filter_map(Value::as_str).any(is),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that wrong types, missing and unknown fields, wrong words and unknown keywords are faults at every depth, and
    /// that maps and described fields are not.
    #[test]
    fn faults_are_found_at_every_depth() {
        let schema = json!({
            "type": "object",
            "properties": {
                "count": { "type": ["integer", "null"] },
                "state": { "oneOf": [{ "const": "open" }, { "const": "closed" }] },
                "inner": { "anyOf": [{ "$ref": "#/$defs/Inner" }, { "type": "null" }] },
                "values": { "type": "object", "additionalProperties": { "type": "number" } },
                "numbered": {
                    "type": "object", "additionalProperties": false, "patternProperties": { NUMBER_KEYS: { "type": "string" } },
                },
                "pair": { "type": "array", "prefixItems": [{ "type": "string" }, true], "minItems": 2, "maxItems": 2 },
            },
            "required": ["count"],
            "$defs": { "Inner": { "type": "object", "properties": { "name": { "type": "string" } } } },
        });
        let good = json!({
            "count": null, "state": "open", "inner": { "name": "a" }, "values": { "x": 1.5 }, "numbered": { "12": "a" },
            "pair": ["a", 1],
        });
        assert_eq!(faults(&schema, &good), Vec::<String>::new());
        for (document, fault) in [
            (json!({ "count": "1" }), "/count: \"1\" is not [\"integer\",\"null\"]"),
            (json!({}), "/count: is missing"),
            (json!({ "count": 1, "more": 1 }), "/more: is not described"),
            (json!({ "count": 1, "state": "ajar" }), "/state: \"ajar\" is not \"open\""),
            (json!({ "count": 1, "inner": { "size": 1 } }), "/inner/size: is not described"),
            (json!({ "count": 1, "values": { "x": "1" } }), "/values/x: \"1\" is not \"number\""),
            (json!({ "count": 1, "numbered": { "1": 2 } }), "/numbered/1: 2 is not \"string\""),
            (json!({ "count": 1, "numbered": { "one": "a" } }), "/numbered/one: no value is allowed"),
            (json!({ "count": 1, "pair": ["a"] }), "/pair: has 1 items, `minItems` is 2"),
        ] {
            assert_eq!(faults(&schema, &document), [fault]);
        }
        let unknown = json!({ "not": { "type": "null" } });
        assert_eq!(faults(&unknown, &json!(1)), [": the keyword `not` is not known"]);
    }
}
