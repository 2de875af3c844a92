//! The built-in evaluator: `[evaluate] scorer`, in an evaluation of a real checkpoint.

use serde_json::{Value, json};
use trackway_formats::sha256_hex;

use crate::evaluations::score::rows;
use crate::evaluations::{evaluate, trained};
use crate::harness::Home;

/// Answers by the weights of the checkpoint: right of step 3, wrong of the others. Fails where it sees the truth.
const MODEL: &str = r#"read -r header
case "$header" in *truth*) exit 9;; esac
step="$(cat "$TRACKWAY_CHECKPOINT_DIR/weights.bin")"
while IFS=, read -r age sector; do
  [ -n "$age$sector" ] || continue
  case "$step,$age" in
    "step 3",5*|"step 3",6*|"step 3",7*|"step 3",8*) echo 0.75 ;;
    *) echo 0.25 ;;
  esac
done
"#;
const SCORER: &str =
    "scorer = \"sh score.sh\"\nrows = \"rows-v2.csv\"\nlabel = \"truth\"\npositive = \"yes\"\n";

fn home(model: &str, evaluate: &str) -> Home {
    let home = trained("true", "");
    let text = std::fs::read_to_string(home.path().join("job.toml")).unwrap();
    // A scorer instead of a command.
    let text = text.replace("command = [\"sh\", \"eval.sh\"]\n", &format!("{SCORER}{evaluate}\n"));
    home.write("job.toml", &text);
    home.write("score.sh", model);
    home.write("rows-v2.csv", &rows(3000));
    home
}

fn sha256_of(home: &Home, name: &str) -> String {
    sha256_hex(&std::fs::read(home.path().join(name)).unwrap())
}

/// Proves that the built-in evaluator binds the scorer's code, the rows as the task set and the predictions with their
/// features, that its numbers are those of the rows, that latency meets gates, and that checkpoints are distinguished.
#[test]
fn a_scorer_in_place_of_an_evaluator() {
    let gates = "gates = [\"accuracy >= 0.85\", \"latency_seconds < 60\", \"rows_per_second > 0.01\"]\nbaseline = \"last\"\nslices = { care = \"sector = 'care'\" }";
    let home = home(MODEL, gates);
    let (code, first) = evaluate(&home, &["--checkpoint", "2"]);
    assert_eq!((code, &first["state"]), (5, &json!("completed")), "{first}");
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
    assert_eq!(receipt["metrics"]["accuracy"]["value"], 0.9, "{}", receipt["metrics"]);
    assert_eq!(receipt["slices"][0]["name"], "care");
    assert_eq!(
        receipt["comparison"]["metrics"]["accuracy"]["verdict"], "better",
        "{}",
        receipt["comparison"]
    );
    let latency = &receipt["metrics"]["latency_seconds"];
    assert!(latency["high"].as_f64() > latency["low"].as_f64() && latency["support"] == 10, "{latency}");
    let verdicts: Vec<&Value> =
        receipt["gates"].as_array().unwrap().iter().map(|gate| &gate["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "pass", "pass"], "{}", receipt["gates"]);
    let evaluator = &receipt["evaluator"];
    assert_eq!(evaluator["name"], concat!("trackway eval score ", env!("CARGO_PKG_VERSION")));
    let line = format!("{}  score.sh\n", sha256_of(&home, "score.sh"));
    assert_eq!(evaluator["digest"], sha256_hex(line.as_bytes()), "{evaluator}");
    let tasks = &receipt["task_set"];
    assert_eq!(
        (&tasks["path"], &tasks["version"], &tasks["sha256"], &tasks["use_count"]),
        (&json!("rows-v2.csv"), &json!("v2"), &json!(sha256_of(&home, "rows-v2.csv")), &json!(2))
    );
    assert_eq!(receipt["raw_outputs"]["rows"], 3000);
    let failures = &receipt["sampled_failures"];
    assert_eq!((&failures["wrong"], &failures["rows"]), (&json!(300), &json!(3000)), "{failures}");
    assert!(!receipt["notes"].to_string().contains("reported by the evaluator"), "{}", receipt["notes"]);
}

/// Proves that a scorer that crashes is launched again alone, which its log shows, and that one which refuses rows
/// fails the evaluation with the rows and the reason; the training stays as it is.
#[test]
fn a_scorer_that_crashes_is_launched_again_alone() {
    let crash = "if [ ! -e ../crashed ] && [ ! -e crashed ]; then touch crashed; kill -9 $$; fi\n";
    let home = home(&format!("{crash}{MODEL}"), "");
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
    let launches = receipt["launches"].as_array().unwrap();
    let reasons: Vec<&Value> = launches.iter().map(|launch| &launch["termination_reason"]).collect();
    assert_eq!(reasons, ["evaluator_error", "completed"], "{launches:?}");
    assert_eq!(home.sql("select * from training_attempts").len(), 1);
    let log = home.trackway(&["logs", launches[0]["attempt_id"].as_str().unwrap()]);
    assert!(log.stdout.contains("rows 1 to 256: the model did not answer"), "{}", log.stdout);

    home.write("score.sh", "read -r h; while read -r x; do [ -n \"$x\" ] || echo '! not these'; done");
    let (code, refused) = evaluate(&home, &["--set", "evaluate.retry={attempts=1, backoff='10ms'}"]);
    assert_eq!((code, &refused["state"]), (4, &json!("failed")), "{refused}");
    assert_eq!(refused["launches"].as_array().unwrap().len(), 1, "it would refuse them again");
    assert!(refused["failure"].as_str().unwrap().contains("evaluator_error"), "{refused}");
    let log = home.trackway(&["logs", refused["launches"][0]["attempt_id"].as_str().unwrap()]);
    assert!(log.stdout.contains("the model refused: not these"), "{}", log.stdout);
    assert_eq!(home.json(&["runs"])[0]["state"], "completed");
}

/// Proves that what cannot begin is reported before anything is launched: rows that are not there, columns that they do
/// not have, and mistakes of the run file with their line.
#[test]
fn mistakes_are_reported_before_a_launch() {
    let home = home(MODEL, "");
    for (set, code, expected) in [
        ("evaluate.rows=nowhere.csv", 6, "nowhere.csv"),
        ("evaluate.scorer='no-such-program-here x.py'", 2, "no command `no-such-program-here`"),
        ("evaluate.label=trooth", 2, "did you mean `truth`?"),
        ("evaluate.features=['agee']", 2, "did you mean `age`?"),
        ("evaluate.command=['sh']", 2, "are both set"),
        ("evaluate.score=p", 2, "the built-in evaluator calls the column `score`"),
    ] {
        let answer = home.trackway(&["eval", "run", "job.toml", "--set", set]);
        assert!(
            answer.code == code && answer.stderr.contains(expected),
            "{set}: {}\n{}",
            answer.code,
            answer.stderr
        );
    }
    assert_eq!(home.sql("select * from evaluations").len(), 0);
    let answer = home.trackway(&[
        "run",
        "job.toml",
        "--set",
        "evaluate.after=true",
        "--set",
        "evaluate.rows=nowhere.csv",
    ]);
    assert!(
        answer.code == 6 && answer.stderr.contains("`evaluate.after = false`"),
        "{}\n{}",
        answer.code,
        answer.stderr
    );
    assert_eq!(home.sql("select * from training_attempts").len(), 1, "no training began");
}

/// Proves that the model of an evaluation is probed: by known answers of which features change a decision, in the receipt, in SQL
/// and in gates; that it can be turned off; and that a trial of 0 rows is a note.
#[test]
fn the_model_of_an_evaluation_is_probed() {
    let gates = "gates = [\"value(max(probe.flipped)) >= 0.1\", \"value(probe.sector.shuffle.flipped) <= 0.0\", \"value(probe.age.importance) > 0.05\"]";
    let home = home(MODEL, gates);
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
    let probes = &receipt["probes"];
    assert_eq!(
        (&probes["rows"], &probes["importance"][0]["feature"]),
        (&json!(200), &json!("age")),
        "{probes}"
    );
    let rows = home.sql(
        "select slice, metric, value from evaluation_metrics where slice in ('probe.age', 'probe.sector.shuffle') order by slice, metric",
    );
    let names: Vec<Value> = rows.iter().map(|row| json!([row["slice"], row["metric"]])).collect();
    assert_eq!(
        names,
        [
            json!(["probe.age", "importance"]),
            json!(["probe.sector.shuffle", "flipped"]),
            json!(["probe.sector.shuffle", "increase"])
        ]
    );
    assert!(rows[0]["value"].as_f64() > Some(0.05) && rows[1]["value"].as_f64() == Some(0.0), "{rows:?}");
    let text = home.trackway(&["eval", "show", "last"]).stdout;
    assert!(text.contains("Probes (200 rows drawn)"), "{text}");
    let (code, off) = evaluate(&home, &["--set", "evaluate.probe_rows=0"]);
    assert_eq!(
        (code, &off["probes"], &off["gates"][0]["verdict"]),
        (5, &Value::Null, &json!("inconclusive")),
        "{off}"
    );
    assert!(off["notes"].to_string().contains("the model was not probed"), "{}", off["notes"]);
}

/// Proves that a model that ends over a value that only a probe sends is evaluated, at the first launch: the probe has
/// the line of the error, the log has none, and a gate over all probes is inconclusive with the reason.
#[test]
fn a_probe_that_the_model_does_not_answer_is_its_result() {
    let fragile = MODEL.replace(
        "  case \"$step,$age\" in",
        "  [ -n \"$age\" ] || { printf 'Traceback (most recent call last):\\nValueError: no age\\n' >&2; exit 1; }\n  case \"$step,$age\" in",
    );
    let home = home(&fragile, "gates = [\"value(max(probe.flipped)) < 1\", \"accuracy >= 0.5\"]");
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!((code, &receipt["state"]), (5, &json!("completed")), "{receipt}");
    let launches = receipt["launches"].as_array().unwrap();
    assert_eq!(
        (launches.len(), &launches[0]["termination_reason"]),
        (1, &json!("completed")),
        "{launches:?}"
    );
    let why = receipt["gates"][0]["why"].as_str().unwrap();
    assert_eq!(receipt["gates"][0]["verdict"], "inconclusive", "{why}");
    assert!(why.contains("`age` missing (an empty field)") && why.contains("`ValueError: no age`"), "{why}");
    assert_eq!(receipt["gates"][1]["verdict"], "pass", "{receipt}");
    let log = home.trackway(&["logs", launches[0]["attempt_id"].as_str().unwrap()]);
    assert!(!log.stdout.contains("Traceback"), "{}", log.stdout);
}
