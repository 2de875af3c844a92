//! `trackway eval cross-validate`: runs over folds.

use serde_json::{Value, json};
use trackway_recorder::{Kind, Recorder};

use crate::harness::Home;

const ROWS: &str = "CROSS_VALIDATED_ROWS";
/// Set for a script that says that it took the path from Trackway.
const TAKES: &str = "CROSS_VALIDATED_TAKES";
/// Answers every row with the label that the weights hold.
const MODEL: &str = r#"read -r header
label="$(cat "$TRACKWAY_CHECKPOINT_DIR/weights.bin")"
while read -r row; do echo "$label"; done
"#;

/// Proves nothing by itself: it is the training script of the tests below. It learns the most frequent label of its rows.
#[test]
fn script() {
    let Ok(path) = std::env::var(ROWS) else { return };
    let takes = std::env::var_os(TAKES).is_some();
    let path = match takes {
        false => path,
        true => {
            let paths = std::env::var("TRACKWAY_DATA").unwrap();
            let paths: Value = serde_json::from_str(&paths).unwrap();
            paths["train"].as_str().unwrap().to_owned()
        }
    };
    let text = std::fs::read_to_string(path).unwrap();
    let labels: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    let good = labels.iter().filter(|label| **label == "good").count();
    let run = Recorder::attach();
    run.log(1, &[("rows", labels.len() as f64)]);
    if takes {
        run.event("data_path_taken", None, &[("name", "train")]);
    }
    let learned = if 2 * good >= labels.len() { "good" } else { "bad" };
    run.save_checkpoint(1, &[], |files| files.file("weights.bin", Kind::Weights, learned.as_bytes()))
        .unwrap();
    run.finish();
}

/// A run file whose command is `words` after a shell that hands its first argument on as the rows; 30 rows, 20 of them good.
fn home(words: &str) -> Home {
    let home = Home::new();
    let binary = home.program();
    let shell = format!(
        "{ROWS}=$1 exec '{}' evaluations::cross_validation::script --exact --nocapture",
        binary.display()
    );
    let file = format!(
        "[run]\nname = \"folded\"\nseed = 1\ncommand = [\"sh\", \"-c\", \"{shell}\", {words}]\n\
         [data.train]\npath = \"rows.csv\"\nlabel = \"label\"\n[checkpoint]\nevery = {{ steps = 1 }}\n\
         [evaluate]\nscorer = \"sh score.sh\"\nrows = \"test.csv\"\nlabel = \"label\"\nbaseline = \"last\"\n\
         gates = [\"accuracy > 0.99\"]\nblind_spots = false\n",
    );
    home.write("job.toml", &file);
    home.write("score.sh", MODEL);
    let row = |row: u32| format!("{row},{}\n", if row.is_multiple_of(3) { "bad" } else { "good" });
    let rows: String = (0..30).map(row).collect();
    home.write("rows.csv", &format!("x,label\n{rows}"));
    home.write("test.csv", "x,label\n100,good\n101,bad\n");
    home
}

/// Proves that every row is held out once, that each run is trained on the other rows and evaluated on its fold without gates, that
/// the mean is that of the folds with a spread, and that the same seed gives the same folds.
#[test]
fn every_row_is_held_out_once() {
    let home = home("\"sh\", \"rows.csv\"");
    let answer = home.trackway(&[
        "eval", "cross-validate", "job.toml", "--folds", "3", "--strategy", "stratified", "--json",
    ]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let found: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((&found["rows_given_by"], &found["fold_count"]), (&json!("command"), &json!(3)), "{found}");
    let folds = found["folds"].as_array().unwrap();
    let held_out: u64 = folds.iter().map(|fold| fold["rows_held_out"].as_u64().unwrap()).sum();
    assert_eq!((folds.len(), held_out), (3, 30), "{found}");
    for fold in folds {
        assert_eq!(
            (&fold["why_not"], &fold["evaluation_state"]),
            (&Value::Null, &json!("completed")),
            "{fold}"
        );
        let logged = home.sql(&format!(
            "select last_value from metric_summaries where name = 'rows' and run_id = {}",
            fold["run_id"].to_string().replace('"', "'")
        ));
        assert_eq!(logged[0]["last_value"].as_f64(), fold["rows_trained"].as_f64(), "{fold}");
    }
    let accuracy = &found["metrics"]["accuracy"];
    let mean: f64 = folds.iter().map(|fold| fold["metrics"]["accuracy"].as_f64().unwrap()).sum::<f64>() / 3.0;
    assert!((accuracy["mean"]["value"].as_f64().unwrap() - mean).abs() < 1e-12 && mean > 0.5, "{accuracy}");
    assert!(accuracy["min"].as_f64() <= accuracy["max"].as_f64(), "{accuracy}");
    let names = home.sql("select name, state from runs where kind = 'train' order by name");
    assert_eq!(names[2], json!({"name": "folded-fold-3", "state": "completed"}), "{names:?}");

    let fold = home.path().join("folded-folds/fold-1/held-out.csv");
    let before = std::fs::read_to_string(&fold).unwrap();
    assert!(before.starts_with("x,label\n"), "{before}");
    let again = home.trackway(&["eval", "cv", "job.toml", "--folds", "3", "--strategy", "stratified"]);
    assert_eq!((again.code, std::fs::read_to_string(&fold).unwrap()), (0, before), "{}", again.stderr);
    assert!(again.stdout.contains("interval of the mean"), "{}", again.stdout);
}

/// Proves that a script which does not read the rows of its fold is found out after the first one, and that a run file without an
/// evaluation is refused before anything is launched.
#[test]
fn a_script_that_reads_other_rows_is_found_out() {
    let home = home("\"sh\", \"test.csv\"");
    let text = std::fs::read_to_string(home.path().join("job.toml")).unwrap();
    let answer = home.trackway(&["eval", "cross-validate", "job.toml", "--folds", "2"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert!(
        answer.stderr.contains("nothing shows that the script read the rows of its fold"),
        "{}",
        answer.stderr
    );
    assert_eq!(home.sql("select count(*) as runs from runs where kind = 'train'")[0]["runs"], 1);
    let without = text.split("[evaluate]").next().unwrap();
    home.write("job.toml", without);
    let answer = home.trackway(&["eval", "cross-validate", "job.toml"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("has no `[evaluate]`"), "{}", answer.stderr);
}

/// Proves that a script that takes the path of its rows from Trackway is believed, and is given the path of its fold; and that a run file
/// which chooses weights by a metric is noted.
#[test]
fn a_script_may_take_the_path_of_its_rows() {
    let home = home("\"sh\", \"unused\"");
    let text = std::fs::read_to_string(home.path().join("job.toml")).unwrap();
    home.write(
        "job.toml",
        &text.replace("seed = 1\n", &format!("seed = 1\nenvironment = {{ {TAKES} = \"1\" }}\n")),
    );
    let set = "evaluate.checkpoint=max rows";
    let answer =
        home.trackway(&["eval", "cross-validate", "job.toml", "--folds", "2", "--set", set, "--json"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let found: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(found["rows_given_by"], "taken", "{found}");
    assert!(found["notes"].to_string().contains("`evaluate.checkpoint` chooses weights"), "{found}");
    assert!(found["metrics"]["accuracy"].is_object(), "{found}");
}
