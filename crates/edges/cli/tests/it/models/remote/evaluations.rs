//! Checkpoints whose bytes are only at the remote: evaluated, registered, promoted and gone back to.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::Moto;
use crate::evaluations::{GOOD, begun, evaluate, waiting, write_job};
use crate::harness::{Home, eventually, files_below, signal};
use crate::models::registry::{arm, compare_nothing, registry};

/// Of which of the two machines nothing is left but the ledger and the remote.
fn trained(moto: &Moto, script: &str, evaluate: &str) -> Home {
    let mut environment = moto.environment();
    environment.push(("TRACKWAY_REMOTE_RETRY_SECONDS".into(), "2".into()));
    let home = Home::with(&environment);
    write_job(&home, script, "remote = \"s3://runs/tests\"", &format!("after = false\n{evaluate}"));
    let run = home.json(&["run", "job.toml"]);
    assert_eq!((&run["state"], &run["remote"]["uploaded_step"]), (&json!("completed"), &json!(3)), "{run}");
    std::fs::remove_dir_all(home.state().join("checkpoints")).unwrap();
    home
}

fn checkpoints(home: &Home) -> Vec<Value> {
    home.json(&["checkpoint", "ls", "last"])["checkpoints"].as_array().unwrap().clone()
}

/// The pins of a step and where its bytes are.
fn pins(home: &Home, step: u64) -> (String, Vec<String>) {
    let one = checkpoints(home).into_iter().find(|one| one["step"] == step).unwrap();
    let pins = one["pins"].as_array().unwrap().iter().map(|pin| pin.as_str().unwrap().to_owned()).collect();
    (one["where"].as_str().unwrap().to_owned(), pins)
}

/// Copies of weights on this disk.
fn weights_here(home: &Home) -> Vec<PathBuf> {
    let mut files = files_below(&home.state());
    files.retain(|path| path.ends_with("weights.bin"));
    files
}

/// Proves that a checkpoint that is only at the remote is held there, fetched and verified, evaluated, and released
/// with its bytes deleted; that nothing deletes it at the remote meanwhile; and that the next command does so for an
/// evaluation that was killed.
#[test]
fn what_is_only_at_the_remote_is_evaluated() {
    let Some(moto) = Moto::start() else { return };
    let home = trained(&moto, &waiting(), "");
    let child = home.spawn(&["eval", "run", "job.toml", "--json", "--checkpoint", "1"]);
    begun(&home, 1);
    let (place, held) = pins(&home, 1);
    assert_eq!((place.as_str(), held.len()), ("remote", 1), "{held:?}");
    let brought = weights_here(&home);
    assert_eq!(brought.len(), 1, "{brought:?}");
    assert!(brought[0].starts_with(home.state().join("evaluations").join(&held[0])), "{brought:?}");
    let collect = ["checkpoint", "gc", "last", "--keep-last", "2", "--older-than", "0s", "--yes"];
    let kept = home.json(&collect);
    assert_eq!(kept["places"][1]["retire"], json!([]), "{kept}");
    home.write("go", "");
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("step 1 is only at the remote, and is brought here"), "{errors}");
    let receipt: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&receipt["state"], &receipt["step"]), (&json!("completed"), &json!(1)), "{receipt}");
    assert_eq!(pins(&home, 1), ("remote".into(), Vec::new()));
    assert!(weights_here(&home).is_empty());

    std::fs::remove_file(home.path().join("go")).unwrap();
    let killed = home.spawn(&["eval", "run", "job.toml", "--json"]);
    begun(&home, 2);
    signal(&killed, Signal::SIGKILL);
    killed.wait_with_output().unwrap();
    assert_eq!((pins(&home, 3).1.len(), weights_here(&home).len()), (1, 1));
    home.write("go", "");
    let finished = eventually("the end of the evaluation", || {
        let newest = home.json(&["eval", "ls"])[0].clone();
        (newest["state"] != "running").then_some(newest)
    });
    assert_eq!((&finished["state"], &finished["step"]), (&json!("completed"), &json!(3)), "{finished}");
    assert_eq!((pins(&home, 3).1.len(), weights_here(&home).len()), (0, 0));
}

/// Proves that bytes which differ from what was committed are neither evaluated nor registered, that a remote which
/// does not answer is reported as such, and that nothing of either stays behind.
#[test]
fn what_cannot_be_fetched_is_reported() {
    let Some(moto) = Moto::start() else { return };
    let home = trained(&moto, GOOD, "");
    let newest = checkpoints(&home)[0].clone();
    let run_id = home.json(&["runs"])[0]["run_id"].as_str().unwrap().to_owned();
    let folder = home.json(&["checkpoint", "explain", "last"])["checkpoints"][0]["folder"].clone();
    moto.put(&format!("tests/{run_id}/train-1/{}/weights.bin", folder.as_str().unwrap()), b"step 9");
    for arguments in [&["eval", "run", "last"][..], &["registry", "register", "income", "--run", "last"]] {
        let refused = home.trackway(arguments);
        assert_eq!(refused.code, 7, "{newest}: {}", refused.stderr);
        assert!(refused.stderr.contains("checkpoint doctor"), "{}", refused.stderr);
    }
    assert_eq!(home.json(&["eval", "ls"])[0]["state"], "failed");
    assert!(pins(&home, 3).1.is_empty());
    assert!(home.sql("select * from model_versions").is_empty());
    let (code, receipt) = evaluate(&home, &["--checkpoint", "2"]);
    assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
    assert!(weights_here(&home).is_empty());
    drop(moto);
    for arguments in [&["eval", "run", "last"][..], &["registry", "register", "income", "--run", "last"]] {
        let refused = home.trackway(arguments);
        assert_eq!(refused.code, 1, "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("a remote that does not answer"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("SECRETOFTEST"), "{}", refused.stderr);
    }
}

/// Proves that versions are registered, promoted, copied and gone back to where their bytes are only at the remote,
/// held there all the time; and that production stays as it is when the remote does not answer.
#[test]
fn versions_live_at_the_remote() {
    let Some(moto) = Moto::start() else { return };
    let home = trained(&moto, GOOD, "gates = [\"grade >= 0.3\"]\n");
    for step in ["1", "2"] {
        let (code, version) = registry(&home, &["register", "income", "--run", "last", "--step", step]);
        assert_eq!(code, 0, "{version}");
        let (place, held) = pins(&home, step.parse().unwrap());
        assert_eq!((place.as_str(), json!(held)), ("remote", json!([version["pin"]])));
        assert_eq!(evaluate(&home, &["--checkpoint", step]).0, 0);
    }
    arm(&home);
    compare_nothing(&home);
    let srv = home.path().join("srv");
    let deploy = ["--deploy", srv.to_str().unwrap()];
    let current = || std::fs::read_to_string(srv.join("current/weights.bin")).unwrap();
    for (version, weights) in [("1", "step 1"), ("2", "step 2")] {
        let (code, changed) = registry(&home, &[&["promote", "income", version][..], &deploy].concat());
        assert_eq!((code, changed["deployed"]["copied_bytes"].as_u64()), (0, Some(6)), "{changed}");
        assert_eq!(current(), weights);
    }
    let (code, back) = registry(&home, &[&["rollback", "income"][..], &deploy].concat());
    assert_eq!((code, &back["version"], current().as_str()), (0, &json!(1), "step 1"), "{back}");
    let out = home.path().join("out");
    let (code, exported) = registry(&home, &["export", "income", "2", "--out", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{exported}");
    assert_eq!(std::fs::read_to_string(out.join("weights.bin")).unwrap(), "step 2");
    assert!(weights_here(&home).is_empty(), "{:?}", weights_here(&home));
    drop(moto);
    let (code, refused) = registry(&home, &["rollback", "income", "--to-version", "2"]);
    assert_eq!(code, 1, "{refused}");
    assert_eq!(home.sql("select production_version from models"), [json!({ "production_version": 1 })]);
}
