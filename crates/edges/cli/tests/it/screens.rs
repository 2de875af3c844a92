//! What a user sees: the main commands in their main states, so that words and layout show in a review.

mod checked;
mod kept;
mod models;
mod tables;

use std::collections::HashMap;

use regex::{Captures, Regex};

use crate::harness::{Answer, Home};

/// Compares what each command shows with the snapshot of its name.
fn assert_screens(home: &Home, screens: &[(&str, &[&str])]) {
    for (name, arguments) in screens {
        insta::assert_snapshot!(*name, screen(home, arguments));
    }
}

/// Exit code, stdout and stderr as one text, with what differs between two machines or two runs replaced by what it is.
fn screen(home: &Home, arguments: &[&str]) -> String {
    shown(home, &home.trackway(arguments))
}

fn shown(home: &Home, answer: &Answer) -> String {
    let text = format!("exit {}\n-- stdout\n{}-- stderr\n{}", answer.code, answer.stdout, answer.stderr);
    let folder = home.path().canonicalize().unwrap();
    let text = text.replace(&*folder.to_string_lossy(), "[folder]");
    masked(&text.replace(&*home.path().to_string_lossy(), "[folder]"))
}

/// What differs between two runs of the same test; blanks are collapsed, because columns are as wide as what they hold.
fn masked(text: &str) -> String {
    let mut text = numbered_ids(text);
    for (pattern, mark) in [
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "[time]"),
        (r"\b\d\d:\d\d:\d\d(\.\d+)?\b", "[time]"),
        (r"(· run_\[\d+\] · )[^·\n]+ · (completed|failed|blocked|stopped|waiting)", "$1[owner] · $2"),
        (r"\.tmp[0-9A-Za-z]{6}\b", "[project]"),
        (r"\b\d+ CPUs?\b", "[count] CPUs"),
        (r"_seconds \| [0-9.e-]+", "_seconds | [seconds]"),
        (r"\b[0-9a-f]{12,64}\b", "[hash]"),
        (r"\b\d+ (d \d+ h|h \d\d min|min \d\d s)\b", "[duration]"),
        (r"\b\d+(\.\d+)? (ms|s|µs)\b", "[duration]"),
        (r"\b\d+(\.\d+)? ([KMGT]i)?B\b", "[size]"),
        (r"\bprocess \d+\b", "process [pid]"),
        (r"\(\d+\) panicked at [^ ;)]+", "([thread]) panicked at [place]"),
        (r"[─━═]{4,}", "────"),
        (r"[ \t]+\n", "\n"),
        (r"(\S)  +", "$1  "),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, mark).into_owned();
    }
    let host = nix::unistd::gethostname().unwrap();
    text.replace(&*host.to_string_lossy(), "[host]")
}

/// Ids in the order in which they come: the same id has the same number.
fn numbered_ids(text: &str) -> String {
    let ids = Regex::new(r"\b(run|att|evl|prf)_[0-9a-hjkmnp-tv-z]{26}\b").unwrap();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let number = |found: &Captures<'_>| {
        let next = numbers.len() + 1;
        format!("{}_[{}]", &found[1], numbers.entry(found[0].to_owned()).or_insert(next))
    };
    ids.replace_all(text, number).into_owned()
}

/// A home of a person whose name is known.
fn home() -> Home {
    let name = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "user.name"), ("GIT_CONFIG_VALUE_0", "Ana")];
    Home::with(&name.map(|(variable, value)| (variable.to_owned(), value.to_owned())))
}

/// Three steps that are printed, then what `end` does; all of it to one stream, whose lines have one order.
fn script(end: &str) -> String {
    let script = format!(
        "for step in 1 2 3; do echo \"{{\\\"step\\\": $step, \\\"loss\\\": 0.$((9 - step))}}\"; done; {end}"
    );
    format!("exec 2>&1; {script}")
}

/// A home with a completed run, one that ran out of memory, and one that was stopped by its exit code.
fn runs() -> Home {
    let home = home();
    let run =
        |name: &str, end: &str| home.trackway(&["run", "--name", name, "--", "sh", "-c", &script(end)]).code;
    assert_eq!(run("good", "true"), 0);
    assert_eq!(
        run(
            "oom",
            "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2; exit 1"
        ),
        4
    );
    assert_eq!(run("bug", "echo 'KeyError: \"label\"' >&2; exit 1"), 4);
    home
}

/// Proves what `run` shows of a run that completes, of one that fails, and of a run file with a rung and a retry.
#[test]
fn run_shows_what_happens() {
    let home = home();
    let shown = |end: &str| screen(&home, &["run", "--name", "shown", "--", "sh", "-c", &script(end)]);
    insta::assert_snapshot!("run_completed", shown("true"));
    insta::assert_snapshot!("run_failed", shown("echo 'KeyError: \"label\"' >&2; exit 1"));
    home.write("lost.sh", "[ -e again ] || { touch again; echo 'ConnectionResetError: [Errno 104] Connection reset by peer' >&2; exit 1; }\necho '{\"step\": 1, \"loss\": 0.5}'\n");
    home.write(
        "retried.toml",
        "[run]\nname = \"retried\"\ncommand = [\"sh\", \"lost.sh\"]\n[retry]\ninfrastructure = { attempts = 2, backoff = \"0s..0s\" }\n",
    );
    insta::assert_snapshot!("run_retried", screen(&home, &["run", "retried.toml"]));
}

/// Proves what `explain`, `runs`, `attempts`, `compare`, `logs` and `watch` show of runs that ended.
#[test]
fn ended_runs_are_shown() {
    let home = runs();
    for name in ["good", "oom", "bug"] {
        insta::assert_snapshot!(format!("explain_{name}"), screen(&home, &["explain", name]));
    }
    insta::assert_snapshot!("runs", screen(&home, &["runs"]));
    insta::assert_snapshot!("runs_where", screen(&home, &["runs", "--where", "state = 'completed'"]));
    insta::assert_snapshot!("runs_where_wrong", screen(&home, &["runs", "--where", "stat = 'completed'"]));
    insta::assert_snapshot!("attempts", screen(&home, &["attempts"]));
    insta::assert_snapshot!("compare", screen(&home, &["compare", "good", "oom"]));
    insta::assert_snapshot!("logs", screen(&home, &["logs", "oom"]));
    insta::assert_snapshot!("watch", screen(&home, &["watch", "good"]));
    insta::assert_snapshot!("explain_nothing", screen(&home, &["explain", "nothing"]));
}

/// A small table: two numbers, a class, and a label with two spellings of one class where `dirty`.
fn table(home: &Home, name: &str, dirty: bool) {
    let mut text = "id,age,city,label\n".to_owned();
    for row in 0..60 {
        let city = ["Bern", "Lyon", "Graz"][row % 3];
        let label = if row % 4 == 0 { "yes" } else { "no" };
        let label = if dirty && row % 10 == 0 { "Yes" } else { label };
        let age = if dirty && row % 15 == 0 { String::new() } else { (20 + row * 7 % 50).to_string() };
        text.push_str(&format!("{row},{age},{city},{label}\n"));
    }
    home.write(name, &text);
}

/// Proves what the `data` commands show of a clean and of a dirty table.
#[test]
fn tables_are_shown() {
    let home = home();
    table(&home, "clean.csv", false);
    table(&home, "dirty.csv", true);
    assert_screens(
        &home,
        &[
            ("data_profile", &["data", "profile", "clean.csv", "--label", "label"]),
            ("data_check_clean", &["data", "check", "clean.csv", "--label", "label"]),
            ("data_check_dirty", &["data", "check", "dirty.csv", "--label", "label"]),
            (
                "data_drift",
                &["data", "drift", "--reference", "clean.csv", "--current", "dirty.csv", "--label", "label"],
            ),
            (
                "data_leakage",
                &["data", "leakage", "--train", "clean.csv", "--test", "dirty.csv", "--label", "label"],
            ),
            ("data_profile_missing", &["data", "profile", "absent.csv"]),
        ],
    );
}
