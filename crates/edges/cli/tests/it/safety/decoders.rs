//! Hostile and huge input: what others wrote ends as an error about a file, never as an end of Trackway.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::evaluations::{begun, evaluate, trained};
use crate::harness::{Answer, Home};

/// A Parquet file whose stored Arrow schema, damaged, makes the decoder panic.
fn panicking_parquet() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/panicking.parquet")
}

fn assert_refused(answer: &Answer, code: i32, words: &[&str]) {
    assert_eq!(answer.code, code, "{}{}", answer.stdout, answer.stderr);
    for word in words {
        assert!(answer.stderr.contains(word), "`{word}` is not in: {}", answer.stderr);
    }
    assert!(!answer.stderr.contains("panicked at"), "{}", answer.stderr);
}

/// Proves that a file that makes a decoder panic is an error about the file, for a look at data and for a run.
#[test]
fn a_panicking_decoder_is_a_finding() {
    let home = Home::new();
    fs::copy(panicking_parquet(), home.path().join("bad.parquet")).unwrap();
    let words = ["bad.parquet", "decoding it failed"];
    assert_refused(&home.trackway(&["data", "profile", "bad.parquet"]), 2, &words);
    home.write(
        "job.toml",
        "[run]\nname = \"x\"\ncommand = [\"true\"]\n[data.train]\npath = \"bad.parquet\"\n",
    );
    assert_refused(&home.trackway(&["run", "job.toml"]), 2, &words);
}

/// Proves that tables of very many columns are refused from their first row, and that the limit can be raised.
#[test]
fn tables_of_very_many_columns_are_refused_at_once() {
    let home = Home::new();
    let header = |count: usize| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>().join(",");
    home.write("wide.csv", &format!("{}\n{}\n", header(100_000), vec!["1"; 100_000].join(",")));
    home.write("commas.csv", &",".repeat(4 << 20));
    let keys: Vec<String> = (0..10_001).map(|number| format!("{{\"k{number}\":1}}")).collect();
    home.write("keys.jsonl", &keys.join("\n"));
    for name in ["wide.csv", "commas.csv", "keys.jsonl"] {
        let words = ["more than 10000", "TRACKWAY_COLUMNS_MAX"];
        assert_refused(&home.trackway(&["data", "profile", name]), 2, &words);
    }
    home.write("narrow.csv", "a,b,c\n1,2,3\n");
    let two = Home::with(&[("TRACKWAY_COLUMNS_MAX".into(), "2".into())]);
    let narrow = home.path().join("narrow.csv");
    let narrow = narrow.to_str().unwrap();
    assert_refused(&two.trackway(&["data", "profile", narrow]), 2, &["more than 2 columns"]);
    let none = Home::with(&[("TRACKWAY_COLUMNS_MAX".into(), "many".into())]);
    assert_refused(&none.trackway(&["data", "profile", narrow]), 2, &["TRACKWAY_COLUMNS_MAX is `many`"]);
}

/// Proves that JSON lines of thousands of keys are profiled in bounded memory: 9,000 rows with a key each took 3 GB.
#[test]
fn json_of_many_keys_fits_the_memory() {
    let home = Home::new();
    let rows: Vec<String> = (0..9_000).map(|number| format!("{{\"k{number}\":1}}")).collect();
    home.write("keys.jsonl", &rows.join("\n"));
    let limited = format!(
        "ulimit -v 1500000; MALLOC_ARENA_MAX=2 exec {} data profile keys.jsonl --json",
        crate::harness::BINARY
    );
    let output = Command::new("sh").args(["-c", &limited]).current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Proves that links of a folder of images that lead nowhere are findings, and that one that leads out is not followed
/// by default.
#[test]
fn links_of_a_data_folder() {
    let home = Home::new();
    let folder = home.path().join("images");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "a text").unwrap();
    std::os::unix::fs::symlink("nowhere.png", folder.join("dangling.png")).unwrap();
    std::os::unix::fs::symlink("loop.png", folder.join("loop.png")).unwrap();
    let checked = home.trackway(&["data", "images", "images"]);
    assert!(checked.stdout.contains("leads nowhere"), "{}{}", checked.stdout, checked.stderr);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("far.txt"), "a text").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join("out")).unwrap();
    let words = ["leads out of the data folder", "TRACKWAY_FOLLOW_LINKS"];
    assert_refused(&home.trackway(&["data", "images", "images"]), 2, &words);
    let mut asked = home.command(&["data", "images", "images"]);
    let asked = crate::harness::answer(asked.env("TRACKWAY_FOLLOW_LINKS", "1").output().unwrap());
    assert!(asked.stdout.contains("leads nowhere"), "{}{}", asked.stdout, asked.stderr);
}

/// Proves that a query that needs too much memory, never ends or is nested too deep is an error, that its answer is the
/// usual one otherwise, and that nothing it spilled is left.
#[test]
fn queries_are_bounded() {
    let home = Home::new();
    home.run_script(&[], "true");
    let temporary = home.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let ask = |arguments: &[&str]| {
        let mut command = home.command(&[&["sql"], arguments].concat());
        crate::harness::answer(command.env("TMPDIR", &temporary).output().unwrap())
    };
    let large = ask(&["select length(repeat('x', 2000000000)) as n"]);
    assert!(large.code == 2 || large.code == 0 && large.stdout.contains("2000000000"), "{}", large.stderr);
    assert_refused(&ask(&["--memory-limit", "16MiB", "select repeat('x', 2000000000) as n"]), 2, &["memory"]);
    let endless = "with recursive t as (select 1 as n union all select n from t) select count(*) from t";
    assert_refused(&ask(&["--timeout", "1", endless]), 2, &["longer than 1s", "--timeout"]);
    let deep = format!("select 1{}", "+1".repeat(20_000));
    assert_ne!(ask(&[&deep]).code, 101);
    assert_eq!(ask(&["select count(*) as n from runs", "--csv"]).stdout, "n\n1\n");
    assert_eq!(ask(&["select nothing from runs"]).code, 2);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "something spilled is left");
}

/// Proves that predictions that make a decoder panic fail their evaluation, with exit code 4 and a receipt, and that
/// the same left by a command that was killed is closed by the next command, which does its work too.
#[test]
fn damaged_predictions_fail_their_evaluation_only() {
    let damaged = panicking_parquet();
    let script = format!(
        "touch waits-$$; while test -e hold; do sleep 0.02; done; cp '{}' \"$TRACKWAY_EVALUATION_OUT/predictions.parquet\"",
        damaged.display()
    );
    let home = trained(&script, "");
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!((code, receipt["state"].as_str()), (4, Some("failed")), "{receipt}");
    assert!(receipt["failure"].as_str().unwrap().contains("decoding it failed"), "{receipt}");

    fs::remove_file(
        fs::read_dir(home.path()).unwrap().flatten().map(|it| it.path()).find(|path| waits(path)).unwrap(),
    )
    .unwrap();
    home.write("hold", "");
    let mut conductor = home.spawn(&["eval", "run", "job.toml", "--json"]);
    begun(&home, 1);
    conductor.kill().unwrap();
    conductor.wait().unwrap();
    fs::remove_file(home.path().join("hold")).unwrap();
    crate::harness::eventually("the end of the evaluation", || {
        let answer = home.trackway(&["eval", "ls", "--json"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        (!answer.stdout.contains("\"running\"")).then_some(())
    });
    for arguments in [&["explain", "last"][..], &["runs"], &["run", "--", "true"], &["sql", "select 1"]] {
        let answer = home.trackway(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.stderr);
    }
    let failed = home.sql(
        "select failure from evaluations where state = 'failed' and failure like '%decoding it failed%'",
    );
    assert_eq!(failed.len(), 2);
}

fn waits(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("waits-"))
}

/// Proves that data that changes between its hash and the end of the attempt is noted in the attempt's history, and
/// that data that stays as it was is not.
#[test]
fn data_that_changes_while_it_is_trained_on_is_noted() {
    let home = Home::new();
    home.write("train.csv", "a,b\n1,2\n");
    let job = |command: &str| {
        format!(
            "[run]\nname = \"x\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n[data.train]\npath = \"train.csv\"\n"
        )
    };
    home.write("job.toml", &job("true"));
    home.trackway(&["run", "job.toml"]);
    let noted = "select message from events where kind = 'data_changed'";
    assert_eq!(home.sql(noted).len(), 0);
    home.write("job.toml", &job("echo 3,4 >> train.csv"));
    assert_eq!(home.trackway(&["run", "job.toml"]).code, 0);
    let noted = home.sql(noted);
    assert_eq!(noted.len(), 1);
    assert!(
        noted[0]["message"].as_str().unwrap().contains("`train.csv` changed after it was hashed"),
        "{noted:?}"
    );
}

/// Proves that an MLflow store whose runs are a view that never ends is refused at once.
#[test]
fn an_endless_mlflow_store_is_refused() {
    let home = Home::new();
    let store = rusqlite::Connection::open(home.path().join("mlflow.db")).unwrap();
    store
        .execute_batch(
            "CREATE VIEW runs AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) \
             SELECT n AS run_uuid, n AS name, 'FINISHED' AS status, n AS start_time, n AS end_time, '' AS user_id, \
             'active' AS lifecycle_stage, 1 AS experiment_id FROM t; \
             CREATE TABLE experiments (experiment_id INTEGER, name TEXT);",
        )
        .unwrap();
    drop(store);
    assert_refused(&home.trackway(&["import", "mlflow", "mlflow.db"]), 2, &["`runs` is a view"]);
}
