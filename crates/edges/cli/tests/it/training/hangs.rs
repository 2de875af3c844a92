//! The receipt of a run that hangs: where each of its processes was.

use serde_json::Value;
use trackway_recorder::Recorder;

use crate::harness::{Home, eventually};

const ROLE: &str = "HANG_TEST_ROLE";
const DETECT: &str = "[detect]\nhang = { policy = \"stop\", patience = 2 }\n[retry]\nhang = { attempts = 0 }\n[supervise]\ngrace = \"2s\"\n";

/// Steps, forks a child that waits too, and never comes back from `wait_for_data`. The module is the package's own,
/// without the rest of the package.
const SCRIPT: &str = r#"
import importlib.util, json, os, sys, threading, time
spec = importlib.util.spec_from_file_location("stacks", os.environ["STACKS_MODULE"])
stacks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stacks)
stacks.dump_stacks_on_signal()
def wait_for_data():
    threading.Event().wait()
def load_in_worker():
    time.sleep(1000)
for step in range(1, 11):
    print(json.dumps({"step": step, "loss": 1 / step}), flush=True)
    time.sleep(0.01)
if os.fork() == 0:
    load_in_worker()
wait_for_data()
"#;

/// Proves nothing by itself: it is the training script of a test below, which launches this very binary.
#[test]
fn script() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let run = Recorder::attach();
    for step in 1..=10 {
        run.log(step, &[("loss", 1.0 / step as f64)]);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
}

fn hang_of(home: &Home, run_file: &str) -> Value {
    home.write("hangs.toml", run_file);
    let run = home.trackway(&["run", "--skip-preflight", "--why", "a test", "hangs.toml"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let rows = home.sql("select * from detections where detector = 'hang'");
    assert_eq!(rows.len(), 1, "{}", run.stderr);
    rows[0].clone()
}

fn dump_of(home: &Home, row: &Value) -> Value {
    let path = format!(
        "attempts/{}/{}",
        row["attempt_id"].as_str().unwrap(),
        row["stacks_path"].as_str().unwrap_or_else(|| panic!("no stacks: {row}"))
    );
    serde_json::from_str(&std::fs::read_to_string(home.state().join(path)).unwrap()).unwrap()
}

/// Proves that the functions in which a Python script and a child it forked hang are named by the dump, the detection
/// and `explain`, and that the run then ends as a hang.
#[test]
fn a_python_script_that_hangs_is_named_by_function() {
    let home = Home::new();
    home.write("train.py", SCRIPT);
    let module = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/python/trackway/_run/stacks.py");
    let row = hang_of(
        &home,
        &format!(
            "[run]\nname = \"hangs\"\ncommand = [\"python3\", \"train.py\"]\n\
             environment = {{ STACKS_MODULE = \"{module}\" }}\n{DETECT}"
        ),
    );
    assert!(row["evidence"].as_str().unwrap().contains("wait_for_data (train.py:"), "{row}");
    let dump = dump_of(&home, &row);
    let frames = |process: &Value| process["program"].to_string();
    let processes = dump["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{dump}");
    let parent = processes.iter().find(|process| frames(process).contains("wait_for_data")).unwrap();
    let child = processes.iter().find(|process| frames(process).contains("load_in_worker")).unwrap();
    assert_ne!(parent["pid"], child["pid"], "{dump}");
    assert_eq!(parent["threads"][0]["state"], "S", "{dump}");
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("stacks, whole in `stacks/dump-1.json`"), "{page}");
    assert!(page.contains("load_in_worker (train.py:"), "{page}");
    let ended = home.sql("select termination_reason from training_attempts");
    assert_eq!(ended[0]["termination_reason"], "hang");
}

/// Proves that of a program that writes no stacks the kernel's call is reported: where the system shows calls, it is
/// the sleep.
#[test]
fn a_rust_program_that_hangs_is_named_by_its_kernel_call() {
    let home = Home::new();
    let binary = home.program();
    let row = hang_of(
        &home,
        &format!(
            "[run]\nname = \"hangs\"\ncommand = [\"{}\", \"training::hangs::script\", \"--exact\", \"--nocapture\"]\n\
             environment = {{ {ROLE} = \"hangs\" }}\n{DETECT}",
            binary.display()
        ),
    );
    let dump = dump_of(&home, &row);
    let threads = dump["processes"][0]["threads"].as_array().unwrap();
    assert!(threads.len() >= 2, "the test harness has threads: {dump}");
    assert!(threads.iter().all(|thread| thread["state"] == "S"), "{dump}");
    let calls: Vec<&Value> = threads.iter().map(|thread| &thread["call"]).collect();
    let shown = calls.iter().any(|call| !call.is_null());
    assert!(!shown || calls.iter().any(|call| *call == "clock_nanosleep"), "{dump}");
    assert_eq!(dump["processes"][0]["program"], serde_json::json!([]), "{dump}");
}

/// Proves that a script that hangs before its first step is ended as hung: after `hang_after` without output, or after
/// `start_within` although it prints.
#[test]
fn a_start_that_hangs_is_ended() {
    for (limit, script) in [
        ("hang_after = \"1s\"", "echo loading; sleep 1000"),
        ("start_within = \"1s\"", "while :; do echo waiting; sleep 0.1; done"),
    ] {
        let home = Home::new();
        let text = format!(
            "[run]\nname = \"quiet\"\ncommand = [\"sh\", \"-c\", {script:?}]\n[supervise]\n{limit}\ngrace = \"1s\"\n\
             [retry]\nhang = {{ attempts = 0 }}\n"
        );
        home.write("quiet.toml", &text);
        let run = home.json(&["run", "--skip-preflight", "--why", "a test", "quiet.toml"]);
        assert_eq!(run["attempts"][0]["termination_reason"], "hang", "{limit}: {run}");
    }
}

/// Proves that `supervise.hang_after` leaves the stacks too, in the folder and in the reason of the end.
#[test]
fn the_watchdog_leaves_stacks_as_well() {
    let home = Home::new();
    home.write("train.sh", "echo '{\"step\": 1, \"loss\": 1.0}'; sleep 1000");
    home.write(
        "quiet.toml",
        "[run]\nname = \"quiet\"\ncommand = [\"sh\", \"train.sh\"]\n[supervise]\nhang_after = \"1s\"\ngrace = \"1s\"\n\
         [retry]\nhang = { attempts = 0 }\n",
    );
    let run = home.trackway(&["run", "--skip-preflight", "--why", "a test", "quiet.toml"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert!(run.stderr.contains("sleep (pid ") && run.stderr.contains("sh (pid "), "{}", run.stderr);
    eventually("a dump", || {
        crate::harness::files_below(&home.state())
            .into_iter()
            .find(|path| path.ends_with("stacks/dump-1.json"))
    });
}
