//! `trackway init`: what it writes for a project, and that this is a run.

use serde_json::json;

use crate::harness::Home;
use crate::safety::bad_input::transcript;

/// A project with a shell script and data, in a folder of a known name.
fn project() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("income/data")).unwrap();
    home.write("income/train.sh", "echo \"epochs: $2\"\n");
    let rows = (0..60).map(|row| format!("{},{}\n", 20 + row * 7 % 50, ["stay", "leave"][row % 2]));
    home.write("income/data/train.csv", &format!("age,plan\n{}", rows.collect::<String>()));
    home
}

/// Proves that the run file of a script is written with comments, is only replaced on request, and runs.
#[test]
fn the_file_that_is_written_runs() {
    let home = project();
    let init = ["init", "income/train.sh", "--out", "income/trackway.toml", "--", "--epochs", "3"];
    insta::assert_snapshot!("written", transcript(&home, &init));
    let file = home.path().join("income/trackway.toml");
    insta::assert_snapshot!("run_file", std::fs::read_to_string(&file).unwrap());
    insta::assert_snapshot!("exists", transcript(&home, &init));
    let ran = home.json(&["run", "income/trackway.toml"]);
    assert_eq!((&ran["state"], &ran["name"]), (&"completed".into(), &"income".into()), "{ran}");
    assert!(home.trackway(&["logs", "income"]).stdout.contains("epochs: 3"));
    std::fs::write(&file, "damaged").unwrap();
    assert_eq!(home.trackway(&[&["init", "--force"], &init[1..]].concat()).code, 0);
    assert!(std::fs::read_to_string(&file).unwrap().contains("[data.train]"));
}

/// Proves that JSON contains what was found, that a folder without a script is wrong usage, and a missing script not
/// found.
#[test]
fn what_was_found_is_reported_as_json() {
    let home = Home::new();
    assert_eq!(home.trackway(&["init"]).code, 2);
    assert_eq!(home.trackway(&["init", "absent.py"]).code, 6);
    assert!(!home.path().join("trackway.toml").exists());
    home.write("fit.py", "import torch\nimport trackway\n");
    home.write("prices-test.parquet", "");
    let found = home.json(&["init"]);
    assert_eq!((&found["framework"], &found["uses_trackway"]), (&"torch".into(), &true.into()));
    assert_eq!(found["command"], json!(["python3", "fit.py"]));
    assert_eq!(found["data"], json!([{ "name": "test", "path": "prices-test.parquet", "label": null }]));
    assert_eq!(found["path"], "trackway.toml");
}

/// A script that reads `rows.csv`, predicts `income`, prints its loss and saves what holds an optimizer's state every
/// two of six steps. It dies at step 5, once.
const TRAIN: &str = r#"
import csv, os, pickle, signal
rows = list(csv.DictReader(open("rows.csv")))
labels = [row["income"] for row in rows]
state = {"step": 0, "weights": [0.0], "optimizer": [0.0]}
if os.path.exists("checkpoint.pkl"):
    state = pickle.load(open("checkpoint.pkl", "rb"))
while state["step"] < 6:
    state["step"] += 1
    print(f"step {state['step']} loss {1 / state['step']:.3f}", flush=True)
    if state["step"] == 5 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if state["step"] % 2 == 0:
        pickle.dump(state, open("checkpoint.pkl", "wb"))
open("scored.csv", "w").write("income\n1\n")
"#;

/// Proves that a run without a run file ends with what it showed and what comes next, as lines and as JSON, and that
/// the run file of it has its command, its variables, its parameters, the data that it read with the label, and its
/// checkpoints; and that it runs.
#[test]
fn a_recorded_run_becomes_a_run_file() {
    let home = Home::with(&[("OMP_NUM_THREADS".to_owned(), "1".to_owned())]);
    home.write("train.py", TRAIN);
    home.write("rows.csv", "age,income\n30,1\n40,0\n");
    let arguments =
        ["run", "--name", "own", "--param", "depth=3", "--", "python3", "train.py", "--lr", "0.1"];
    let died = home.trackway(&arguments);
    assert_eq!(died.code, 4, "{}", died.stderr);
    let last: Vec<&str> = died.stderr.lines().rev().take(2).collect();
    assert_eq!(
        last[1],
        "trackway: found the metric loss; a checkpoint of step 4, from which a retry continues"
    );
    assert_eq!(
        last[0],
        "trackway: next: `trackway resume last` continues from step 4 if the script reads its checkpoint, which its first step shows; `trackway init --from last` writes a run file with its command, its data and its checkpoints, for retries and checks"
    );
    let resumed = home.json(&["resume", "last"]);
    let next = &resumed["next"];
    assert_eq!((&next["metrics"], &next["resume_step"]), (&json!(["loss"]), &json!(6)), "{next}");
    assert_eq!((&next["adopt"], &next["data"]), (&json!(["checkpoint.pkl"]), &json!(["rows.csv"])));
    let written = home.json(&["init", "--from", "last"]);
    assert_eq!(written["command"], json!(["python3", "train.py", "--lr", "0.1"]));
    assert_eq!(written["data"], json!([{ "name": "train", "path": "rows.csv", "label": "income" }]));
    assert_eq!((&written["adopt"], &written["name"]), (&json!(["checkpoint.pkl"]), &json!("own")));
    assert_eq!(written["environment"]["OMP_NUM_THREADS"], "1");
    let text = std::fs::read_to_string(home.path().join("trackway.toml")).unwrap();
    for line in ["label = \"income\"", "parameters = { \"depth\" = \"3\" }", "adopt = [\"checkpoint.pkl\"]"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    std::fs::remove_file(home.path().join("checkpoint.pkl")).unwrap();
    let ran = home.json(&["run", "trackway.toml"]);
    assert_eq!(
        (&ran["state"], &ran["name"], &ran["next"]),
        (&json!("completed"), &json!("own"), &json!(null))
    );
    let same = home.trackway(&["init", "--from", "last", "--force"]);
    assert!(same.code == 2 && same.stderr.contains("was started with the run file"), "{}", same.stderr);
}

const TAKES_RESUME: &str = r#"
import argparse, os, pickle, signal
options = argparse.ArgumentParser()
options.add_argument("--resume", default=None)
resume = options.parse_args().resume
step = pickle.load(open(resume, "rb"))["step"] if resume else 0
while step < 6:
    step += 1
    print(f"step {step} loss {1 / step:.3f}", flush=True)
    if step == 5 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if step % 2 == 0:
        pickle.dump({"step": step, "model": [step], "optimizer": [0.1]}, open("checkpoint.pkl", "wb"))
"#;

/// Proves that after a resume that began again the option is named by which the script would have continued, and that
/// its run file passes that option and so continues.
#[test]
fn the_option_to_continue_is_read_from_the_script() {
    let home = Home::new();
    home.write("train.py", TAKES_RESUME);
    assert_eq!(home.trackway(&["run", "--name", "own", "--", "python3", "train.py"]).code, 4);
    let resumed = home.trackway(&["resume", "last"]);
    let said = "pass the script's option `--resume {path}` in `checkpoint.resume`";
    assert!(resumed.code == 0 && resumed.stderr.contains(said), "{}", resumed.stderr);
    let written = home.json(&["init", "--from", "last"]);
    assert_eq!(written["resume_arguments"], json!(["--resume", "{path}"]));
    for left in ["checkpoint.pkl", "died"] {
        std::fs::remove_file(home.path().join(left)).unwrap();
    }
    assert_eq!(home.trackway(&["run", "trackway.toml"]).code, 0);
    let attempts = home
        .sql("select resumed_from_step, first_step from training_attempts order by started_at desc limit 1");
    assert_eq!((&attempts[0]["resumed_from_step"], &attempts[0]["first_step"]), (&json!(4), &json!(5)));
}

/// Proves that a run file beside another folder names the folder that the run ran in, that an existing one stays, that
/// a run which held a secret is refused, and one that does not exist is not found.
#[test]
fn a_run_is_written_elsewhere_or_not_at_all() {
    let home = Home::new();
    let ran = home.trackway(&["run", "--name", "plain", "--", "sh", "-c", "echo 'step 1 loss 0.5'"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::fs::create_dir(home.path().join("jobs")).unwrap();
    let arguments = ["init", "--from", "plain", "--out", "jobs/plain.toml"];
    assert_eq!(home.trackway(&arguments).code, 0);
    let text = std::fs::read_to_string(home.path().join("jobs/plain.toml")).unwrap();
    let folder = home.path().canonicalize().unwrap();
    assert!(text.contains(&format!("working_directory = \"{}\"", folder.display())), "{text}");
    assert_eq!(home.json(&["run", "jobs/plain.toml"])["state"], "completed");
    assert_eq!(home.trackway(&arguments).code, 2, "it exists");
    assert_eq!(home.trackway(&["init", "--from", "absent"]).code, 6);
    let secret = ["run", "--name", "secret", "--", "sh", "-c", "true", "--password", "correct-horse-battery"];
    assert_eq!(home.trackway(&secret).code, 0);
    let refused = home.trackway(&["init", "--from", "secret"]);
    assert!(refused.code == 2 && refused.stderr.contains("had a secret"), "{}", refused.stderr);
    assert!(!home.path().join("trackway.toml").exists());
}
