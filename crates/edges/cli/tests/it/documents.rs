//! Proof that the contract is true: what commands print with `--json` in any test is what the catalogue says.

use std::path::PathBuf;

use serde_json::Value;
use trackway_api::contract::catalogue::{DOCUMENTS, Entry, Shape};

use crate::harness::Home;
use crate::validate;

/// Commands that print no JSON: they write files, or text for a shell.
const WITHOUT_DOCUMENT: [&str; 2] = ["config completions", "config man"];

/// A folder in which every document that a test prints is kept, by name: golden files come from there.
const KEEP: &str = "TRACKWAY_KEEP_DOCUMENTS";

/// The words of a command in the catalogue: what is before its options and operands.
fn command_words(command: &str) -> Vec<&str> {
    command.split(' ').take_while(|word| !word.starts_with("--") && word.to_lowercase() == *word).collect()
}

/// The documents of the command of these arguments; options may be before it and within it.
fn entries_of(arguments: &[&str]) -> Vec<&'static Entry> {
    let own: Vec<&str> = arguments.iter().copied().take_while(|word| *word != "--").collect();
    let paths: Vec<Vec<&str>> =
        DOCUMENTS.iter().flat_map(|entry| entry.commands).map(|command| command_words(command)).collect();
    let is_command = |word: &&str| paths.iter().any(|path| path[0] == *word);
    let Some(first) = own.iter().position(is_command) else { return Vec::new() };
    let named = paths.iter().filter(|path| {
        let mut left = own[first..].iter();
        path[0] == own[first] && path.iter().all(|word| left.any(|argument| argument == word))
    });
    let Some(best) = named.max_by_key(|path| path.len()) else { return Vec::new() };
    let is_of_it = |entry: &&Entry| entry.commands.iter().any(|command| command_words(command) == *best);
    DOCUMENTS.iter().filter(is_of_it).collect()
}

/// Panics unless `stdout` is one of the documents of the command, and every field of it is described.
pub fn check(arguments: &[&str], stdout: &str) {
    let entries = entries_of(arguments);
    if stdout.is_empty() {
        return;
    }
    assert!(!entries.is_empty(), "{arguments:?} is not in the catalogue of documents");
    let mut faults = Vec::new();
    for entry in entries {
        let found = faults_of(entry, stdout);
        if found.is_empty() {
            keep(entry, stdout);
            return;
        }
        faults.push(format!("{}: {}", entry.name, found.join("\n  ")));
    }
    panic!("{arguments:?} printed no document of the catalogue:\n{}\n{stdout}", faults.join("\n"));
}

fn faults_of(entry: &Entry, stdout: &str) -> Vec<String> {
    let texts: Vec<&str> = match entry.shape {
        Shape::Lines => stdout.lines().collect(),
        Shape::One | Shape::Array => vec![stdout],
    };
    let schema = Value::Object(entry.schema().unwrap());
    let faults = |text: &&str| match serde_json::from_str::<Value>(text) {
        Ok(document) => validate::faults(&schema, &document),
        Err(error) => vec![error.to_string()],
    };
    texts.iter().flat_map(faults).collect()
}

fn keep(entry: &Entry, stdout: &str) {
    let Some(folder) = std::env::var_os(KEEP).map(PathBuf::from) else { return };
    let folder = folder.join(entry.name);
    std::fs::create_dir_all(&folder).expect("a folder for documents");
    let hash = stdout.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    std::fs::write(folder.join(format!("{hash:x}.json")), stdout).expect("a file for a document");
}

/// The paths of all commands below `command` that do something themselves.
fn leaves(command: &str, home: &Home, found: &mut Vec<String>) {
    let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
    let help = home.trackway(&words).stdout;
    let mut below: Vec<&str> = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        is_list = match line {
            "" => is_list,
            heading if !heading.starts_with(' ') => is_command_list(heading),
            _ => is_list,
        };
        let is_entry = is_list && line.starts_with("  ") && !line.starts_with("   ");
        below.extend(line.split_whitespace().next().filter(|_| is_entry));
    }
    // A command with commands below it does something itself if it has a second usage, or may be without one of them.
    let mut usages =
        help.lines().skip_while(|line| !line.starts_with("Usage:")).take_while(|line| !line.is_empty());
    let is_optional = usages.clone().any(|usage| usage.ends_with("[COMMAND]"));
    if below.is_empty() || !command.is_empty() && (is_optional || usages.nth(1).is_some()) {
        found.push(command.trim().to_owned());
    }
    for name in below {
        leaves(&format!("{command} {name}"), home, found);
    }
}

fn is_command_list(heading: &str) -> bool {
    ["Commands:", "Run:", "Inspect:", "Data and models:", "Housekeeping:"].contains(&heading)
}

/// Proves that every command of the command line is in the catalogue of documents, and that the catalogue names no
/// other.
#[test]
fn every_command_has_a_document() {
    let mut commands = Vec::new();
    leaves("", &Home::new(), &mut commands);
    commands.retain(|command| !WITHOUT_DOCUMENT.contains(&command.as_str()));
    let mut documented: Vec<String> = DOCUMENTS
        .iter()
        .flat_map(|entry| entry.commands)
        .map(|command| command_words(command).join(" "))
        .collect();
    commands.sort();
    documented.sort();
    documented.dedup();
    assert_eq!(commands, documented);
}

/// Proves that the lists that need no run are documents: the settings, the devices, and the documents themselves.
#[test]
fn lists_are_documents() {
    let home = Home::new();
    let devices = home.json(&["memory", "--devices"]);
    assert!(devices.as_array().unwrap().iter().any(|device| device["name"] == "t4-16gb"), "{devices}");
    assert!(home.json(&["config"])["settings"].as_array().is_some_and(|settings| !settings.is_empty()));
    assert_eq!(home.json(&["schema"]).as_array().map(Vec::len), Some(DOCUMENTS.len()));
    for entry in DOCUMENTS {
        assert_eq!(
            home.json(&["schema", entry.name]),
            Value::Object(entry.schema().unwrap()),
            "{}",
            entry.name
        );
    }
}
