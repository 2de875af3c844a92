//! Detectors over the live record of real scripts: what they find is in the ledger while the script runs, and the
//! policies of the run file are carried out.

use serde_json::Value;

use crate::harness::{Answer, Home, answer, eventually, files_below};

/// Fits a line by gradient descent, really. From `BREAK_AT` on its learning rate is a thousand times too high: the loss
/// grows until it is infinite, then NaN. It ends by itself after `SECONDS` more, unless it is ended before.
const SCRIPT: &str = r#"
import json, os, random, time
rng = random.Random(7)
rows = [(x, 3 * x - 1 + rng.gauss(0, 0.1)) for x in (rng.uniform(-1, 1) for _ in range(64))]
w = b = 0.0
step, broken_at, rate = 0, None, 0.1
deadline = None
while deadline is None or time.time() < deadline:
    step += 1
    if step == int(os.environ["BREAK_AT"]):
        rate *= 1000
    batch = rng.sample(rows, 16)
    errors = [(w * x + b - y, x) for x, y in batch]
    loss = sum(e * e for e, _ in errors) / len(errors)
    w -= rate * 2 * sum(e * x for e, x in errors) / len(errors)
    b -= rate * 2 * sum(e for e, _ in errors) / len(errors)
    print(json.dumps({"step": step, "loss": loss, "lr": rate}), flush=True)
    if loss != loss and deadline is None:
        deadline = time.time() + float(os.environ["SECONDS"])
    time.sleep(0.002)
"#;

fn run_file(home: &Home, seconds: f64, detect: &str) -> String {
    home.write("train.py", SCRIPT);
    let text = format!(
        "[run]\nname = \"line\"\ncommand = [\"python3\", \"train.py\"]\n\
         environment = {{ BREAK_AT = \"200\", SECONDS = \"{seconds}\" }}\n{detect}"
    );
    home.write("line.toml", &text).to_str().unwrap().to_owned()
}

fn detections(home: &Home) -> Vec<Value> {
    home.sql("select * from detections order by at")
}

fn named<'v>(rows: &'v [Value], detector: &str) -> &'v Value {
    rows.iter().find(|row| row["detector"] == detector).unwrap_or_else(|| panic!("no {detector}: {rows:?}"))
}

/// Proves that a loss that becomes NaN is in the ledger while the script still runs, with the step, the cause and the
/// advice, and that `watch` and `explain` show it; without a policy nothing else happens.
#[test]
fn a_nan_is_in_the_ledger_while_the_script_runs() {
    let home = Home::new();
    let file = run_file(&home, 6.0, "");
    let supervisor = home.spawn(&["run", "--json", "--skip-preflight", "--why", "a test", &file]);
    eventually("a home", || home.state().join("ledger.db").exists().then_some(()));
    let found = eventually("a detection", || {
        detections(&home).into_iter().find(|row| row["detector"] == "non_finite")
    });
    let state = home.sql("select state, last_step from training_attempts");
    assert_eq!(state[0]["state"], "running", "the detection came after the end: {state:?}");
    assert_eq!((&found["policy"], &found["severity"]), (&"note".into(), &"critical".into()), "{found}");
    assert_eq!((&found["metric"], &found["value"]), (&"loss".into(), &Value::Null), "{found}");
    let step = found["first_step"].as_u64().unwrap();
    assert!(step > 200, "{found}");
    assert!(found["advice"].as_str().unwrap().contains("clip gradients"), "{found}");
    // The clock of the record and that of the ledger are the same one.
    let late = home.sql(&format!(
        "select (extract(epoch from d.at) - extract(epoch from m.recorded_at)) as seconds from detections d \
         join metrics m on m.step = {step} and m.name = 'loss' where d.detector = 'non_finite'"
    ));
    let seconds = late[0]["seconds"].as_f64().unwrap();
    assert!((0.0..5.0).contains(&seconds), "{late:?}");
    let view = home.json(&["watch", "last", "--once"]);
    assert!(
        view["detections"].as_array().unwrap().iter().any(|row| row["detector"] == "non_finite"),
        "{view}"
    );
    let done: Answer = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let rows = detections(&home);
    assert_eq!(rows.iter().filter(|row| row["detector"] == "non_finite").count(), 1, "{rows:?}");
    let jump = named(&rows, "loss_spike");
    assert!((200..210).contains(&jump["step"].as_u64().unwrap()), "{jump}");
    assert_eq!(jump["cause"], "the learning rate rose 1000-fold at step 200");
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("Found while it ran") && page.contains("likely: the learning rate rose"), "{page}");
}

/// Proves that `stop` ends the attempt as a numeric divergence, without another try, and that `checkpoint` requests
/// one.
#[test]
fn policies_are_carried_out() {
    let home = Home::new();
    let detect = "[detect]\nnon_finite = \"stop\"\nloss_spike = { policy = \"checkpoint\", threshold = 8 }\nloss_shift = \"off\"\n";
    let file = run_file(&home, 60.0, detect);
    let run = home.trackway(&["run", "--json", "--skip-preflight", "--why", "a test", &file]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let outcome: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(outcome["attempts"].as_array().map(Vec::len), Some(1), "{outcome}");
    assert_eq!(outcome["attempts"][0]["termination_reason"], "numeric_divergence", "{outcome}");
    let rows = detections(&home);
    assert_eq!(named(&rows, "non_finite")["policy"], "stop");
    assert_eq!(named(&rows, "loss_spike")["policy"], "checkpoint");
    assert!(rows.iter().all(|row| row["detector"] != "loss_shift"), "{rows:?}");
    let control = files_below(&home.state())
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("control")))
        .expect("a control file");
    let asked = std::fs::read_to_string(control).unwrap();
    assert!(
        asked.contains("checkpoint_now") && asked.contains("anomaly") && asked.contains("loss_spike"),
        "{asked}"
    );
}

/// Proves that a roll back is refused before anything is launched where it cannot help, and that a wrong name is.
#[test]
fn what_cannot_help_is_refused() {
    let home = Home::new();
    for (detect, expected) in [
        ("[detect]\nplateau = \"roll_back\"\n", "would not change what `plateau` finds"),
        ("[detect.memory_creep]\npolicy = \"roll_back\"\n", "would not change what `memory_creep` finds"),
        ("[detect]\nnon_finit = \"stop\"\n", "did you mean `non_finite`?"),
        ("[detect]\nplateau = \"halt\"\n", "must be one of"),
    ] {
        let run = home.trackway(&["run", &run_file(&home, 1.0, detect)]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    assert!(!home.state().join("ledger.db").exists() || detections(&home).is_empty());
}
