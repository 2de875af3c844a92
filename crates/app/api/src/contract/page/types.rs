//! Schemas as tables of fields.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::contract::derived::without_rust_words;

/// Longer lists of words have a section.
const INLINE_WORDS_MAX: usize = 8;
const DEFINITIONS: &str = "#/$defs/";

/// The types of all documents.
#[derive(Debug)]
pub(super) struct Definitions {
    /// Their schemas by name.
    pub(super) schemas: Map<String, Value>,
    /// Types that are documents, by name: their sections have the name of the document.
    pub(super) documents: BTreeMap<String, &'static str>,
}

impl Definitions {
    fn anchor(&self, name: &str) -> String {
        self.documents.get(name).map_or_else(|| name.to_lowercase(), |document| (*document).to_owned())
    }
}

/// The name of the definition that a schema refers to.
pub(super) fn name_of(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix(DEFINITIONS))
}

/// The schema itself, or the definition that it refers to.
pub(super) fn resolved<'d>(schema: &'d Value, definitions: &'d Definitions) -> &'d Value {
    name_of(schema).and_then(|name| definitions.schemas.get(name)).unwrap_or(schema)
}

/// What the documentation of a type or a field says, in one line.
pub(super) fn description(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = text.split_whitespace().collect();
    // Links of rustdoc lead nowhere here.
    without_rust_words(&words.join(" ")).replace('|', "\\|")
}

/// A section about a definition.
pub(super) fn definition(page: &mut String, name: &str, schema: &Value, definitions: &Definitions) {
    if is_inline(schema) {
        return;
    }
    let _ = writeln!(page, "\n### {name}\n");
    let text = description(schema);
    if !text.is_empty() {
        let _ = writeln!(page, "{text}\n");
    }
    body(page, schema, definitions);
}

/// The fields of an object, the words of a list, or the variants of a choice.
pub(super) fn body(page: &mut String, schema: &Value, definitions: &Definitions) {
    if let Some(words) = words(schema) {
        page.push_str("| value | meaning |\n|---|---|\n");
        for (word, meaning) in words {
            let _ = writeln!(page, "| `{word}` | {meaning} |");
        }
    } else if schema.get("properties").is_some() {
        page.push_str("| field | type | meaning |\n|---|---|---|\n");
        for (name, field) in fields(schema) {
            let _ = writeln!(page, "| `{name}` | {} | {} |", type_of(field, definitions), description(field));
        }
        for part in choices(schema) {
            let _ = writeln!(page, "\nand {}:\n", description(part));
            body(page, part, definitions);
        }
    } else if choices(schema).next().is_some() {
        for variant in choices(schema) {
            let _ = writeln!(page, "- {} {}", type_of(variant, definitions), description(variant));
        }
    } else {
        let _ = writeln!(page, "Type: {}.", type_of(schema, definitions));
    }
}

/// The fields of an object in the order in which they are printed.
fn fields(schema: &Value) -> Vec<(&str, &Value)> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let in_order: Vec<&str> = required.filter_map(Value::as_str).collect();
    let rest = properties.keys().map(String::as_str).filter(|name| !in_order.contains(name));
    let names: Vec<&str> = in_order.iter().copied().chain(rest).collect();
    names.into_iter().filter_map(|name| Some((name, properties.get(name)?))).collect()
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let of = |keyword: &str| schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
    of("oneOf").chain(of("anyOf"))
}

/// The words of a closed list, each with its meaning.
fn words(schema: &Value) -> Option<Vec<(String, String)>> {
    let mut words = Vec::new();
    for word in schema.get("enum").and_then(Value::as_array).into_iter().flatten() {
        words.push((word.as_str()?.to_owned(), String::new()));
    }
    for choice in choices(schema) {
        if let Some(word) = choice.get("const") {
            words.push((word.as_str()?.to_owned(), description(choice)));
        } else if choice.get("enum").is_some() {
            words.extend(self::words(choice)?);
        } else {
            return None;
        }
    }
    (!words.is_empty()).then_some(words)
}

/// Whether a type is written where it is used: ids, times and short lists of words.
fn is_inline(schema: &Value) -> bool {
    match words(schema) {
        Some(words) => words.len() <= INLINE_WORDS_MAX,
        None => matches!(
            schema.get("type").and_then(Value::as_str),
            Some("string" | "number" | "integer" | "boolean")
        ),
    }
}

fn type_of(schema: &Value, definitions: &Definitions) -> String {
    if let Some(name) = name_of(schema) {
        return match definitions.schemas.get(name) {
            Some(defined) if is_inline(defined) => match words(defined) {
                Some(words) => inline_words(&words),
                None if name.ends_with("Id") => format!("{} id", name.trim_end_matches("Id").to_lowercase()),
                None if name == "Timestamp" => "timestamp".into(),
                None => type_of(defined, definitions),
            },
            _ => format!("[{name}](#{})", definitions.anchor(name)),
        };
    }
    if let Some(words) = words(schema) {
        return inline_words(&words);
    }
    let of_choices: Vec<String> = choices(schema).map(|choice| type_of(choice, definitions)).collect();
    if !of_choices.is_empty() {
        return of_choices.join(" or ");
    }
    match schema.get("type") {
        Some(Value::String(one)) => plain(one, schema, definitions),
        Some(Value::Array(several)) => {
            let several = several.iter().filter_map(Value::as_str);
            several.map(|one| plain(one, schema, definitions)).collect::<Vec<_>>().join(" or ")
        }
        _ => match schema.get("const") {
            Some(value) => format!("`{value}`"),
            None => "any".into(),
        },
    }
}

fn inline_words(words: &[(String, String)]) -> String {
    words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn plain(name: &str, schema: &Value, definitions: &Definitions) -> String {
    match name {
        "array" => {
            if let Some(parts) = schema.get("prefixItems").and_then(Value::as_array) {
                let parts: Vec<String> = parts.iter().map(|part| type_of(part, definitions)).collect();
                return format!("array \\[{}\\]", parts.join(", "));
            }
            match schema.get("items") {
                Some(items) => format!("array of {}", type_of(items, definitions)),
                None => "array".into(),
            }
        }
        "object" => match schema.get("additionalProperties") {
            Some(values) if values.is_object() => {
                format!("object of {} by name", type_of(values, definitions))
            }
            _ if schema.get("properties").is_some() => {
                let fields = fields(schema).into_iter();
                let fields = fields.map(|(name, field)| format!("`{name}`: {}", type_of(field, definitions)));
                format!("object {{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            _ => "object".into(),
        },
        other => other.to_owned(),
    }
}
