//! `trackway eval`. Here `eval run`: receipts, evaluators that fail in every way, and processes that are killed; in the
//! modules the other commands, further test sets, and evaluators of real models.

mod clearing;
mod coverage;
mod cross_validation;
mod example_evaluators;
mod lost;
pub(crate) mod metrics;
pub(crate) mod probe;
mod saved_models;
pub(crate) mod score;
mod scorers;
pub(crate) mod slices;
mod test_sets;

use std::process::Child;

use serde_json::{Value, json};
use trackway_formats::sha256_hex;
use trackway_recorder::{Kind, Recorder};

use crate::harness::{Answer, Home, answer, eventually, files_below};

/// Set for the training script of these tests.
const STEPS: &str = "EVALUATED_STEPS";
/// What every good evaluator of these tests leaves: two rows right, one wrong, one with a secret.
pub(crate) const GOOD: &str = r#"
test "$(cat "$TRACKWAY_CHECKPOINT_DIR/weights.bin")" = "step $TRACKWAY_CHECKPOINT_STEP" || exit 3
printf 'id,label,prediction,text\n1,a,a,x\n2,b,b,x\n3,a,b,password=hunter2\n4,b,a,x\n' > "$TRACKWAY_EVALUATION_OUT/predictions.csv"
echo '{"agreement": 0.5, "accuracy": 0.75, "grade": {"value": 0.5, "stderr": 0.1, "support": 4}, "slices": {"women": {"grade": 0.25}}}' > "$TRACKWAY_EVALUATION_OUT/metrics.json"
"#;

/// Proves nothing by itself: it is the training script of the tests below. It commits every step and ends.
#[test]
fn toy() {
    let Ok(steps) = std::env::var(STEPS) else { return };
    let run = Recorder::attach();
    let parent = run.warm_start().unwrap().map(|found| found.read("weights.bin").unwrap());
    let parent = parent.map(|bytes| format!("{}, then ", String::from_utf8(bytes).unwrap()));
    for step in 1..=steps.parse().unwrap() {
        run.log(step, &[("loss", 1.0 / step as f64)]);
        let weights = format!("{}step {step}", parent.as_deref().unwrap_or_default());
        run.save_checkpoint(step, &[], |writer| {
            writer.file("weights.bin", Kind::Weights, weights.as_bytes())
        })
        .unwrap();
    }
    run.finish();
}

/// A home with `job.toml`, `eval.sh` and a task set.
fn home_with(script: &str, evaluate: &str) -> Home {
    let home = Home::new();
    write_job(&home, script, "", evaluate);
    home
}

/// Writes `job.toml`, with more for its `[checkpoint]` and `[evaluate]`, `eval.sh` and a task set.
pub(crate) fn write_job(home: &Home, script: &str, checkpoint: &str, evaluate: &str) {
    let binary = home.program();
    let text = format!(
        "[run]\nname = \"judged\"\ncommand = [\"{}\", \"evaluations::toy\", \"--exact\", \"--nocapture\"]\nseed = 17\n\
         environment = {{ {STEPS} = \"3\" }}\n[checkpoint]\nevery = {{ steps = 1 }}\n{checkpoint}\n\
         [evaluate]\ncommand = [\"sh\", \"eval.sh\"]\nretry = {{ attempts = 2, backoff = \"10ms\" }}\n{evaluate}\n",
        binary.display()
    );
    home.write("job.toml", &text);
    home.write("eval.sh", script);
    // As many as `GOOD` answers.
    let tasks = ["a", "b", "a", "b"]
        .iter()
        .zip(1..)
        .map(|(label, id)| format!("{{\"id\": {id}, \"label\": \"{label}\"}}\n"));
    home.write("tasks-v3.jsonl", &tasks.collect::<String>());
}

/// The same, trained.
pub(crate) fn trained(script: &str, evaluate: &str) -> Home {
    let home = home_with(script, &format!("after = false\n{evaluate}"));
    let run = home.json(&["run", "job.toml"]);
    assert_eq!((&run["state"], &run["evaluation"]), (&json!("completed"), &Value::Null), "{run}");
    home
}

pub(crate) fn evaluate(home: &Home, options: &[&str]) -> (i32, Value) {
    document(&home.trackway(&[&["eval", "run", "job.toml", "--json"], options].concat()))
}

fn document(answer: &Answer) -> (i32, Value) {
    let document = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr));
    (answer.code, document)
}

pub(crate) fn checkpoints(home: &Home) -> Vec<Value> {
    home.json(&["checkpoint", "ls", "last"])["checkpoints"].as_array().unwrap().clone()
}

fn pins(home: &Home) -> Vec<String> {
    let pins = checkpoints(home).into_iter().flat_map(|one| one["pins"].as_array().unwrap().clone());
    pins.map(|pin| pin.as_str().unwrap().to_owned()).collect()
}

fn sha256_of(home: &Home, name: &str) -> String {
    sha256_hex(&std::fs::read(home.path().join(name)).unwrap())
}

/// Proves that a receipt holds evaluator, weights and tasks, with the raw outputs kept under their hash, the numbers in
/// real columns, the use of the task set counted, no secret in it, and that nothing about the training changed.
#[test]
fn a_receipt_binds_weights_evaluator_and_outputs() {
    let home = trained(
        GOOD,
        "task_set = \"tasks-v3.jsonl\"\ndecoding = { temperature = 0.0 }\nseed = 5\n\
         judge = { model = \"judge-2\", rubric = \"rubric.md\" }\ngates = [\"grade >= 0.3\"]\n",
    );
    home.write("rubric.md", "be strict");
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
    let newest = &checkpoints(&home)[0];
    assert_eq!(
        (&receipt["step"], &receipt["checkpoint_manifest_sha256"], &receipt["attempt_id"]),
        (&json!(3), &newest["manifest_sha256"], &newest["attempt_id"])
    );
    let code_line = format!("{}  eval.sh\n", sha256_of(&home, "eval.sh"));
    assert_eq!(receipt["evaluator"]["digest"], sha256_hex(code_line.as_bytes()), "{receipt}");
    assert_eq!(receipt["evaluator"]["name"], "eval");
    let tasks = &receipt["task_set"];
    assert_eq!(
        (&tasks["version"], &tasks["sha256"], &tasks["use_count"]),
        (&json!("v3"), &json!(sha256_of(&home, "tasks-v3.jsonl")), &json!(1))
    );
    let rubric = format!("rubric.md@sha256:{}", sha256_of(&home, "rubric.md"));
    assert_eq!(receipt["judge"], json!({ "model": "judge-2", "rubric": rubric }));
    assert_eq!((&receipt["decoding"]["temperature"], &receipt["seed"]), (&json!(0.0), &json!(5)));
    let raw = &receipt["raw_outputs"];
    let kept = home.state().join(raw["path"].as_str().unwrap());
    assert_eq!(
        (&raw["rows"], &raw["sha256"]),
        (&json!(4), &json!(sha256_hex(&std::fs::read(kept).unwrap())))
    );
    assert_eq!(receipt["metrics"]["agreement"]["value"], 0.5);
    assert_eq!(
        (&receipt["metrics"]["accuracy"]["value"], &receipt["metrics"]["accuracy"]["support"]),
        (&json!(0.5), &json!(4))
    );
    assert_eq!(receipt["metrics"]["grade"]["method"], "analytic");
    assert!(
        receipt["notes"]
            .to_string()
            .contains("`accuracy`: 0.75 reported by the evaluator, 0.5 computed from the rows and used"),
        "{receipt}"
    );
    let failures = &receipt["sampled_failures"];
    assert_eq!((&failures["wrong"], &failures["rows"]), (&json!(2), &json!(4)), "{failures}");
    assert_eq!(failures["sample"][0]["row"], 4, "the line of the file");
    assert!(!receipt.to_string().contains("hunter2"), "{failures}");
    assert_eq!(receipt["launches"].as_array().unwrap().len(), 1);
    assert!(pins(&home).is_empty());
    let expected = "select slice, metric, value from evaluation_metrics where metric = 'agreement' or slice <> '' order by slice";
    let rows = home.sql(expected);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(
        (&rows[1]["slice"], &rows[1]["metric"], &rows[1]["value"]),
        (&json!("women"), &json!("grade"), &json!(0.25))
    );
    assert_eq!(home.sql("select * from training_attempts").len(), 1);
    assert_eq!(home.json(&["runs"])[0]["state"], "completed");

    let (_, again) = evaluate(&home, &["--checkpoint", "2"]);
    assert_eq!((&again["step"], &again["raw_outputs"]["sha256"]), (&json!(2), &raw["sha256"]), "{again}");
    assert_eq!(
        (&again["task_set"]["use_count"], &again["task_set"]["checkpoint_count"]),
        (&json!(2), &json!(2))
    );
    let sets = home.sql("select use_count, run_count from test_sets");
    assert_eq!(sets, [json!({ "use_count": 2, "run_count": 1 })]);
    let listed = home.json(&["eval", "ls", "last"]);
    assert_eq!(listed[0]["evaluation_id"], again["evaluation_id"]);
    let shown = home.json(&["eval", "show", receipt["evaluation_id"].as_str().unwrap()]);
    assert_eq!(shown["metrics"], receipt["metrics"]);
    assert_eq!(home.json(&["explain", "last"])["evaluations"].as_array().unwrap().len(), 2);
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("Evaluations") && page.contains("accuracy 0.5"), "{page}");
    for arguments in [&["eval", "ls"][..], &["eval", "show", "last"]] {
        let page = home.trackway(arguments);
        assert!(
            page.code == 0 && page.stdout.contains(again["evaluation_id"].as_str().unwrap()),
            "{}",
            page.stdout
        );
    }
    assert_eq!(home.trackway(&["eval", "show", "evl_nowhere"]).code, 6);
}

/// Proves that what the evaluator reports about itself overrides the run file, and that a contradiction is noted.
#[test]
fn the_evaluator_knows_what_it_did() {
    let expected = r#"echo '{"seed": 9, "task_set_version": "v4", "evaluator": {"name": "arc", "version": "2"}, "decoding": {"top_p": 1}}' > "$TRACKWAY_EVALUATION_OUT/evaluation.json""#;
    let home = trained(&format!("{GOOD}{expected}"), "task_set = \"tasks-v3.jsonl\"");
    let (code, receipt) = evaluate(&home, &["--set", "evaluate.seed=5"]);
    assert_eq!((code, &receipt["seed"]), (0, &json!(9)), "{receipt}");
    assert_eq!(
        (&receipt["task_set"]["version"], &receipt["evaluator"]["name"]),
        (&json!("v4"), &json!("arc 2"))
    );
    assert_eq!(receipt["decoding"], json!({ "top_p": 1 }));
    let notes = receipt["notes"].to_string();
    assert!(notes.contains("seed: 5 in the run file, 9 reported by the evaluator and used"), "{notes}");
}

/// Proves that invalid output fails the evaluation with file, row and column in the error; that the training stays
/// good.
#[test]
fn what_is_no_answer_is_reported() {
    let home = trained("true", "");
    let out = "$TRACKWAY_EVALUATION_OUT";
    for (script, options, expected) in [
        ("true".to_owned(), &[][..], "the evaluator left nothing in TRACKWAY_EVALUATION_OUT"),
        (format!("touch {out}/notes.txt"), &[][..], "left `notes.txt`"),
        (
            format!("printf 'id,label\\n1,2\\n3\\n' > {out}/predictions.csv"),
            &[][..],
            "`predictions.csv`:3: the row cannot be read",
        ),
        (format!("printf 'id,label\\n' > {out}/predictions.csv"), &[][..], "`predictions.csv` has no row"),
        (
            format!("printf 'id,labl\\n1,2\\n' > {out}/predictions.csv"),
            &["evaluate.label=label"][..],
            "label column `label` is not in `predictions.csv`; did you mean `labl`?",
        ),
        (
            format!("echo '{{\"a\": 1}}' > {out}/predictions.jsonl; echo x > {out}/predictions.csv"),
            &[][..],
            "left both",
        ),
        (format!("echo not parquet > {out}/predictions.parquet"), &[][..], "predictions.parquet"),
        (
            format!("printf '{{\\n\"f1\": \"good\"}}' > {out}/metrics.json"),
            &[][..],
            "`metrics.json`:2:12: invalid type: string \"good\"",
        ),
        (format!("echo '{{\"f1\": NaN}}' > {out}/metrics.json"), &[][..], "JSON has no NaN"),
        (
            format!("echo '{{\"f1\": 1}}' > {out}/metrics.json"),
            &["evaluate.label=y"][..],
            "`evaluate.label` needs a table of predictions",
        ),
        (
            format!(
                "echo '{{\"sed\": 1}}' > {out}/evaluation.json; echo '{{\"f1\": 1}}' > {out}/metrics.json"
            ),
            &[][..],
            "unknown field `sed`",
        ),
    ] {
        home.write("eval.sh", &script);
        let options: Vec<&str> = options.iter().flat_map(|set| ["--set", set]).collect();
        let (code, receipt) = evaluate(&home, &options);
        assert_eq!((code, &receipt["state"]), (4, &json!("failed")), "{script}: {receipt}");
        assert!(receipt["failure"].as_str().unwrap().contains(expected), "{script}: {}", receipt["failure"]);
        assert_eq!(
            receipt["launches"][0]["termination_reason"], "completed",
            "the evaluator itself ended in order"
        );
    }
    assert!(pins(&home).is_empty());
    assert_eq!(home.json(&["runs"])[0]["state"], "completed");
    assert_eq!(home.sql("select count(*) as n from evaluations where state = 'failed'")[0]["n"], 11);
}

/// Proves that a crashed evaluator is launched again alone, with an empty folder, as often as it may be and no more, that a
/// SIGKILL is a crash, and that an exception of its code is launched once more at most.
#[test]
fn a_crash_launches_the_evaluator_alone_again() {
    let crashing = |last: u32, how: &str| {
        format!(
            "test -z \"$(ls $TRACKWAY_EVALUATION_OUT)\" || exit 9\ntouch $TRACKWAY_EVALUATION_OUT/half\n\
             echo x >> tries\ntest $(wc -l < tries) -gt {last} || {how}\n{GOOD}"
        )
    };
    let throws = |exception: &str| format!("{{ echo '{exception}' >&2; exit 1; }}");
    for how in [throws("ConnectionError: x").as_str(), "kill -9 $$"] {
        let home = trained(&crashing(2, how), "");
        let (code, receipt) = evaluate(&home, &[]);
        assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{how}: {receipt}");
        assert_eq!(receipt["launches"].as_array().unwrap().len(), 3, "{receipt}");
        assert_eq!(home.sql("select * from training_attempts").len(), 1);
        assert_eq!(home.json(&["runs"])[0]["state"], "completed");
    }
    let home = trained(&crashing(9, &throws("KeyError: x")), "");
    let (code, receipt) = evaluate(&home, &[]);
    assert_eq!((code, receipt["launches"].as_array().unwrap().len()), (4, 2), "{receipt}");
    let stopped = home.sql("select rule, why from retries where decision = 'stop' order by at desc");
    assert_eq!(stopped[0]["rule"], "evaluator.same_end_expected", "{stopped:?}");
    let why = stopped[0]["why"].as_str().unwrap();
    assert!(why.starts_with("`KeyError: x` ended two launches in a row: the evaluator must change"), "{why}");

    let home = trained(&crashing(9, "exit 1"), "");
    let (code, receipt) = evaluate(&home, &["--set", "evaluate.retry.attempts=1"]);
    assert_eq!((code, &receipt["state"]), (4, &json!("failed")), "{receipt}");
    assert_eq!(receipt["launches"].as_array().unwrap().len(), 2, "{receipt}");
    assert!(receipt["failure"].as_str().unwrap().contains("`evaluator_error`"), "{receipt}");
    let states = home.sql("select state from runs where kind = 'evaluate'");
    assert_eq!(states, [json!({ "state": "blocked" })]);
    let (_, receipt) = evaluate(
        &home,
        &[
            "--set",
            "evaluate.timeout=300ms",
            "--set",
            "evaluate.command=['sleep', '60']",
            "--set",
            "retry.timeout.attempts=0",
            "--set",
            "supervise.grace=100ms",
        ],
    );
    assert_eq!(receipt["launches"][0]["termination_reason"], "timeout", "{receipt}");
}

/// An evaluator that waits until `go` exists.
pub(crate) fn waiting() -> String {
    format!("touch waits-$$\nwhile ! test -e go; do sleep 0.05; done\n{GOOD}")
}

pub(crate) fn begun(home: &Home, count: usize) {
    eventually("the evaluators", || {
        let waits = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("waits-");
        let found = std::fs::read_dir(home.path()).unwrap().flatten().filter(waits).count();
        (found >= count).then_some(())
    });
}

fn ended(child: Child) -> (i32, Value) {
    document(&answer(child.wait_with_output().unwrap()))
}

/// Proves that two evaluations run at the same time, each with a separate pin; that meanwhile neither a newer
/// checkpoint nor any collection of garbage deletes theirs; and that it may be deleted afterwards.
#[test]
fn what_is_read_is_not_deleted() {
    let home = trained(&waiting(), "");
    let step = ["eval", "run", "job.toml", "--json", "--checkpoint", "1"];
    let (one, other) = (home.spawn(&step), home.spawn(&step));
    begun(&home, 2);
    assert_eq!(pins(&home).len(), 2);
    let collect = ["checkpoint", "gc", "last", "--keep-last", "2", "--older-than", "0s", "--yes"];
    assert_eq!(home.trackway(&collect).code, 0);
    let held = home.trackway(&["gc", "--keep-last", "0", "--yes", "--json"]);
    assert!(held.stdout.contains("a checkpoint is pinned as `evl_"), "{}{}", held.stdout, held.stderr);
    home.write("go", "");
    for child in [one, other] {
        let (code, receipt) = ended(child);
        assert_eq!(
            (code, &receipt["state"], &receipt["step"]),
            (0, &json!("completed"), &json!(1)),
            "{receipt}"
        );
    }
    assert!(pins(&home).is_empty());
    assert_eq!(home.trackway(&collect).code, 0);
    let (code, expected) = (evaluate_code(&home), home.trackway(&["checkpoint", "ls", "last"]).stdout);
    assert_eq!(code, 6, "{expected}");
}

fn evaluate_code(home: &Home) -> i32 {
    home.trackway(&["eval", "run", "job.toml", "--checkpoint", "1"]).code
}

/// Proves that a run is evaluated when it completed, that its exit code shows when that failed, and that an evaluation
/// that could not begin is reported before the training costs anything.
#[test]
fn a_run_is_evaluated_at_its_end() {
    let home = home_with(GOOD, "");
    let (code, run) = document(&home.trackway(&["run", "job.toml", "--json"]));
    assert_eq!(
        (code, &run["state"], &run["evaluation"]["state"]),
        (0, &json!("completed"), &json!("completed")),
        "{run}"
    );
    assert_eq!(run["evaluation"]["step"], 3);
    let home = home_with("exit 1", "");
    let (code, run) = document(&home.trackway(&["run", "job.toml", "--json"]));
    assert_eq!(
        (code, &run["state"], &run["evaluation"]["state"]),
        (4, &json!("completed"), &json!("failed")),
        "{run}"
    );
    for (set, expected) in [
        ("evaluate.command=['no-such-program']", "no-such-program"),
        ("evaluate.task_set=tasks-v9.jsonl", "tasks-v9.jsonl"),
    ] {
        let home = home_with(GOOD, "");
        let refused = home.trackway(&["run", "job.toml", "--set", set]);
        assert!(refused.code == 2 || refused.code == 6, "{}: {}", refused.code, refused.stderr);
        assert!(
            refused.stderr.contains(expected) && refused.stderr.contains("evaluate.after"),
            "{}",
            refused.stderr
        );
        assert!(home.json(&["runs"]).as_array().unwrap().is_empty());
    }
}

/// Proves that a checkpoint is found by step and by its manifest, and that an invalid reference, a missing checkpoint
/// and one that does not verify each have their exit code.
#[test]
fn checkpoints_are_found_or_refused() {
    let home = trained(GOOD, "");
    let digits: String =
        checkpoints(&home)[1]["manifest_sha256"].as_str().unwrap().chars().take(12).collect();
    let (code, receipt) = evaluate(&home, &["--checkpoint", &digits]);
    assert_eq!((code, &receipt["step"]), (0, &json!(2)), "{receipt}");
    for (reference, code) in [("7", 6), ("newest", 2), ("ffffffffffff", 6)] {
        let refused = home.trackway(&["eval", "run", "last", "--checkpoint", reference]);
        assert_eq!(refused.code, code, "{reference}: {}", refused.stderr);
    }
    assert_eq!(home.trackway(&["eval", "run", "nobody"]).code, 6);
    home.write("plain.toml", "[run]\nname = \"judged\"\ncommand = [\"true\"]\n");
    assert_eq!(home.trackway(&["eval", "run", "plain.toml"]).code, 2);
    let newest = checkpoints(&home)[0].clone();
    let root = home.json(&["checkpoint", "explain", "last"])["checkpoints"][0]["folder"].clone();
    let folder = crate::harness::files_below(&home.state().join("checkpoints"));
    let weights = folder.iter().find(|path| {
        path.ends_with("weights.bin") && path.to_string_lossy().contains(root.as_str().unwrap())
    });
    std::fs::write(weights.unwrap(), "step 9").unwrap();
    let refused = home.trackway(&["eval", "run", "last"]);
    assert_eq!(refused.code, 7, "{newest}: {}", refused.stderr);
    assert!(refused.stderr.contains("checkpoint doctor"), "{}", refused.stderr);
    assert_eq!(home.json(&["eval", "ls"])[0]["state"], "failed");
    assert!(pins(&home).is_empty());
}

/// Proves that logs of Inspect and of lm-evaluation-harness become receipts of a checkpoint, each once, with their
/// examples and numbers in the same places as Trackway's, and that another file changes nothing.
#[test]
fn other_tools_logs_are_taken_over() {
    let home = trained(GOOD, "");
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../science/evaluate/tests/vectors");
    let import = |path: &str| {
        let path = format!("{vectors}/{path}");
        home.json(&["eval", "import", &path, "--run", "last", "--checkpoint", "2"])
    };
    let inspect = import("inspect/capitals.eval")[0].clone();
    assert_eq!(
        (&inspect["is_new"], &inspect["origin"], &inspect["step"]),
        (&json!(true), &json!("inspect"), &json!(2))
    );
    assert_eq!(
        (&inspect["raw_outputs"]["rows"], &inspect["task_set"]["version"]),
        (&json!(3), &json!("2")),
        "{inspect}"
    );
    assert_eq!(inspect["sampled_failures"]["wrong"], 1, "{inspect}");
    assert_eq!(inspect["sampled_failures"]["sample"][0]["cells"]["prediction"], "Bonn");
    let again = import("inspect/capitals.eval")[0].clone();
    assert_eq!((&again["is_new"], &again["evaluation_id"]), (&json!(false), &inspect["evaluation_id"]));
    let harness = import("lm_eval");
    assert_eq!(harness.as_array().unwrap().len(), 2, "{harness}");
    assert_eq!(harness[0]["metrics"]["accuracy"]["value"], 0.5);
    assert_eq!(harness[1]["checkpoint_manifest_sha256"], inspect["checkpoint_manifest_sha256"]);
    assert_eq!(home.sql("select count(*) as n from evaluations")[0]["n"], 3);
    assert_eq!(home.sql("select count(*) as n from test_set_uses")[0]["n"], 3);
    let page = home.trackway(&["eval", "show", inspect["evaluation_id"].as_str().unwrap()]).stdout;
    assert!(page.contains("from inspect") && page.contains("asserted at import, not verified"), "{page}");
    let file = home.write("broken.eval", "PK");
    for (path, code) in [(file.to_str().unwrap(), 2), ("nowhere.eval", 6)] {
        let refused = home.trackway(&["eval", "import", path, "--run", "last"]);
        assert_eq!(refused.code, code, "{path}: {}", refused.stderr);
    }
    assert_eq!(home.sql("select count(*) as n from evaluations")[0]["n"], 3);
}

/// Proves that an evaluator is what it imports, though its command names none of it and a module's name is computed: its files are seen
/// opened, also by their compiled form; an unchanged one has the same digest again, and an edited module is another evaluator.
#[test]
fn an_evaluator_is_what_it_imports() {
    let home = trained("python3 judge.py\n", "");
    home.write(
        "judge.py",
        "import importlib, os\nhelper = importlib.import_module('help' + 'er')\n\
         open(os.environ['TRACKWAY_EVALUATION_OUT'] + '/predictions.csv', 'w').write(helper.TABLE)\n",
    );
    let helper = |prediction: &str| format!("TABLE = 'id,label,prediction\\n1,a,a\\n2,b,{prediction}\\n'\n");
    home.write("helper.py", &helper("b"));
    home.write("unused.py", "");
    let evaluated = || {
        let (code, receipt) = evaluate(&home, &[]);
        assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
        receipt["evaluator"].clone()
    };
    let first = evaluated();
    let files: Vec<&str> =
        first["files"].as_array().unwrap().iter().filter_map(|it| it["path"].as_str()).collect();
    assert_eq!(files, ["eval.sh", "helper.py", "judge.py"], "{first}");
    assert_eq!(evaluated()["digest"], first["digest"]);
    home.write("helper.py", &helper("a"));
    let changed = evaluated();
    assert!(changed["digest"].is_string() && changed["digest"] != first["digest"], "{changed}");
}

/// Proves that a module which only `PYTHONPATH` leads to, outside of the folder, is the evaluator's code, with the settings that it names.
#[test]
fn code_from_other_folders_counts() {
    let shared = tempfile::tempdir().unwrap();
    let outer = |more: &str| {
        let text = format!(
            "import os\nTHRESHOLD = open('thr.yaml').read()\nOUT = os.environ['TRACKWAY_EVALUATION_OUT']\n\
             open(OUT + '/predictions.csv', 'w').write('id,label,prediction\\n1,a,a\\n2,b,b\\n')\n{more}"
        );
        std::fs::write(shared.path().join("outer.py"), text).unwrap();
    };
    let home = trained(&format!("PYTHONPATH={} python3 judge.py\n", shared.path().display()), "");
    home.write("judge.py", "import outer\n");
    home.write("thr.yaml", "0.5\n");
    outer("");
    let evaluated = || {
        let (code, receipt) = evaluate(&home, &[]);
        assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
        receipt["evaluator"]["digest"].clone()
    };
    let first = evaluated();
    assert_eq!(evaluated(), first);
    outer("# edited\n");
    let edited = evaluated();
    assert!(edited.is_string() && edited != first, "{edited}");
    home.write("thr.yaml", "0.6\n");
    assert_ne!(evaluated(), edited);
    let listed = home.trackway(&["eval", "ls"]).stdout;
    assert!(listed.contains("`thr.yaml` changed"), "{listed}");
}

/// 400 rows of two sexes; the model of step 3 errs among women more often than that of step 1, which errs nowhere.
const PEOPLE: &str = r#"
python3 - "$TRACKWAY_CHECKPOINT_STEP" > "$TRACKWAY_EVALUATION_OUT/predictions.csv" <<'END'
import sys
print('id,sex,age,label,prediction')
for row in range(400):
    sex, label = 'female' if row % 2 else 'male', 'rich' if row % 5 < 2 else 'poor'
    wrong = sys.argv[1] == '3' and sex == 'female' and row % 3 == 0
    print(f"{row},{sex},{20 + row % 50},{label},{({'rich': 'poor', 'poor': 'rich'}[label]) if wrong else label}")
END
"#;

/// The tasks that [`PEOPLE`] answers.
fn write_people(home: &Home) {
    let task = |row: u32| {
        let label = if row % 5 < 2 { "rich" } else { "poor" };
        format!("{{\"id\": {row}, \"label\": \"{label}\"}}\n")
    };
    home.write("tasks-v3.jsonl", &(0..400).map(task).collect::<String>());
}

/// Proves that a slice of the run file has its own metric and limits; that the blind spots of the rows are in the receipt,
/// in the tables and on the page, and that a gate speaks of them; and that without a search such a gate decides nothing.
#[test]
fn slices_and_blind_spots_of_a_run_file() {
    let home = trained(
        PEOPLE,
        "task_set = \"tasks-v3.jsonl\"\nlabel = \"label\"\nprediction = \"prediction\"\npositive = \"rich\"\nmetric = \"f1\"\n\
         costs.rich = { poor = 5 }\nslices.women = { where = \"sex = 'female'\", metric = \"recall\", support_min = 300 }\n\
         slices.young = \"age < 45\"\ngates = [\"max(blind_spot.error) <= 0.05\"]\n",
    );
    write_people(&home);
    let (code, first) = evaluate(&home, &["--checkpoint", "1"]);
    assert_eq!((code, &first["assessment"]["blind_spots"]["error"]["value"]), (0, &json!(0.0)), "{first}");
    let (code, third) = evaluate(&home, &[]);
    assert_eq!((code, &third["gates"][0]["verdict"]), (5, &json!("fail")), "{third}");
    assert!(third["metrics"]["cost"]["value"].as_f64() > Some(0.0), "{}", third["metrics"]);
    let women = &third["slices"][0];
    assert_eq!(
        (&women["compared_by"], &women["verdict"]),
        (&json!("recall"), &json!("inconclusive")),
        "{women}"
    );
    assert!(women["why"].as_str().unwrap().contains("200 rows, fewer than 300"), "{women}");
    assert_eq!(
        (&third["slices"][1]["compared_by"], &third["assessment"]["main_metric"]),
        (&Value::Null, &json!("f1"))
    );
    let found = third["assessment"]["blind_spots"]["slices"].as_array().unwrap();
    let confirmed = found.iter().filter(|slice| slice["verdict"] == "confirmed");
    assert!(confirmed.clone().any(|slice| slice["predicate"] == json!({ "sex": "female" })), "{found:?}");
    let rows = home.sql(
        "select count(*) as count, min(m.value) > 0.2 as is_bad from evaluation_slices s \
         join evaluation_metrics m on m.evaluation_id = s.evaluation_id and m.slice = s.slice and m.metric = 'error' \
         where s.slice like 'blind_spot.%' and s.verdict = 'confirmed' and s.predicate like '%sex female%'",
    );
    assert!(rows[0]["count"].as_u64() > Some(0) && rows[0]["is_bad"] == true, "{rows:?}");
    let id = third["evaluation_id"].as_str().unwrap();
    let shown = home.trackway(&["eval", "show", id, "--html", "report.html"]).stdout;
    let html = std::fs::read_to_string(home.path().join("report.html")).unwrap();
    assert!(
        shown.contains("women (recall)") && shown.contains("Blind spots") && shown.contains("sex female"),
        "{shown}"
    );
    assert!(html.contains("Blind spots") && html.contains("sex female"), "{html}");

    let (code, without) = evaluate(&home, &["--set", "evaluate.blind_spots=false"]);
    assert_eq!((code, &without["gates"][0]["verdict"]), (5, &json!("inconclusive")), "{without}");
    assert!(without["assessment"]["blind_spots"].is_null());
    let (code, refused) = evaluate(&home, &["--set", "evaluate.metric='speed'"]);
    assert_eq!((code, &refused["state"]), (4, &json!("failed")), "{refused}");
    assert!(refused["failure"].as_str().unwrap().contains("speed"), "{refused}");
}

/// Proves that known-bad models are made from what there is: shuffled predictions of an evaluation fail a gate that its model
/// passes, the first checkpoint is evaluated, which no default chooses afterwards, with a note if the gates judged it as the model, and an
/// evaluation without rows is refused. Of a number that shuffling leaves as it is, it is said what to do.
#[test]
fn known_bad_models_are_made() {
    let timed = "echo '{\"latency_seconds\": {\"value\": 0.1, \"low\": 0.09, \"high\": 0.11, \"support\": 40}}' \
                 > \"$TRACKWAY_EVALUATION_OUT/metrics.json\"\n";
    let home = trained(
        &format!("{PEOPLE}{timed}"),
        "task_set = \"tasks-v3.jsonl\"\nlabel = \"label\"\nprediction = \"prediction\"\n\
         slices = { women = \"sex = 'female'\" }\n\
         gates = [\"accuracy >= 0.7\", \"min(slice.accuracy) >= 0.6\", \"size_bytes < 1e9\", \"value(latency_seconds) < 1\"]\n",
    );
    write_people(&home);
    let (code, good) = evaluate(&home, &["--checkpoint", "1"]);
    assert_eq!(code, 0, "{good}");
    let test = |bad: &str| document(&home.trackway(&["gates", "test", "job.toml", "--bad", bad, "--json"]));
    let (code, tests) = test("shuffled");
    assert_eq!(
        (code, &tests["unverified"]),
        (5, &json!(["size_bytes < 1e9", "value(latency_seconds) < 1"])),
        "{tests}"
    );
    let verdicts: Vec<&Value> =
        tests["tests"].as_array().unwrap().iter().map(|test| &test["verdict"]).collect();
    assert_eq!(verdicts, ["fail", "fail", "pass", "inconclusive"], "{tests}");
    let why = tests["tests"][3]["why"].as_str().unwrap();
    assert!(
        why.contains("shuffled predictions do not change it") && why.contains("--set latency_seconds="),
        "{why}"
    );
    assert!(!why.contains("did you mean"), "{why}");
    let again = test("shuffled:last").1;
    assert_eq!(again["tests"][0]["why"], tests["tests"][0]["why"], "the same seed shuffles the same way");
    let first = home.trackway(&["gates", "test", "job.toml", "--bad", "first", "--json"]);
    let note = format!("has the weights that {} is about", good["evaluation_id"].as_str().unwrap());
    assert!(first.stderr.contains(&note), "{}", first.stderr);
    let (_, first) = document(&first);
    assert_eq!(first["tests"][0]["verdict"], "pass", "{first}");
    assert!(
        first["tests"][0]["fixture"].as_str().unwrap().starts_with("the first checkpoint: step 1"),
        "{first}"
    );
    let listed = home.json(&["eval", "ls"]);
    let origins: Vec<&Value> = listed.as_array().unwrap().iter().map(|line| &line["origin"]).collect();
    assert_eq!(origins, ["gate_test", "trackway"], "{listed}");
    assert!(home.trackway(&["eval", "ls"]).stdout.contains("(gate test)"));
    let bad_id = listed[0]["evaluation_id"].as_str().unwrap();
    assert!(home.trackway(&["eval", "show", bad_id]).stdout.contains("of a known-bad model for a gate test"));
    let id = &good["evaluation_id"];
    assert_eq!(&home.json(&["eval", "show", "last"])["evaluation_id"], id);
    let judged = home.trackway(&["gates", "judge", "last", "--json"]);
    assert_eq!(&document(&judged).1["evaluation_id"], id);
    let shuffled = test("shuffled").1["tests"][0]["fixture"].clone();
    assert!(shuffled.as_str().unwrap().ends_with(id.as_str().unwrap()), "{shuffled}");
    let (_, second) = evaluate(&home, &["--checkpoint", "2", "--set", "evaluate.baseline='last'"]);
    assert_eq!(&second["baseline_evaluation_id"], id, "{second}");
    let register = ["registry", "register", "judged", "--run", "last", "--checkpoint", "1"];
    assert_eq!(&home.json(&register)["evaluation_id"], id);

    // The newest evaluation of another model is not meant.
    let own = test("shuffled").1;
    let other = std::fs::read_to_string(home.path().join("job.toml")).unwrap();
    home.write("other.toml", &other.replacen("name = \"", "name = \"other-", 1));
    home.json(&["run", "other.toml"]);
    assert_eq!(home.trackway(&["eval", "run", "other.toml", "--checkpoint", "1"]).code, 0);
    assert_eq!(test("shuffled").1["tests"][0]["fixture"], own["tests"][0]["fixture"]);
    assert_ne!(test("shuffled:last").1["tests"][0]["fixture"], own["tests"][0]["fixture"]);
    let unnamed = home.trackway(&["gates", "test", "--gate", "accuracy >= 0.7", "--bad", "shuffled"]);
    assert!(unnamed.code == 2 && unnamed.stderr.contains("names none"), "{}", unnamed.stderr);

    let rowless = trained(
        "echo '{\"grade\": 1}' > \"$TRACKWAY_EVALUATION_OUT/metrics.json\"\n",
        "gates = [\"grade > 0\"]",
    );
    evaluate(&rowless, &[]);
    let refused = rowless.trackway(&["gates", "test", "job.toml", "--bad", "shuffled"]);
    assert!(refused.code == 2 && refused.stderr.contains("no predictions to shuffle"), "{}", refused.stderr);
}

/// Proves that the best checkpoint by a metric is evaluated and registered, by name, by the run file's metric and by that of
/// `keep.best`, and that a metric which no checkpoint has is refused with those there are.
#[test]
fn the_best_checkpoint_is_chosen() {
    let home = Home::new();
    write_job(&home, GOOD, "keep = { last = 3, best = \"max loss\" }", "after = false");
    home.json(&["run", "job.toml"]);
    let step = |options: &[&str]| evaluate(&home, options).1["step"].clone();
    assert_eq!(step(&[]), 3);
    assert_eq!(step(&["--checkpoint", "best"]), 1);
    assert_eq!(step(&["--checkpoint", "min loss"]), 3);
    assert_eq!(step(&["--set", "evaluate.checkpoint='best'"]), 1);
    assert_eq!(step(&["--set", "evaluate.checkpoint='best'", "--checkpoint", "2"]), 2);
    let register = ["registry", "register", "judged", "--run", "last", "--checkpoint", "best"];
    assert_eq!(home.json(&register)["step"], 1);
    let unknown = home.trackway(&["eval", "run", "job.toml", "--checkpoint", "min speed"]);
    assert!(unknown.code == 6 && unknown.stderr.contains("they have loss"), "{}", unknown.stderr);
    let wrong = home.trackway(&["eval", "run", "job.toml", "--set", "evaluate.checkpoint='newest one'"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("`min METRIC`"), "{}", wrong.stderr);

    let plain = trained(GOOD, "");
    let unnamed = plain.trackway(&["eval", "run", "job.toml", "--checkpoint", "best"]);
    assert!(unnamed.code == 2 && unnamed.stderr.contains("keep = { best"), "{}", unnamed.stderr);
}

/// Proves that rows are evaluated: metrics with intervals, curated slices with verdicts, fairness, and a comparison
/// with the last evaluation of other weights, all in the receipt and in columns; that an invalid slice fails the
/// evaluation; and that gates read it.
#[test]
fn rows_are_judged() {
    let home = trained(
        PEOPLE,
        "task_set = \"tasks-v3.jsonl\"\nlabel = \"label\"\nprediction = \"prediction\"\nfairness = [\"sex\"]\nbaseline = \"last\"\n\
         slices = { women = \"sex = 'female'\", young = \"age < 21\" }\ngates = [\"accuracy >= 0.7\", \"accuracy >= baseline - 0.01\"]\n",
    );
    write_people(&home);
    let (code, first) = evaluate(&home, &["--checkpoint", "1", "--set", "evaluate.gates=[]"]);
    assert_eq!((code, &first["metrics"]["accuracy"]["value"]), (0, &json!(1.0)), "{first}");
    assert!(first["notes"].to_string().contains("no baseline to compare with yet"), "{}", first["notes"]);
    let (code, third) = evaluate(&home, &[]);
    assert_eq!((code, &third["state"]), (5, &json!("completed")), "a gate fails: {third}");
    let accuracy = &third["metrics"]["accuracy"];
    assert!(
        accuracy["low"].as_f64() < accuracy["value"].as_f64() && accuracy["support"] == 400,
        "{accuracy}"
    );
    let slices = third["slices"].as_array().unwrap();
    let verdicts: Vec<&str> = slices.iter().map(|slice| slice["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["worse", "inconclusive"], "{slices:?}");
    assert_eq!(third["fairness"][0]["column"], "sex");
    assert_eq!(third["baseline_evaluation_id"], first["evaluation_id"]);
    let compared = &third["comparison"]["metrics"]["accuracy"];
    assert_eq!((&compared["verdict"], &compared["baseline"]), (&json!("worse"), &json!(1.0)), "{compared}");
    assert_eq!(third["comparison"]["slices"][0]["compared"]["verdict"], "worse", "{}", third["comparison"]);
    let verdicts: Vec<&Value> =
        third["gates"].as_array().unwrap().iter().map(|gate| &gate["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "fail"], "{}", third["gates"]);
    assert_eq!(third["assessment"]["task"], "classification");
    assert!(third["assessment"]["metrics"].is_null());
    let id = third["evaluation_id"].as_str().unwrap();
    let rows = home.sql(&format!(
        "select slice, support, verdict from evaluation_slices where evaluation_id = '{id}' and slice not like 'blind_spot.%' order by slice"
    ));
    assert_eq!(
        (&rows[0]["slice"], &rows[0]["support"], &rows[0]["verdict"]),
        (&json!("women"), &json!(200), &json!("worse"))
    );
    assert_eq!(third["sampled_failures"]["wrong"], 67, "{}", third["sampled_failures"]);
    let page = home.trackway(&["eval", "show", id]).stdout;
    for expected in ["Slices", "women", "Fairness", "Compared with", "worse", "Gates"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let written =
        home.trackway(&["eval", "show", id, "--html", "report.html", "--parquet", "numbers.parquet"]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    let html = std::fs::read_to_string(home.path().join("report.html")).unwrap();
    let manifest = third["checkpoint_manifest_sha256"].as_str().unwrap();
    for expected in
        ["a gate does not pass", manifest, "women", "accuracy", "Failures", "baseline", "tasks-v3.jsonl v3"]
    {
        assert!(html.contains(expected), "{expected}: {html}");
    }
    assert!(!html.contains("<script") && !html.contains("://"), "it opens from the disk alone");
    assert!(home.path().join("numbers.parquet").is_file());
    for (set, expected) in [
        ("evaluate.slices.women=\"sexx = 'female'\"", "slice `women`"),
        ("evaluate.fairness=['sexx']", "sexx"),
    ] {
        let (code, refused) = evaluate(&home, &["--set", set]);
        assert_eq!((code, &refused["state"]), (4, &json!("failed")), "{set}: {refused}");
        assert!(refused["failure"].as_str().unwrap().contains(expected), "{set}: {}", refused["failure"]);
    }
    assert_eq!(home.trackway(&["eval", "run", "job.toml", "--set", "evaluate.baseline=evl_nowhere"]).code, 6);
    let (code, unreleased) = evaluate(&home, &["--set", "evaluate.baseline=income@production"]);
    assert_eq!((code, &unreleased["comparison"]), (0, &Value::Null), "the first model: {unreleased}");
    assert!(
        unreleased["notes"].to_string().contains("there is no baseline to compare with yet"),
        "{unreleased}"
    );
    assert_eq!(home.trackway(&["registry", "register", "income", "--run", "last"]).code, 0);
    for (alias, code) in [("production", 0), ("champion", 6)] {
        let set = format!("evaluate.baseline=income@{alias}");
        assert_eq!(home.trackway(&["eval", "run", "job.toml", "--set", &set]).code, code, "{alias}");
    }
    let kept = home.state().join(first["raw_outputs"]["path"].as_str().unwrap());
    std::fs::write(&kept, "other bytes").unwrap();
    let refused = home.trackway(&[
        "eval",
        "run",
        "job.toml",
        "--set",
        &format!("evaluate.baseline={}", first["evaluation_id"].as_str().unwrap()),
    ]);
    assert!(
        refused.code == 7 && refused.stderr.contains("was changed"),
        "{}: {}",
        refused.code,
        refused.stderr
    );
}

/// Proves that a run starts with the weights of the checkpoint that its run file names, that its receipt names run, step and
/// manifest, that its result is compared with its parent, whose checkpoint is held, and that what is not there is refused before a launch.
#[test]
fn a_run_starts_from_another_run() {
    let home = trained(GOOD, "");
    assert_eq!(evaluate(&home, &["--checkpoint", "2"]).0, 0);
    let text = std::fs::read_to_string(home.path().join("job.toml")).unwrap();
    let child = |from: &str| {
        let text = text.replace(
            "[run]\nname = \"judged\"",
            &format!("[run]\nname = \"child\"\nstart_from = \"{from}\""),
        );
        home.write("child.toml", &format!("{text}baseline = \"parent\"\n"));
    };
    // Any weights will do: what they are is asked below.
    let script = GOOD.replace("test \"$(cat", "echo \"$(cat").replace("|| exit 3", "");
    home.write("eval.sh", &script);
    child("judged@2");
    let run = home.json(&["run", "child.toml"]);
    assert_eq!(run["state"], "completed", "{run}");
    let rows = home.sql(
        "select a.warm_start_run_id, a.warm_start_step, c.manifest_sha256 = a.warm_start_manifest_sha256 as is_parent \
         from training_attempts a join runs r using (run_id) join checkpoints c on c.run_id = a.warm_start_run_id and c.step = 2 \
         where r.name = 'child'",
    );
    assert_eq!((&rows[0]["warm_start_step"], &rows[0]["is_parent"]), (&json!(2), &json!(true)), "{rows:?}");
    let weights: Vec<String> = files_below(&home.state())
        .into_iter()
        .filter(|path| path.ends_with("weights.bin"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert!(weights.contains(&"step 2, then step 3".to_owned()), "{weights:?}");
    let held = home.json(&["checkpoint", "ls", "judged"]);
    let parent = held["checkpoints"].as_array().unwrap().iter().find(|one| one["step"] == 2).unwrap();
    assert!(parent["pins"][0].as_str().unwrap().starts_with("start-"), "{parent}");

    let (code, receipt) = document(&home.trackway(&["eval", "run", "child.toml", "--json"]));
    assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
    assert_eq!(
        receipt["comparison"]["metrics"]["accuracy"]["verdict"], "no_difference_shown",
        "{}",
        receipt["comparison"]
    );
    let costs = home.sql("select run_count_beside from run_costs where run_count_beside > 0");
    assert_eq!(costs.len(), 2, "{costs:?}");

    let orphan = home.trackway(&["eval", "run", "job.toml", "--set", "evaluate.baseline=parent"]);
    assert_eq!(orphan.code, 2, "{}", orphan.stderr);
    assert!(orphan.stderr.contains("started from no other run"), "{}", orphan.stderr);
    for (from, why) in [("judged@9", "`run.start_from`"), ("nothing-of-this-name", "`run.start_from`")] {
        child(from);
        let refused = home.trackway(&["run", "child.toml"]);
        assert_eq!(refused.code, 6, "{}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}
