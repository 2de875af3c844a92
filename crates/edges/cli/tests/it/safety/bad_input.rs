//! What a user sees after a mistake.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::harness::{Home, answer};

/// Exit code, stdout and stderr as one text, with the temporary folder's path taken out.
pub(crate) fn transcript(home: &Home, arguments: &[&str]) -> String {
    let answer = home.trackway(arguments);
    let text = format!("exit {}\n-- stdout\n{}-- stderr\n{}", answer.code, answer.stdout, answer.stderr);
    let folder = home.path().canonicalize().unwrap();
    text.replace(&*folder.to_string_lossy(), "[folder]").replace(&*home.path().to_string_lossy(), "[folder]")
}

/// Nothing may have been launched.
fn assert_nothing_ran(home: &Home) {
    assert!(!home.state().join("attempts").exists(), "an attempt was launched");
}

/// Proves that mistakes in a run file are all shown, each with line, caret and hint.
#[test]
fn run_file_mistakes_have_line_caret_and_hint() {
    let home = Home::new();
    home.write(
        "bad.toml",
        "[run]\nname = \"x\"\ncomand = [\"true\"]\nseed = \"seven\"\n\n[checkpoint]\nevery = { steps = -1 }\n",
    );
    insta::assert_snapshot!(transcript(&home, &["run", "bad.toml"]));
    assert_nothing_ran(&home);
}

/// Proves that a run file in another encoding is refused with the place of its first wrong byte.
#[test]
fn a_run_file_that_is_not_utf8_has_line_and_caret() {
    let home = Home::new();
    std::fs::write(home.path().join("latin.toml"), b"[run]\nname = \"M\xFCller\"\ncommand = [\"true\"]\n")
        .unwrap();
    insta::assert_snapshot!(transcript(&home, &["run", "latin.toml"]));
    assert_nothing_ran(&home);
}

/// Proves that a word of a command which is not UTF-8 is refused before anything starts, with a hint that works: a pattern of a shell.
#[test]
fn a_word_of_a_command_that_is_not_utf8_has_a_hint() {
    let home = Home::new();
    let name = OsStr::from_bytes(b"data-\xff.csv");
    std::fs::write(home.path().join(name), "x,y\n").unwrap();
    let refused = answer(home.command(&["run", "--", "cat"]).arg(name).output().unwrap());
    let hint = "a shell can name such a file by a pattern: trackway run -- sh -c '";
    assert!(refused.code == 2 && refused.stderr.contains(hint), "{}: {}", refused.code, refused.stderr);
    assert_nothing_ran(&home);
    let by_pattern = home.trackway(&["run", "--", "sh", "-c", "cat data-*.csv"]);
    assert_eq!(by_pattern.code, 0, "{}", by_pattern.stderr);
}

/// Proves that something the run file requests and this version does not do is refused by name, not skipped.
#[test]
fn what_is_not_supported_is_refused_by_name() {
    let home = Home::new();
    home.write("later.toml", "[run]\nname = \"x\"\ncommand = [\"true\"]\n\n[launch]\non = \"ray\"\n");
    insta::assert_snapshot!(transcript(&home, &["run", "later.toml"]));
    assert_nothing_ran(&home);
}

/// Proves that a missing run file, command, working directory and data are reported before anything is launched.
#[test]
fn missing_things_are_reported_before_the_launch() {
    let home = Home::new();
    home.write("command.toml", "[run]\nname = \"x\"\ncommand = [\"pyhton3\", \"train.py\"]\n");
    home.write(
        "data.toml",
        "[run]\nname = \"x\"\ncommand = [\"true\"]\n[data.train]\npath = \"trian.csv\"\n",
    );
    home.write("train.csv", "a,b\n1,2\n");
    home.write(
        "column.toml",
        "[run]\nname = \"x\"\ncommand = [\"true\"]\n[data.train]\npath = \"train.csv\"\nlabel = \"c\"\n",
    );
    home.write("broken.parquet", "this is no parquet file at all");
    home.write(
        "broken.toml",
        "[run]\nname = \"x\"\ncommand = [\"true\"]\n[data.train]\npath = \"broken.parquet\"\n",
    );
    for (name, file) in [
        ("run_file", "absent.toml"),
        ("command", "command.toml"),
        ("data", "data.toml"),
        ("column", "column.toml"),
        ("broken_data", "broken.toml"),
    ] {
        insta::assert_snapshot!(format!("missing_{name}"), transcript(&home, &["run", file]));
    }
    assert_nothing_ran(&home);
}

/// Proves that unknown arguments end with exit code 2 and a hint.
#[test]
fn wrong_words_are_usage_errors() {
    let home = Home::new();
    home.write("x.toml", "[run]\nname = \"x\"\ncommand = [\"true\"]\n");
    for (name, arguments) in [
        ("no_command", &["run"][..]),
        ("bad_fault", &["run", "--inject", "burn@step=1", "--", "true"]),
        ("bad_signal", &["classify", "--log", "/dev/null", "--signal", "SIGNOPE"]),
        ("bad_override", &["run", "x.toml", "--set", "nonsense"]),
    ] {
        insta::assert_snapshot!(format!("usage_{name}"), transcript(&home, arguments));
    }
    assert_nothing_ran(&home);
}

/// Proves that a reference to what does not exist is exit code 6 in every command, with a home and without one.
#[test]
fn unknown_names_are_exit_code_6() {
    let home = Home::new();
    assert_eq!(home.trackway(&["explain", "no-such-thing"]).code, 6);
    assert!(!home.state().exists(), "asking made a home");
    assert_eq!(home.run_script(&[], "true").0, 0);
    for arguments in [
        &["explain", "no-such-thing"][..],
        &["logs", "no-such-thing"],
        &["watch", "no-such-thing", "--once"],
        &["stop", "no-such-thing"],
        &["resume", "no-such-thing"],
        &["attempts", "no-such-thing"],
        &["checkpoint", "ls", "no-such-thing"],
        &["checkpoint", "now", "no-such-thing"],
        &["checkpoint", "resume-target", "no-such-thing"],
    ] {
        let answer = home.trackway(arguments);
        assert_eq!(answer.code, 6, "{arguments:?}: {}", answer.stderr);
        assert!(answer.stderr.contains("no-such-thing"), "{arguments:?}: {}", answer.stderr);
    }
}

/// Proves that the help of every command has an example and mentions the common options.
#[test]
fn help_has_examples() {
    let home = Home::new();
    for command in
        ["run", "resume", "runs", "attempts", "logs", "watch", "explain", "stop", "sql", "classify"]
    {
        let answer = home.trackway(&[command, "--help"]);
        assert_eq!(answer.code, 0);
        assert!(answer.stdout.contains("Examples:"), "{command}");
        assert!(answer.stdout.contains("--json"), "{command}");
    }
    insta::assert_snapshot!("help", transcript(&home, &["--help"]));
}

/// Proves that completions and man pages are made from the command line as it is, for every command.
#[test]
fn completions_and_man_pages_name_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let answer = home.trackway(&["config", "completions", shell]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        assert!(answer.stdout.contains("preflight") && answer.stdout.contains("trackway"), "{shell}");
    }
    assert_eq!(home.trackway(&["config", "man", "--out", "pages"]).code, 0);
    for page in ["trackway.1", "trackway-run.1", "trackway-registry-promote.1"] {
        assert!(home.path().join("pages").join(page).exists(), "{page}");
    }
    home.write("file", "");
    assert_eq!(home.trackway(&["config", "man", "--out", "file"]).code, 2);
    assert!(!home.state().exists(), "neither needs a home");
}
