//! Progressive validation and early stops, with a real training script.

use serde_json::{Value, json};
use trackway_recorder::Recorder;

use crate::harness::Home;

/// How the training script of these tests behaves.
const MODE: &str = "PROGRESSIVE_MODE";
/// The script gives up by itself after so many steps.
const STEPS: u64 = 20_000;
/// Its loss stays level from about here on.
const LEARNED_STEPS: f64 = 300.0;

/// Proves nothing by itself: it is the training script of the tests below. Its loss falls and then stays level, with
/// noise.
#[test]
fn script() {
    let Ok(mode) = std::env::var(MODE) else { return };
    let run = Recorder::attach();
    run.stop_on_sigterm();
    let mut noise = 7_u64;
    for step in 1..=STEPS {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (noise >> 11) as f64 / (1_u64 << 53) as f64;
        let loss = (1.0 + 4.0 * (-(step as f64) / LEARNED_STEPS).exp()) * (0.95 + 0.1 * unit);
        let batch = if mode == "repeats" { step % 700 } else { step };
        run.log(step, &[("batch_digest", (batch * 2_654_435_761 % 4_294_967_296) as f64)]);
        run.progressive(step, loss);
        if step % 50 == 0 {
            if mode == "patient" {
                run.log(step, &[("val_loss", (step as f64 - 1_000.0).abs() / 1_000.0)]);
            }
            // The supervisor looks four times a second.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        if run.should_stop() {
            run.param("stopped_at", &step.to_string());
            break;
        }
    }
    run.finish();
}

fn run_file(home: &Home, mode: &str, early_stop: &str) -> String {
    let binary = home.program();
    let text = format!(
        "[run]\nname = \"{mode}\"\ncommand = [\"{}\", \"training::progressive::script\", \"--exact\", \"--nocapture\"]\n\
         environment = {{ {MODE} = \"{mode}\" }}\n[early_stop]\n{early_stop}\n",
        binary.display()
    );
    home.write(&format!("{mode}.toml"), &text);
    format!("{mode}.toml")
}

fn receipt(home: &Home) -> Value {
    home.sql("select termination_reason, termination_rule, last_step, exit_code, cast(termination_evidence as text) as evidence from training_attempts")
        .remove(0)
}

/// Proves that a run whose loss on unseen batches stays level is asked to stop, that the script learns of it, that the
/// receipt contains why with its numbers, and that the estimate with its band is shown.
#[test]
fn a_level_loss_ends_the_run() {
    let home = Home::new();
    let file = run_file(&home, "learned", "progressive = \"1%\"\nwindow = 500");
    let run = home.json(&["run", &file]);
    assert_eq!(
        (&run["state"], &run["attempts"][0]["termination_reason"]),
        (&json!("completed"), &json!("early_stopped")),
        "{run}"
    );
    let receipt = receipt(&home);
    assert_eq!(
        (&receipt["termination_rule"], &receipt["exit_code"]),
        (&json!("own_action.early_stop"), &json!(0))
    );
    let evidence = receipt["evidence"].as_str().unwrap();
    assert!(evidence.contains("the loss on unseen batches was 1"), "{evidence}");
    assert!((1_500..STEPS).contains(&receipt["last_step"].as_u64().unwrap()), "{receipt}");
    let stopped = home.sql("select value from parameters where name = 'stopped_at'");
    assert_eq!(stopped.len(), 1, "the script was told: {stopped:?}");
    assert!(home.sql("select * from detections").is_empty());

    for page in [home.json(&["explain", "last"]), home.json(&["watch", "last", "--once"])] {
        let card = &page["progressive"];
        let (low, high) = (card["low"].as_f64().unwrap(), card["high"].as_f64().unwrap());
        assert!(low < 1.0 && 1.0 < high && high - low < 0.05, "{card}");
        assert!(card["fall"]["high"].as_f64().unwrap() < 0.02 && card["invalid"].is_null(), "{card}");
    }
    let shown = home.trackway(&["explain", "last"]).stdout;
    assert!(shown.contains("Loss on unseen batches") && shown.contains("anytime-valid"), "{shown}");
    assert!(home.trackway(&["watch", "last", "--once"]).stdout.contains("unseen"));
}

/// Proves that repeated batches are reported, make the estimate invalid, and keep it from stopping the run.
#[test]
fn batches_that_come_again_stop_nothing() {
    let home = Home::new();
    let file = run_file(&home, "repeats", "progressive = \"1%\"\nwindow = 500");
    let run = home.json(&["run", &file, "--set", "supervise.timeout=20s"]);
    assert_eq!(run["attempts"][0]["termination_reason"], "completed", "{run}");
    let found = home.sql("select detector, first_step, evidence from detections");
    assert_eq!(column(&found, "detector"), [json!("seen_before")], "{found:?}");
    assert_eq!(found[0]["first_step"], 701, "{found:?}");
    let page = home.json(&["explain", "last"]);
    assert!(page["progressive"]["invalid"].as_str().unwrap().contains("were seen before"), "{page}");
    assert!(home.trackway(&["explain", "last"]).stdout.contains("not valid: "));
}

fn column(rows: &[Value], name: &str) -> Vec<Value> {
    rows.iter().map(|row| row[name].clone()).collect()
}

/// Proves that patience ends a run some evaluations after its best one, and names that one.
#[test]
fn patience_ends_the_run() {
    let home = Home::new();
    let file = run_file(&home, "patient", "patience = 4");
    let run = home.json(&["run", &file]);
    assert_eq!(run["attempts"][0]["termination_reason"], "early_stopped", "{run}");
    let evidence = receipt(&home)["evidence"].to_string();
    assert!(
        evidence.contains(
            "`val_loss` was not better than the 0 of step 1000 in 4 evaluations; it is 0.2 at step 1200"
        ),
        "{evidence}"
    );
    let wrong = run_file(&home, "wrong", "window = 500");
    assert_eq!(home.trackway(&["run", &wrong]).code, 2);
}
