//! A reference means one run, whichever command reads it, and a name never is an id (docs/names.md).

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Answer, Home};

/// Runs a command under a name, and gives the ids of the run and its attempt.
fn ran(home: &Home, name: &str, prints: &str) -> (String, String) {
    let (code, run) = home.run_script(&["--name", name], &format!("echo {prints}"));
    assert_eq!(code, 0, "{run}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&run["run_id"]), text(&run["attempts"][0]["attempt_id"]))
}

/// The run that a command finds for a reference: its id if the result has it, else its name, which a script printed or
/// an error contains.
fn meant(home: &Home, command: &str, word: &str, other: &str) -> String {
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match command {
        "explain" => id(&home.json(&["explain", word])["run"]["run_id"]),
        "watch" => id(&home.json(&["watch", word, "--once"])["run_id"]),
        "attempts" => id(&home.json(&["attempts", word])[0]["run_id"]),
        "compare" => id(&home.json(&["compare", word, other])["runs"][0]["run_id"]),
        "logs" => home.trackway(&["logs", word]).stdout.trim().to_owned(),
        // These refuse a run that completed, with its name.
        _ => {
            let words: Vec<&str> = command.split(' ').collect();
            let answer = home.trackway(&[&words, &[word][..]].concat());
            answer.stderr.split('`').nth(1).unwrap_or(&answer.stderr).to_owned()
        }
    }
}

/// Proves that every command finds the same run by every reference to it: the names are parts of each other.
#[test]
fn every_command_means_the_same_run() {
    let home = Home::new();
    let (first, first_attempt) = ran(&home, "exp", "exp");
    let (second, second_attempt) = ran(&home, "exp-1", "exp-1");
    let cases = [
        ("exp", &first, &first_attempt, &second, None),
        ("exp-1", &second, &second_attempt, &first, Some("last")),
    ];
    for (name, run, attempt, other, last) in cases {
        let numbered = format!("{name}/1");
        let words = [run.as_str(), &run[..28], &run[run.len() - 12..], attempt, name, &numbered];
        for word in words.into_iter().chain(last) {
            for command in ["explain", "watch", "attempts", "compare"] {
                assert_eq!(meant(&home, command, word, other), *run, "{command} {word}");
            }
            for command in ["logs", "stop", "resume", "checkpoint now"] {
                assert_eq!(meant(&home, command, word, other), name, "{command} {word}");
            }
        }
    }
}

fn refused(answer: &Answer, word: &str) {
    assert_eq!(answer.code, 2, "{word}: {}", answer.stderr);
    assert!(answer.stderr.contains("hint:") && answer.stderr.contains(word), "{word}: {}", answer.stderr);
}

/// Proves that a name which reads as something else is refused at every door, before anything is launched or written.
#[test]
fn a_name_that_reads_as_something_else_is_refused() {
    let home = Home::new();
    home.write("t.csv", "a,b\n1,2\n");
    let (run, attempt) = ran(&home, "exp", "exp");
    let digest = "5e".repeat(32);
    for word in [&run, &run[..9], &attempt, &run[4..], "last", "exp/1", &digest] {
        refused(&home.trackway(&["run", "--name", word, "--", "true"]), word);
        home.write("job.toml", &format!("[run]\nname = \"{word}\"\ncommand = [\"true\"]\n"));
        refused(&home.trackway(&["run", "job.toml"]), word);
        refused(&home.trackway(&["data", "snapshot", "t.csv", "--name", word]), word);
        refused(&home.trackway(&["registry", "register", word, "--run", "exp"]), word);
    }
    refused(&home.trackway(&["data", "snapshot", "t.csv", "--name", "decade"]), "decade");
    assert_eq!(home.json(&["runs"]).as_array().unwrap().len(), 1);
    assert_eq!(home.json(&["data", "ls"])["names"], json!([]));
}

/// A store of MLflow with one run of this name.
fn mlruns(home: &Home, name: &str) {
    let folder = home.path().join("mlruns/0/0123456789abcdef0123456789abcdef");
    std::fs::create_dir_all(&folder).unwrap();
    let meta = format!(
        "experiment_id: '0'\nrun_id: 0123456789abcdef0123456789abcdef\nrun_name: {name}\nstatus: 3\nstart_time: 1700000000000\nend_time: 1700000001000\n"
    );
    std::fs::write(folder.join("meta.yaml"), meta).unwrap();
}

/// Proves that an import cannot replace a run: it gets another name, the command reports it, and a tag keeps the
/// tool's.
#[test]
fn an_imported_name_never_is_an_id() {
    let home = Home::new();
    let (run, _) = ran(&home, "exp", "exp");
    mlruns(&home, &run);
    let imported = home.trackway(&["import", "mlflow", "mlruns"]);
    assert!(imported.stderr.contains(&format!("the run is named `{run}-renamed`")), "{}", imported.stderr);
    let report = home.json(&["import", "mlflow", "mlruns"]);
    assert_eq!(report["runs"][0]["renamed_from"], json!(run));
    assert_eq!(home.json(&["explain", &run])["run"]["name"], "exp");
    let tags = home.sql("select value from tags where name = 'imported_name'");
    assert_eq!(tags, [json!({ "value": run })]);
    assert_eq!(home.trackway(&["explain", &format!("{run}-renamed")]).code, 0);
}

/// Proves that a name which is a part of another run's id is ambiguous: the error lists both.
#[test]
fn a_name_and_a_part_of_an_id_are_distinguished() {
    let home = Home::new();
    let (first, _) = ran(&home, "exp", "exp");
    let part = &first[first.len() - 8..];
    let (second, _) = ran(&home, part, "other");
    for command in ["explain", "logs", "stop", "attempts"] {
        let answer = home.trackway(&[command, part]);
        assert_eq!(answer.code, 6, "{command}: {}", answer.stderr);
        assert!(answer.stderr.contains(&first) && answer.stderr.contains(&second), "{}", answer.stderr);
        assert!(answer.stderr.contains("hint: use the full id"), "{}", answer.stderr);
    }
}

/// Proves that what does not exist ends with 6, and a folder where a file is wanted with 2.
#[test]
fn what_is_not_there_has_its_exit_code() {
    let home = Home::new();
    for tool in ["mlflow", "wandb", "tensorboard"] {
        let answer = home.trackway(&["import", tool, "nowhere"]);
        assert_eq!(answer.code, 6, "{}", answer.stderr);
    }
    home.write("t.csv", "a,b\n1,2\n");
    std::fs::create_dir(home.path().join("out.csv")).unwrap();
    let score = home.trackway(&["eval", "score", "t.csv", "--command", "cat", "--out", "out.csv"]);
    assert_eq!((score.code, Path::new("out.csv").is_file()), (2, false), "{}", score.stderr);
    let long = format!("[run]\nname = \"a\"\ncommand = [\"echo\", \"{}\"]\n", "x".repeat(140_000));
    home.write("long.toml", &long);
    let answer = home.trackway(&["run", "long.toml"]);
    assert!(answer.code == 2 && answer.stderr.contains("140000 bytes"), "{}", answer.stderr);
}

/// Proves that the newest evaluation of a ledger without any is an answer, not a wait.
#[test]
fn there_is_no_last_evaluation_yet() {
    let home = Home::new();
    assert_eq!(home.trackway(&["run", "--", "true"]).code, 0);
    let answer = home.trackway(&["eval", "show", "last"]);
    assert_eq!(answer.code, 6, "{}", answer.stderr);
    assert!(answer.stderr.contains("evaluation"), "{}", answer.stderr);
}
