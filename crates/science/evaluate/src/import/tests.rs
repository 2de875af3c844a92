use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::*;

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

/// Proves that a log of Inspect gives its task, version, model, decoding, numbers and examples, the same from every form of it.
#[test]
fn inspect_logs() {
    let found = read(&vector("inspect/capitals.eval")).unwrap();
    assert_eq!(found.len(), 1);
    let log = &found[0];
    assert_eq!((log.origin.as_str(), log.evaluator.as_str()), ("inspect", "inspect_ai 0.3.285"));
    assert_eq!((log.task.as_str(), log.task_version.as_deref()), ("capitals", Some("2")));
    assert_eq!((log.model.as_deref(), log.seed), (Some("mockllm/model"), Some(7)));
    assert_eq!(log.decoding["temperature"], json!(0.0));
    let accuracy = log.metrics["accuracy"];
    assert_eq!((accuracy.value, accuracy.support), (2.0 / 3.0, 3));
    assert!(accuracy.interval.low < 0.1 && accuracy.interval.high == 1.0);
    assert!(!log.metrics.contains_key("stderr"));
    let rows: Vec<(&Json, &Json, &Json, &Json)> =
        log.rows.iter().map(|row| (&row["id"], &row["label"], &row["prediction"], &row["correct"])).collect();
    assert_eq!(rows[0], (&json!("de"), &json!("Berlin"), &json!("Bonn"), &json!(false)));
    assert_eq!(rows[2], (&json!("jp"), &json!("Tokyo"), &json!("Tokyo, of course"), &json!(true)));
    assert_eq!(log.rows[2]["metadata.continent"], "asia");
    assert!(log.failure.is_none() && log.times.0.is_some() && log.times.1.is_some());
    for other in ["inspect/capitals.json", "inspect/capitals-deflated.eval"] {
        let other = read(&vector(other)).unwrap().remove(0);
        assert_eq!((&other.task_sha256, &other.metrics), (&log.task_sha256, &log.metrics));
        assert_eq!(other.rows.len(), 3);
    }
}

/// The vector's log of Inspect with its header changed: of three samples two are right.
fn changed(change: impl FnOnce(&mut Json)) -> ForeignEvaluation {
    let folder = tempfile::tempdir().unwrap();
    let mut log: Json =
        serde_json::from_slice(&std::fs::read(vector("inspect/capitals.json")).unwrap()).unwrap();
    change(&mut log);
    // Python writes what JSON cannot express.
    let text = log.to_string().replace("\"PYTHON'S NAN\"", "NaN");
    let path = folder.path().join("log.json");
    std::fs::write(&path, text).unwrap();
    read(&path).unwrap().remove(0)
}

/// Proves that if the header of a log has another mean than its samples, or one that no mean of grades can be, the
/// samples count, with a note, and the standard error of the header does not come along.
#[test]
fn samples_count_against_the_header() {
    for (value, stderr) in [(0.999, 0.001), (5.0, 5.0), (-1.0, 0.1)] {
        let log = changed(|log| {
            let metrics = &mut log["results"]["scores"][0]["metrics"];
            metrics["accuracy"]["value"] = json!(value);
            metrics["stderr"]["value"] = json!(stderr);
        });
        let accuracy = log.metrics["accuracy"];
        assert_eq!((accuracy.value, accuracy.support), (2.0 / 3.0, 3), "{value}");
        assert!(accuracy.interval.low < 0.3, "{value}: {accuracy:?}");
        let note = format!("`accuracy`: {value} in the header, ");
        assert!(log.notes.iter().any(|text| text.starts_with(&note)), "{:?}", log.notes);
    }
}

/// Proves that a number which cannot be is left out with a note that names it: an accuracy out of range, NaN, a negative standard error.
#[test]
fn impossible_numbers_are_left_out() {
    let bare = |metric: &str, value: Json, stderr: Json| {
        changed(|log| {
            log["samples"] = json!([]);
            let metrics = json!({ metric: { "name": metric, "value": value }, "stderr": { "name": "stderr", "value": stderr } });
            log["results"]["scores"][0]["metrics"] = metrics;
        })
    };
    for (metric, value, stderr, reported) in [
        ("accuracy", json!(5.0), json!(5.0), "`accuracy` is 5"),
        ("accuracy", json!(-0.5), json!(0.1), "`accuracy` is -0.5"),
        ("accuracy", json!("PYTHON'S NAN"), json!(0.1), "`accuracy` is not a finite number"),
        ("accuracy", json!(0.9), json!(-0.1), "`accuracy`"),
        ("f1", json!("PYTHON'S NAN"), json!(0.0), "`f1` is not a finite number"),
    ] {
        let log = bare(metric, value.clone(), stderr.clone());
        assert!(!log.metrics.contains_key(metric), "{value} ± {stderr}: {:?}", log.metrics);
        let is_reported = |note: &String| note.starts_with(reported) && note.contains("left out");
        assert!(log.notes.iter().any(is_reported), "{value} ± {stderr}: {:?}", log.notes);
    }
    assert_eq!(bare("accuracy", json!(0.9), json!(0.1)).metrics["accuracy"].value, 0.9);
}

/// Proves that the harness's results give an evaluation for each task, with its hash, its numbers and its examples, and
/// that missing samples are noted.
#[test]
fn harness_results() {
    let found = read(&vector("lm_eval")).unwrap();
    let tasks: Vec<&str> = found.iter().map(|one| one.task.as_str()).collect();
    assert_eq!(tasks, ["capitals", "capitals_gen"]);
    let choices = &found[0];
    assert_eq!((choices.task_version.as_deref(), choices.seed), (Some("1.5"), Some(3)));
    assert!(choices.task_sha256.as_ref().unwrap().starts_with("f44abdb8"));
    assert_eq!((choices.metrics["accuracy"].value, choices.metrics["accuracy"].support), (0.5, 4));
    assert_eq!((&choices.rows[0]["label"], &choices.rows[0]["prediction"]), (&json!("0"), &json!("1")));
    assert_eq!(choices.rows[0]["doc.question"], "Capital of France?");
    let texts = &found[1];
    assert_eq!(texts.metrics.keys().collect::<Vec<_>>(), ["exact_match"]);
    assert_eq!(texts.decoding["max_gen_toks"], json!(8));
    let right: Vec<&Json> = texts.rows.iter().map(|row| &row["correct"]).collect();
    assert_eq!(right, [&json!(true), &json!(false), &json!(false), &json!(true)]);
    assert_ne!(choices.origin_id, texts.origin_id);
    let folder = tempfile::tempdir().unwrap();
    let name = std::fs::read_dir(vector("lm_eval")).unwrap().flatten().map(|entry| entry.path());
    let results = name.into_iter().find(|path| path.to_string_lossy().contains("results_")).unwrap();
    std::fs::copy(&results, folder.path().join("results_x.json")).unwrap();
    let bare = read(folder.path()).unwrap().remove(0);
    assert!(bare.rows.is_empty() && bare.notes[0].contains("--log_samples"), "{:?}", bare.notes);
    assert_eq!(bare.origin_id, choices.origin_id, "known again wherever it lies");
}

/// Proves that a file that is not a log, half a log or damaged is reported with its name, and that Python's NaN is
/// taken for null.
#[test]
fn what_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let whole = std::fs::read(vector("inspect/capitals.eval")).unwrap();
    for (path, reported) in [
        (vector("inspect/unfinished.eval"), "the log is not finished"),
        (file("cut.eval", &whole[..whole.len() - 30]), "damaged or cut short"),
        (file("x.json", b"{\"a\": 1}"), "it has no `eval`"),
        (file("results_y.json", b"{}"), "it has no `results`"),
        (file("z.json", b"{\"a\": "), "EOF"),
        (file("notes.txt", b"hello"), "contains no results"),
        (folder.path().join("nowhere"), "cannot read"),
    ] {
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(reported), "{}: {error}", path.display());
    }
    assert_eq!(
        without_nan(r#"{"a": NaN, "b": "NaN \" -Infinity", "c": [-Infinity]}"#),
        r#"{"a": null, "b": "NaN \" -Infinity", "c": [null]}"#
    );
}
