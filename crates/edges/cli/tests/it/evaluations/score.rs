//! `trackway eval score` as a user meets it, with models that are a few lines of shell.

use std::fmt::Write;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Home, answer, eventually, signal};

/// Returns the probability of `yes`: 0.75 from age 50 on, else 0.25; refuses rows without an age; fails if it gets the
/// label.
pub const MODEL: &str = r#"read -r header
case "$header" in *truth*) echo "the truth was given" >&2; exit 9;; esac
echo "$header $TRACKWAY_SCORING_COLUMNS" >> asked.txt
while IFS=, read -r age sector; do
  case "$age,$sector" in
    ,) ;;
    ,*) echo "! age is missing"; while read -r rest && [ -n "$rest" ]; do :; done ;;
    *) if [ "$age" -ge 50 ]; then echo 0.75; else echo 0.25; fi ;;
  esac
done
"#;

/// Rows that [`MODEL`] gets right but for every tenth.
pub fn rows(count: u32) -> String {
    let mut text = String::from("age,sector,truth\n");
    for row in 0..count {
        let age = 20 + row * 7 % 61;
        let is_yes = (age >= 50) != (row % 10 == 9);
        let (sector, truth) =
            (["retail", "care", "office"][(row % 3) as usize], if is_yes { "yes" } else { "no" });
        writeln!(text, "{age},{sector},{truth}").unwrap();
    }
    text
}

fn home(count: u32) -> Home {
    let home = Home::new();
    home.write("score.sh", MODEL);
    home.write("rows.csv", &rows(count));
    home
}

const SCORE: [&str; 9] =
    ["eval", "score", "rows.csv", "--command", "sh score.sh", "--label", "truth", "--positive", "yes"];

fn text(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join(name)).unwrap()
}

/// Proves that every row of a table of many batches is scored in its place by one process which does not get the label,
/// that probabilities become the label's classes, and how fast it was; in each format the same rows.
#[test]
fn every_row_is_answered() {
    let home = home(1000);
    let report =
        home.json(&[&SCORE[..], &["--out", "out.csv", "--batch-rows", "10", "--latency", "m.json"]].concat());
    assert_eq!(
        (&report["rows"], &report["batches"], &report["predictions"]),
        (&json!(1000), &json!(100), &json!("probabilities"))
    );
    assert_eq!(report["features"], json!(["age", "sector"]));
    let asked = text(&home, "asked.txt");
    assert_eq!(asked.lines().count(), 1, "one process: {asked}");
    assert!(asked.starts_with("age,sector ") && asked.contains("\"int\""), "{asked}");
    let (given, out) = (rows(1000), text(&home, "out.csv"));
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("age,sector,truth,score,prediction"));
    for (line, row) in lines.zip(given.lines().skip(1)) {
        let said =
            if row.split(',').next().unwrap().parse::<u32>().unwrap() >= 50 { "0.75,yes" } else { "0.25,no" };
        assert_eq!(line, format!("{row},{said}"));
    }
    assert_eq!(out.lines().count(), 1001);
    let latency: Value = serde_json::from_str(&text(&home, "m.json")).unwrap();
    let median = &latency["latency_seconds"];
    assert!(median["low"].as_f64() > Some(0.0) && median["high"].as_f64() < Some(0.1), "{latency}");
    assert_eq!((&median["support"], &latency["latency_p95_seconds"]["support"]), (&json!(99), &json!(99)));
    assert!(latency["rows_per_second"]["low"].as_f64() > Some(10.0), "{latency}");
    for name in ["out.parquet", "out.jsonl"] {
        let report = home.json(&[&SCORE[..], &["--out", name]].concat());
        assert_eq!(report["rows"], 1000, "{report}");
        let judged = home.json(&["eval", "metrics", name, "--label", "truth", "--positive", "yes"]);
        assert_eq!(judged["metrics"]["accuracy"]["value"], 0.9, "{name}: {}", judged["metrics"]);
        assert!(judged["metrics"]["brier"]["value"].is_number(), "{}", judged["metrics"]);
    }
    let few = home.trackway(&[&SCORE[..], &["--out", "few.csv", "--limit", "7"]].concat());
    assert!(
        few.code == 0 && few.stdout.starts_with("7 rows scored with probabilities"),
        "{}{}",
        few.stdout,
        few.stderr
    );
    assert_eq!(text(&home, "few.csv").lines().count(), 8);
}

/// Proves that classes and numbers are written as they are, in the requested order of features.
#[test]
fn classes_and_amounts() {
    let home = home(30);
    let classes = "read -r h; while read -r x; do [ -z \"$x\" ] || echo \"$x\"; done";
    let report = home.json(&[
        "eval", "score", "rows.csv", "--command", classes, "--features", "sector,age", "--out", "c.csv",
    ]);
    assert_eq!((&report["predictions"], &report["features"]), (&json!("classes"), &json!(["sector", "age"])));
    assert_eq!(text(&home, "c.csv").lines().nth(1), Some("20,retail,no,\"retail,20\""));
    let report = home
        .json(&["eval", "score", "rows.csv", "--command", classes, "--features", "age", "--out", "n.csv"]);
    assert_eq!(report["predictions"], "numbers");
    assert_eq!(text(&home, "n.csv").lines().nth(2), Some("27,care,no,27.0"));
    assert!(report["metrics"].as_object().unwrap().is_empty(), "one batch tells no latency: {report}");
}

/// Proves that the columns beside the predictions are written as they are in the file, and that numbers with a decimal
/// comma get the point that predictions have.
#[test]
fn values_are_copied_as_they_are() {
    let home = Home::new();
    let rows = [
        "007,1.0,TRUE,2024-01-02,a",
        "012,2.50,FALSE,2024-01-03 04:05:06,b",
        "\"a,b\",30,TRUE,2024-01-04,NA",
    ];
    home.write("rows.csv", &format!("code,x,flag,day,city\n{}\n", rows.join("\n")));
    home.write("comma.csv", "n;m\n1,5;a\n2,25;b\n");
    home.write("half.sh", "read -r h; while read -r x; do [ -z \"$x\" ] || echo 0.5; done\n");
    let scored = |table: &str, out: &str, more: &[&str]| {
        home.json(&[&["eval", "score", table, "--command", "sh half.sh", "--out", out], more].concat());
        text(&home, out)
    };
    let expected = rows.map(|row| format!("{row},0.5\n")).concat();
    assert_eq!(scored("rows.csv", "out.csv", &[]), format!("code,x,flag,day,city,prediction\n{expected}"));
    let objects: Vec<Value> = scored("rows.csv", "out.jsonl", &[])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&objects[0], &objects[2]["city"]),
        (
            &json!({"code": "007", "x": 1.0, "flag": true, "day": "2024-01-02", "city": "a", "prediction": 0.5}),
            &Value::Null
        )
    );
    let points =
        scored("comma.csv", "points.csv", &["--decimal", ",", "--delimiter", ";", "--header", "yes"]);
    assert_eq!(points, "n,m,prediction\n1.5,a,0.5\n2.25,b,0.5\n");
}

/// Proves that an interrupt ends a scoring whose model takes long, with the model and without a table.
#[test]
fn an_interrupt_leaves_nothing() {
    let home = home(1000);
    home.write("slow.sh", "read -r h; echo $$ > pid; while read -r x; do sleep 60; done");
    let arguments =
        ["eval", "score", "rows.csv", "--command", "exec sh slow.sh", "--label", "truth", "--out", "out.csv"];
    let scoring = home.spawn(&arguments);
    let pid: i32 = eventually("the model", || {
        std::fs::read_to_string(home.path().join("pid")).ok()?.trim().parse().ok()
    });
    signal(&scoring, Signal::SIGINT);
    let answer = answer(scoring.wait_with_output().unwrap());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "the model is gone");
    let names: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with("out.")), "{names:?}");
}

/// Proves that rows which the model refuses, invalid answers, and mistakes in the request are reported with the rows,
/// the reason and what to do, and that no table is left, not even a part of one.
#[test]
fn what_is_refused() {
    let home = home(100);
    let mut text = rows(100);
    text.push_str(",care,no\n");
    home.write("gap.csv", &text);
    home.write("taken.csv", "x,prediction\n1,2\n");
    home.write("ragged.csv", &format!("{}1,2\n", rows(5)));
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let answer = home.trackway(&[&["eval", "score"], arguments, &["--out", "out.parquet"]].concat());
        assert!(
            answer.code == code && answer.stderr.contains(expected),
            "{arguments:?}: {}\n{}",
            answer.code,
            answer.stderr
        );
        let left = std::fs::read_dir(home.path()).unwrap().flatten();
        assert!(
            !left.into_iter().any(|it| it.file_name().to_string_lossy().starts_with("out.")),
            "{arguments:?}"
        );
    };
    let model = |path: &'static str| vec![path, "--command", "sh score.sh", "--label", "truth"];
    let with = |path: &'static str, more: &[&'static str]| [model(path), more.to_vec()].concat();
    check(&with("gap.csv", &["--batch-rows", "10"]), 2, "row 101: the model refused: age is missing");
    check(&with("gap.csv", &[]), 2, "rows 1 to 101: the model refused: age is missing");
    check(&with("gap.csv", &[]), 2, "`--batch-rows 1` finds the row");
    check(&["rows.csv", "--command", "sh score.sh"], 1, "exit status: 9");
    check(&["rows.csv", "--command", "no-such-program-here"], 2, "no command `no-such-program-here`");
    check(&["rows.csv", "--command", "sh score.sh", "--label", "trooth"], 2, "did you mean `truth`?");
    check(
        &with("rows.csv", &["--features", "age,truth"]),
        2,
        "`truth` is the label: it is not passed to the model",
    );
    check(&with("rows.csv", &["--ignore", "age,sector"]), 2, "no column is left");
    check(&with("rows.csv", &["--positive", "maybe"]), 2, "no label is `maybe`; the classes are `no`, `yes`");
    check(&with("rows.csv", &["--batch-rows", "5000"]), 2, "a batch has 1 to 4096 rows");
    check(&["taken.csv", "--command", "cat"], 2, "the table has a column `prediction` already");
    check(&["nowhere.csv", "--command", "cat"], 6, "nowhere.csv");
    let percent = "read -r h; while read -r x; do [ -z \"$x\" ] || echo 40; done";
    check(
        &["rows.csv", "--command", percent, "--label", "truth", "--positive", "yes"],
        2,
        "40, which is not a probability of `yes`",
    );
    let unnamed = home.trackway(&["eval", "score", "rows.csv", "--command", "cat", "--out", "out.txt"]);
    assert!(
        unnamed.code == 2 && unnamed.stderr.contains(".parquet, .csv, .tsv or .jsonl"),
        "{}",
        unnamed.stderr
    );

    let report = home.json(&[
        "eval", "score", "ragged.csv", "--command", "sh score.sh", "--label", "truth", "--out", "r.csv",
    ]);
    assert_eq!((&report["rows"], &report["rows_rejected"]), (&json!(5), &json!(1)), "{report}");
    assert!(report["notes"][0].as_str().unwrap().contains("`ragged.csv`:7"), "{report}");
}
