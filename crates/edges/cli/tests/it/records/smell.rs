//! The smell test: failed runs with a known truth, and how `explain` answers six questions about each.

use std::path::Path;
use std::process::Command;

use crate::harness::BINARY;

/// Proves that cause, first evidence, safe checkpoint, what changed, cost and next step are right for at least 99 % of
/// the answers about thirty mechanisms in plain loops, and that no sentence contradicts the truth.
#[test]
fn an_engineer_understands_each_failure() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/smell/smell.py");
    let output = Command::new("python3")
        .arg(script)
        .arg("--program")
        .arg(BINARY)
        .args(["--commands-of", "3"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
