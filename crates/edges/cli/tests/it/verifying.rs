//! What `verify` proves, what `rebuild` and `reproduce` make of it, and output that cannot be written.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::harness::{Answer, Home, answer};

/// Proves that an answer which cannot be written is an error of every command, and that a closed pipe is none.
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    home.run_script(&["--skip-preflight", "--why", "a test"], "echo line");
    let commands: [&[&str]; 10] = [
        &["sql", "select * from runs"],
        &["runs"],
        &["logs", "last"],
        &["explain", "last"],
        &["--json", "explain", "last"],
        &["schema"],
        &["postmortem", "last"],
        &["attempts"],
        &["config"],
        &["--help"],
    ];
    for arguments in commands {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let unwritten: Answer = answer(home.command(arguments).stdout(Stdio::from(full)).output().unwrap());
        assert_eq!(unwritten.code, 1, "{arguments:?}: {}", unwritten.stderr);
        assert!(unwritten.stderr.contains("the output is not whole"), "{arguments:?}: {}", unwritten.stderr);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed: Answer = answer(home.command(arguments).stdout(Stdio::from(writer)).output().unwrap());
        assert_eq!(
            (closed.code, closed.stderr.contains("error")),
            (0, false),
            "{arguments:?}: {}",
            closed.stderr
        );
    }
}
