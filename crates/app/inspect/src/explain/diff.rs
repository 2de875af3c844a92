//! What changed between two configurations.

use std::collections::BTreeMap;

use serde_json::Value;
use trackway_api::explain::Change;

/// Every leaf that differs between two JSON documents, in key order. Equal documents give an empty list.
#[must_use]
pub fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let (before, after) = (leaves(before), leaves(after));
    let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
    keys.sort();
    keys.dedup();
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| Change {
            key: key.clone(),
            before: before.get(key).cloned(),
            after: after.get(key).cloned(),
        })
        .collect()
}

/// Every leaf of a JSON document by its key.
#[must_use]
pub fn leaves(value: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    collect(value, String::new(), &mut found);
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

    /// Proves that changed, added and removed leaves are named, that a flat list is one value, and equals are silent.
    #[test]
    fn changes_name_every_differing_leaf() {
        let before = json!({"run": {"command": ["a", "1"], "seed": 1}, "old": true});
        let after = json!({"run": {"command": ["a", "2"], "seed": 1}, "new": null});
        let found = changes(&before, &after);
        let keys: Vec<&str> = found.iter().map(|change| change.key.as_str()).collect();
        assert_eq!(keys, ["new", "old", "run.command"]);
        assert_eq!(found[2].before.as_deref(), Some(r#"["a","1"]"#));
        assert_eq!(found[0].before, None);
        assert!(changes(&before, &before).is_empty());
    }
}
