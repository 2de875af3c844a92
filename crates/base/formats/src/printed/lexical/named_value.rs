//! Objects that have the name of a metric in one field and its value in another: `{"metric": "accuracy", "value": 0.91}`.

use serde_json::{Map, Value};

use super::super::NAME_BYTES_MAX;

/// The fields with the name, the best first.
const NAME_FIELDS: [&str; 2] = ["metric", "name"];
/// The field with the value.
const VALUE_FIELD: &str = "value";

/// The fields with the value in one of its name. Other objects are as they were.
pub(in crate::printed) fn with_named_value(mut fields: Map<String, Value>) -> Map<String, Value> {
    let Some(name) = name_of_value(&fields) else { return fields };
    if let Some(value) = fields.remove(VALUE_FIELD) {
        fields.insert(name, value);
    }
    fields
}

/// The name that the value of an object has, if a text in it is one.
fn name_of_value(fields: &Map<String, Value>) -> Option<String> {
    fields.get(VALUE_FIELD).filter(|value| !value.is_object())?;
    let name = NAME_FIELDS.iter().find_map(|field| fields.get(*field)?.as_str())?;
    let name = name.split_whitespace().collect::<Vec<_>>().join("_");
    let is_name = name.starts_with(char::is_alphabetic) && name.len() <= NAME_BYTES_MAX;
    Some(name).filter(|name| is_name && !fields.contains_key(name))
}
