//! `trackway diagnose`: the launch that shows the cause of a symptom, and its finding as evidence of the attempt.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::checks::rehearsals::toy_run_file;
use crate::harness::{Home, answer, eventually, files_below, has_frameworks, signal};

/// Two ranks of one script: rank 0 waits in an operation of all ranks, rank 1 never comes there. The module is the package's own,
/// without the rest of the package.
const RANKS: &str = r#"
import importlib.util, json, os, sys, threading, time
spec = importlib.util.spec_from_file_location("stacks", os.environ["STACKS_MODULE"])
stacks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stacks)
stacks.dump_stacks_on_signal()
from distributed import all_reduce
def load_shard():
    time.sleep(1000)
for step in range(1, 11):
    if os.environ["RANK"] == "0":
        print(json.dumps({"step": step, "loss": 1 / step}), flush=True)
    time.sleep(0.01)
load_shard() if os.environ["RANK"] == "1" else all_reduce()
"#;

/// The document of a diagnosis, whose exit code is checked.
fn diagnosed(home: &Home, options: &[&str], code: i32) -> Value {
    let answer = home.trackway(&[&["diagnose", "last", "--json"], options].concat());
    assert_eq!(answer.code, code, "{}\n{}", answer.stdout, answer.stderr);
    serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {}", answer.stdout))
}

/// Proves that the rank that did not join is named by the first attempt and by the diagnosis, that the finding is
/// evidence of the attempt in `explain`, the post-mortem and the ledger, also in one that is rebuilt, and that no
/// training attempt was added.
#[test]
fn a_hang_names_the_rank_that_did_not_join() {
    let home = Home::new();
    home.write("train.py", RANKS);
    std::fs::create_dir(home.path().join("distributed")).unwrap();
    home.write(
        "distributed/__init__.py",
        "import threading\ndef all_reduce():\n    threading.Event().wait()\n",
    );
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/python/trackway/_run/stacks.py");
    home.write(
        "hangs.toml",
        &format!(
            "[run]\nname = \"hangs\"\ncommand = [\"sh\", \"-c\", \"RANK=1 python3 train.py & RANK=0 python3 train.py; wait\"]\n\
             environment = {{ STACKS_MODULE = \"{module}\" }}\n[supervise]\nhang_after = \"2s\"\nstart_within = \"60s\"\ngrace = \"1s\"\n\
             [retry]\nhang = {{ attempts = 0 }}\n"
        ),
    );
    let run = home.trackway(&["run", "--skip-preflight", "--why", "a test", "hangs.toml"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let before = home.json(&["explain", "last"]);
    let cause = before["termination"]["cause"].as_str().unwrap();
    assert!(cause.contains("1 process waits in `all_reduce`, and rank 1 did not join"), "{cause}");
    let next = before["next_actions"].to_string();
    assert!(
        next.contains("find where it waits, and the rank that did not join: trackway diagnose att_"),
        "{next}"
    );
    let found = diagnosed(&home, &[], 0);
    assert_eq!((&found["kind"], &found["verdict"]), (&json!("hang"), &json!("found")), "{found}");
    let finding = found["finding"].as_str().unwrap();
    assert!(finding.contains("1 process waits in `all_reduce`, and rank 1 did not join"), "{finding}");
    assert!(finding.contains("load_shard (train.py:"), "{finding}");
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("Diagnosed") && page.contains("rank 1 did not join"), "{page}");
    assert!(!page.contains("trackway diagnose"), "it was found: {page}");
    let postmortem = home.trackway(&["postmortem", "last"]).stdout;
    assert!(postmortem.contains("**What diagnoses showed**"), "{postmortem}");
    assert_eq!(home.sql("select count(*) as attempts from training_attempts")[0]["attempts"], 1);
    assert_eq!(home.json(&["runs"]).as_array().unwrap().len(), 1);
    let launches = home.sql("select kind, termination_reason from launches");
    assert_eq!(launches, [json!({ "kind": "diagnose", "termination_reason": "hang" })]);
    for path in
        files_below(&home.state()).into_iter().filter(|path| path.to_string_lossy().contains("ledger.db"))
    {
        std::fs::remove_file(path).unwrap();
    }
    home.trackway(&["doctor", "rebuild"]);
    let rows = home.sql("select attempt_id, kind, verdict, finding from diagnoses");
    assert_eq!(
        (rows.len(), &rows[0]["finding"], &rows[0]["attempt_id"]),
        (1, &found["finding"], &found["attempt_id"])
    );
}

/// Proves that nothing is launched for an end that no launch explains, and that the answer names what to do instead.
#[test]
fn nothing_is_launched_without_a_symptom() {
    let home = Home::new();
    home.run_script(&[], "exit 3");
    let answer = home.trackway(&["diagnose"]);
    assert_eq!(answer.code, 3, "{}", answer.stderr);
    assert!(answer.stderr.contains("nothing was launched for attempt att_"), "{}", answer.stderr);
    assert!(answer.stderr.contains("hint: look at the last lines"), "{}", answer.stderr);
    assert_eq!(home.sql("select count(*) as launches from launches")[0]["launches"], 0);
    let next = home.json(&["explain", "last"])["next_actions"].to_string();
    assert!(!next.contains("trackway diagnose"), "{next}");
}

/// Proves that a script without the package is observed by its stacks, ends after the steps that are wanted although it does not
/// know of them, and that numbers in it cannot be observed.
#[test]
fn a_script_without_the_package_is_observed_from_outside() {
    let home = Home::new();
    let steps =
        "for step in $(seq 1 400); do echo \"{\\\"step\\\": $step, \\\"loss\\\": 1.0}\"; sleep 0.1; done";
    home.write("train.sh", &steps.replace("400", "$STEPS"));
    home.write(
        "slow.toml",
        "[run]\nname = \"slow\"\ncommand = [\"sh\", \"train.sh\"]\nenvironment = { STEPS = \"3\" }\n[supervise]\ngrace = \"1s\"\n",
    );
    let run = home.trackway(&["run", "--skip-preflight", "--why", "a test", "slow.toml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let numeric = diagnosed(&home, &["--kind", "numeric"], 4);
    assert_eq!(numeric["verdict"], "not_observed", "{numeric}");
    assert!(numeric["finding"].as_str().unwrap().contains("never called Trackway's recorder"), "{numeric}");
    home.write(
        "slow.toml",
        "[run]\nname = \"slow\"\ncommand = [\"sh\", \"train.sh\"]\nenvironment = { STEPS = \"400\" }\n[supervise]\ngrace = \"1s\"\ntimeout = \"4s\"\n\
         [retry]\ntimeout = { attempts = 0 }\n",
    );
    home.trackway(&["run", "--skip-preflight", "--why", "a test", "slow.toml"]);
    let slow = diagnosed(&home, &["--kind", "throughput", "--steps", "25"], 0);
    let finding = slow["finding"].as_str().unwrap();
    assert!(finding.contains("only its stacks were looked at") && finding.contains("sh (pid"), "{finding}");
    assert_eq!((&slow["until_step"], &slow["from_step"]), (&json!(25), &Value::Null));
    let ended = home.sql("select termination_reason from launches order by started_at desc limit 1");
    assert_eq!(ended[0]["termination_reason"], "early_stopped", "{ended:?}");
}

/// Proves that `trackway gc` deletes the launch of a diagnosis and the checkpoint that was copied for it with the run, that the
/// finding stays, and that the ledger does not miss the copy.
#[test]
fn gc_deletes_what_a_diagnosis_copied() {
    let home = Home::new();
    let file = toy_run_file(&home, "none");
    let text = std::fs::read_to_string(home.path().join(&file)).unwrap();
    home.write(&file, &format!("{text}[checkpoint]\nevery = {{ steps = 1000 }}\n"));
    let run = home.trackway(&["run", "--skip-preflight", "--why", "a test", &file]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let answer = home.trackway(&[
        "diagnose", "last", "--kind", "throughput", "--steps", "20", "--from-step", "1000", "--json",
    ]);
    let found: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(found["from_step"], 1000, "{found}");
    let copy = home.state().join("checkpoints").join(found["diagnosis_run_id"].as_str().unwrap());
    let launch = home.state().join("attempts").join(found["launch_id"].as_str().unwrap());
    assert!(copy.is_dir() && launch.is_dir());
    home.json(&["gc", "--older-than", "0s"]);
    assert!(copy.is_dir() && launch.is_dir(), "it is a dry run");
    let collected = home.json(&["gc", "--older-than", "0s", "--yes"]);
    assert_eq!(collected["gone"].as_array().unwrap().len(), 1, "{collected}");
    assert!(!copy.exists() && !launch.exists());
    assert_eq!(home.sql("select finding from diagnoses")[0]["finding"], found["finding"]);
    let run_id = found["diagnosis_run_id"].as_str().unwrap();
    let states = home.sql(&format!("select distinct state from checkpoints where run_id = '{run_id}'"));
    assert_eq!(states, [json!({ "state": "retired" })]);
    let verified = home.trackway(&["verify", "--all"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    assert!(home.json(&["gc", "--older-than", "0s", "--yes"])["gone"].as_array().unwrap().is_empty());
}

/// Proves that Ctrl-C ends the launch, and that the diagnosis is incomplete then.
#[test]
fn an_interrupt_ends_the_launch() {
    let home = Home::new();
    home.write("train.sh", "echo '{\"step\": 1, \"loss\": 1.0}'; exec sleep 1000");
    home.write(
        "quiet.toml",
        "[run]\nname = \"quiet\"\ncommand = [\"sh\", \"train.sh\"]\n[supervise]\nhang_after = \"1s\"\ngrace = \"1s\"\n\
         [retry]\nhang = { attempts = 0 }\n",
    );
    home.trackway(&["run", "--skip-preflight", "--why", "a test", "quiet.toml"]);
    let plan = home.state().join("runs");
    let text = std::fs::read_dir(&plan).unwrap().next().unwrap().unwrap().path().join("plan.json");
    let patient = std::fs::read_to_string(&text)
        .unwrap()
        .replace("\"hang_after_seconds\": 1.0", "\"hang_after_seconds\": 900.0");
    std::fs::write(&text, patient).unwrap();
    let child = home.spawn(&["diagnose", "last", "--hang-after", "900"]);
    eventually("the launch", || {
        let logs = files_below(&home.state()).into_iter().filter(|path| path.ends_with("stdout.log"));
        let written = logs.filter(|path| path.metadata().is_ok_and(|found| found.len() > 0)).count();
        (written == 2).then_some(())
    });
    signal(&child, Signal::SIGINT);
    let ended = answer(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 4, "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("incomplete: the diagnosis was stopped"), "{}", ended.stdout);
}

/// Proves that of a training in PyTorch whose third layer returns NaN on a known batch the diagnosis names layer, operation, step and
/// batch, from a copy of the checkpoint before it, and that the run's own checkpoints are only read. `make test-python FRAMEWORKS=main`
/// prepares the interpreter and demands it.
#[test]
fn the_torch_nan_is_traced_to_its_layer_and_batch() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../python/tests/scripts/train_nan.py")
        .canonicalize()
        .unwrap();
    home.write(
        "nan.toml",
        &format!(
            "[run]\nname = \"nan\"\ncommand = [\"python\", {script:?}, \"150\", \"forward\"]\n[checkpoint]\nevery = {{ steps = 5 }}\n\
             keep = {{ last = 40 }}\n"
        ),
    );
    home.trackway(&["run", "--skip-preflight", "--why", "a test", "nan.toml"]);
    let before = home.json(&["explain", "last"]);
    assert_eq!(before["termination"]["reason"], "numeric_divergence", "{}", before["termination"]);
    assert!(before["next_actions"].to_string().contains("find the first layer and batch with NaN"));
    let live = before["timeline"].to_string();
    assert!(live.contains("nonfinite_gradients at step 23: ") && live.contains("parameter=3.bias"), "{live}");
    let checkpoints = home.state().join("checkpoints");
    let own = files_below(&checkpoints);
    let found = diagnosed(&home, &[], 0);
    assert_eq!(found["verdict"], "found", "{found}");
    let from = found["from_step"].as_u64().unwrap();
    assert!((1..23).contains(&from), "{found}");
    assert_eq!((&found["step"], &found["batch"]), (&json!(23), &json!(22)), "{found}");
    let finding = found["finding"].as_str().unwrap();
    assert!(
        finding.starts_with("the first NaN is the output of `log` in layer `2` (Gate) at train_nan.py:"),
        "{finding}"
    );
    assert!(finding.contains("the first gradient that is not finite is that of `3.bias`"), "{finding}");
    let mine = checkpoints.join(found["diagnosis_run_id"].as_str().unwrap());
    let after: Vec<_> =
        files_below(&checkpoints).into_iter().filter(|path| !path.starts_with(&mine)).collect();
    assert_eq!(after.len(), own.len(), "the run's checkpoints are as they were");
    assert!(mine.is_dir());
    let resumed = home.sql("select resumed_from_step, first_step from launches");
    assert_eq!(resumed, [json!({ "resumed_from_step": from, "first_step": from + 1 })]);
}
