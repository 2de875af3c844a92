//! `trackway export`: the tables of a run as files for other tools.

use serde_json::{Value, json};
use trackway_formats::sha256_hex;

use crate::evaluations::{GOOD, evaluate, trained};
use crate::harness::{Home, UNTIL_GO, eventually, files_below};

fn files_of(report: &Value) -> Vec<Value> {
    report["files"].as_array().unwrap_or_else(|| panic!("files, not {report}")).clone()
}

/// The file of a table, if the report has one.
fn file(report: &Value, table: &str) -> Option<Value> {
    files_of(report).into_iter().find(|file| file["table"] == table)
}

fn path(report: &Value, file: &Value) -> String {
    format!("{}/{}", report["folder"].as_str().unwrap(), file["path"].as_str().unwrap())
}

/// The report says of each file what is on the disk, and names all of them.
fn check(home: &Home, report: &Value) {
    let files = files_of(report);
    for file in &files {
        let path = path(report, file);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(file["size_bytes"], json!(bytes.len()), "{path}");
        assert_eq!(file["sha256"], json!(sha256_hex(&bytes)), "{path}");
        let header = if path.ends_with("csv") { &["--header", "yes"][..] } else { &[] };
        let profile = home.json(&[&["data", "profile", &path], header].concat());
        assert_eq!(profile["rows"], file["rows"], "{path}");
    }
    let folder = std::path::Path::new(report["folder"].as_str().unwrap());
    assert_eq!(files_below(folder).len(), files.len());
}

/// Proves that a run with checkpoints and an evaluation is exported in both formats: every table has the rows that queries find,
/// the report has rows, size and hash of each file, and the predictions are those that the receipt names.
#[test]
fn a_run_is_exported() {
    let home = trained(GOOD, "task_set = \"tasks-v3.jsonl\"\n");
    let (_, receipt) = evaluate(&home, &[]);
    let report = home.json(&["export", "judged", "--out", "tables"]);
    assert_eq!((&report["name"], &report["format"]), (&json!("judged"), &json!("parquet")));
    check(&home, &report);
    let run = report["run_id"].as_str().unwrap();
    for (table, from) in [
        ("metrics", "effective_metrics"),
        ("attempts", "training_attempts"),
        ("checkpoints", "checkpoints"),
        ("evaluations", "evaluations"),
    ] {
        let counted = home.sql(&format!("select count(*) as n from {from} where run_id = '{run}'"));
        assert_eq!(file(&report, table).unwrap()["rows"], counted[0]["n"], "{table}");
    }
    assert_eq!(file(&report, "tags"), None, "a table without rows is not written");
    let predictions = file(&report, "predictions").unwrap();
    assert_eq!(predictions["evaluation_id"], receipt["evaluation_id"]);
    assert_eq!(
        (&predictions["rows"], &predictions["sha256"]),
        (&json!(4), &receipt["raw_outputs"]["sha256"])
    );

    let report = home.json(&["export", run, "--out", "csv", "--format", "csv"]);
    check(&home, &report);
    let text = |table: &str| std::fs::read_to_string(path(&report, &file(&report, table).unwrap())).unwrap();
    let predictions = text("predictions");
    assert!(predictions.starts_with("id,label,prediction,text\n1,a,a,x\n"), "{predictions}");
    let metrics = text("metrics");
    let header = "run_id,attempt_id,attempt_number,rung,origin,name,step,value,recorded_at";
    assert_eq!(metrics.lines().next(), Some(header));
    let losses = metrics.lines().filter(|line| line.contains(",sdk,loss,"));
    let steps: Vec<&str> = losses.map(|line| line.split(',').nth(6).unwrap()).collect();
    assert_eq!(steps, ["1", "2", "3"]);
}

/// Proves that parameters and tags are exported, that a run without metrics has no file of them, that a folder which holds
/// something, an unknown run and an unknown format are refused with what to do, and that a refusal writes nothing.
#[test]
fn what_is_not_there_is_not_written() {
    let home = Home::new();
    let (code, run) =
        home.run_script(&["--name", "quiet", "--param", "lr=0.5", "--tag", "team=a,b"], "echo hello");
    assert_eq!(code, 0, "{run}");
    let report = home.json(&["export", "--format", "csv"]);
    check(&home, &report);
    let tables: Vec<Value> = files_of(&report).into_iter().map(|file| file["table"].clone()).collect();
    assert_eq!(tables, ["parameters", "tags", "attempts"]);
    let text = |table: &str| std::fs::read_to_string(path(&report, &file(&report, table).unwrap())).unwrap();
    assert!(text("parameters").contains(",lr,0.5,given\n"), "{}", text("parameters"));
    assert!(text("tags").contains(",team,\"a,b\"\n"), "{}", text("tags"));

    let again = home.trackway(&["export"]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
    let unknown = home.trackway(&["export", "absent", "--out", "elsewhere"]);
    assert_eq!(unknown.code, 6, "{}", unknown.stderr);
    let format = home.trackway(&["export", "--out", "elsewhere", "--format", "xlsx"]);
    assert!(format.code == 2 && format.stderr.contains("parquet, csv"), "{}", format.stderr);
    assert!(!home.path().join("elsewhere").exists());
    let table = home.trackway(&["export", "quiet", "--out", "shown"]);
    assert!(
        table.stdout.contains("parameters.parquet") && table.stderr.contains("3 files"),
        "{}",
        table.stderr
    );
}

/// Proves that stored rows which were changed since the evaluation are not exported.
#[test]
fn changed_predictions_are_refused() {
    let home = trained(GOOD, "task_set = \"tasks-v3.jsonl\"\n");
    let (_, receipt) = evaluate(&home, &[]);
    let stored = home.state().join(receipt["raw_outputs"]["path"].as_str().unwrap());
    let mut bytes = std::fs::read(&stored).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&stored, bytes).unwrap();
    let refused = home.trackway(&["export", "judged", "--out", "tables"]);
    assert_eq!(refused.code, 7, "{}", refused.stderr);
    assert!(refused.stderr.contains("are not what was kept"), "{}", refused.stderr);
}

/// Proves that the metrics of a run that is still training are exported as far as they are recorded.
#[test]
fn a_running_run_is_exported() {
    let home = Home::new();
    let script = format!("echo 'step 1: loss 0.5'; echo 'step 2: loss 0.25'; {UNTIL_GO}");
    let mut run = home.spawn(&["run", "--name", "live", "--", "sh", "-c", &script]);
    eventually("two values", || {
        // At first there is no home that could be queried.
        let query = "select count(*) as n from effective_metrics where name = 'loss'";
        let counted: Value = serde_json::from_str(&home.trackway(&["sql", query, "--json"]).stdout).ok()?;
        (counted[0]["n"] == json!(2)).then_some(())
    });
    let report = home.json(&["export", "live", "--out", "tables"]);
    check(&home, &report);
    assert_eq!(file(&report, "metrics").unwrap()["rows"], json!(2));
    home.go();
    assert!(run.wait().unwrap().success());
}
