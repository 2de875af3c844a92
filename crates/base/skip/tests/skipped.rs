//! Skips are counted, and CI fails at one that is not listed (`scripts/skipped.py`).

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;
use std::process::{Command, Output};

use trackway_skip::{append, line};

/// What `scripts/skipped.py` answers when suite `test` skipped `skips` and CI allows `allowed`.
fn checked(skips: &[String], allowed: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let (counted, list) = (folder.path().join("test.txt"), folder.path().join("allowed.txt"));
    std::fs::write(&counted, "").unwrap();
    std::fs::write(&list, allowed).unwrap();
    skips.iter().for_each(|skip| append(&counted, skip).unwrap());
    script(&[counted.as_path(), Path::new("--allowed"), &list])
}

fn script(arguments: &[&Path]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scripts/skipped.py");
    Command::new("python3").arg(script).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Proves that a skip fails unless the list has it for this suite, with a reason, and that the failure names it.
#[test]
fn a_skip_that_is_not_listed_fails() {
    let skips = [line("trackway", "gpu::names", "no\n GPU"), line("trackway", "disk::full", "no mounts")];
    for (allowed, code) in [
        ("test trackway::gpu::* CI has no GPU\ntest trackway::disk::full not on every system\n", Some(0)),
        ("test trackway::gpu::* CI has no GPU\n", Some(1)),
        ("test trackway::gpu::* CI has no GPU\nservices trackway::disk::* another suite\n", Some(1)),
        ("", Some(1)),
    ] {
        let found = checked(&skips, allowed);
        let printed = text(&found);
        assert_eq!(found.status.code(), code, "{allowed}: {printed}");
        assert_eq!(printed.contains("not allowed: trackway::disk::full"), code == Some(1), "{printed}");
    }
    let found = text(&checked(&skips, "test trackway::gpu::*\n"));
    assert!(found.contains("a suite, tests and a reason"), "{found}");
}

/// Proves that what was skipped is listed with its reasons, that a listed test which was not skipped is a note, and that a suite which
/// counted nothing fails: its file is missing.
#[test]
fn skips_are_printed_and_a_missing_count_fails() {
    let skips = [line("trackway", "gpu::names", "no\n GPU"), line("trackway", "gpu::sizes", "no GPU")];
    let found = checked(&skips, "test trackway::gpu::* CI has no GPU\ntest trackway::disk::* rarely\n");
    let printed = text(&found);
    assert!(found.status.success() && printed.contains("test: 2 skipped\n  2: no GPU\n"), "{printed}");
    assert!(printed.contains("trackway::gpu::names\n"), "{printed}");
    assert!(printed.contains("trackway::gpu::sizes\n"), "{printed}");
    assert!(printed.contains("note: listed and not skipped: trackway::disk::*"), "{printed}");
    assert!(text(&checked(&[], "")).contains("test: 0 skipped"));
    assert!(!script(&[Path::new("/absent/test.txt")]).status.success());
}

/// Proves that lines of many writers at once are whole.
#[test]
fn writers_at_once_keep_whole_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.txt");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || {
                (0..50).for_each(|_| append(path, &line("p", &format!("t{writer}"), "why")).unwrap());
            });
        }
    });
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 400);
    assert!(text.lines().all(|line| line.starts_with("p::t") && line.ends_with("\twhy")), "{text}");
}
