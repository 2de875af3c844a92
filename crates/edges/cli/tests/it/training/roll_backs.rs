//! Runs that go back to an earlier checkpoint: by exact steps and batches, which checkpoints they leave, and the
//! receipt.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use trackway_recorder::{Kind, Recorder};

use crate::harness::{Home, eventually};

const ROLE: &str = "ROLL_BACK_TEST_ROLE";
/// The batches that break the model for good.
const BAD: std::ops::RangeInclusive<u64> = 120..=122;
pub const STEPS: u64 = 300;

/// Proves nothing by itself: it is the training script of the tests below, which launch this very binary. Its whole
/// state is one number, which a bad batch makes NaN; what each attempt trains on is in `trained`.
#[test]
fn script() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let run = Recorder::attach();
    let trained = PathBuf::from(std::env::var("TRAINED").unwrap());
    let go = trained.with_file_name("go");
    let mut trained = std::fs::OpenOptions::new().create(true).append(true).open(trained).unwrap();
    let attempt = std::env::var("TRACKWAY_EPOCH").unwrap();
    let (first, mut weight) = match run.resume().unwrap() {
        Some(found) => (found.step + 1, f64::from_le_bytes(found.read("w.bin").unwrap().try_into().unwrap())),
        None => (1, 1.0),
    };
    for step in first..=STEPS {
        if role == "waits" && attempt == "1" && step == BAD.start() + 1 {
            eventually("the test", || go.exists().then_some(()));
        }
        let batch = run.batch_of(step);
        if role == "hides" || !BAD.contains(&batch) {
            weight *= 0.999;
        } else {
            weight = f64::NAN;
        }
        writeln!(trained, "{attempt} {step} {batch}").unwrap();
        run.log(step, &[("loss", weight)]);
        if run.checkpoint_due(step) {
            run.save_checkpoint(step, &[], |files| files.file("w.bin", Kind::Weights, &weight.to_le_bytes()))
                .unwrap();
        }
        if role == "dies" && attempt == "2" && step == 113 {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
        }
        // Broken or hiding, it runs long enough to be caught.
        let slow = weight.is_nan() || role == "hides" && attempt == "1" && step > 150;
        std::thread::sleep(Duration::from_millis(if slow { 50 } else { 1 }));
    }
    run.finish();
}

pub fn run_file(home: &Home, role: &str, more: &str) -> String {
    let binary = home.program();
    let text = format!(
        "[run]\nname = \"{role}\"\ncommand = [\"{}\", \"training::roll_backs::script\", \"--exact\", \"--nocapture\"]\n\
         environment = {{ {ROLE} = \"{role}\", TRAINED = \"{}\" }}\n\
         [checkpoint]\nevery = {{ steps = 10 }}\nkeep = {{ last = 100 }}\n{more}",
        binary.display(),
        home.path().join("trained").display()
    );
    home.write("roll.toml", &text).to_str().unwrap().to_owned()
}

pub const ROLL_BACK: &str = "[detect]\nnon_finite = \"roll_back\"\nroll_back_steps = 10\nskip_batches = 5\n";

/// Step and batch of everything each attempt trained on.
pub fn trained(home: &Home) -> BTreeMap<u64, Vec<(u64, u64)>> {
    let mut trained: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for line in std::fs::read_to_string(home.path().join("trained")).unwrap().lines() {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        trained.entry(numbers[0]).or_default().push((numbers[1], numbers[2]));
    }
    trained
}

fn run(home: &Home, file: &str) -> (i32, Value, String) {
    let done = home.trackway(&["run", "--json", "--skip-preflight", "--why", "a test", file]);
    (done.code, serde_json::from_str(&done.stdout).unwrap_or_default(), done.stderr)
}

/// The steps that a run trains after going back to 110 when batches 115 to 125 are skipped.
pub fn after_roll_back(steps: std::ops::RangeInclusive<u64>) -> Vec<(u64, u64)> {
    steps.map(|step| (step, if step <= 115 { step - 1 } else { step + 10 })).collect()
}

/// Proves by exact batches that a run whose numbers broke continues from a checkpoint a safe distance before, without
/// the batches around the problem, that a crash right after it skips the same ones, that no broken checkpoint is
/// resumed from or deleted, that receipt, decision, detection and `explain` show it, and that a reproduction expects the states of
/// the branch that counts.
#[test]
fn a_run_goes_back_and_passes_over_what_broke_it() {
    let home = Home::new();
    let more = format!("{ROLL_BACK}[retry]\nunknown = {{ attempts = 1, backoff = \"0s\" }}\n");
    let (code, outcome, output) = run(&home, &run_file(&home, "dies", &more));
    assert_eq!(code, 0, "{output}");
    let trained = trained(&home);
    assert!(
        trained[&1].len() >= 121 && trained[&1].iter().all(|(step, batch)| *batch == step - 1),
        "{trained:?}"
    );
    assert_eq!(trained[&2], after_roll_back(111..=113));
    assert_eq!(trained[&3], after_roll_back(111..=STEPS));
    let attempts = &outcome["attempts"];
    assert_eq!(attempts[0]["termination_reason"], "numeric_divergence", "{outcome}");
    assert_eq!(
        (&attempts[1]["resumed_from_step"], &attempts[2]["resumed_from_step"]),
        (&json!(110), &json!(110))
    );
    let found = home.sql("select * from detections where detector = 'non_finite'");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["policy"], &found[0]["first_step"], &found[0]["first_batch"]),
        (&json!("roll_back"), &json!(121), &json!(120))
    );
    let rows = home.sql(
        "select detector, first_step, to_step, skip_first_batch, skip_end_batch, left_steps from roll_backs",
    );
    assert_eq!(rows.len(), 1, "{rows:?}");
    let left = rows[0]["left_steps"].as_str().unwrap_or_else(|| panic!("{rows:?}")).to_owned();
    assert!(left.starts_with("120"), "{left}");
    assert_eq!(rows[0]["detector"], "non_finite");
    assert_eq!(
        (&rows[0]["to_step"], &rows[0]["skip_first_batch"], &rows[0]["skip_end_batch"]),
        (&json!(110), &json!(115), &json!(126))
    );
    let decision =
        home.sql("select rule, decision, budget_name, budget_spent, budget_limit from retries order by at");
    assert_eq!(
        decision[0],
        json!({"rule": "roll_back.detector", "decision": "retry", "budget_name": "roll_back", "budget_spent": 1.0, "budget_limit": 3.0})
    );
    let checkpoints = home.json(&["checkpoint", "ls", "dies", "--all"]);
    let states: Vec<(u64, &Value)> = checkpoints["checkpoints"]
        .as_array()
        .unwrap_or_else(|| panic!("{checkpoints}"))
        .iter()
        .filter(|line| line["epoch"] == 1)
        .map(|line| (line["step"].as_u64().unwrap(), &line["state"]))
        .collect();
    assert!(states.iter().any(|(step, _)| *step == 120), "{checkpoints}");
    assert!(states.iter().all(|(step, state)| (*step > 110) == (*state == "suspect")), "{checkpoints}");
    let page = home.trackway(&["explain", "dies"]).stdout;
    assert!(page.contains("done: rolled back to step 110; skips the batches 115..126"), "{page}");
    assert!(page.contains("data: batch 120"), "{page}");
    let explained = home.json(&["explain", "dies"]);
    let skipped: Vec<&str> = explained["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "checkpoint_fallback")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    let reason = "not resumed from: marked suspect earlier: rolled back to step 110";
    assert_eq!(skipped.len(), 2, "one line for each attempt that resumed: {skipped:?}");
    assert!(skipped.iter().all(|text| text.contains(reason)), "{skipped:?}");

    // A reproduction does not expect the states that were left: it trains the steps after the rollback once.
    let again = home.path().join("again");
    home.json(&["reproduce", "dies", "--out", again.to_str().unwrap()]);
    let expected: Value =
        serde_json::from_str(&std::fs::read_to_string(again.join("expected.json")).unwrap()).unwrap();
    let steps: Vec<u64> =
        expected["states"].as_array().unwrap().iter().map(|state| state[0].as_u64().unwrap()).collect();
    assert_eq!(steps.iter().filter(|step| **step == 120).count(), 1, "{expected}");
}

/// Proves that rollbacks end with their budget, and that a run without an older checkpoint reports it.
#[test]
fn roll_backs_have_an_end() {
    for (more, rule) in [
        (format!("{ROLL_BACK}[retry]\nroll_back = {{ attempts = 0 }}\n"), "roll_back.budget"),
        // The problem comes back from data that the margin does not reach; the only checkpoint was used for a rollback
        // before.
        (
            ROLL_BACK.replace("skip_batches = 5", "skip_batches = 0").replace("steps = 10", "steps = 1000"),
            "roll_back",
        ),
    ] {
        let home = Home::new();
        let (code, _, output) = run(&home, &run_file(&home, "breaks", &more));
        let decisions = home.sql("select rule, decision, why from retries order by at");
        if rule == "roll_back.budget" {
            assert_eq!(code, 4, "{output}");
            assert_eq!((decisions.len(), &decisions[0]["rule"]), (1, &json!(rule)), "{decisions:?}");
        } else {
            // Each time it skips one bad batch, from the oldest checkpoint; there is none before it.
            assert_eq!(code, 4, "{output}");
            let last = decisions.last().unwrap();
            assert_eq!((&last["rule"], decisions.len()), (&json!("roll_back.no_place"), 2), "{decisions:?}");
            assert!(last["why"].as_str().unwrap().contains("already went back to step 10"), "{last}");
        }
    }
}

/// Proves that a user can roll a live run back, with batches to skip, and that its supervisor continues from there.
#[test]
fn a_person_sends_a_live_run_back() {
    let home = Home::new();
    let file = run_file(&home, "hides", "");
    let supervisor = home.spawn(&["run", "--json", "--skip-preflight", "--why", "a test", &file]);
    eventually("the slow part", || {
        let text = std::fs::read_to_string(home.path().join("trained")).ok()?;
        text.lines().any(|line| line.starts_with("1 152 ")).then_some(())
    });
    let refused = home.trackway(&["rollback", "last", "--to-step", "5"]);
    assert_eq!(
        (refused.code, refused.stderr.contains("no checkpoint at or before step 5")),
        (2, true),
        "{}",
        refused.stderr
    );
    let answer = home
        .json(&["rollback", "last", "--to-step", "105", "--skip-batches", "90..126", "--why", "odd rows"]);
    assert_eq!(
        (&answer["state"], &answer["to_step"], &answer["skip_batches"]),
        (&json!("asked"), &json!(100), &json!("100..126"))
    );
    let done = crate::harness::answer(supervisor.wait_with_output().unwrap());
    assert_eq!(done.code, 0, "{}", done.stderr);
    let expected: Vec<(u64, u64)> = (101..=STEPS).map(|step| (step, step + 25)).collect();
    assert_eq!(trained(&home)[&2], expected);
    let rows = home.sql("select detector, to_step, why from roll_backs");
    assert_eq!(rows, [json!({"detector": null, "to_step": 100, "why": "odd rows"})]);
    let ends = home.sql("select termination_reason from training_attempts order by attempt_number");
    assert_eq!(ends[0]["termination_reason"], "superseded");
    assert_eq!(home.trackway(&["rollback", "last"]).code, 2, "a run that completed does not go back");
}

/// Proves that a run that ended is rolled back and resumed from there, twice, and that skipped batches add up.
#[test]
fn a_run_at_rest_is_sent_back() {
    let home = Home::new();
    let more = "[detect]\nnon_finite = \"stop\"\n";
    let (code, _, output) = run(&home, &run_file(&home, "breaks", more));
    assert_eq!(code, 4, "{output}");
    let answer = home.json(&["rollback", "breaks", "--to-step", "119", "--skip-batches", "119..122"]);
    assert_eq!((&answer["state"], &answer["to_step"]), (&json!("done"), &json!(110)));
    let answer = home.json(&["rollback", "breaks", "--to-step", "90", "--skip-batches", "122..125"]);
    assert_eq!((&answer["skip_batches"], &answer["to_step"]), (&json!("119..125"), &json!(90)));
    let resumed = home.trackway(&["resume", "breaks"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let expected: Vec<(u64, u64)> =
        (91..=STEPS).map(|step| (step, if step <= 119 { step - 1 } else { step + 5 })).collect();
    assert_eq!(trained(&home)[&2], expected);
    assert_eq!(home.sql("select count(*) as n from roll_backs"), [json!({"n": 2})]);
}
