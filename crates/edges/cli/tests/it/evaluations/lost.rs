//! Evaluations whose command is killed: as the next command finishes them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{PEOPLE, begun, document, evaluate, pins, trained, write_people};
use crate::harness::{Answer, Home, answer, eventually, signal};

/// What the evaluators below report beside their rows.
const REPORTED: &str = r#"{"agreement": 0.5}"#;
/// A column of each part of a receipt: rows that are kept, slices, fairness, a baseline and gates.
const ASKED: &str = "task_set = \"tasks-v3.jsonl\"\nlabel = \"label\"\nprediction = \"prediction\"\nfairness = [\"sex\"]\nbaseline = \"last\"\n\
                     slices = { women = \"sex = 'female'\" }\ngates = [\"accuracy >= 0.7\", \"accuracy >= baseline - 0.01\"]\n";
/// Killed, the same evaluation is called again every so many milliseconds after its evaluator ended.
const DELAYS_MILLIS: [u64; 9] = [0, 3, 10, 25, 50, 90, 150, 250, 400];

/// An evaluator that waits while there is a file `hold`, ends as `after` sets, and with a file `pipe` leaves a pipe
/// that blocks its reader.
fn evaluator(after: &str) -> String {
    format!(
        "touch waits-$$\nwhile test -e hold; do sleep 0.02; done\n{PEOPLE}\n{after}\n\
         if test -e pipe; then mkfifo \"$TRACKWAY_EVALUATION_OUT/metrics.json\"; exit 0; fi\n\
         echo '{REPORTED}' > \"$TRACKWAY_EVALUATION_OUT/metrics.json\"\n"
    )
}

/// A home with an evaluation of step 1, which the others are compared with, and an undisturbed one of step 3.
fn compared() -> (Home, Value, Value) {
    let home = trained(&evaluator(""), ASKED);
    write_people(&home);
    let (_, first) = evaluate(&home, &["--checkpoint", "1", "--set", "evaluate.gates=[]"]);
    assert_eq!(first["state"], "completed", "{first}");
    let (code, whole) = evaluate(&home, &[]);
    assert_eq!((code, &whole["state"]), (5, &json!("completed")), "a gate fails: {whole}");
    clear_marks(&home);
    (home, first, whole)
}

fn clear_marks(home: &Home) {
    for entry in std::fs::read_dir(home.path()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("waits-") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

fn kill(mut child: Child) -> Answer {
    // It may be at its end already.
    let _ = child.kill();
    answer(child.wait_with_output().unwrap())
}

/// What does not depend on when and by whom an evaluation was ended.
fn substance(receipt: &Value) -> Value {
    let mut receipt = receipt.clone();
    for own in ["evaluation_id", "launches", "started_at", "ended_at", "receipt_sha256"] {
        assert!(receipt.as_object_mut().unwrap().remove(own).is_some(), "{own}");
    }
    // Every look counts.
    receipt["task_set"]["use_count"] = json!(0);
    receipt
}

fn newest(home: &Home) -> Value {
    home.json(&["eval", "ls"])[0].clone()
}

/// The evaluation and the folder of its only launch.
fn launched(home: &Home) -> (String, PathBuf) {
    let id = newest(home)["evaluation_id"].as_str().unwrap().to_owned();
    let folder = home.state().join("evaluations").join(&id);
    (id, folder)
}

/// Waits until the conductor has written down that the evaluator ended, and is about to read what that left.
fn reads(home: &Home, id: &str) {
    let sealed = format!(
        "select l.termination_reason as r from launches l join evaluations e on e.launch_run_id = l.run_id \
         where e.evaluation_id = '{id}' and l.termination_reason is not null"
    );
    eventually("the end of the evaluator", || home.sql(&sealed).pop());
    std::thread::sleep(Duration::from_millis(150));
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Nothing of it is left to do, and it was done once.
fn check_finished(home: &Home, id: &str, whole: &Value) {
    let receipt = home.json(&["eval", "show", id]);
    assert_eq!(substance(&receipt), substance(whole), "{id}");
    assert_eq!(receipt["launches"].as_array().unwrap().len(), 1, "{receipt}");
    assert!(receipt["receipt_sha256"].is_string());
    let judged = home.sql(&format!("select verdict from gate_receipts where evaluation_id = '{id}'"));
    let undisturbed = whole["evaluation_id"].as_str().unwrap();
    let expected =
        home.sql(&format!("select verdict from gate_receipts where evaluation_id = '{undisturbed}'"));
    assert_eq!((judged.len(), judged), (1, expected), "{id}");
    assert!(pins(home).is_empty());
    assert_eq!(
        home.sql("select state from runs where kind = 'evaluate' and state <> 'completed'"),
        [] as [Value; 0]
    );
}

/// Proves that an evaluation whose command was killed while the evaluator's outputs were read, and again while the next
/// command finished it, becomes the receipt that it would have become; that a command passes by while another one
/// finishes it; and that of several at once only one does.
#[test]
fn a_killed_evaluation_is_finished_once() {
    let (home, _, whole) = compared();
    for file in ["hold", "pipe"] {
        home.write(file, "");
    }
    let conductor = home.spawn(&["eval", "run", "job.toml", "--json"]);
    begun(&home, 1);
    let (id, folder) = launched(&home);
    std::fs::remove_file(home.path().join("hold")).unwrap();
    reads(&home, &id);
    kill(conductor);
    for count in 1..=2 {
        let next = home.spawn(&["runs", "--json"]);
        eventually("the next command", || {
            let tries = std::fs::read(folder.join("finishes")).unwrap_or_default();
            (tries.len() == count).then_some(())
        });
        let passes = newest(&home);
        assert_eq!((&passes["evaluation_id"], &passes["state"]), (&json!(id), &json!("running")));
        kill(next);
    }
    let reported = folder.join("launch-1/metrics.json");
    std::fs::remove_file(&reported).unwrap();
    std::fs::write(&reported, REPORTED).unwrap();
    let at_once: Vec<Child> = (0..4).map(|_| home.spawn(&["runs", "--json"])).collect();
    let answers: Vec<Answer> =
        at_once.into_iter().map(|child| answer(child.wait_with_output().unwrap())).collect();
    let finished = format!("evaluation {id} is finished");
    assert!(answers.iter().all(|answer| answer.code == 0));
    let by = answers.iter().filter(|answer| answer.stderr.contains(&finished)).count();
    assert_eq!(by, 1, "{:?}", answers.iter().map(|answer| &answer.stderr).collect::<Vec<_>>());
    check_finished(&home, &id, &whole);
}

/// Proves the same of a kill after the rows were kept, while the baseline's are read; and of one at the very end, when
/// only the receipt is missing.
#[test]
fn an_evaluation_killed_while_it_is_judged_is_finished() {
    let (home, first, whole) = compared();
    let kept = home.state().join(first["raw_outputs"]["path"].as_str().unwrap());
    let aside = kept.with_extension("aside");
    std::fs::rename(&kept, &aside).unwrap();
    make_pipe(&kept);
    let conductor = home.spawn(&["eval", "run", "job.toml", "--json"]);
    begun(&home, 1);
    let (id, _) = launched(&home);
    reads(&home, &id);
    kill(conductor);
    std::fs::rename(&aside, &kept).unwrap();
    check_finished(&home, &id, &whole);

    clear_marks(&home);
    home.write("pipe", "");
    let conductor = home.spawn(&["eval", "run", "job.toml", "--json"]);
    begun(&home, 1);
    let (id, folder) = launched(&home);
    reads(&home, &id);
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    ledger.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reported = folder.join("launch-1/metrics.json");
    std::fs::write(&reported, REPORTED).unwrap();
    eventually("the end of the pin", || pins(&home).is_empty().then_some(()));
    kill(conductor);
    ledger.execute_batch("ROLLBACK").unwrap();
    std::fs::remove_file(&reported).unwrap();
    std::fs::write(&reported, REPORTED).unwrap();
    check_finished(&home, &id, &whole);
}

/// Proves that it makes no difference when exactly the evaluation and the command that finishes it are killed.
#[test]
fn a_kill_at_any_moment_changes_nothing() {
    let (home, _, whole) = compared();
    for millis in DELAYS_MILLIS {
        home.write("hold", "");
        let conductor = home.spawn(&["eval", "run", "job.toml", "--json"]);
        begun(&home, 1);
        let (id, _) = launched(&home);
        std::fs::remove_file(home.path().join("hold")).unwrap();
        std::thread::sleep(Duration::from_millis(millis));
        kill(conductor);
        for again in [millis / 2, millis] {
            let next = home.spawn(&["runs", "--json"]);
            std::thread::sleep(Duration::from_millis(again));
            kill(next);
        }
        eventually("the end of the evaluation", || (newest(&home)["state"] != "running").then_some(()));
        check_finished(&home, &id, &whole);
        clear_marks(&home);
    }
}

/// Proves that an evaluation whose command was killed stays running as long as its evaluator lives, its checkpoint
/// held; and that the next command then ends it as failed if the evaluator failed, vanished or took too long, and
/// releases the checkpoint.
#[test]
fn a_lost_evaluator_fails_its_evaluation() {
    let home = trained("true", "");
    for (after, set, reported) in [
        ("exit 3", "evaluate.seed=1", "the evaluator ended as `evaluator_error`"),
        ("kill -9 $PPID; kill -9 $$", "evaluate.seed=1", "the evaluator ended as `"),
        ("sleep 1.2", "evaluate.timeout=1s", "longer than `evaluate.timeout` (1 s)"),
    ] {
        home.write("eval.sh", &evaluator(after));
        home.write("hold", "");
        let conductor = home.spawn(&["eval", "run", "job.toml", "--json", "--set", set]);
        begun(&home, 1);
        signal(&conductor, Signal::SIGKILL);
        conductor.wait_with_output().unwrap();
        let (_, running) = document(&home.trackway(&["eval", "ls", "--json"]));
        assert_eq!(running[0]["state"], "running", "{after}");
        assert_eq!(pins(&home).len(), 1);
        std::fs::remove_file(home.path().join("hold")).unwrap();
        eventually("the end of the evaluation", || (newest(&home)["state"] != "running").then_some(()));
        let failed = newest(&home);
        assert_eq!(failed["state"], "failed", "{after}: {failed}");
        let failure = failed["failure"].as_str().unwrap();
        assert!(failure.contains("its supervisor died") && failure.contains(reported), "{after}: {failure}");
        assert_eq!(failed["launches"].as_array().unwrap().len(), 1, "{failed}");
        assert!(pins(&home).is_empty());
        assert_eq!(home.json(&["runs"])[0]["state"], "completed");
        clear_marks(&home);
    }
}

/// Proves that an evaluation that crashes the process that finishes it is abandoned, and does not block every command
/// for ever.
#[test]
fn finishing_is_not_begun_for_ever() {
    let home = trained(&evaluator(""), "");
    home.write("hold", "");
    let conductor = home.spawn(&["eval", "run", "job.toml", "--json"]);
    begun(&home, 1);
    let (_, folder) = launched(&home);
    kill(conductor);
    std::fs::write(folder.join("finishes"), "...").unwrap();
    std::fs::remove_file(home.path().join("hold")).unwrap();
    eventually("the end of the evaluation", || (newest(&home)["state"] != "running").then_some(()));
    let failed = newest(&home);
    assert_eq!(failed["failure"], "3 attempts to finish it were interrupted", "{failed}");
    assert!(pins(&home).is_empty());
}
