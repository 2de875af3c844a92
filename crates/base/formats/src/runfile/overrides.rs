//! `--set key.path=value`: changes to the document before it is read, so that an override obeys the same rules
//! as the file and its mistakes are shown in the same way.

use toml::de::{DeTable, DeValue};

use super::tree::{Entry, Node, Place, Sources, Table, Value, from_toml, from_toml_value};
use super::walker::Problems;

/// Applies one override to the document.
///
/// The value is TOML if it parses as TOML, else a text, so that `--set run.name=income` needs no quotes.
pub(super) fn apply(root: &mut Node, sources: &Sources, source_index: usize, problems: &mut Problems) {
    let text = &sources.texts[source_index];
    let whole = Place { source_index, span: 0..text.len() };
    let Some((path_text, value_text)) = split(text) else {
        problems.add(
            whole,
            "an override has the form `key.path=value`".into(),
            Some("such as `--set run.seed=7`".into()),
        );
        return;
    };
    let Some(path) = key_path(path_text) else {
        let place = Place { source_index, span: 0..path_text.len() };
        problems.add(
            place,
            format!("invalid key path `{path_text}`"),
            Some("write keys joined by dots, such as `run.seed`".into()),
        );
        return;
    };
    let key_place = Place { source_index, span: 0..path_text.len() };
    let value = parse_value(value_text, source_index, path_text.len() + 1);
    insert(root, &path, &key_place, value, problems);
}

/// Splits at the first `=` outside quotes.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (index, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if letter == open => quote = None,
            (None, '=') => return Some((&text[..index], &text[index + 1..])),
            _ => {}
        }
    }
    None
}

/// The keys of a dotted path, read by the TOML parser itself so that quoted keys work.
fn key_path(text: &str) -> Option<Vec<String>> {
    if text.contains(['\n', '\r', '#', '=', '[', ']']) {
        return None;
    }
    let document = format!("{text} = 0");
    let table = DeTable::parse(&document).ok()?;
    let mut node = from_toml(&table, 0, 0);
    let mut path = Vec::new();
    while let Value::Table(table) = node.value {
        let (key, entry) = table.into_iter().next()?;
        path.push(key);
        node = entry.node;
    }
    Some(path)
}

fn parse_value(text: &str, source_index: usize, offset: usize) -> Node {
    let place = Place { source_index, span: offset..offset + text.len() };
    match DeValue::parse(text) {
        Ok(value) => from_toml_value(&value, source_index, offset),
        Err(_) => Node { place, value: Value::Text(text.to_owned()) },
    }
}

fn insert(root: &mut Node, path: &[String], place: &Place, value: Node, problems: &mut Problems) {
    let mut node = root;
    for (depth, key) in path.iter().enumerate() {
        let kind = node.value.kind();
        let Value::Table(table) = &mut node.value else {
            let parent = path[..depth].join(".");
            problems.add(
                place.clone(),
                format!("`{parent}` is {kind}, so nothing can be set inside it"),
                None,
            );
            return;
        };
        if depth + 1 == path.len() {
            table.insert(key.clone(), Entry { key_place: place.clone(), node: value });
            return;
        }
        let empty = || Entry {
            key_place: place.clone(),
            node: Node { place: place.clone(), value: Value::Table(Table::new()) },
        };
        node = &mut table.entry(key.clone()).or_insert_with(empty).node;
    }
}
