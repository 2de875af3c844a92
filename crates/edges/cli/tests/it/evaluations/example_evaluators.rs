//! The evaluators of the example jobs, on the real models: numbers that agree with what the jobs compute themselves.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{Home, answer, eventually, has_frameworks};
use crate::training::examples::wine_mlp;

const VERSE: &str = "The quality of mercy is not strain'd,\nIt droppeth as the gentle rain from heaven\n";

fn example(name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").canonicalize().unwrap().join(name);
    path.to_str().unwrap().to_owned()
}

/// The command with the example programs in its PATH.
fn with_programs(mut command: Command, wine: &Path) -> Command {
    let programs = wine.parent().unwrap().display();
    command.env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()));
    command
}

fn run(home: &Home, wine: &Path, arguments: &[&str]) -> (i32, Value) {
    let answer = answer(with_programs(home.command(arguments), wine).output().unwrap());
    let document = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr));
    (answer.code, document)
}

/// The last value of a metric that the training wrote down.
fn last(home: &Home, metric: &str) -> f64 {
    let query = format!("select value from metrics where name = '{metric}' order by step desc limit 1");
    home.sql(&query)[0]["value"].as_f64().unwrap()
}

fn value(receipt: &Value, metric: &str) -> f64 {
    receipt["metrics"][metric]["value"].as_f64().unwrap_or_else(|| panic!("{metric}: {}", receipt["metrics"]))
}

fn agree(ours: f64, theirs: f64, within: f64) {
    assert!((ours - theirs).abs() <= within * theirs.abs(), "{ours} is not {theirs}");
}

/// Relations of a language model's numbers to each other, and to the loss that the training reported.
fn check_language(receipt: &Value, val_loss: f64, windows: u64) {
    let loss = value(receipt, "loss");
    agree(loss, val_loss, 1e-4);
    agree(value(receipt, "perplexity"), loss.exp(), 1e-9);
    // Each character of the verse is a byte.
    agree(value(receipt, "bits_per_byte"), loss / std::f64::consts::LN_2, 1e-9);
    for metric in ["loss", "perplexity", "bits_per_byte"] {
        let estimate = &receipt["metrics"][metric];
        assert!(estimate["low"].as_f64() < estimate["value"].as_f64(), "{estimate}");
        assert!(estimate["value"].as_f64() < estimate["high"].as_f64(), "{estimate}");
    }
    assert_eq!(receipt["raw_outputs"]["rows"], windows, "{receipt}");
}

/// Proves that the wine example, trained and evaluated in one command, gets the accuracy and the log loss that it
/// computed itself, with intervals, slices by its measurements and gates; and that an evaluator killed at work is
/// launched again alone with the same result.
#[test]
fn the_wine_example_is_judged() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    let file = example("wine.toml");
    let (code, ran) =
        run(&home, &wine, &["run", &file, "--json", "--set", "run.command=['wine_mlp', '--steps', '240']"]);
    let receipt = &ran["evaluation"];
    assert_eq!(
        (code, &ran["state"], &receipt["state"]),
        (0, &json!("completed"), &json!("completed")),
        "{ran}"
    );
    agree(value(receipt, "accuracy"), last(&home, "val_accuracy"), 1e-12);
    agree(value(receipt, "log_loss"), last(&home, "val_loss"), 1e-5);
    let accuracy = &receipt["metrics"]["accuracy"];
    assert!(accuracy["low"].as_f64() < accuracy["high"].as_f64() && accuracy["support"] == 319, "{accuracy}");
    let slices: Vec<&Value> = receipt["slices"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(slices, ["sour", "strong"]);
    assert_eq!(receipt["gates"].as_array().unwrap().len(), 2);
    assert_eq!(receipt["evaluator"]["files"][0]["path"], "wine_mlp", "its program is its code");
    assert_eq!(home.trackway(&["gates", "judge", "last"]).code, 0);
    let receipts = home.sql("select gate_receipt_id from gate_receipts").len();
    assert_eq!(receipts, 1, "the same evidence is the same receipt");

    let pid_file = home.path().join("pid");
    let slowly = format!("echo $$ > {}; exec wine_mlp --evaluate --step-millis 400", pid_file.display());
    let set = format!("evaluate.command=['sh', '-c', '{slowly}']");
    let retry = "evaluate.retry={attempts=2, backoff='10ms'}";
    let arguments = ["eval", "run", &file, "--json", "--set", &set, "--set", retry];
    let mut command = with_programs(home.command(&arguments), &wine);
    let evaluating =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let pid: i32 = eventually("the evaluator", || {
        let pid = std::fs::read_to_string(&pid_file).ok()?.trim().parse().ok()?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name.trim() == "wine_mlp").then_some(pid)
    });
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let answer = answer(evaluating.wait_with_output().unwrap());
    let again: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
    assert_eq!((answer.code, &again["state"]), (0, &json!("completed")), "{again}");
    let launches = again["launches"].as_array().unwrap();
    assert_eq!(launches.len(), 2, "{again}");
    assert_eq!((&launches[0]["signal"], &launches[1]["exit_code"]), (&json!(9), &json!(0)), "{launches:?}");
    assert_eq!(again["metrics"], receipt["metrics"]);
    assert_eq!(again["raw_outputs"]["sha256"], receipt["raw_outputs"]["sha256"], "the very rows");
    assert_eq!(home.sql("select * from training_attempts").len(), 1, "the training stays as it is");

    let step = home.trackway(&["eval", "run", &file, "--checkpoint", "100"]);
    assert!(step.code != 0 && step.stderr.contains("wine_mlp"), "not in the PATH: {}", step.stderr);
}

/// Proves that the character model's evaluator leaves windows from which the loss comes out that the job computed
/// itself, with perplexity and bits per byte, each with an interval.
#[test]
fn the_character_model_is_judged() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    let text = home.write("text.txt", &VERSE.repeat(250));
    let text = text.to_str().unwrap();
    let steps = ["--steps", "6", "--batch", "4"];
    let command = [&["char_transformer"], &steps[..], &["--text", text]].concat();
    let judge = ["char_transformer", "--evaluate", "--text", text];
    let sets = [
        format!("run.command={command:?}"),
        format!("data.text.path={text:?}"),
        format!("evaluate.command={judge:?}"),
        "evaluate.gates=['bits_per_byte < 8']".to_owned(),
    ];
    let file = example("chars.toml");
    let mut arguments = vec!["run", &file, "--json"];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let (code, ran) = run(&home, &wine, &arguments);
    assert_eq!((code, &ran["state"]), (0, &json!("completed")), "{ran}");
    // Of 316 windows of 64 characters a tenth is held out.
    check_language(&ran["evaluation"], last(&home, "val_loss"), 32);
    assert_eq!(ran["evaluation"]["gates"][0]["verdict"], "pass", "{}", ran["evaluation"]["gates"]);
}

/// Proves the same of the PyTorch example. `make test-python FRAMEWORKS=main` prepares the interpreter and demands it.
#[test]
fn the_torch_example_is_judged() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    let text = home.write("text.txt", &VERSE.repeat(250));
    let (text, script) = (text.to_str().unwrap(), example("python/chars_torch.py"));
    let job = ["python", &script, "--text", text];
    let command = [&job[..], &["--steps", "50", "--batch", "4"]].concat();
    let judge = [&job[..], &["--evaluate"]].concat();
    let sets = [
        format!("run.command={command:?}"),
        format!("data.text.path={text:?}"),
        format!("evaluate.command={judge:?}"),
        "evaluate.gates=['bits_per_byte < 8']".to_owned(),
    ];
    let file = example("chars_torch.toml");
    let mut arguments = vec!["run", &file];
    sets.iter().for_each(|set| arguments.extend(["--set", set]));
    let ran = home.json(&arguments);
    assert_eq!(ran["state"], "completed", "{ran}");
    // 2,025 characters are kept back: 31 windows of 64.
    check_language(&ran["evaluation"], last(&home, "val_loss"), 31);

    let guess = [&judge[..], &["--samples", "5"]].concat();
    let guess = format!("evaluate.command={guess:?}");
    let decoding = "evaluate.decoding={temperature=0.8}";
    let no_gates = "evaluate.gates=[]";
    let arguments = ["eval", "run", &file, "--set", &guess, "--set", decoding, "--set", no_gates];
    let guessed = home.json(&arguments);
    assert_eq!(
        (&guessed["state"], &guessed["decoding"]),
        (&json!("completed"), &json!({ "temperature": 0.8 }))
    );
    let left = home.state().join("evaluations").join(guessed["evaluation_id"].as_str().unwrap());
    let rows = std::fs::read_to_string(left.join("launch-1/predictions.csv")).unwrap();
    let right = rows.lines().filter(|row| row.ends_with("true")).count();
    assert!(rows.lines().count() == 1 + 5 * 31 && right > 0, "{rows}");
    agree(value(&guessed, "pass_at_1"), right as f64 / (5.0 * 31.0), 1e-9);
    let (one, five) = (value(&guessed, "pass_at_1"), value(&guessed, "pass_at_5"));
    assert!(one < five && guessed["metrics"]["pass_at_5"]["support"] == 31, "{}", guessed["metrics"]);
    let again = home.json(&arguments);
    assert_eq!(
        again["raw_outputs"]["sha256"], guessed["raw_outputs"]["sha256"],
        "the same seed draws the same"
    );
}

/// Computes the expected receipt of a table of predictions with scikit-learn.
const SKLEARN: &str = r#"
import csv, json, sys
from sklearn.metrics import accuracy_score, average_precision_score, brier_score_loss, log_loss, roc_auc_score
rows = list(csv.DictReader(open(sys.argv[1], encoding="utf-8")))
truth = [row["income"] == ">50K." for row in rows]
score = [float(row["score"]) for row in rows]
print(json.dumps({
    "accuracy": accuracy_score([row["income"] for row in rows], [row["prediction"] for row in rows]),
    "roc_auc": roc_auc_score(truth, score), "average_precision": average_precision_score(truth, score),
    "brier": brier_score_loss(truth, score), "log_loss": log_loss(truth, score)}))
"#;

/// Proves that the census example goes from training to production by the built-in evaluator: its numbers are
/// scikit-learn's on the rows that `trackway eval score` writes by hand from the same checkpoint, its gates can fail, and
/// the next model is compared with the one in production, row by row. `make test-python FRAMEWORKS=main` prepares the
/// interpreter and demands it.
#[test]
fn the_income_example_is_judged_and_promoted() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    let python = |arguments: &[&str]| {
        let output = Command::new("python").args(arguments).current_dir(home.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    python(&[&example("python/make_table.py"), "data"]);
    let text = std::fs::read_to_string(example("income.toml")).unwrap();
    let script = example("python/income.py");
    home.write("income.toml", &text.replace("python/income.py", &script));
    let ran = home.json(&["run", "income.toml"]);
    let receipt = &ran["evaluation"];
    assert_eq!((&ran["state"], &receipt["state"]), (&json!("completed"), &json!("completed")), "{ran}");
    assert_eq!(receipt["raw_outputs"]["rows"], 10_000);
    let gates = receipt["gates"].as_array().unwrap();
    assert!(gates.iter().all(|gate| gate["verdict"] == "pass"), "{gates:?}");

    let newest = &home.json(&["checkpoint", "ls", "last"])["checkpoints"][0];
    let folder = home.state().join("checkpoints").join(ran["run_id"].as_str().unwrap()).join("train-100%");
    let given = folder.join(newest["object_prefix"].as_str().unwrap());
    let columns = text.lines().find(|line| line.starts_with("columns")).unwrap();
    let columns = columns.split_once('[').unwrap().1.replace(['"', ' ', ']'], "");
    let scorer = format!("python {script} score");
    let by_hand = home
        .command(&[
            "eval", "score", "data/adult-test.csv", "--column-names", &columns, "--missing", "?",
            "--command", &scorer,
        ])
        .args(["--label", "income", "--positive", ">50K.", "--batch-format", "arrow", "--out", "scored.csv"])
        .env("TRACKWAY_CHECKPOINT_DIR", given)
        .output()
        .unwrap();
    assert!(by_hand.status.success(), "{}", String::from_utf8_lossy(&by_hand.stderr));
    let sklearn: Value = serde_json::from_slice(&python(&["-c", SKLEARN, "scored.csv"])).unwrap();
    for (metric, theirs) in sklearn.as_object().unwrap() {
        agree(value(receipt, metric), theirs.as_f64().unwrap(), 1e-9);
    }

    let done = |arguments: &[&str]| {
        let answer = home.trackway(arguments);
        assert_eq!(answer.code, 0, "{arguments:?}: {}{}", answer.stdout, answer.stderr);
    };
    done(&["registry", "register", "income", "--run", "last"]);
    let worse = "accuracy=0.76 roc_auc=0.5 size_bytes=2e6 slice.women.accuracy=0.5";
    let sets: Vec<&str> = worse.split(' ').flat_map(|set| ["--set", set]).collect();
    done(&[&["gates", "fixture", "last", "--name", "the majority", "--out", "bad.json"], &sets[..]].concat());
    done(&["gates", "test", "income.toml", "--bad", "bad.json"]);
    done(&["registry", "policy", "income", "--file", &example("policies/income.toml")]);
    done(&["registry", "promote", "income", "latest", "--deploy", "served"]);
    let next = home.json(&["run", "income.toml", "--set", "run.seed=18"]);
    let compared = &next["evaluation"]["comparison"]["metrics"]["accuracy"];
    assert!(compared["difference"]["low"].is_number(), "{}", next["evaluation"]);
    assert_eq!(next["evaluation"]["baseline_evaluation_id"], receipt["evaluation_id"]);
}
