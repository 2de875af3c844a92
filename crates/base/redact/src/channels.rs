//! Everything through which text of a user enters a home (`channels.json`): each channel with the files that clean it. The suite of the
//! binary sends secrets through each; a new door fails the test below until it has a channel, and a new channel fails the suite until
//! it has a row there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Ways to clean a text.
const CALLS: [&str; 10] = [
    ".text(", ".value(", ".json(", ".argv(", ".environment(", ".settings(", ".stream(", ".bytes(",
    ".extended(", ".cell(",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "examples", "target", "redact"].contains(&name.as_str()) {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && !["tests.rs", "conformance.rs"].contains(&name.as_str()) {
            found.push(path);
        }
    }
}

/// Proves that each source which cleans text is the door of a channel, and that each door is such a source.
#[test]
fn every_door_has_a_channel() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap();
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    assert!(files.len() > 500, "the sources were not found: {}", files.len());
    let cleans = |line: &str| {
        let lower = line.trim_start();
        let called = CALLS.iter().any(|call| line.contains(&format!("redactor{call}")));
        (called || line.contains("Redactor::of_this_process(")) && !lower.starts_with("//")
    };
    let is_door = |path: &PathBuf| std::fs::read_to_string(path).unwrap().lines().any(cleans);
    let doors: BTreeSet<String> = files
        .iter()
        .filter(|path| is_door(path))
        .map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned())
        .collect();
    let channels: BTreeMap<String, BTreeSet<String>> =
        serde_json::from_str(include_str!("channels.json")).unwrap();
    let named: BTreeSet<String> = channels.into_values().flatten().collect();
    let without: Vec<_> = doors.difference(&named).collect();
    let gone: Vec<_> = named.difference(&doors).collect();
    assert!(without.is_empty(), "no channel of channels.json has these doors: {without:#?}");
    assert!(gone.is_empty(), "these clean nothing: {gone:#?}");
}
