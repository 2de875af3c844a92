//! Whether a document is what its schema says, with nothing in it that the schema does not name.
//!
//! Readers must accept new fields, so the published schemas are open; the tests of Trackway close every object to prove
//! that every field is described. Only the keywords that `schemars` writes are known; any other one is a fault, so that
//! no part of a schema is ignored. A library for all of JSON Schema would change the features of packages that most of
//! the workspace is built from.

use std::collections::BTreeSet;

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
    let mut faults = Vec::new();
    Validator { root: schema }.whole(schema, document, "", &mut faults);
    faults
}

/// The properties that a schema describes.
#[derive(Debug, Default)]
struct Described {
    names: BTreeSet<String>,
    /// Whether it describes an object by its properties, so that others are faults.
    is_closed: bool,
}

struct Validator<'s> {
    root: &'s Value,
}

impl Validator<'_> {
    /// Checks a value against everything that describes it, then for properties that nothing describes.
    fn whole(&self, schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
        let mut described = Described::default();
        self.apply(schema, value, path, &mut described, faults);
        if let (Value::Object(members), true) = (value, described.is_closed) {
            let unknown = members.keys().filter(|name| !described.names.contains(*name));
            faults.extend(unknown.map(|name| format!("{path}/{name}: is not described")));
        }
    }

    fn apply(
        &self,
        schema: &Value,
        value: &Value,
        path: &str,
        described: &mut Described,
        faults: &mut Vec<String>,
    ) {
        let Value::Object(keywords) = schema else {
            if *schema != Value::Bool(true) {
                faults.push(format!("{path}: no value is allowed"));
            }
            return;
        };
        for (keyword, argument) in keywords {
            match keyword.as_str() {
                "$ref" => self.refer(argument, value, path, described, faults),
                "type" if !has_type(argument, value) => {
                    faults.push(format!("{path}: {value} is not {argument}"))
                }
                "const" if argument != value => faults.push(format!("{path}: {value} is not {argument}")),
                "enum" if !contains(argument, value) => {
                    faults.push(format!("{path}: {value} is not in {argument}"));
                }
                "type" | "const" | "enum" => {}
                "properties" => self.properties(argument, value, path, described, faults),
                "required" => required(argument, value, path, faults),
                "patternProperties" => self.by_pattern(argument, value, path, described, faults),
                "additionalProperties" => {
                    self.additional(keywords, argument, value, path, described, faults);
                }
                "items" => self.items(keywords, argument, value, path, faults),
                "prefixItems" => self.prefix(argument, value, path, faults),
                "uniqueItems" => {
                    let items = list(value);
                    let repeats = |(at, item)| list(value).iter().take(at).any(|other| other == item);
                    if *argument == Value::Bool(true) && items.iter().enumerate().any(repeats) {
                        faults.push(format!("{path}: an item is repeated"));
                    }
                }
                "minItems" | "maxItems" => length(keyword, argument, value, path, faults),
                "anyOf" | "oneOf" => self.choice(argument, value, path, described, faults),
                "allOf" => {
                    for part in list(argument) {
                        self.apply(part, value, path, described, faults);
                    }
                }
                known if ANNOTATIONS.contains(&known) => {}
                unknown => faults.push(format!("{path}: the keyword `{unknown}` is not known")),
            }
        }
    }

    fn refer(
        &self,
        target: &Value,
        value: &Value,
        path: &str,
        described: &mut Described,
        faults: &mut Vec<String>,
    ) {
        let name = target.as_str().and_then(|target| target.strip_prefix(DEFINITIONS));
        match name.and_then(|name| self.root.get("$defs")?.get(name)) {
            Some(schema) => self.apply(schema, value, path, described, faults),
            None => faults.push(format!("{path}: the schema refers to {target}, which it does not define")),
        }
    }

    fn properties(
        &self,
        properties: &Value,
        value: &Value,
        path: &str,
        described: &mut Described,
        faults: &mut Vec<String>,
    ) {
        described.is_closed = true;
        for (name, schema) in properties.as_object().into_iter().flatten() {
            described.names.insert(name.clone());
            if let Some(member) = value.get(name) {
                self.whole(schema, member, &format!("{path}/{name}"), faults);
            }
        }
    }

    /// The members of a map whose keys are numbers.
    fn by_pattern(
        &self,
        patterns: &Value,
        value: &Value,
        path: &str,
        described: &mut Described,
        faults: &mut Vec<String>,
    ) {
        for (pattern, schema) in patterns.as_object().into_iter().flatten() {
            if pattern != NUMBER_KEYS {
                faults.push(format!("{path}: the pattern `{pattern}` is not known"));
            }
            let members = value.as_object().into_iter().flatten();
            for (name, member) in members.filter(|(name, _)| is_number(name)) {
                described.names.insert(name.clone());
                self.whole(schema, member, &format!("{path}/{name}"), faults);
            }
        }
    }

    /// The members of a map: those that `properties` and `patternProperties` do not name.
    fn additional(
        &self,
        keywords: &Map<String, Value>,
        schema: &Value,
        value: &Value,
        path: &str,
        described: &mut Described,
        faults: &mut Vec<String>,
    ) {
        let named = keywords.get("properties").and_then(Value::as_object);
        let is_by_number = keywords.contains_key("patternProperties");
        for (name, member) in value.as_object().into_iter().flatten() {
            let is_matched = is_by_number && is_number(name);
            if !is_matched && named.is_none_or(|named| !named.contains_key(name)) {
                described.names.insert(name.clone());
                self.whole(schema, member, &format!("{path}/{name}"), faults);
            }
        }
    }

    /// The items of an array behind those that `prefixItems` describes.
    fn items(
        &self,
        keywords: &Map<String, Value>,
        schema: &Value,
        value: &Value,
        path: &str,
        faults: &mut Vec<String>,
    ) {
        let skipped = keywords.get("prefixItems").map_or(0, |items| list(items).len());
        for (place, item) in list(value).iter().enumerate().skip(skipped) {
            self.whole(schema, item, &format!("{path}/{place}"), faults);
        }
    }

    fn prefix(&self, schemas: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
        for (place, (schema, item)) in list(schemas).iter().zip(list(value)).enumerate() {
            self.whole(schema, item, &format!("{path}/{place}"), faults);
        }
    }

    /// One of several schemas must accept the value; the faults shown are those of the one that came closest.
    fn choice(
        &self,
        schemas: &Value,
        value: &Value,
        path: &str,
        described: &mut Described,
        faults: &mut Vec<String>,
    ) {
        let tried = list(schemas).iter().map(|schema| {
            let (mut described, mut faults) = (Described::default(), Vec::new());
            self.apply(schema, value, path, &mut described, &mut faults);
            (described, faults)
        });
        let Some((chosen, found)) = tried.min_by_key(|(_, faults)| faults.len()) else { return };
        described.names.extend(chosen.names);
        described.is_closed |= chosen.is_closed;
        faults.extend(found);
    }
}

fn is_number(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn contains(words: &Value, value: &Value) -> bool {
    list(words).contains(value)
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

fn required(names: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
    if !value.is_object() {
        return;
    }
    let missing = list(names).iter().filter_map(Value::as_str).filter(|name| value.get(name).is_none());
    faults.extend(missing.map(|name| format!("{path}/{name}: is missing")));
}

fn length(keyword: &str, limit: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
    let (Some(items), Some(limit)) = (value.as_array(), limit.as_u64()) else { return };
    let count = items.len() as u64;
    let is_wrong = if keyword == "minItems" { count < limit } else { count > limit };
    if is_wrong {
        faults.push(format!("{path}: has {count} items, `{keyword}` is {limit}"));
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
