//! Makes Rust of the tables of signatures in `src/signatures/tables/*.toml`, so that no process reads or derives them:
//! the rows, and one automaton that finds the literals of all phrases.

#![allow(clippy::print_stdout, reason = "cargo reads what a build script prints")]

mod automaton;
mod literals;
mod rows;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs, io};

/// The tables, in the order in which their signatures are tried within one line.
const FAMILIES: [&str; 19] = [
    "operator", "scheduler", "node", "memory_device", "memory_host", "storage", "checkpoint", "numeric",
    "schema", "data", "budget", "evaluator", "collective", "network", "early_stop", "completion",
    "exception_names", "code", "markers",
];

fn main() -> io::Result<()> {
    let source = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("src/signatures/tables");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed={}", source.display());
    let (mut rows, mut traceback) = (Vec::new(), Vec::new());
    for family in FAMILIES {
        let text = fs::read_to_string(source.join(family).with_extension("toml"))?;
        let family = rows::read(&text).unwrap_or_else(|error| panic!("{family}.toml: {error}"));
        rows.extend(family.signature);
        traceback.extend(family.traceback);
    }
    fs::write(out.join("signatures.rs"), rows::as_rust(&rows))?;
    fs::write(out.join("examples.rs"), rows::examples_as_rust(&rows))?;
    fs::write(out.join("automaton.rs"), automaton::as_rust(&owners(&rows, &traceback)))
}

/// Every literal with the numbers of the phrases of which it is a part; those of tracebacks have the number behind the last phrase.
fn owners(rows: &[rows::Row], traceback: &[String]) -> BTreeMap<Vec<u8>, Vec<usize>> {
    let mut owners = BTreeMap::<Vec<u8>, Vec<usize>>::new();
    let phrases: Vec<&str> = rows.iter().flat_map(rows::Row::phrases).collect();
    for (number, phrase) in phrases.iter().enumerate() {
        let literals = literals::required(phrase);
        for literal in literals.unwrap_or_else(|| panic!("`{phrase}` has no literal to be found by")) {
            owners.entry(literal).or_default().push(number);
        }
    }
    for literal in traceback {
        owners.entry(literal.as_bytes().to_vec()).or_default().push(phrases.len());
    }
    owners
}
