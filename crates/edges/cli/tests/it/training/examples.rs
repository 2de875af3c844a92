//! Real jobs under the real binary: the wine classifier of `examples/rust`, and an untouched Python script.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{BINARY, Home, answer, eventually, signal};

/// The wine classifier, built beside the binary by `make examples`. `make test` demands it.
pub fn wine_mlp() -> Option<PathBuf> {
    let path = Path::new(BINARY).with_file_name("wine_mlp");
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("TRACKWAY_TEST_EXAMPLES").is_none(), "`{}` is not built", path.display());
    trackway_skip::skip!("`{}` is not built (make examples builds it)", path.display());
    None
}

pub const STEPS: u64 = 240;

fn wine_run_file(home: &Home, name: &str, wine: &Path, step_millis: u32) -> String {
    let text = format!(
        "[run]\nname = \"{name}\"\ncommand = [\"{}\", \"--steps\", \"{STEPS}\", \"--step-millis\", \"{step_millis}\"]\nseed = 17\n\
         [checkpoint]\nevery = {{ steps = 40 }}\n[retry]\ninfrastructure = {{ attempts = 2, backoff = \"0s..0s\" }}\n",
        wine.display()
    );
    home.write(&format!("{name}.toml"), &text);
    format!("{name}.toml")
}

/// The digest of the final weights of a run, as the job reported it.
pub fn final_digest(home: &Home, name: &str) -> String {
    let rows = home.sql(&format!(
        "select e.fields_json from events e join runs r on r.run_id = e.run_id where e.kind = 'final' and r.name = '{name}'"
    ));
    assert_eq!(rows.len(), 1, "one final event of `{name}`: {rows:?}");
    let fields: Value = serde_json::from_str(rows[0]["fields_json"].as_str().unwrap()).unwrap();
    fields["weights_blake3"].as_str().unwrap_or_else(|| panic!("a digest in {fields}")).to_owned()
}

/// Proves the main job: killed in the middle it resumes from the last committed checkpoint and ends in the very weights
/// of an undisturbed run; so does a run that was stopped and resumed; and receipts document both.
#[test]
fn killed_or_stopped_a_run_ends_in_the_same_weights() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    let control = home.json(&["run", &wine_run_file(&home, "control", &wine, 0)]);
    assert_eq!(control["state"], "completed", "{control}");

    let killed = home.json(&["run", &wine_run_file(&home, "killed", &wine, 20), "--inject", "kill@step=100"]);
    assert_eq!(killed["state"], "completed", "{killed}");
    let attempts = killed["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{killed}");
    assert_eq!(attempts[0]["signal"], 9);
    let resumed = attempts[1]["resumed_from_step"].as_u64().unwrap();
    assert!(resumed >= 40, "resumed from {resumed}");
    assert_eq!(attempts[1]["last_committed_step"], STEPS);
    assert_eq!(final_digest(&home, "killed"), final_digest(&home, "control"));

    let supervisor = home.spawn(&["run", "--json", &wine_run_file(&home, "stopped", &wine, 30)]);
    eventually("a committed checkpoint", || {
        let answer = home.trackway(&["checkpoint", "ls", "stopped"]);
        (answer.code == 0).then_some(())
    });
    let asked = home.json(&["checkpoint", "now", "stopped"]);
    assert_eq!(asked["outcome"], "done", "{asked}");
    let spike = ["checkpoint", "now", "stopped", "--anomaly", "--why", "a loss spike"];
    assert_eq!(home.json(&spike)["outcome"], "done");
    let reasons = |home: &Home| -> Vec<String> {
        let list = home.json(&["checkpoint", "ls", "stopped"]);
        let entries = list["checkpoints"].as_array().unwrap();
        entries.iter().filter_map(|entry| Some(entry["reason"].as_str()?.to_owned())).collect()
    };
    let live = reasons(&home);
    assert!(live.contains(&"anomaly: a loss spike".to_owned()), "told while the attempt lives: {live:?}");
    assert_eq!(home.trackway(&["stop", "stopped"]).code, 0);
    let stopped = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(stopped.code, 4, "{}", stopped.stderr);
    let rows = home.sql(
        "select a.termination_reason, a.last_step, a.last_committed_step from training_attempts a join runs r on r.run_id = a.run_id where r.name = 'stopped'",
    );
    assert_eq!(rows[0]["termination_reason"], "cancelled");
    assert_eq!(
        rows[0]["last_step"], rows[0]["last_committed_step"],
        "the job saves before it ends: {rows:?}"
    );
    let taken_up = home.json(&["resume", "stopped"]);
    assert_eq!(taken_up["state"], "completed", "{taken_up}");
    assert_eq!(final_digest(&home, "stopped"), final_digest(&home, "control"));

    let sealed = reasons(&home);
    assert!(sealed.contains(&"anomaly: a loss spike".to_owned()), "told by the receipt: {sealed:?}");
    let page = home.json(&["explain", "stopped"]);
    let reported = |line: &Value| line["reason"] == "anomaly: a loss spike";
    assert!(page["checkpoints"].as_array().unwrap().iter().any(reported), "{}", page["checkpoints"]);
    assert!(home.trackway(&["explain", "stopped"]).stdout.contains("(anomaly: a loss spike)"));
    let reasons = home.sql("select e.fields_json from events e join runs r on r.run_id = e.run_id where e.kind = 'checkpoint_reason' and r.name = 'stopped'");
    let reasons: Vec<&str> = reasons.iter().map(|row| row["fields_json"].as_str().unwrap()).collect();
    for expected in ["\"asked\"", "trackway checkpoint now", "\"cadence\""] {
        assert!(reasons.iter().any(|reason| reason.contains(expected)), "no {expected} in {reasons:?}");
    }
    let advice = &home.json(&["explain", "killed"])["cadence"];
    assert!(advice["costs"]["save_count"].as_u64().unwrap() >= 5, "{advice}");
    assert!(advice["costs"]["stall_seconds"].as_f64().unwrap() > 0.0, "{advice}");
    assert_eq!(advice["history"]["failures"], 0, "a rehearsed loss is no failure: {advice}");
    assert_eq!(
        (&advice["recommended"], advice["table"].as_array().unwrap().len()),
        (&Value::Null, 5),
        "{advice}"
    );

    let effective = home.sql("select count(*) as points, count(distinct step) as steps from effective_metrics m join runs r on r.run_id = m.run_id where r.name = 'killed' and m.name = 'loss'");
    assert_eq!(effective[0]["points"], STEPS);
    assert_eq!(effective[0]["steps"], STEPS);
    let page = home.trackway(&["explain", "killed"]).stdout;
    for words in ["Attempts", "← resume", "no difference", "Decisions", "Checkpoint interval", "(cadence)"]
    {
        assert!(page.contains(words), "`{words}` is not on the page:\n{page}");
    }
}

/// Proves that a supervisor killed in the middle of a retry chain is replaced: the run is resumed and ends the same.
#[test]
fn a_lost_supervisor_is_replaced() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    let mut supervisor = home.spawn(&["run", &wine_run_file(&home, "lost", &wine, 10)]);
    eventually("a committed checkpoint", || {
        (home.trackway(&["checkpoint", "ls", "lost"]).code == 0).then_some(())
    });
    signal(&supervisor, nix::sys::signal::Signal::SIGKILL);
    supervisor.wait().unwrap();
    let view: Value =
        serde_json::from_str(&home.trackway(&["watch", "lost", "--once", "--json"]).stdout).unwrap();
    assert_eq!(view["ended"], false, "{view}");
    assert_eq!(view["total_steps"], STEPS, "{view}");
    let run = home.json(&["resume", "lost"]);
    assert_eq!(run["state"], "completed", "{run}");
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1), "the live attempt was left alone: {run}");
}

/// Proves that an untouched scikit-learn script leaves metrics, an environment lock and a hashed data manifest.
/// `make test` prepares the interpreter.
#[test]
fn an_untouched_python_script_leaves_metrics() {
    let Some(python) = std::env::var_os("TRACKWAY_TEST_PYTHON") else {
        trackway_skip::skip!("TRACKWAY_TEST_PYTHON names no Python with examples/python/requirements.txt");
        return;
    };
    let python = python.to_str().unwrap();
    let examples =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/python").canonicalize().unwrap();
    let home = Home::new();
    let made = std::process::Command::new(python)
        .arg(examples.join("make_table.py"))
        .arg(home.path().join("data"))
        .status()
        .unwrap();
    assert!(made.success());
    let text = std::fs::read_to_string(examples.join("../adult.toml")).unwrap();
    let script = examples.join("train_sgd.py");
    let text = text.replace("\"python3\"", &format!("{python:?}"));
    home.write("adult.toml", &text.replace("python/train_sgd.py", script.to_str().unwrap()));
    let run = home.json(&["run", "adult.toml"]);
    assert_eq!(run["state"], "completed", "{run}");
    let rows = home.sql("select count(*) as points, max(value) as best from metrics where name = 'accuracy'");
    assert!(rows[0]["points"].as_u64().unwrap() > 5, "{rows:?}");
    assert!(rows[0]["best"].as_f64().unwrap() > 0.6, "{rows:?}");
    let receipt = home
        .sql("select environment_lock_sha256, environment_lock_source, data_sha256 from training_attempts");
    assert!(receipt[0]["environment_lock_source"].as_str().unwrap().contains("packages"), "{receipt:?}");
    assert_eq!(receipt[0]["data_sha256"].as_str().map(str::len), Some(64));
    let rows = home.sql("select name, rows from data_snapshots order by name");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows[0]["rows"].as_u64().unwrap() > 100, "{rows:?}");
}
