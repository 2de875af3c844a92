//! Which copy of a script's own checkpoints a resume takes: where a loss is found late, where only the values show it,
//! and where another process reads.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Home, answer, eventually};

/// Saves and waits, for the scripts.
const SAVES: &str = r#"
import json, os, pathlib, struct, time

def save(name, step, weight, count=1):
    w = {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}
    header = json.dumps({"__metadata__": {"step": str(step)}, "w": w}).encode()
    pathlib.Path("new").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<f", weight) * count)
    os.replace("new", name)

def committed(step):
    """Waits until Trackway has a copy, which it makes when others leave it a processor."""
    for _ in range(600):
        if any(pathlib.Path(os.environ["TRACKWAY_CHECKPOINTS"]).glob(f"**/step-{step:08}/*/origin.json")):
            return
        time.sleep(0.1)
"#;

const RETRY: &str = "[retry]\nunknown = { attempts = 2, backoff = \"0s..0s\" }\n";

fn home(script: &str, adopt: &str, more: &str) -> Home {
    let home = Home::new();
    home.write("t.py", &format!("{SAVES}{script}"));
    let file = "[run]\nname = \"t\"\ncommand = [\"python3\", \"t.py\"]\n[checkpoint]\n";
    home.write("t.toml", &format!("{file}adopt = [\"{adopt}\"]\n{more}"));
    home
}

fn attempts(home: &Home) -> Vec<Value> {
    home.sql("select resumed_from_step, first_step from training_attempts order by started_at")
}

/// Proves that a checkpoint which only another process reads while the script runs is not what the script continued from.
#[test]
fn what_another_process_reads_the_script_does_not_continue_from() {
    // A script that begins reads less than the file has.
    let script = r#"
is_retry = os.path.exists("m-20.safetensors")
if is_retry:
    pathlib.Path("waits").touch()
    while not os.path.exists("go"):
        time.sleep(0.02)
for step in range(1, 31):
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if step == 20 and not is_retry:
        save("m-20.safetensors", step, 0.5, 1 << 21)
        os.abort()
"#;
    let home = home(script, "m-*.safetensors", RETRY);
    let running = home.spawn(&["run", "t.toml"]);
    eventually("the retry", || home.path().join("waits").exists().then_some(()));
    for (program, arguments) in
        [("md5sum", &["m-20.safetensors"][..]), ("cp", &["m-20.safetensors", "copy"][..])]
    {
        let read = Command::new(program).args(arguments).current_dir(home.path()).output().unwrap();
        assert!(read.status.success(), "{program}");
    }
    home.go();
    let ended = answer(running.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("resumes from step 20"), "it was planned: {}", ended.stderr);
    let from_the_beginning = json!({ "resumed_from_step": null, "first_step": 1 });
    assert_eq!(attempts(&home), vec![from_the_beginning; 2], "{}", ended.stderr);
    let opened = home.sql("select fields_json from events where kind = 'checkpoint_opened'");
    let is_of_script = |event: &Value| event["fields_json"].as_str().unwrap().contains("\"by\":\"attempt\"");
    assert!(!opened.iter().any(is_of_script), "{opened:?}");
}

/// Proves that a loss which is found at the end to be back where it began leaves a safe copy, whatever `keep` says:
/// older ones than the two newest stay while the script runs.
#[test]
fn a_loss_that_is_found_late_leaves_a_safe_copy() {
    let script = r#"
for step in range(1, 86):
    loss = 2.3 * 0.8 ** step + 0.1 if step <= 50 else min(2.45, 0.1 * 1.15 ** (step - 50))
    print(f"step {step} loss {loss:.4f}", flush=True)
    if step in (50, 60, 70, 80):
        save(f"m-{step}.safetensors", step, loss)
committed(80)
"#;
    for keep in ["", "keep = { last = 2 }\n"] {
        let more = format!("{keep}[detect]\nloss_spike = \"off\"\nloss_shift = \"off\"\n");
        let home = home(script, "m-*.safetensors", &more);
        let ended = home.trackway(&["run", "t.toml"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let listed = home.json(&["checkpoint", "ls", "last"]);
        let states = listed["checkpoints"].as_array().unwrap().iter();
        let states: Vec<Value> = states.map(|one| json!([one["step"], one["state"]])).collect();
        let safe = [json!([60, "committed"]), json!([50, "superseded"])];
        assert_eq!(states, [&[json!([80, "unsafe"]), json!([70, "unsafe"])], &safe[..]].concat(), "{keep}");
        let target = home.json(&["checkpoint", "resume-target", "last"]);
        assert_eq!(target["standing"]["safe_step"], 60, "{target}");
    }
}

/// Proves that weights which never moved are found by all that was saved, also where few copies are left, and that
/// those which rest only in the copies that are left are not.
#[test]
fn weights_are_compared_over_all_that_was_saved() {
    for (weight, is_found) in [("1.5", true), ("1.5 if step < 40 else 2.5", false)] {
        let script = format!(
            "for step in range(1, 81):\n\
             \x20   print(f'step {{step}} loss {{2.3 / (1 + step / 9):.5f}}', flush=True)\n\
             \x20   if step % 20 == 0:\n\
             \x20       save(f'm-{{step}}.safetensors', step, {weight})\n\
             \x20       committed(step)\n"
        );
        let home = home(&script, "m-*.safetensors", "keep = { last = 2 }\n");
        let ended = home.trackway(&["run", "t.toml"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(home.json(&["checkpoint", "ls", "last"])["checkpoints"].as_array().unwrap().len(), 2);
        let health = home.json(&["explain", "last"])["health"].clone();
        assert_eq!(health["health"] == "broken", is_found, "{health}");
        assert_eq!(health.to_string().contains("unmoved_weights"), is_found, "{health}");
    }
}

/// Proves that a retry after the weights became NaN continues from the copy before that, though the script prints an accuracy and no loss.
#[test]
fn a_nan_that_only_the_weights_show_is_not_continued() {
    let script = r#"
step, weight = 0, 1.0
is_retry = os.path.exists("model.safetensors")
if is_retry:
    saved = pathlib.Path("model.safetensors").read_bytes()
    step, weight = int(json.loads(saved[8:-4])["__metadata__"]["step"]), struct.unpack("<f", saved[-4:])[0]
print("starts at", step, "weights", weight, flush=True)
for step in range(step + 1, 66):
    weight = float("nan") if step > 50 and not is_retry else weight * 0.99
    print(f"step {step} val_acc {0.1 if weight != weight else 0.9}", flush=True)
    if step in (40, 60) and not is_retry:
        save("model.safetensors", step, weight)
        committed(step)
if not is_retry:
    os.abort()
"#;
    let home = home(script, "model.safetensors", RETRY);
    let ended = home.trackway(&["run", "t.toml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let expected = [(Value::Null, 1), (json!(40), 41)];
    let expected = expected.map(|(from, first)| json!({ "resumed_from_step": from, "first_step": first }));
    assert_eq!(attempts(&home), expected, "{}", ended.stderr);
    let said = home.trackway(&["logs", "last"]).stdout;
    assert!(said.contains("starts at 40 weights 0.66"), "{said}");
    let page = home.trackway(&["checkpoint", "explain", "t", "--step", "60"]).stdout;
    assert!(page.contains("its tensor `w` holds NaN"), "{page}");
}
