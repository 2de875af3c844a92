//! Everything through which text of a user enters a home (`channels.json`): each channel with the files that clean it. The suite of the
//! binary sends secrets through each; a new door fails the test below until it has a channel, a new channel fails the suite until
//! it has a row there, and a new path of a home fails until it names its channels or says why it has none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What `channels.json` has.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Channels {
    /// Of each channel the files that clean it.
    doors: BTreeMap<String, BTreeSet<String>>,
    /// Of each path of a home what comes into it.
    home: BTreeMap<String, Content>,
}

/// What comes into a file or folder of a home.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Content {
    /// Text of a user, through these channels.
    Through(Vec<String>),
    /// Nothing that a channel cleans, and why.
    Without(String),
}

fn channels() -> Channels {
    serde_json::from_str(include_str!("channels.json")).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

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
    let root = root();
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
    let named: BTreeSet<String> = channels().doors.into_values().flatten().collect();
    let without: Vec<_> = doors.difference(&named).collect();
    let gone: Vec<_> = named.difference(&doors).collect();
    assert!(without.is_empty(), "no channel of channels.json has these doors: {without:#?}");
    assert!(gone.is_empty(), "these clean nothing: {gone:#?}");
}

/// A path of a home with the kinds of its ids in the place of the ids.
fn without_ids(path: &str) -> String {
    const KINDS: [(&str, &str); 4] =
        [("att_", "ATTEMPT"), ("run_", "RUN"), ("eval_", "EVALUATION"), ("amd_", "AMENDMENT")];
    const ID_BYTES: usize = 26;
    KINDS.iter().fold(path.to_owned(), |mut path, (prefix, kind)| {
        while let Some(at) = path.find(prefix) {
            path.replace_range(at..at + prefix.len() + ID_BYTES, kind);
        }
        path
    })
}

/// Proves that of each path of a home (`layout/home.txt`, and the folders that `docs/home.md` lists) it is written
/// which channels clean what comes into it, or why none does: a new file in a home fails here, whether or not a
/// redactor is called where it is written.
#[test]
fn every_path_of_a_home_says_what_cleans_it() {
    const REASON_BYTES_MIN: usize = 12;
    let Channels { doors, home } = channels();
    let layout = std::fs::read_to_string(root().join("crates/base/formats/src/layout/home.txt")).unwrap();
    let paths: BTreeSet<String> = layout.lines().map(without_ids).collect();
    let listed: BTreeSet<String> = home.keys().cloned().collect();
    assert_eq!(listed, paths, "`home` of channels.json and the layout of a home");
    let document = std::fs::read_to_string(root().join("docs/home.md")).unwrap();
    let cells = document.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for cell in cells {
        let is_below = |path: &&String| *path == cell || path.starts_with(&format!("{cell}/"));
        assert!(listed.iter().any(|path| is_below(&path)), "no path of channels.json is below `{cell}`");
    }
    for (path, content) in &home {
        match content {
            Content::Through(through) => {
                assert!(!through.is_empty(), "{path}");
                through.iter().for_each(|channel| assert!(doors.contains_key(channel), "{path}: {channel}"));
            }
            Content::Without(why) => assert!(why.len() >= REASON_BYTES_MIN, "{path}: {why}"),
        }
    }
}
