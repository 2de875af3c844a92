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

/// Proves that a folder without a store, a file that is not a store and a path that is not there are reported with what
/// to name.
#[test]
fn what_is_no_store() {
    let home = Home::new();
    let file = home.write("notes.txt", "no database");
    for (tool, path) in
        [("wandb", home.path()), ("mlflow", file.as_path()), ("tensorboard", Path::new("nowhere"))]
    {
        let answer = home.trackway(&["import", tool, path.to_str().unwrap()]);
        assert_ne!(answer.code, 0, "{tool}");
        assert!(answer.stderr.contains("error:") && answer.stdout.is_empty(), "{tool}: {}", answer.stderr);
    }
}

/// A store of MLflow with a run without its file, a line that cannot be read, and a step below 0.
fn damaged_store(home: &Home) -> PathBuf {
    let store = home.path().join("mlruns");
    for (path, text) in [
        ("0/meta.yaml", "experiment_id: '0'\nname: Default\n"),
        ("0/aaaa/meta.yaml", "experiment_id: '0'\nrun_id: aaaa\nrun_name: r\nstatus: 3\n"),
        ("0/aaaa/metrics/loss", "1700000000000 0.9 -1\n17000\n1700000000001 0.5 0\n"),
        ("0/bbbb/metrics/loss", "1700000000000 0.9 1\n"),
    ] {
        let path = store.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    store
}

/// Proves that what is left out of a store is named with its kind, place and number, each time, in the history of its run too; that a step
/// below 0 does not become step 0; and that `--strict` imports nothing then, but imports a whole store.
#[test]
fn what_is_left_out_is_named() {
    let home = Home::new();
    let store = damaged_store(&home);
    let arguments = ["import", "mlflow", store.to_str().unwrap()];
    let strict = home.trackway(&[&arguments[..], &["--strict", "--json"]].concat());
    assert_eq!(strict.code, 3, "{}", strict.stderr);
    let refused: Value = serde_json::from_str(&strict.stdout).unwrap();
    assert_eq!((&refused["is_refused"], &refused["runs"]), (&json!(true), &json!([])));
    let report = import(&home, "mlflow", &store);
    let left_out = |report: &Value| -> Vec<(String, u64)> {
        let skipped = report["skipped"].as_array().unwrap().iter();
        skipped.map(|it| (it["kind"].as_str().unwrap().to_owned(), it["count"].as_u64().unwrap())).collect()
    };
    let expected = [("value".to_owned(), 1), ("run".to_owned(), 1)];
    assert_eq!((left_out(&report), left_out(&refused)), (expected.to_vec(), expected.to_vec()));
    let steps = home.sql("select step, value from metrics order by step");
    assert_eq!(steps, [json!({"step": -1, "value": 0.9}), json!({"step": 0, "value": 0.5})]);
    let explained = home.trackway(&["explain", "r"]);
    assert!(explained.stdout.contains("the first is line 2"), "{}", explained.stdout);

    std::fs::remove_dir_all(store.join("0/bbbb")).unwrap();
    std::fs::write(store.join("0/aaaa/metrics/loss"), "1700000000000 0.9 -1\n").unwrap();
    let whole = home.trackway(&[&arguments[..], &["--strict"]].concat());
    assert_eq!(whole.code, 0, "{}", whole.stderr);
}

/// Proves that a store of which nothing can be imported ends with 3, and says why.
#[test]
fn a_store_of_which_nothing_is_left() {
    let home = Home::new();
    let store = damaged_store(&home);
    std::fs::write(store.join("0/aaaa/meta.yaml"), "").unwrap();
    let answer = home.trackway(&["import", "mlflow", store.to_str().unwrap()]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(
        answer.stderr.contains("it names no run") && answer.stderr.contains("meta.yaml"),
        "{}",
        answer.stderr
    );
}
