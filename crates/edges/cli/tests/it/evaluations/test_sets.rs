//! Further test sets of a run file: each a separate evaluation, all of them before production.

use serde_json::{Value, json};

use crate::evaluations::{GOOD, evaluate, trained};
use crate::harness::Home;
use crate::models::registry::{EASY, compare_nothing, refusals, registry, set_policy};

/// Answers the rare tasks in its own way: one of two right, or both from step 3 on.
const EVALUATOR: &str = r#"
case "$TRACKWAY_TASK_SET" in *rare*)
  second=a; test "$TRACKWAY_CHECKPOINT_STEP" = 3 && second=b
  printf 'id,label,prediction\n1,a,a\n2,b,%s\n' "$second" > "$TRACKWAY_EVALUATION_OUT/predictions.csv"
  exit 0;;
esac
"#;
const SETS: &str = "gates = [\"grade >= 0.2\"]\nbaseline = \"last\"\n[evaluate.test_sets.rare]\n\
                    task_set = \"rare-v2.csv\"\ngates = [\"value(accuracy) >= 0.9\"]\n\
                    [evaluate.test_sets.plain]\ntask_set = \"plain.csv\"\n";

fn home() -> Home {
    let home = trained(&format!("{EVALUATOR}{GOOD}"), SETS);
    home.write("rare-v2.csv", "id,label\n1,a\n2,b\n");
    home.write("plain.csv", "id,label\n1,a\n2,b\n3,a\n4,b\n");
    home
}

/// Arms the gates of all test sets by models that are far below.
fn arm_all(home: &Home) {
    for (test_set, change) in [("rare", "accuracy=0"), ("main", "grade=-0.9")] {
        let receipt = evaluate(home, &["--checkpoint", "3", "--test-set", test_set]).1;
        let evaluation = receipt["evaluation_id"].as_str().unwrap();
        let out = format!("{test_set}.json");
        let written = home.trackway(&["gates", "fixture", evaluation, "--set", change, "--out", &out]);
        assert_eq!(written.code, 0, "{}", written.stderr);
    }
    let bad = ["gates", "test", "job.toml", "--bad", "rare.json", "--bad", "main.json", "--json"];
    let tests: Value = serde_json::from_str(&home.trackway(&bad).stdout).unwrap();
    assert_eq!(
        (&tests["unverified"], tests["verified"].as_array().unwrap().len()),
        (&json!([]), 2),
        "{tests}"
    );
}

/// Proves that each test set is evaluated with its own tasks and gates, that the main receipt has the results of the others and
/// fails with them, that one can be chosen, and that uses are counted of each.
#[test]
fn each_test_set_is_evaluated() {
    let home = home();
    let (code, receipt) = evaluate(&home, &["--checkpoint", "2"]);
    assert_eq!((code, &receipt["test_set"]), (5, &Value::Null), "{receipt}");
    assert_eq!(receipt["gates"][0]["verdict"], "pass", "{}", receipt["gates"]);
    let sets = receipt["test_sets"].as_array().unwrap();
    let shown: Vec<Value> =
        sets.iter().map(|it| json!([it["name"], it["state"], it["rows"], it["verdict"]])).collect();
    assert_eq!(shown, [json!(["plain", "completed", 4, null]), json!(["rare", "completed", 2, "fail"])]);
    assert_eq!(sets[1]["metrics"]["accuracy"]["value"], 0.5);
    let text = home.trackway(&["eval", "show", "last"]).stdout;
    assert!(text.contains("Further test sets") && text.contains("rare"), "{text}");

    let (code, rare) = evaluate(&home, &["--checkpoint", "3", "--test-set", "rare"]);
    assert_eq!((code, &rare["test_set"], &rare["test_sets"]), (0, &json!("rare"), &json!([])), "{rare}");
    assert_eq!(rare["task_set"]["version"], "v2");
    let rows = home.sql(
        "select test_set, count(*) as evaluations from evaluations group by test_set order by test_set nulls first",
    );
    let counts: Vec<Value> = rows.iter().map(|row| json!([row["test_set"], row["evaluations"]])).collect();
    assert_eq!(counts, [json!([null, 1]), json!(["plain", 1]), json!(["rare", 2])]);
    let unknown = home.trackway(&["eval", "run", "job.toml", "--test-set", "odd"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("the test sets are `plain`, `rare`, `main`"), "{}", unknown.stderr);
}

/// Proves that gates of a further test set are tested on a bad model's evaluation on that set, not on the main one.
#[test]
fn gates_are_tested_on_their_test_set() {
    let home = home();
    let answer = home.trackway(&["gates", "test", "job.toml", "--bad", "first", "--json"]);
    let tests: Value = serde_json::from_str(&answer.stdout).unwrap();
    let shown: Vec<(bool, &Value)> = tests["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| (test["fixture"].as_str().unwrap().ends_with("on test set `rare`"), &test["verdict"]))
        .collect();
    assert_eq!(shown, [(false, &json!("pass")), (true, &json!("fail"))], "{tests}");
    assert_eq!(tests["verified"], json!(["value(accuracy) >= 0.9"]), "{tests}");
}

/// Proves that production needs the evaluation on each test set of the run file, with gates that pass, and on those that the policy
/// names.
#[test]
fn production_needs_every_test_set() {
    let home = home();
    arm_all(&home);
    for step in ["2", "3"] {
        assert_eq!(registry(&home, &["register", "income", "--run", "last", "--step", step]).0, 0);
    }
    compare_nothing(&home);
    assert_eq!(evaluate(&home, &["--checkpoint", "2"]).0, 5);
    let refused = registry(&home, &["promote", "income", "1"]);
    assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.test_set"]), "{}", refused.1);
    let refused = registry(&home, &["promote", "income", "2"]);
    assert_eq!((refused.0, refusals(&refused)), (5, vec!["registry.test_set"]), "{}", refused.1);
    assert!(
        refused.1.to_string().contains("test set `plain`: these weights were not evaluated"),
        "{}",
        refused.1
    );
    assert_eq!(evaluate(&home, &["--checkpoint", "3"]).0, 0);
    set_policy(&home, "income", &format!("{EASY}baseline = \"optional\"\ntest_sets = [\"field\"]\n"));
    let refused = registry(&home, &["promote", "income", "2"]);
    assert!(refused.1.to_string().contains("test set `field`"), "{}", refused.1);
    compare_nothing(&home);
    let (code, promoted) = registry(&home, &["promote", "income", "2"]);
    assert_eq!((code, &promoted["stage"]), (0, &json!("production")), "{promoted}");
}
