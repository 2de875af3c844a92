//! For tests alone: a test that cannot run here prints why and is counted, so that a skip is not taken for a pass.
//! `scripts/skipped.py` lists what was counted, and fails in CI at what `.ci/skipped.txt` does not allow.

#![allow(clippy::print_stdout, reason = "tests print what they skip")]

use std::fs::OpenOptions;
use std::io::{Result, Write as _};
use std::path::Path;

/// The variable that names the file in which skips are counted. Without it they are only printed.
pub const FILE: &str = "TRACKWAY_TEST_SKIPPED";

/// Says that this test is skipped and why, in the arguments of `format!`. The caller returns.
#[macro_export]
macro_rules! skip {
    ($($why:tt)+) => {
        $crate::record(env!("CARGO_PKG_NAME"), module_path!(), &format!($($why)+))
    };
}

/// What [`skip!`] does: prints the skip, and counts it in the file that [`FILE`] names.
///
/// # Panics
/// When the file cannot be written: a skip that is not counted would pass.
pub fn record(package: &str, module: &str, why: &str) {
    println!("skipped: {why}");
    let Some(path) = std::env::var_os(FILE) else { return };
    let thread = std::thread::current();
    // The test runner names its threads after the tests; `main` is a runner without threads.
    let test = thread.name().filter(|name| *name != "main").unwrap_or(module);
    append(Path::new(&path), &line(package, test, why)).expect("the file of skips is writable");
}

/// One skip as a line: the test, a tab, and why.
pub fn line(package: &str, test: &str, why: &str) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{package}::{test}\t{why}\n")
}

/// Appends a line in one write, so that several processes may do so at once.
///
/// # Errors
/// When the file cannot be opened or written.
pub fn append(path: &Path, line: &str) -> Result<()> {
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}
