//! A ladder of rungs, climbed by a real training script.

use serde_json::{Value, json};
use trackway_recorder::{Kind, Recorder};

use crate::harness::{Home, answer, eventually};

/// How the training script of these tests behaves.
const MODE: &str = "LADDER_MODE";
const ROWS: u64 = 1_000;
const VALIDATION_ROWS: u64 = 50;
/// Where the script kills itself in the middle rung, and where a person stops it.
const KILLED_AT_STEP: u64 = 44;

/// Proves nothing by itself: it is the training script of the tests below. It fits a line by one pass through the rows
/// of its rung, so that more rows fit it better, and validates on rows that no rung trains on.
#[test]
fn script() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let run = Recorder::attach();
    run.stop_on_sigterm();
    let rung = run.rung();
    let rows = rung.indexes(ROWS);
    let resumed = run.resume().unwrap();
    let mut line = Line { slope: 0.0, offset: 0.0 };
    let mut first = 1;
    if let Some(found) = &resumed {
        line.load(&found.read("line.bin").unwrap());
        first = found.step + 1;
    } else if let Some(before) = run.warm_start().unwrap() {
        line.load(&before.read("line.bin").unwrap());
    }
    run.param("rows", &rows.len().to_string());
    run.param("validation_loss_at_first", &line.validation_loss().to_string());
    let last = rows.len() as u64;
    let rate = if mode == "learns_nothing" { 0.0 } else { 0.02 };
    for step in first..=last {
        line.learn(rows[step as usize - 1], rate);
        if step % 5 == 0 || step == last {
            run.log(step, &[("val_loss", line.validation_loss()), ("fraction", rung.fraction())]);
        } else {
            run.heartbeat(step);
        }
        if run.checkpoint_due(step) || run.should_stop() || step == last {
            let save = |writer: &mut trackway_recorder::CheckpointWriter<'_>| {
                writer.file("line.bin", Kind::Weights, &line.bytes())
            };
            run.save_checkpoint(step, &[], save).unwrap();
        }
        if run.should_stop() {
            break;
        }
        if mode == "dies" && rung.fraction() == 0.1 && resumed.is_none() && step == KILLED_AT_STEP {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        if mode == "slow" && rung.fraction() == 0.1 && resumed.is_none() {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
    run.finish();
}

/// `y = slope · x + offset`.
struct Line {
    slope: f64,
    offset: f64,
}

impl Line {
    /// Where a row is, from 0 to 1, and what is to be predicted there.
    fn row(row: u64) -> (f64, f64) {
        let x = (row * 7_919 % 1_009) as f64 / 1_009.0;
        (x, 3.0 * x + 1.0)
    }

    fn learn(&mut self, row: u64, rate: f64) {
        let (x, y) = Self::row(row);
        let error = self.slope * x + self.offset - y;
        self.slope -= rate * error * x;
        self.offset -= rate * error;
    }

    fn validation_loss(&self) -> f64 {
        let rows = (ROWS..ROWS + VALIDATION_ROWS).map(Self::row);
        let squares = rows.map(|(x, y)| (self.slope * x + self.offset - y).powi(2));
        squares.sum::<f64>() / VALIDATION_ROWS as f64
    }

    fn bytes(&self) -> Vec<u8> {
        [self.slope.to_le_bytes(), self.offset.to_le_bytes()].concat()
    }

    fn load(&mut self, bytes: &[u8]) {
        let read = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        (self.slope, self.offset) = (read(0), read(8));
    }
}

/// A run file with the ladder 1 %, 10 %, 100 % and some data, and its name.
fn run_file(home: &Home, mode: &str, rungs: &str) -> String {
    let binary = home.program();
    home.has_gpus(2);
    home.write("valid.csv", "x,y\n1,4\n2,7\n");
    let text = format!(
        "[run]\nname = \"{mode}\"\ncommand = [\"{}\", \"training::ladder::script\", \"--exact\", \"--nocapture\"]\nseed = 17\n\
         environment = {{ {MODE} = \"{mode}\" }}\n[resources]\ngpus = 2\nusd_per_gpu_hour = 3.6\n\
         [data.validation]\npath = \"valid.csv\"\n\
         [ladder]\nrungs = [\"1%\", \"10%\", \"100%\"]\n{rungs}\n[checkpoint]\nevery = {{ steps = 10 }}\n\
         [retry]\nunknown = {{ attempts = 1, backoff = \"0s..0s\" }}\n",
        binary.display()
    );
    home.write(&format!("{mode}.toml"), &text);
    format!("{mode}.toml")
}

const BETTER: &str = "promote = \"val_loss < 0.95 * previous\"";

/// A column of the answers.
fn column(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

fn numbers(rows: &[Value], name: &str) -> Vec<f64> {
    rows.iter().map(|row| row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"))).collect()
}

/// Proves that a run climbs its ladder, one attempt for each rung, each from nothing and with separate checkpoints;
/// that the decisions hold their numbers; and that the curve, the receipts and the cost distinguish the rungs, over the
/// same validation data.
#[test]
fn a_run_climbs_its_ladder() {
    let home = Home::new();
    let file = run_file(&home, "learns", BETTER);
    let run = home.json(&["run", &file]);
    assert_eq!(run["state"], "completed", "{run}");
    let attempts = run["attempts"].as_array().unwrap();
    assert_eq!(column(attempts, "rung"), [json!("1%"), json!("10%"), json!("100%")], "{run}");
    assert!(attempts.iter().all(|attempt| attempt["resumed_from_step"] == Value::Null), "{run}");

    let rungs = home.sql("select rung, fraction, place, verdict, attempt_count, last_step, gpu_seconds, wall_seconds, cost_usd, rule, why, values_json, metrics_json from rungs order by place");
    assert_eq!(
        column(&rungs, "verdict"),
        [json!("promoted"), json!("promoted"), json!("completed")],
        "{rungs:?}"
    );
    let steps = numbers(&rungs, "last_step");
    assert!(steps[0] < 30.0 && (60.0..140.0).contains(&steps[1]) && steps[2] == 1000.0, "{steps:?}");
    for rung in &rungs {
        let (gpu, wall) = (rung["gpu_seconds"].as_f64().unwrap(), rung["wall_seconds"].as_f64().unwrap());
        assert!((gpu - 2.0 * wall).abs() < 1e-9 && wall > 0.0, "{rung}");
        assert!((rung["cost_usd"].as_f64().unwrap() - gpu * 0.001).abs() < 1e-12, "{rung}");
    }
    let whole = home.sql("select gpu_seconds, cost_usd from runs");
    assert!(
        (whole[0]["gpu_seconds"].as_f64().unwrap() - numbers(&rungs, "gpu_seconds").iter().sum::<f64>())
            .abs()
            < 1e-9
    );
    let counted = home.sql(
        "select rung_rows, rung_rows_total, seed, seed_seen from training_attempts order by attempt_number",
    );
    assert_eq!(column(&counted, "rung_rows_total"), [json!(1_000), json!(1_000), Value::Null], "{counted:?}");
    assert_eq!(numbers(&counted[..2], "rung_rows"), [steps[0], steps[1]], "each row is a step");
    assert_eq!(counted[0]["seed_seen"], Value::Null, "the script never took its seed");
    let second = &rungs[1]["why"];
    assert!(second.as_str().unwrap().contains("previous(val_loss) is"), "{second}");

    let decisions = home.sql("select decision, rule, why from retries order by at");
    assert_eq!(column(&decisions, "decision"), [json!("promote"), json!("promote"), json!("stop")]);
    assert_eq!(&decisions[1]["why"], second);

    let curve = home.sql("select rung, max(value) as fraction, count(*) as points from effective_metrics where name = 'fraction' group by 1 order by 2");
    assert_eq!(column(&curve, "rung"), [json!("1%"), json!("10%"), json!("100%")]);
    assert_eq!(numbers(&curve, "fraction"), [0.01, 0.1, 1.0]);
    let data = home.sql("select distinct data_sha256 from training_attempts");
    assert_eq!(data.len(), 1, "the validation data is the same on every rung: {data:?}");

    let roots = home.sql("select distinct location from checkpoints order by location");
    assert_eq!(roots.len(), 3, "{roots:?}");
    let shown = home.trackway(&["explain", "last"]).stdout;
    assert!(
        shown.contains("Rungs") && shown.contains("promoted") && shown.contains("100% of the data"),
        "{shown}"
    );
    assert!(shown.contains("  rung: 10% → 100%"), "the attempt before it differs: {shown}");
    let watched = home.json(&["watch", "last", "--once"]);
    assert_eq!((&watched["rung"], &watched["rungs"][0]["verdict"]), (&json!("100%"), &json!("promoted")));
}

/// Proves that a rung whose rule is not met ends the run before the next rung spends anything, that its receipt and
/// every view show it with the numbers, and that the run cannot be resumed past it.
#[test]
fn a_rung_that_is_not_good_enough_ends_the_run() {
    let home = Home::new();
    let file = run_file(&home, "learns_nothing", BETTER);
    let output = home.trackway(&["run", &file, "--json"]);
    assert_eq!(output.code, 5, "{}", output.stderr);
    let run: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(run["state"], "blocked", "{run}");
    assert_eq!(column(run["attempts"].as_array().unwrap(), "rung"), [json!("1%"), json!("10%")]);
    let receipt = &home.sql("select termination_reason, termination_rule, termination_confidence, exit_code, cast(termination_evidence as text) as evidence from training_attempts where rung = '10%'")[0];
    assert_eq!(receipt["termination_reason"], "rung_rejected", "{receipt}");
    assert_eq!(
        (&receipt["termination_rule"], &receipt["exit_code"]),
        (&json!("rung.promotion_refused"), &json!(0))
    );
    let evidence = receipt["evidence"].as_str().unwrap();
    assert!(evidence.contains("`val_loss < 0.95 * previous` is not met: val_loss is"), "{evidence}");
    let rungs = home.sql("select rung, verdict, why from rungs order by place");
    assert!(evidence.contains("its health is broken: the weights in the checkpoints of step"), "{evidence}");
    let health = &home.sql("select health, health_json from training_attempts where rung = '10%'")[0];
    assert_eq!(health["health"], "broken");
    assert!(health["health_json"].to_string().contains("unmoved_weights"), "{health}");
    assert_eq!(column(&rungs, "verdict"), [json!("promoted"), json!("rejected")]);
    let runs = home.trackway(&["runs"]).stdout;
    assert!(runs.contains("blocked") && runs.contains("rung_rejected"), "{runs}");
    let shown = home.trackway(&["explain", "last"]).stdout;
    assert!(shown.contains("does not hold") && shown.contains("rejected"), "{shown}");
    let watched = home.trackway(&["watch", "last", "--once"]).stdout;
    assert!(watched.contains("10% rejected: at 10% of the data"), "{watched}");
    assert_eq!(home.trackway(&["resume", "last"]).code, 2);
}

/// Proves that a script which trains on all of its data on each rung climbs nothing, however good its metrics are: nothing counted
/// its rows. The next rung costs nothing, and every view says why.
#[test]
fn a_script_that_ignores_its_rung_is_not_promoted() {
    let home = Home::new();
    let script = "echo 'step 1000: val_loss=0.01'";
    let text = format!(
        "[run]\nname = \"believed\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n\
         [ladder]\nrungs = [\"1%\", \"100%\"]\npromote = \"val_loss < 1\"\n"
    );
    home.write("believed.toml", &text);
    let answer = home.trackway(&["run", "believed.toml", "--json"]);
    assert_eq!(answer.code, 5, "{}", answer.stderr);
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((&run["state"], run["attempts"].as_array().unwrap().len()), (&json!("blocked"), 1), "{run}");
    let rung = &home.sql("select verdict, why, rows, rows_total from rungs")[0];
    assert_eq!((&rung["verdict"], &rung["rows"]), (&json!("not_proved"), &Value::Null), "{rung}");
    assert!(rung["why"].as_str().unwrap().starts_with("not proved: nothing shows that"), "{rung}");
    let shown = home.trackway(&["explain", "last"]).stdout;
    assert!(shown.contains("not_proved") && shown.contains("not counted"), "{shown}");
}

/// Proves that runs are compared at the rung each of them is at, as steps of other rungs are of other data.
#[test]
fn runs_are_compared_at_their_rung() {
    let home = Home::new();
    let refused = run_file(&home, "learns_nothing", BETTER);
    assert_eq!(home.trackway(&["run", &refused]).code, 5);
    let promoted = run_file(&home, "learns", BETTER);
    assert_eq!(home.trackway(&["run", &promoted]).code, 0);
    let compared = home.json(&["compare", "learns_nothing", "learns", "--metrics", "fraction"]);
    assert_eq!(column(compared["runs"].as_array().unwrap(), "rung"), [json!("10%"), json!("100%")]);
    let figures = compared["metrics"][0]["values"].as_array().unwrap();
    assert_eq!(numbers(figures, "min"), [0.1, 1.0], "{compared}");
    let table = home.trackway(&["compare", "learns_nothing", "learns"]).stdout;
    assert!(table.lines().any(|line| line.contains("rung") && line.contains("10%")), "{table}");
}

/// Proves that a metric that is not logged meets no rule, on the first rung already, and that this is reported.
#[test]
fn a_metric_that_is_not_logged_is_reported_at_the_first_rung() {
    let home = Home::new();
    let file = run_file(&home, "learns", "promote = \"accuracy > previous\"");
    let run = home.json(&["run", &file]);
    assert_eq!((&run["state"], run["attempts"].as_array().unwrap().len()), (&json!("blocked"), 1), "{run}");
    let why = run["rungs"][0]["why"].as_str().unwrap();
    assert!(why.ends_with("`accuracy` was not logged at 1%"), "{why}");
    let mistaken = run_file(&home, "mistaken", "promote = \"val_loss < 95%\"");
    let refused = home.trackway(&["run", &mistaken]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("which has no meaning in a rule"), "{}", refused.stderr);
}

/// Proves that a script that is killed in the middle rung continues there, from the checkpoint of that rung, and that
/// the retry is counted in that rung and in its curve.
#[test]
fn a_killed_rung_continues_where_it_was() {
    let home = Home::new();
    let file = run_file(&home, "dies", BETTER);
    let run = home.json(&["run", &file]);
    assert_eq!(run["state"], "completed", "{run}");
    let attempts = run["attempts"].as_array().unwrap();
    assert_eq!(column(attempts, "rung"), [json!("1%"), json!("10%"), json!("10%"), json!("100%")], "{run}");
    assert_eq!((&attempts[1]["signal"], &attempts[2]["resumed_from_step"]), (&json!(9), &json!(40)), "{run}");
    assert_eq!(column(run["rungs"].as_array().unwrap(), "attempt_count"), [json!(1), json!(2), json!(1)]);
    let doubled = home.sql("select step from effective_metrics where rung = '10%' and name = 'val_loss' group by step having count(*) > 1");
    assert!(doubled.is_empty(), "{doubled:?}");
}

/// Proves that a run that was stopped in the middle rung is resumed in that rung.
#[test]
fn a_stopped_run_is_taken_up_in_its_rung() {
    let home = Home::new();
    let file = run_file(&home, "slow", BETTER);
    let supervisor = home.spawn(&["run", &file]);
    eventually("the middle rung to commit", || {
        let query =
            "select attempt_id from training_attempts where rung = '10%' and last_committed_step >= 10";
        let rows = home.trackway(&["sql", query, "--json"]).stdout;
        serde_json::from_str::<Vec<Value>>(&rows).ok().filter(|rows| !rows.is_empty())
    });
    assert_eq!(home.trackway(&["stop", "last"]).code, 0);
    let stopped = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(stopped.code, 4, "{}", stopped.stderr);
    let run = home.json(&["resume", "last"]);
    assert_eq!(run["state"], "completed", "{run}");
    let attempts = run["attempts"].as_array().unwrap();
    assert_eq!(column(attempts, "rung"), [json!("1%"), json!("10%"), json!("10%"), json!("100%")], "{run}");
    assert!(attempts[2]["resumed_from_step"].as_u64().unwrap() >= 10, "{run}");
    assert_eq!(attempts[3]["resumed_from_step"], Value::Null, "{run}");
}

/// Proves that with `warm_start` a rung begins at step 1 with the weights that the rung before committed last, and that
/// the receipt names them.
#[test]
fn a_warm_rung_begins_with_the_weights_of_the_one_before() {
    let home = Home::new();
    let file = run_file(&home, "learns", &format!("{BETTER}\nwarm_start = true"));
    let run = home.json(&["run", &file]);
    assert_eq!(run["state"], "completed", "{run}");
    let begun = home.sql("select a.rung, a.first_step, cast(p.value as double) as value from training_attempts a join parameters p on a.attempt_id = p.attempt_id where p.name = 'validation_loss_at_first' order by a.attempt_number");
    let rungs = home.sql("select rung, warm_start_step, metrics_json from rungs order by place");
    let ended: Vec<f64> = home
        .sql("select m.last_value as value from training_attempts a join metric_summaries m on a.attempt_id = m.attempt_id where m.name = 'val_loss' order by a.attempt_number")
        .iter()
        .map(|row| row["value"].as_f64().unwrap())
        .collect();
    let begun_at = numbers(&begun, "value");
    assert_eq!(begun_at[1..], ended[..2], "{begun:?}");
    assert!(begun_at[0] > begun_at[1]);
    assert_eq!(rungs[0]["warm_start_step"], Value::Null);
    assert_eq!(rungs[1]["warm_start_step"], run["rungs"][0]["last_step"]);
    let events = home.sql(
        "select kind, message from events where kind in ('rung_warm_start', 'warm_start') order by at, kind",
    );
    assert_eq!(events.len(), 4, "what was planned, and what the script took: {events:?}");

    let sources = home.sql("select run_id from runs");
    let root = home.state().join("checkpoints").join(sources[0]["run_id"].as_str().unwrap());
    assert!(root.join("train-1%").is_dir() && root.join("train-10%").is_dir());
}
