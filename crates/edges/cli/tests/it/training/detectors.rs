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
/// advice, and that `watch` and `explain` show it; with the policy `note` the script continues, and its loss
/// decides what it ends as.
#[test]
fn a_nan_is_in_the_ledger_while_the_script_runs() {
    let home = Home::new();
    let file = run_file(&home, 6.0, "[detect]\nnon_finite = \"note\"\n");
    let supervisor = home.spawn(&["run", "--json", "--skip-preflight", "--why", "a test", &file]);
    eventually("a home", || home.state().join("ledger.db").exists().then_some(()));
    let found = eventually("a detection", || {
        detections(&home).into_iter().find(|row| row["detector"] == "non_finite")
    });
    let state = home.sql("select state, last_step from training_attempts");
    assert_eq!(state[0]["state"], "running", "the detection came after the end: {state:?}");
    assert_eq!((&found["policy"], &found["severity"]), (&"note".into(), &"warn".into()), "{found}");
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
    assert_eq!(done.code, 4, "{}", done.stderr);
    let rows = detections(&home);
    let severities: Vec<&Value> = rows
        .iter()
        .filter(|row| row["detector"] == "non_finite" && row["metric"] == "loss")
        .map(|row| &row["severity"])
        .collect();
    assert_eq!(severities, ["warn", "critical"], "{rows:?}");
    let ended = &home.sql("select termination_reason, termination_rule, exit_code from training_attempts")[0];
    assert_eq!(
        (&ended["termination_reason"], &ended["termination_rule"], &ended["exit_code"]),
        (&"numeric_divergence".into(), &"metrics.loss_not_finite".into(), &0.into())
    );
    let loss = &home.sql("select * from metric_summaries where name = 'loss'")[0];
    assert!(loss["non_finite_from_step"].as_u64().unwrap() <= step, "{loss}");
    assert!(loss["non_finite_end_count"].as_u64().unwrap() > 100, "{loss}");
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

/// Proves that a run with a run file ends by itself once its loss is lost, with the place, and that this does not count as a
/// success: no further rung, no evaluation, exit code 4.
#[test]
fn a_lost_loss_ends_a_run_by_default() {
    let home = Home::new();
    let ladder = "[ladder]\nrungs = [\"10%\", \"100%\"]\npromote = \"loss < 1000000\"\n";
    let file = run_file(&home, 600.0, ladder);
    let run = home.trackway(&["run", "--json", "--skip-preflight", "--why", "a test", &file]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let attempts = home.sql("select * from training_attempts");
    assert_eq!(attempts.len(), 1, "{attempts:?}");
    assert_eq!(attempts[0]["termination_reason"], "numeric_divergence");
    assert_eq!(attempts[0]["termination_rule"], "own_action.divergence_stop");
    let evidence = attempts[0]["termination_evidence"].to_string();
    assert!(evidence.contains("`loss` is NaN or infinite from step"), "{evidence}");
    let rows = detections(&home);
    let stop = rows.iter().find(|row| row["policy"] == "stop").unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!((&stop["detector"], &stop["severity"]), (&"non_finite".into(), &"critical".into()));
}

/// Proves that a command without a run file is left to its end, which is reported as a divergence.
#[test]
fn a_bare_command_is_warned_about_a_lost_loss() {
    let home = Home::new();
    home.write(
        "train.py",
        &SCRIPT.replace("os.environ[\"BREAK_AT\"]", "5").replace("os.environ[\"SECONDS\"]", "1"),
    );
    let run = home.trackway(&["run", "--", "python3", "train.py"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert!(run.stderr.contains("`non_finite` at step"), "{}", run.stderr);
    let ended = &home.sql("select termination_reason, exit_code from training_attempts")[0];
    assert_eq!(
        (&ended["termination_reason"], &ended["exit_code"]),
        (&"numeric_divergence".into(), &0.into())
    );
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(!page.contains("no action is needed"), "{page}");
    assert!(page.contains("learning rate ÷ 10"), "{page}");
}

/// Proves that what a check had found on the same data before it was skipped is the first likely cause of a NaN and the
/// first advice, with the file and the row, that a blocked run shows it as its evidence, and that nothing is to be
/// resumed from a checkpoint that is not there.
#[test]
fn what_a_skipped_check_had_found_is_the_likely_cause() {
    let home = Home::new();
    let row =
        |place: u32| if place == 20 { "nan,0\n".to_owned() } else { format!("0.{place},{}\n", place % 2) };
    home.write("rows.csv", &format!("x,y\n{}", (1..=60).map(row).collect::<String>()));
    home.write(
        "train.py",
        "for step, row in enumerate(open('rows.csv').readlines()[1:], 1):\n\
         \x20   loss = float('nan') if step >= 20 else 1 / step\n\
         \x20   print(f'step {step} loss {loss}', flush=True)\n",
    );
    let text =
        "[run]\nname = \"rows\"\ncommand = [\"python3\", \"train.py\"]\n[data.train]\npath = \"rows.csv\"\n";
    home.write("run.toml", text);
    assert_eq!(home.trackway(&["run", "run.toml"]).code, 3);
    let blocked = home.trackway(&["explain", "--short", "last"]).stdout;
    assert!(blocked.contains("evidence    data.values: `x` is NaN in 1 of 60 rows"), "{blocked}");
    assert!(blocked.contains("cost        none: nothing was launched"), "{blocked}");
    assert_eq!(home.trackway(&["run", "run.toml", "--skip", "data.values", "--why", "x"]).code, 4);
    let page = home.json(&["explain", "last"]);
    let (next, cause) = (&page["next_actions"], page["detections"][0]["cause"].as_str().unwrap());
    let seen = "(`data.values`, which was skipped, had found: `x` is NaN in 1 of 60 rows";
    assert!(cause.starts_with(&format!("NaN or Inf in features {seen}")), "{cause}");
    assert!(
        cause.contains("rows.csv row 21") && cause.contains("; without evidence: learning rate"),
        "{cause}"
    );
    let first = next[0].as_str().unwrap();
    assert!(first.starts_with(&format!("check the inputs of the step for NaN and Inf {seen}")), "{next}");
    assert!(!next.to_string().contains("from a checkpoint"), "{next}");
    assert!(page["cost"]["run_lost_steps"].as_u64().is_some_and(|lost| lost > 0), "{page}");
}

/// Proves that what a detector ended because its input was broken does not count as a success.
#[test]
fn a_broken_input_is_no_success() {
    let home = Home::new();
    home.write(
        "train.py",
        "import json, time\n\
         for step in range(1, 4000):\n\
         \x20   print(json.dumps({\"step\": step, \"loss\": 1 / (1 + min(step, 50))}), flush=True)\n\
         \x20   time.sleep(0.01)\n",
    );
    let text = "[run]\nname = \"stuck\"\ncommand = [\"python3\", \"train.py\"]\n\
                [detect]\ndead_input = \"stop\"\n";
    let file = home.write("stuck.toml", text);
    let run = home.trackway(&["run", "--skip-preflight", "--why", "a test", file.to_str().unwrap()]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let rows = home.sql("select a.termination_reason, a.retry_outlook, r.state from training_attempts a join runs r on a.run_id = r.run_id");
    assert_eq!(rows.len(), 1, "{rows:?}");
    let expected = ["unhealthy", "retry_changed", "failed"].map(Value::from);
    assert_eq!(
        [&rows[0]["termination_reason"], &rows[0]["retry_outlook"], &rows[0]["state"]].map(Clone::clone),
        expected
    );
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("unhealthy") && page.contains("dead_input"), "{page}");
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
