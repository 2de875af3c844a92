//! Importing stores that the real tools made (`crates/storage/ledger/tests/vectors/import/make.py`).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Home;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../storage/ledger/tests/vectors/import")
}

fn formats(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../base/formats/tests/vectors").join(folder)
}

/// Imports twice; the second time must find everything and change nothing.
fn import(home: &Home, tool: &str, path: &Path) -> Value {
    let arguments = ["import", tool, path.to_str().unwrap()];
    let first = home.json(&arguments);
    let runs = first["runs"].as_array().unwrap().len();
    assert_eq!((&first["imported_count"], &first["known_count"]), (&json!(runs), &json!(0)), "{first}");
    let rows = || home.sql("select count(*) as n, sum(step) as s from metrics");
    let before = rows();
    let again = home.json(&arguments);
    assert_eq!((&again["imported_count"], &again["known_count"]), (&json!(0), &json!(runs)), "{again}");
    assert_eq!(rows(), before);
    first
}

fn curve(home: &Home, run: &str, metric: &str) -> Vec<(u64, Option<f64>)> {
    let query = format!(
        "select step, value from effective_metrics where name = '{metric}' and origin = 'import' and run_id in (select run_id from runs where name = '{run}') order by step"
    );
    home.sql(&query).iter().map(|row| (row["step"].as_u64().unwrap(), row["value"].as_f64())).collect()
}

/// Proves that a folder store and a SQLite store of MLflow give the same runs: names, ends, parameters, curves, infinities.
#[test]
fn mlflow_stores() {
    let home = Home::new();
    let database = home.path().join("mlflow.db");
    let packed = vectors().join("mlflow.db.gz");
    let unpacked = std::process::Command::new("gzip").arg("-dc").arg(packed).output().unwrap();
    std::fs::write(&database, unpacked.stdout).unwrap();
    for store in [vectors().join("mlruns"), database] {
        let home = Home::new();
        let report = import(&home, "mlflow", &store);
        assert_eq!(report["skipped"].as_array().unwrap().len(), 1, "{report}");
        let ends = home.sql("select name, state, termination_reason from runs order by name");
        let ends: Vec<(&str, &str)> =
            ends.iter().map(|run| (run["name"].as_str().unwrap(), run["state"].as_str().unwrap())).collect();
        let expected = [
            ("baseline-0", "completed"),
            ("baseline-1", "completed"),
            ("died", "stopped"),
            ("failed", "failed"),
        ];
        assert_eq!(ends, expected, "{}", store.display());
        let loss: Vec<(u64, Option<f64>)> =
            (0..5).map(|step| (step, Some(1.0 / (step + 1) as f64))).collect();
        assert_eq!(curve(&home, "baseline-0", "loss"), loss);
        assert_eq!(curve(&home, "baseline-1", "val/acc").len(), 5);
        let infinite =
            home.sql("select count(*) as n from metrics where name = 'bad' and value = 'inf'::double");
        assert_eq!(infinite[0]["n"], 1);
        let found = home.json(&["runs", "--where", "param.optimizer = \"adam\" and param.lr < 0.08"]);
        assert_eq!((found.as_array().unwrap().len(), &found[0]["name"]), (1, &json!("baseline-1")));
        let attempt = &home.json(&["attempts", "baseline-0"])[0];
        assert_eq!((&attempt["state"], &attempt["launcher"]), (&json!("sealed"), &json!("mlflow")));
        assert_eq!(home.trackway(&["explain", "baseline-0"]).code, 0);
    }
}

/// Proves that offline runs of W&B come with config, curves and the exit code's meaning.
#[test]
fn wandb_runs() {
    let home = Home::new();
    import(&home, "wandb", &formats("wandb"));
    let ends = home.sql("select name, state from runs order by name");
    assert_eq!(
        ends,
        [json!({"name": "sweep-0", "state": "completed"}), json!({"name": "sweep-1", "state": "failed"})]
    );
    let loss = curve(&home, "sweep-1", "loss");
    assert_eq!(loss[..2], [(0, Some(0.5)), (1, Some(1.0 / 3.0))]);
    assert_eq!(loss.last().unwrap(), &(5, None));
    assert_eq!(curve(&home, "sweep-0", "sparse"), [(20, Some(1.5))]);
    let layers = home.sql("select value from parameters where name = 'model.layers'");
    assert_eq!(layers.len(), 2);
}

/// Proves that TensorBoard's folders are runs, and that what a restart made void is gone as it is in TensorBoard.
#[test]
fn tensorboard_folders() {
    let home = Home::new();
    import(&home, "tensorboard", &formats("tensorboard"));
    let loss = curve(&home, "restarted", "loss");
    let expected: Vec<(u64, Option<f64>)> =
        (0..10).map(|step| (step, Some(if step < 4 { 1.0 + step as f64 } else { -(step as f64) }))).collect();
    assert_eq!(loss, expected);
    let found = home.json(&["runs", "--where", "param.optimizer = 'sgd' and `hparam/loss` > 0.1"]);
    assert_eq!(found[0]["name"], "torch");
}

/// Proves that the files of Neptune's exporter are runs.
#[test]
fn neptune_export() {
    let home = Home::new();
    import(&home, "neptune", &vectors().join("neptune"));
    let runs = home.sql("select name, state, owner, config_json from runs order by name");
    assert_eq!(
        (&runs[0]["name"], &runs[0]["state"], &runs[0]["owner"]),
        (&json!("trial-1"), &json!("completed"), &json!("ana"))
    );
    assert_eq!(runs[1]["state"], "failed");
    assert_eq!(curve(&home, "trial-2", "train/loss")[..2], [(0, Some(0.5)), (1, Some(1.0 / 3.0))]);
    let found = home.json(&["runs", "--where", "\"parameters/lr\" < 0.08"]);
    assert_eq!((found.as_array().unwrap().len(), &found[0]["name"]), (1, &json!("trial-2")));
}

/// Proves that a folder without a store, a file that is not a store and a path that is not there are reported with what
/// to name.
#[test]
fn what_is_no_store() {
    let home = Home::new();
    let file = home.write("notes.txt", "no database");
    for (tool, path) in
        [("wandb", home.path()), ("mlflow", file.as_path()), ("neptune", Path::new("nowhere"))]
    {
        let answer = home.trackway(&["import", tool, path.to_str().unwrap()]);
        assert_ne!(answer.code, 0, "{tool}");
        assert!(answer.stderr.contains("error:") && answer.stdout.is_empty(), "{tool}: {}", answer.stderr);
    }
}
