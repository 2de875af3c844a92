//! The documents of the catalogue against `docs/` and against golden files of real commands.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "support/validate.rs"]
mod validate;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use trackway_api::contract::catalogue::{DOCUMENTS, Entry, Shape};
use trackway_api::contract::page;

use validate::faults;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn is_blessed() -> bool {
    std::env::var_os("TRACKWAY_BLESS").is_some()
}

/// Compares a generated file, or writes it with `TRACKWAY_BLESS=1`.
fn check(path: &Path, generated: &str) {
    if is_blessed() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, generated).unwrap();
    }
    let found = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, generated, "{}: run with TRACKWAY_BLESS=1", path.display());
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

fn document_names() -> BTreeSet<String> {
    DOCUMENTS.iter().map(|entry| entry.name.to_owned()).collect()
}

/// Proves that `docs/json.md` is what the catalogue and the schemas say.
#[test]
fn the_page_is_generated() {
    check(&root().join("docs/json.md"), &page::document());
}

/// What the type of a document says: its schema, and the definitions that it refers to.
fn derived(entry: &Entry) -> (Value, Map<String, Value>) {
    let Value::Object(mut schema) = entry.derived.schema() else { panic!("{}: no object", entry.name) };
    assert_eq!(schema.remove("$schema").unwrap(), "https://json-schema.org/draft/2020-12/schema");
    let definitions = schema.remove("$defs").map_or_else(Map::new, |defs| defs.as_object().unwrap().clone());
    (Value::Object(schema), definitions)
}

/// Proves that `docs/schemas.json` has the schema of every document and nothing else. Each document and each definition has a
/// line, so that a change of one is a change of one line.
#[test]
fn the_schemas_are_generated() {
    let (mut documents, mut definitions) = (Map::new(), Map::new());
    for entry in DOCUMENTS {
        let (schema, types) = derived(entry);
        documents.insert(entry.name.into(), schema);
        definitions.extend(types);
    }
    let lines = |of: &Map<String, Value>| {
        let lines: Vec<String> = of.iter().map(|(name, schema)| format!("\"{name}\":{schema}")).collect();
        lines.join(",\n")
    };
    let (definitions, documents) = (lines(&definitions), lines(&documents));
    let text = format!("{{\"$defs\":{{\n{definitions}\n}},\"documents\":{{\n{documents}\n}}}}\n");
    check(&root().join("docs/schemas.json"), &text);
}

/// Proves that the schema of a document, put together from that file, is the one of its type.
#[test]
fn schemas_of_documents_are_whole() {
    for entry in DOCUMENTS {
        let (schema, definitions) = derived(entry);
        let mut whole = entry.schema().unwrap();
        let found = whole.remove("$defs").unwrap_or_else(|| Value::Object(Map::new()));
        assert_eq!(found, Value::Object(definitions), "{}", entry.name);
        whole.remove("$schema");
        let whole =
            if entry.shape == Shape::Array { whole.remove("items").unwrap() } else { Value::Object(whole) };
        assert_eq!(whole, schema, "{}", entry.name);
    }
}

/// Proves that every document has one name, and every type of all schemas one name too.
#[test]
fn names_are_unique() {
    assert_eq!(document_names().len(), DOCUMENTS.len());
    let page = page::document();
    let numbered = page
        .lines()
        .filter(|line| line.starts_with("### ") && line.ends_with(|last: char| last.is_ascii_digit()));
    assert_eq!(numbered.collect::<Vec<_>>(), Vec::<&str>::new(), "two types with one name");
}

/// Proves that no description names an item of Rust's code, such as a constant, which a reader of a schema cannot look
/// up.
#[test]
fn descriptions_are_not_about_the_code() {
    let is_constant = |name: &str| {
        let is_variable = ["TRACKWAY_", "TORCHELASTIC_"].iter().any(|prefix| name.starts_with(prefix));
        let is_loud = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        is_loud && name.contains('_') && !is_variable
    };
    let page = page::document();
    let quoted = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let rust: Vec<&str> =
        quoted.filter(|name| name.contains("::") || *name == "None" || is_constant(name)).collect();
    assert_eq!(rust, Vec::<&str>::new());
}

/// Proves that a document of a real command is described completely: its type reads it and writes the same, and the
/// schema names all of its fields.
#[test]
fn golden_documents_are_what_the_types_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    assert_eq!(
        names_in(&folder),
        document_names(),
        "one golden file per document: scripts/golden_documents.py"
    );
    for entry in DOCUMENTS {
        let name = entry.name;
        let golden: Value =
            serde_json::from_str(&fs::read_to_string(folder.join(format!("{name}.json"))).unwrap()).unwrap();
        assert_eq!(faults(&Value::Object(entry.schema().unwrap()), &golden), Vec::<String>::new(), "{name}");
        let items = match entry.shape {
            Shape::Array => golden.as_array().unwrap().clone(),
            Shape::One | Shape::Lines => vec![golden],
        };
        assert!(!items.is_empty(), "{name}: an empty array shows nothing");
        for item in items {
            assert_eq!(entry.derived.reread(&item).unwrap(), item, "{name}");
        }
    }
}
