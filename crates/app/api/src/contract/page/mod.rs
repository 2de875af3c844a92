//! `docs/json.md`, from the catalogue and the schemas.

mod types;

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use self::types::Definitions;
use crate::contract::catalogue::{DOCUMENTS, Entry, Shape};

/// What no schema says: rules for all documents, exit codes, the checks of `checkpoint doctor`.
const INTRODUCTION: &str = include_str!("intro.md");

/// The text of `docs/json.md`.
#[must_use]
pub fn document() -> String {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let documents: Vec<(&Entry, Value)> =
        DOCUMENTS.iter().map(|entry| (entry, entry.derived.reference(&mut generator).to_value())).collect();
    let named = |(entry, schema): &(&Entry, Value)| Some((types::name_of(schema)?.to_owned(), entry.name));
    let definitions = Definitions {
        schemas: generator.take_definitions(true),
        documents: documents.iter().filter_map(named).collect(),
    };
    let mut page = INTRODUCTION.to_owned();
    page.push_str("## Documents\n\n| command | document |\n|---|---|\n");
    for (entry, _) in &documents {
        let _ = writeln!(page, "| {} | [{}](#{}) |", commands(entry), shaped(entry), entry.name);
    }
    for (entry, schema) in &documents {
        section(&mut page, entry, types::resolved(schema, &definitions), &definitions);
    }
    page.push_str("\n## Types\n");
    for (name, schema) in &definitions.schemas {
        if !definitions.documents.contains_key(name) {
            types::definition(&mut page, name, schema, &definitions);
        }
    }
    page
}

fn commands(entry: &Entry) -> String {
    let quoted: Vec<String> = entry.commands.iter().map(|command| format!("`{command}`")).collect();
    quoted.join(", ")
}

fn shaped(entry: &Entry) -> String {
    match entry.shape {
        Shape::One => entry.name.to_owned(),
        Shape::Array => format!("array of {}", entry.name),
        Shape::Lines => format!("{}, one per line", entry.name),
    }
}

fn section(page: &mut String, entry: &Entry, schema: &Value, definitions: &Definitions) {
    let name = entry.name;
    let _ = writeln!(page, "\n## {name}\n");
    let printed = match entry.shape {
        Shape::One => "prints",
        Shape::Array => "prints an array of",
        Shape::Lines => "prints on each line",
    };
    let _ = write!(page, "{} {printed}: {}", commands(entry), types::description(schema));
    if !entry.remarks.is_empty() {
        let _ = write!(page, " {}", entry.remarks);
    }
    let _ = writeln!(page, " Schema: `trackway schema {name}`.\n");
    types::body(page, schema, definitions);
}
