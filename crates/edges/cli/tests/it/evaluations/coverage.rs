//! Evidence covers what it claims: nothing hollow passes, be it rows without predictions, tasks without answers, numbers out of range, or a
//! check that saw no rows.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::evaluations::{checkpoints, trained, write_job};
use crate::harness::Home;

const ROWS: usize = 200;
/// Hands over the files that a case laid out.
const EVALUATOR: &str = "cp left/* \"$TRACKWAY_EVALUATION_OUT\"/\n";
const TASKS: &str = "task_set = \"tasks.csv\"";

/// Rows of a table by their number: an id, and the other columns by `row`.
fn table(header: &str, rows: usize, row: impl Fn(usize) -> String) -> String {
    let mut text = format!("{header}\n");
    (0..rows).for_each(|number| writeln!(text, "{}", row(number)).unwrap());
    text
}

fn label(row: usize) -> &'static str {
    if row.is_multiple_of(2) { "a" } else { "b" }
}

/// Ids and labels of all tasks, the labels as predictions but for every 20th row.
fn answered(rows: usize, id: impl Fn(usize) -> usize) -> String {
    table("id,label,prediction", rows, |row| {
        let task = id(row);
        let answer = if row % 20 == 19 { label(task + 1) } else { label(task) };
        format!("{task},{},{answer}", label(task))
    })
}

/// The output of an evaluator, and the run file.
struct Case {
    what: &'static str,
    /// `predictions.csv`; none where empty.
    predictions: String,
    /// `metrics.json`; none where empty.
    metrics: &'static str,
    evaluate: &'static str,
    gate: &'static str,
}

impl Default for Case {
    fn default() -> Self {
        Self { what: "", predictions: String::new(), metrics: "", evaluate: "", gate: "accuracy >= 0.8" }
    }
}

impl Case {
    /// The exit code, the gate's verdict (empty where the evaluation failed), and everything that was answered.
    fn judge(&self, home: &Home) -> (i32, String, Value) {
        let _ = std::fs::remove_dir_all(home.path().join("left"));
        std::fs::create_dir(home.path().join("left")).unwrap();
        for (name, text) in [("predictions.csv", self.predictions.as_str()), ("metrics.json", self.metrics)] {
            if !text.is_empty() {
                home.write(&format!("left/{name}"), text);
            }
        }
        let gates = format!("after = false\ngates = [\"{}\"]\n{}", self.gate, self.evaluate);
        write_job(home, EVALUATOR, "", &gates);
        let answer = home.trackway(&["eval", "run", "job.toml", "--json"]);
        let receipt = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| json!(answer.stderr));
        let verdict = receipt["gates"][0]["verdict"].as_str().unwrap_or_default().to_owned();
        (answer.code, verdict, receipt)
    }
}

fn cases() -> Vec<Case> {
    let amounts = |prediction: &dyn Fn(usize) -> String| {
        table("id,label,prediction", ROWS, |row| format!("{row},{row}.5,{}", prediction(row)))
    };
    let mostly =
        |gap: &'static str| move |row: usize| if row < 10 { format!("{row}.6") } else { gap.to_owned() };
    let classes = |prediction: &dyn Fn(usize) -> &'static str| {
        table("id,label,prediction", ROWS, |row| format!("{row},{},{}", label(row), prediction(row)))
    };
    let few = |row: usize| if row < 20 { label(row) } else { "" };
    let scored = table("id,label,prediction,score", ROWS, |row| {
        let score = if row < 40 { format!("0.{}", row % 2 * 4 + 3) } else { String::new() };
        format!("{row},{},{},{score}", row % 2, row % 2)
    });
    let grouped = table("id,label,prediction,sex", ROWS, |row| {
        format!("{row},{},{},{}", row % 4 / 2, row % 4 / 2, if row < 100 { ["m", "f"][row % 2] } else { "" })
    });
    let features =
        table("length,label,prediction", ROWS, |_| "1.25,a,a".to_owned()).replacen("1.25,a,a", "1.5,b,b", 1);
    vec![
        Case {
            what: "nan for most rows of a regression",
            predictions: amounts(&mostly("nan")),
            gate: "mae < 1",
            ..Case::default()
        },
        Case { what: "empty amounts", predictions: amounts(&mostly("")), gate: "mae < 1", ..Case::default() },
        Case {
            what: "NA for amounts",
            predictions: amounts(&mostly("NA")),
            gate: "mae < 1",
            ..Case::default()
        },
        Case {
            what: "infinite amounts",
            predictions: amounts(&mostly("inf")),
            gate: "mae < 1",
            ..Case::default()
        },
        Case {
            what: "nan, and the number alone",
            predictions: amounts(&mostly("nan")),
            gate: "value(mae) < 1",
            ..Case::default()
        },
        Case {
            what: "nan, and a rule the other way round",
            predictions: amounts(&mostly("nan")),
            gate: "r2 > 0.5",
            ..Case::default()
        },
        Case {
            what: "nan within a slice",
            predictions: amounts(&mostly("nan")),
            evaluate: "slices = { late = \"id >= 5\" }",
            gate: "slice.late.mae < 1",
            ..Case::default()
        },
        Case { what: "empty classes", predictions: classes(&few), ..Case::default() },
        Case {
            what: "empty classes: precision",
            predictions: classes(&few),
            gate: "precision >= 0.8",
            ..Case::default()
        },
        Case {
            what: "empty classes: specificity",
            predictions: classes(&few),
            gate: "specificity >= 0.8",
            ..Case::default()
        },
        Case {
            what: "one empty class where a policy says so",
            predictions: classes(&|row| if row == 7 { "" } else { label(row) }),
            evaluate: "missing = \"inconclusive\"",
            ..Case::default()
        },
        Case {
            what: "rows without a label",
            predictions: table("id,label,prediction", ROWS, |row| {
                format!("{row},{},{}", if row < 50 { label(row) } else { "" }, label(row))
            }),
            ..Case::default()
        },
        Case { what: "missing scores", predictions: scored, gate: "roc_auc >= 0.9", ..Case::default() },
        Case {
            what: "rows without a group",
            predictions: grouped,
            evaluate: "fairness = \"sex\"",
            gate: "fairness.equal_opportunity <= 0.4",
            ..Case::default()
        },
        Case {
            what: "a tenth of the tasks",
            predictions: answered(ROWS / 10, |row| row),
            evaluate: TASKS,
            gate: "value(accuracy) >= 0.8",
            ..Case::default()
        },
        Case {
            what: "ids that are not in the set",
            predictions: answered(ROWS + 20, |row| row),
            evaluate: TASKS,
            ..Case::default()
        },
        Case {
            what: "an id answered twice",
            predictions: answered(ROWS, |row| if row == 5 { 4 } else { row }),
            evaluate: TASKS,
            ..Case::default()
        },
        Case {
            what: "labels that are not those of the set",
            predictions: table("id,label,prediction", ROWS, |row| {
                format!("{row},{0},{0}", ["a", "b"][row / 100])
            }),
            evaluate: TASKS,
            ..Case::default()
        },
        Case {
            what: "one row again and again under one id",
            predictions: answered(ROWS, |row| row % 2),
            ..Case::default()
        },
        Case { what: "copies of rows without ids", predictions: features, ..Case::default() },
        Case {
            what: "one class only",
            predictions: table("id,label,prediction", ROWS, |row| format!("{row},a,a")),
            ..Case::default()
        },
        Case {
            what: "a number over fewer rows than tasks",
            metrics: r#"{"accuracy": {"value": 0.95, "stderr": 0.01, "support": 20}}"#,
            evaluate: TASKS,
            ..Case::default()
        },
        Case {
            what: "an interval of no known rows",
            metrics: r#"{"accuracy": {"value": 0.95, "low": 0.9, "high": 0.99}}"#,
            ..Case::default()
        },
        Case {
            what: "support 0",
            metrics: r#"{"accuracy": {"value": 1, "low": 1, "high": 1, "support": 0}}"#,
            ..Case::default()
        },
        Case {
            what: "no width from one row",
            metrics: r#"{"accuracy": {"value": 0.9, "stderr": 0, "support": 1}}"#,
            ..Case::default()
        },
        Case {
            what: "accuracy of 5",
            metrics: r#"{"accuracy": 5}"#,
            gate: "value(accuracy) >= 0.8",
            ..Case::default()
        },
        Case {
            what: "accuracy of 1e308",
            metrics: r#"{"accuracy": 1e308}"#,
            gate: "value(accuracy) >= 0.8",
            ..Case::default()
        },
        Case {
            what: "a key twice",
            metrics: r#"{"accuracy": 0.1, "accuracy": 0.9}"#,
            gate: "value(accuracy) >= 0.8",
            ..Case::default()
        },
        Case {
            what: "a negative error",
            metrics: r#"{"accuracy": {"value": 0.9, "stderr": -0.01, "support": 100}}"#,
            ..Case::default()
        },
    ]
}

/// Proves that no hollow evidence passes a gate, in whatever form it comes, and that whole evidence of the same form does.
#[test]
fn no_hollow_evidence_passes() {
    let home = trained(EVALUATOR, "");
    home.write("tasks.csv", &table("id,label", ROWS, |row| format!("{row},{}", label(row))));
    let mut passed = Vec::new();
    for case in cases() {
        let (code, verdict, receipt) = case.judge(&home);
        if code == 0 || verdict == "pass" {
            passed.push(format!("{}: {code} {verdict} {}", case.what, receipt["gates"]));
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n"));
    let whole = [
        Case {
            what: "all tasks",
            predictions: answered(ROWS, |row| ROWS - 1 - row),
            evaluate: TASKS,
            ..Case::default()
        },
        Case { what: "no task set", predictions: answered(ROWS, |row| row), ..Case::default() },
        Case {
            what: "amounts",
            predictions: table("id,label,prediction", ROWS, |row| format!("{row},{row}.5,{row}.6")),
            gate: "mae < 1",
            ..Case::default()
        },
        Case {
            what: "one answer missing of many",
            predictions: table("id,label,prediction", ROWS, |row| {
                format!("{row},{},{}", label(row), if row == 7 { "" } else { label(row) })
            }),
            evaluate: TASKS,
            ..Case::default()
        },
        Case {
            what: "a number of all tasks",
            metrics: r#"{"accuracy": {"value": 0.95, "stderr": 0.01, "support": 200}}"#,
            evaluate: TASKS,
            ..Case::default()
        },
    ];
    for case in whole {
        let (code, verdict, receipt) = case.judge(&home);
        assert_eq!((code, verdict.as_str()), (0, "pass"), "{}: {receipt}", case.what);
    }
}

/// Proves that a receipt contains how far each number covers its rows, and what is wrong with the answers to the tasks.
#[test]
fn a_receipt_tells_its_coverage() {
    let home = trained(EVALUATOR, "");
    home.write("tasks.csv", &table("id,label", ROWS, |row| format!("{row},{}", label(row))));
    let part = Case { predictions: answered(ROWS / 10, |row| row), evaluate: TASKS, ..Case::default() };
    let (code, verdict, receipt) = part.judge(&home);
    assert_eq!((code, verdict.as_str()), (5, "inconclusive"), "{receipt}");
    assert_eq!(receipt["metrics"]["accuracy"]["coverage"], json!({ "rows_used": 20, "rows_expected": 200 }));
    assert_eq!(receipt["gates"][0]["why"], "`accuracy` covers only 20 of 200 rows");
    let tasks = &receipt["assessment"]["tasks"];
    assert_eq!(
        (&tasks["tasks"], &tasks["missing"], &tasks["answered"]),
        (&json!(200), &json!(180), &json!(20))
    );
    assert_eq!(tasks["examples"][0], "id `20` is not answered");
    let notes = receipt["notes"].to_string();
    assert!(
        notes.contains("the evaluation is incomplete: the task set has 200 tasks: 180 not answered"),
        "{notes}"
    );
    let shown = home.trackway(&["eval", "show", "last"]).stdout;
    assert!(shown.contains("20 of 200"), "{shown}");
    for listed in [&["eval", "ls"][..], &["explain", "last"]] {
        let shown = home.trackway(listed).stdout;
        assert!(shown.contains("accuracy 0.9500 (20 of 200 rows)"), "{listed:?}: {shown}");
    }
}

/// Proves that the closing lines of a run say of how many rows a metric is, where some are missing.
#[test]
fn the_closing_lines_tell_the_rows() {
    let home = trained(EVALUATOR, "");
    home.write("tasks.csv", &table("id,label", ROWS, |row| format!("{row},{}", label(row))));
    std::fs::create_dir(home.path().join("left")).unwrap();
    for (rows, of) in [(ROWS / 10, " (20 of 200 rows)"), (ROWS, "")] {
        home.write("left/predictions.csv", &answered(rows, |row| row));
        write_job(&home, EVALUATOR, "", TASKS);
        let answer = home.trackway(&["run", "job.toml"]);
        let line =
            answer.stderr.lines().find(|line| line.contains("evaluation completed")).unwrap_or_default();
        assert!(line.contains(&format!("accuracy 0.9500{of},")), "{}", answer.stderr);
        assert_eq!(line.contains("rows)"), !of.is_empty(), "{line}");
    }
}

/// Proves that the coverage of each metric is in separate columns.
#[test]
fn coverage_is_in_columns() {
    let home = trained(EVALUATOR, "");
    home.write("tasks.csv", &table("id,label", ROWS, |row| format!("{row},{}", label(row))));
    let part = Case { predictions: answered(ROWS / 10, |row| row), evaluate: TASKS, ..Case::default() };
    part.judge(&home);
    let of_accuracy =
        "select rows_used, rows_expected from evaluation_metrics where metric = 'accuracy' and slice = ''";
    assert_eq!(home.sql(of_accuracy), [json!({ "rows_used": 20, "rows_expected": 200 })]);
    let bare = Case { metrics: r#"{"grade": 0.5}"#, ..Case::default() };
    bare.judge(&home);
    let of_grade = "select rows_used, rows_expected from evaluation_metrics where metric = 'grade'";
    assert_eq!(home.sql(of_grade), [json!({ "rows_used": null, "rows_expected": null })]);
}

/// Proves that if rows cannot be matched with the task set no number over rows decides a gate, in whatever form, that
/// the receipt explains why and what to do, and that they count if the run file accepts it, with a note.
#[test]
fn rows_that_cannot_be_matched_decide_nothing() {
    let home = trained(EVALUATOR, "");
    home.write("tasks.yaml", "- say: yes\n");
    home.write("torn.csv", "id,label\n1,a\n2,b,c,d\n");
    let metrics = r#"{"accuracy": {"value": 0.95, "stderr": 0.01, "support": 200}}"#;
    let rows = || answered(ROWS, |row| row);
    let policies = [
        ("task_set = \"tasks.yaml\"", "task_set = \"tasks.yaml\"\nunmatched_tasks = \"accepted\""),
        ("task_set = \"torn.csv\"", "task_set = \"torn.csv\"\nunmatched_tasks = \"accepted\""),
    ];
    for (strict, accepted) in policies {
        for (predictions, metrics, gate) in [
            (rows(), "", "accuracy >= 0.8"),
            (rows(), "", "value(accuracy) >= 0.8"),
            (String::new(), metrics, "accuracy >= 0.8"),
        ] {
            let case = |evaluate| Case {
                predictions: predictions.clone(),
                metrics,
                gate,
                evaluate,
                ..Case::default()
            };
            let (code, verdict, receipt) = case(strict).judge(&home);
            assert_eq!((code, verdict.as_str()), (5, "inconclusive"), "{strict}, {gate}: {receipt}");
            let why = receipt["gates"][0]["why"].as_str().unwrap();
            assert!(
                why.contains("cannot be judged: whether each task was answered was not checked"),
                "{why}"
            );
            let notes = receipt["notes"].to_string();
            assert!(notes.contains("evaluate.unmatched_tasks"), "{notes}");

            let (code, verdict, receipt) = case(accepted).judge(&home);
            assert_eq!((code, verdict.as_str()), (0, "pass"), "{accepted}, {gate}: {receipt}");
            let notes = receipt["notes"].to_string();
            assert!(notes.contains("was not checked") && notes.contains("relied on"), "{notes}");
        }
    }
    write_job(&home, EVALUATOR, "", "unmatched_tasks = \"ignore\"");
    let answer = home.trackway(&["eval", "run", "job.toml"]);
    assert!(answer.code == 2 && answer.stderr.contains("`accepted`"), "{}: {}", answer.code, answer.stderr);
}

/// Proves that a column is not compared with itself, and that an unknown policy is refused.
#[test]
fn a_label_is_no_prediction() {
    let home = trained(EVALUATOR, "");
    for (evaluate, expected) in [
        (
            "label = \"label\"\nprediction = \"label\"",
            "`evaluate.prediction` and `evaluate.label` name the same column",
        ),
        (
            "label = \"label\"\nscore = \"label\"",
            "`evaluate.score` and `evaluate.label` name the same column",
        ),
        ("missing = \"ignore\"", "`wrong`"),
    ] {
        write_job(&home, EVALUATOR, "", evaluate);
        let answer = home.trackway(&["eval", "run", "job.toml"]);
        assert!(answer.code == 2 && answer.stderr.contains(expected), "{}: {}", answer.code, answer.stderr);
    }
}

/// Proves that an evaluator that writes into its checkpoint fails with exit code 7, and that nothing resumes from what
/// is left.
#[test]
fn a_changed_checkpoint_is_suspect() {
    let script = "chmod -R u+w \"$TRACKWAY_CHECKPOINT_DIR\"\nprintf x >> \"$TRACKWAY_CHECKPOINT_DIR/weights.bin\"\n\
                  echo '{\"accuracy\": 0.9}' > \"$TRACKWAY_EVALUATION_OUT/metrics.json\"\n";
    let home = trained(script, "gates = [\"value(accuracy) >= 0.8\"]");
    let answer = home.trackway(&["eval", "run", "job.toml"]);
    assert_eq!(answer.code, 7, "{}", answer.stderr);
    assert!(answer.stderr.contains("step 3 changed while the evaluator read it"), "{}", answer.stderr);
    assert!(answer.stderr.contains("only read TRACKWAY_CHECKPOINT_DIR"), "{}", answer.stderr);
    let suspect = checkpoints(&home).into_iter().find(|one| one["step"] == 3).unwrap();
    assert_eq!(suspect["state"], "suspect", "{suspect}");
    assert_eq!(home.json(&["eval", "ls"])[0]["state"], "failed");
}

/// Proves that tasks which are not those that the evaluation began with fail it.
#[test]
fn tasks_that_change_fail_the_evaluation() {
    let home = trained(&format!("echo '999,a' >> \"$TRACKWAY_TASK_SET\"\n{EVALUATOR}"), TASKS);
    home.write("tasks.csv", &table("id,label", ROWS, |row| format!("{row},{}", label(row))));
    std::fs::create_dir(home.path().join("left")).unwrap();
    home.write("left/predictions.csv", &answered(ROWS, |row| row));
    let answer = home.trackway(&["eval", "run", "job.toml", "--json"]);
    assert_ne!(answer.code, 0, "{}", answer.stdout);
    assert!(answer.stdout.contains("changed while it was evaluated"), "{}{}", answer.stdout, answer.stderr);
}

/// Proves that no check of data passes that saw no rows, and that an empty table blocks.
#[test]
fn no_rows_are_no_pass() {
    let home = Home::new();
    home.write("empty.csv", "a,b\n");
    home.write("t.csv", &table("a,b", 100, |row| format!("{row},{}", label(row))));
    home.write("schema.toml", "version = 1\n[[column]]\nname = \"a\"\ntype = \"int\"\n");
    let against = ["data", "leakage", "--train", "t.csv", "--test", "empty.csv", "--label", "b"];
    let from = ["data", "leakage", "--train", "empty.csv", "--test", "t.csv", "--label", "b"];
    for arguments in [
        &["data", "check", "empty.csv"][..],
        &["data", "check", "empty.csv", "--label", "b"],
        &against,
        &from,
    ] {
        let answer = home.trackway(&[arguments, &["--json"]].concat());
        let document: Value = serde_json::from_str(&answer.stdout).unwrap();
        let checks = document["checks"].as_array().unwrap();
        let passed: Vec<&Value> = checks.iter().filter(|check| check["verdict"] == "pass").collect();
        assert!(passed.is_empty(), "{arguments:?}: {passed:?}");
        assert_eq!(answer.code, 3, "{arguments:?}: {}", answer.stdout);
    }
    let validated = home.trackway(&["data", "validate", "empty.csv", "--schema", "schema.toml"]);
    assert_eq!(validated.code, 3, "{}{}", validated.stdout, validated.stderr);
    let drifted = home.trackway(&["data", "drift", "--reference", "t.csv", "--current", "empty.csv"]);
    assert!(
        drifted.code == 2 && drifted.stderr.contains("has no rows"),
        "{}: {}",
        drifted.code,
        drifted.stderr
    );
}

/// Proves that a run does not begin without rows, nor if training and evaluation data are the same.
#[test]
fn a_run_needs_rows_and_others_to_judge_by() {
    let home = Home::new();
    home.write("empty.csv", "a,b\n");
    home.write("nothing.csv", "");
    home.write("t.csv", &table("a,b", 300, |row| format!("{row}.5,{}", label(row))));
    std::fs::copy(home.path().join("t.csv"), home.path().join("copy.csv")).unwrap();
    let run = |data: &str| {
        home.write("run.toml", &format!("[run]\nname = \"r\"\ncommand = [\"true\"]\n{data}"));
        home.trackway(&["run", "run.toml"])
    };
    for (data, expected) in [
        ("[data.train]\npath = \"empty.csv\"\n", "the table has no rows"),
        (
            "[data.train]\npath = \"t.csv\"\nlabel = \"b\"\n[data.test]\npath = \"nothing.csv\"\nlabel = \"b\"\n",
            "the table has no rows",
        ),
        (
            "[data.train]\npath = \"t.csv\"\nlabel = \"b\"\n[data.test]\npath = \"copy.csv\"\n",
            "the test file `copy.csv` is identical to the training file `t.csv`",
        ),
    ] {
        let answer = run(data);
        let all = format!("{}{}", answer.stdout, answer.stderr);
        assert!(answer.code == 3 && all.contains(expected), "{}: {all}", answer.code);
    }
}

/// Proves that two spellings of one class are reported for a label as for any other column.
#[test]
fn spellings_of_a_label_are_reported() {
    let home = Home::new();
    let spelled = |row: usize| ["p", "P", "n"][row % 3];
    home.write("sp.csv", &table("x,label", 120, |row| format!("{row}.5,{}", spelled(row))));
    let answer = home.trackway(&["data", "check", "sp.csv", "--label", "label"]);
    assert!(answer.stdout.contains("`label` writes one value in several ways"), "{}", answer.stdout);
}

/// Proves that a scorer which answers no number for some rows is refused with the answer, and not taken as one that answers classes.
#[test]
fn numbers_and_words_are_not_mixed() {
    let home = Home::new();
    home.write("rows.csv", &table("x,y", 50, |row| format!("{row},{row}")));
    for (odd, expected) in [("nan", "`nan`"), ("inf", "`inf`"), ("maybe", "`maybe`")] {
        home.write(
            "score.sh",
            &format!("read -r h; while read -r x; do [ -z \"$x\" ] || {{ [ \"$x\" = 7 ] && echo {odd} || echo \"$x\"; }}; done"),
        );
        let answer = home.trackway(&[
            "eval", "score", "rows.csv", "--command", "sh score.sh", "--label", "y", "--out", "out.csv",
        ]);
        assert!(answer.code != 0 && answer.stderr.contains(expected), "{}: {}", answer.code, answer.stderr);
        assert!(!home.path().join("out.csv").exists());
    }
}
