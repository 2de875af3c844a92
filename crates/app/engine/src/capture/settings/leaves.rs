//! The values of a JSON document by their keys.

use std::collections::BTreeMap;

use serde_json::Value;

/// Every leaf of a JSON document by its key, with dots between the levels and `[n]` for places of lists. A list without
/// tables and lists in it is one leaf.
#[must_use]
pub fn leaves(value: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(value, String::new(), &mut found);
    found
}

/// Those of them that have a value: a key without one is as one that is not there.
#[must_use]
pub fn given_leaves(value: &Value) -> BTreeMap<String, String> {
    let mut found = leaves(value);
    found.retain(|_, value| value != "null");
    found
}

fn collect(value: &Value, key: String, found: &mut BTreeMap<String, String>) {
    match value {
        // An empty table is not shown: the keys it gets or loses are.
        Value::Object(members) => {
            for (name, member) in members {
                let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                collect(member, inner, found);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (place, item) in items.iter().enumerate() {
                collect(item, format!("{key}[{place}]"), found);
            }
        }
        _ => {
            found.insert(key, value.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Proves that tables and lists of tables are read to their leaves, and that a list of values is one.
    #[test]
    fn the_leaves_of_a_document() {
        let document =
            json!({ "run": { "command": ["t.py", "-v"], "seed": null }, "plan": [{ "set": "a" }, 2] });
        let found = leaves(&document);
        let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (&**key, &**value)).collect();
        let expected = [
            ("plan[0].set", "\"a\""),
            ("plan[1]", "2"),
            ("run.command", "[\"t.py\",\"-v\"]"),
            ("run.seed", "null"),
        ];
        assert_eq!(found, expected);
        assert!(!given_leaves(&document).contains_key("run.seed"));
    }
}
