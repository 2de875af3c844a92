//! Proof that the contract is true: what commands print with `--json` in any test is what the catalogue says.

use std::path::PathBuf;

use serde_json::Value;
use trackway_api::catalogue::{DOCUMENTS, Entry, Shape};
use trackway_api::validate;

/// Commands that are groups of commands.
const GROUPS: [&str; 7] = ["checkpoint", "data", "eval", "gates", "ledger", "registry", "slices"];

/// A folder in which every document that a test prints is kept, by name: golden files come from there.
const KEEP: &str = "TRACKWAY_KEEP_DOCUMENTS";

/// The words of a command in the catalogue: what stands before its options and operands.
fn command_words(command: &str) -> Vec<&str> {
    command.split(' ').take_while(|word| !word.starts_with("--") && word.to_lowercase() == *word).collect()
}

/// The documents of the command of these arguments; options may stand before it and within it.
fn entries_of(arguments: &[&str]) -> Vec<&'static Entry> {
    let own: Vec<&str> = arguments.iter().copied().take_while(|word| *word != "--").collect();
    let paths: Vec<Vec<&str>> =
        DOCUMENTS.iter().flat_map(|entry| entry.commands).map(|command| command_words(command)).collect();
    let is_command = |word: &&str| paths.iter().any(|path| path[0] == *word) || GROUPS.contains(word);
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
    // Documents that are still undescribed are in no catalogue.
    if entries.is_empty() || stdout.is_empty() {
        return;
    }
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
    let schema = entry.schema();
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
