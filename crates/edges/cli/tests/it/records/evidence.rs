//! Whether what is stored is what happened: digests recomputed, late facts, the mirror of checkpoints, useful work, reproductions.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Answer, Home, answer, files_below};
use crate::training::examples::wine_mlp;

const BINARY: &str = env!("CARGO_BIN_EXE_trackway");
const STEPS: u64 = 240;

/// A wine classifier that was killed at a step and completed; none where it is not built.
pub fn killed_once(home: &Home) -> Option<Trained> {
    let wine = wine_mlp()?;
    home.has_gpus(1);
    let text = format!(
        "[run]\nname = \"wine\"\ncommand = [\"{}\", \"--steps\", \"{STEPS}\", \"--step-millis\", \"6\"]\nseed = 17\n\
         [checkpoint]\nevery = {{ steps = 40 }}\nkeep = {{ last = 3 }}\n\
         [evaluate]\ncommand = [\"{}\", \"--evaluate\"]\n\
         [retry]\ninfrastructure = {{ attempts = 2, backoff = \"0s..0s\" }}\n[resources]\ngpus = 1\nusd_per_gpu_hour = 2.0\n",
        wine.display(),
        wine.display()
    );
    home.write("wine.toml", &text);
    let run = home.json(&["run", "wine.toml", "--inject", "kill@step=130"]);
    assert_eq!(run["state"], "completed", "{run}");
    let step = run["attempts"][1]["resumed_from_step"].as_u64().unwrap();
    Some(Trained { run_id: run["run_id"].as_str().unwrap().to_owned(), step })
}

/// A run, and the step that its second attempt resumed from: the kill comes a few steps after it was to come.
pub struct Trained {
    pub run_id: String,
    pub step: u64,
}

pub fn ledger(home: &Home) -> rusqlite::Connection {
    rusqlite::Connection::open(home.state().join("ledger.db")).unwrap()
}

/// A user who can write the database can drop its rules too.
pub fn drop_rules(ledger: &rusqlite::Connection, table: &str) {
    let mut named =
        ledger.prepare("select name from sqlite_schema where type = 'trigger' and tbl_name = ?1").unwrap();
    let names: Vec<String> =
        named.query_map([table], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for name in names {
        ledger.execute(&format!("drop trigger {name}"), []).unwrap();
    }
}

/// Proves that each attempt's row has how long it took to come back, the steps it added and what they cost, that the steps of all
/// attempts add up to those of the run, and that the receipt names what evaluates the checkpoints and the seed that the script took.
#[test]
fn recovery_and_useful_work_are_in_the_receipt() {
    let home = Home::new();
    let Some(Trained { step, .. }) = killed_once(&home) else { return };
    let rows = home.sql("select attempt_number, recovery_seconds, new_committed_steps, gpu_hours_per_committed_step, gpu_seconds, seed_seen, first_step_at, cast(evaluator_versions as text) as evaluators from training_attempts order by attempt_number");
    assert_eq!((&rows[0]["recovery_seconds"], &rows[0]["new_committed_steps"]), (&Value::Null, &json!(step)));
    let recovery = rows[1]["recovery_seconds"].as_f64().unwrap();
    assert!((0.0..60.0).contains(&recovery), "{recovery}");
    assert_eq!(rows[1]["new_committed_steps"], json!(STEPS - step), "{rows:?}");
    for row in &rows {
        let hours = row["gpu_seconds"].as_f64().unwrap() / 3600.0;
        let steps = row["new_committed_steps"].as_f64().unwrap();
        assert!(
            (row["gpu_hours_per_committed_step"].as_f64().unwrap() - hours / steps).abs() < 1e-15,
            "{row}"
        );
        assert_eq!(row["seed_seen"], json!(17));
        assert!(row["first_step_at"].is_string() || row["first_step_at"].is_number(), "{row}");
        let evaluators: Value = serde_json::from_str(row["evaluators"].as_str().unwrap()).unwrap();
        assert_eq!(evaluators[0]["digest"].as_str().unwrap().len(), 64, "{evaluators}");
    }
    let shown = home.trackway(&["explain", "last"]).stdout;
    for words in ["back after", "new steps", "GPU h/step", "17, taken by the script", "evaluator"] {
        assert!(shown.contains(words), "no `{words}` in {shown}");
    }
}

/// Proves that the rows of checkpoints follow their log: what was resumed from is verified, a pin, what was read, and what was
/// deleted are in SQL at once.
#[test]
fn the_rows_of_checkpoints_follow_their_log() {
    let home = Home::new();
    let Some(Trained { step, .. }) = killed_once(&home) else { return };
    let rows = || {
        home.sql("select step, state, pins, verified, metrics_json is not null as has_metrics from checkpoints where manifest_sha256 is not null order by step")
    };
    let at = |step: u64| rows().into_iter().find(|row| row["step"] == step).unwrap();
    assert_eq!(at(step)["verified"], json!(true), "the second attempt resumed from it");
    assert_eq!(home.trackway(&["checkpoint", "pin", "paper", "wine", "--step", "200"]).code, 0);
    assert_eq!(at(200)["pins"], "paper");
    assert_eq!(home.trackway(&["checkpoint", "unpin", "paper", "wine"]).code, 0);
    assert_eq!(at(200)["pins"], Value::Null);
    assert_eq!(home.trackway(&["checkpoint", "verify", "wine"]).code, 0);
    assert_eq!(at(STEPS)["verified"], json!(true));
    let collect = ["checkpoint", "gc", "wine", "--keep-last", "1", "--older-than", "0s", "--yes"];
    assert_eq!(home.trackway(&collect).code, 0);
    let listed = home.json(&["checkpoint", "ls", "wine", "--all"]);
    let listed = listed["checkpoints"].as_array().unwrap();
    assert!(listed.iter().any(|one| one["state"] == "retired"), "{listed:?}");
    let committed = listed.iter().filter(|one| !one["manifest_sha256"].is_null());
    committed.for_each(|one| assert_eq!(at(one["step"].as_u64().unwrap())["state"], one["state"], "{one}"));
    assert_eq!(home.trackway(&["verify", "wine"]).code, 0);
}

/// Proves that `verify` recomputes every digest, and names a changed row, a changed manifest and a row that is not as its log says.
#[test]
fn verify_names_what_differs() {
    let home = Home::new();
    let Some(Trained { run_id, .. }) = killed_once(&home) else { return };
    let report = home.json(&["verify", "--all"]);
    assert_eq!(report["holds"], json!(true), "{report}");
    let kinds: Vec<&str> =
        report["kinds"].as_array().unwrap().iter().map(|kind| kind["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..5], ["receipt", "evaluation", "manifest", "mirror", "weights"], "{report}");

    // A home that was moved has its checkpoints with it.
    let elsewhere = home.path().join("elsewhere");
    std::fs::rename(home.state(), &elsewhere).unwrap();
    let moved = home.json(&["verify", "--all", "--home", elsewhere.to_str().unwrap()]);
    assert_eq!(moved["kinds"], report["kinds"], "{moved}");
    std::fs::rename(&elsewhere, home.state()).unwrap();

    let database = ledger(&home);
    drop_rules(&database, "training_attempts");
    database.execute("update training_attempts set exit_code = 3 where attempt_number = 2", []).unwrap();
    database.execute("update checkpoints set state = 'superseded' where state = 'committed'", []).unwrap();
    drop(database);
    let manifest = files_below(&home.state().join("checkpoints"))
        .into_iter()
        .find(|path| path.ends_with("manifest.json") && path.to_string_lossy().contains("step-00000240"))
        .unwrap();
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes.push(b' ');
    std::fs::write(&manifest, bytes).unwrap();

    let answer = home.trackway(&["verify", &run_id, "--json"]);
    assert_eq!(answer.code, 7, "{}", answer.stderr);
    let report: Value = serde_json::from_str(&answer.stdout).unwrap();
    let mut differs: Vec<&str> =
        report["differs"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    differs.sort_unstable();
    assert_eq!(differs, ["kept", "manifest", "mirror", "receipt"], "{report}");
    let shown = home.trackway(&["verify", "wine"]);
    assert_eq!(shown.code, 7);
    assert!(shown.stdout.contains("is not the one that was committed"), "{}", shown.stdout);
}

/// Proves that a late fact is beside the receipt, in `explain` and in SQL, that the receipt still verifies, and that no fact is
/// taken that a receipt cannot have.
#[test]
fn an_amendment_is_beside_the_receipt() {
    let home = Home::new();
    home.run_script(&[], "exit 1");
    let amend = |words: &[&str]| home.trackway(&[&["amend", "last"], words].concat());
    for (words, code) in [
        (&["termination_reason", "sabotage", "--why", "x"][..], 2),
        (&["cost_usd", "cheap", "--why", "x"], 2),
        (&["colour", "red", "--why", "x"], 2),
        (&["receipt_sha256", "00", "--why", "x"], 2),
        (&["cost_usd", "1.5", "--why", " "], 2),
        (&["exit_code", "1", "--why", "it has this value"], 2),
    ] {
        assert_eq!(amend(words).code, code, "{words:?}");
    }
    let why = ["--why", "the node's log shows ECC errors", "--by", "ana"];
    assert_eq!(amend(&[&["termination_reason", "preempted"], &why[..]].concat()).code, 0);
    assert_eq!(amend(&[&["termination_reason", "node_failure"], &why[..]].concat()).code, 0);
    assert_eq!(amend(&[&["cost_usd", "1.5"], &why[..]].concat()).code, 0);
    let written = home.json(&[&["amend", "last", "owner", "--unknown"], &why[..]].concat());
    assert_eq!((&written["author"], &written["new_text"]), (&json!("ana"), &Value::Null), "{written}");
    let now =
        &home.sql("select termination_reason, cost_usd, owner, amendment_count from amended_attempts")[0];
    assert_eq!(
        *now,
        json!({ "termination_reason": "node_failure", "cost_usd": 1.5, "owner": null, "amendment_count": 4 })
    );
    let sealed = &home.sql("select termination_reason from training_attempts")[0];
    assert_eq!(sealed["termination_reason"], "unknown");
    let shown = home.trackway(&["explain", "last"]).stdout;
    assert!(shown.contains("Amended since") && shown.contains("unknown → preempted"), "{shown}");
    assert_eq!(home.json(&["explain", "last"])["attempt"]["amendments"].as_array().unwrap().len(), 4);
    assert_eq!(home.trackway(&["verify", "--all"]).code, 0);
    for part in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{part}", home.state().join("ledger.db").display()));
    }
    let rebuilt = home.trackway(&["doctor", "rebuild"]);
    assert_eq!(rebuilt.code, 0, "{}", rebuilt.stderr);
    let again = home.sql("select termination_reason, cost_usd, owner, amendment_count from amended_attempts");
    assert_eq!(again[0], *now, "a rebuilt ledger has the amendments");
}

/// Proves that the runs which a validation set decided about are counted by its content, and that a run is noted from 25
/// configurations on.
#[test]
fn a_worn_validation_set_is_noted() {
    let home = Home::new();
    home.write("val.csv", "x,y\n1,0\n2,1\n");
    home.write(
        "job.toml",
        "[run]\nname = \"search\"\ncommand = [\"true\"]\n[data.val]\npath = \"val.csv\"\n",
    );
    let run = |seed: u32| {
        home.trackway(&[
            "run",
            "job.toml",
            "--skip-preflight",
            "--why",
            "a test",
            "--set",
            &format!("run.seed={seed}"),
        ])
    };
    for seed in 1..25 {
        let answer = run(seed);
        assert!(answer.code == 0 && !answer.stderr.contains("models were compared"), "{}", answer.stderr);
    }
    let noted = run(25).stderr;
    assert!(noted.contains("validation set `val`: 25 models were compared on it"), "{noted}");
    let sets = home.sql("select path, run_count, config_count from validation_sets");
    assert_eq!(sets, [json!({ "path": "val.csv", "run_count": 25, "config_count": 25 })]);
}

fn reproduced(home: &Home, folder: &Path) -> Answer {
    let mut command = Command::new("sh");
    // The settings say that the machine has the GPU that the run file requests.
    let settings = home.path().join("settings");
    command.arg(folder.join("reproduce.sh")).env("TRACKWAY", BINARY).env("XDG_CONFIG_HOME", settings);
    command.env_remove("TRACKWAY_HOME");
    answer(command.output().unwrap())
}

/// Proves that an attempt is rebuilt from an empty folder and ends in the same state to the last bit, from its run file and program
/// alone; and that a result which is another one is named.
#[test]
fn an_attempt_is_reproduced_to_the_last_bit() {
    let home = Home::new();
    let Some(Trained { step, .. }) = killed_once(&home) else { return };
    let folder = home.path().join("again");
    let written = home.json(&["reproduce", "wine", "--out", folder.to_str().unwrap()]);
    let missing = written["missing"].to_string();
    assert!(
        !written["rebuilt"].to_string().contains("packages")
            && missing.contains("no git commit")
            && missing.contains(&format!("continued from step {step}")),
        "{written}"
    );
    // Beside the original, nothing of it may be needed but its program.
    std::fs::rename(home.path().join("wine.toml"), home.path().join("gone.toml")).unwrap();
    let answer = reproduced(&home, &folder);
    assert_eq!(answer.code, 0, "{}\n{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains(&format!("state at step {STEPS}")), "{}", answer.stdout);
    let expected = folder.join("expected.json");
    let text = std::fs::read_to_string(&expected).unwrap();
    let mut parsed: Value = serde_json::from_str(&text).unwrap();
    parsed["states"][0][1] = json!("0".repeat(64));
    std::fs::write(&expected, parsed.to_string()).unwrap();
    let checked = home.trackway(&["reproduce", "--check", folder.to_str().unwrap(), "--json"]);
    assert_eq!(checked.code, 7, "{}", checked.stderr);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(checked["verdict"], "different", "{checked}");
    assert_eq!(
        home.trackway(&["reproduce", "wine", "--out", folder.to_str().unwrap()]).code,
        2,
        "it is not empty"
    );
}

/// Proves that the code is cloned from the repository's origin where the working tree is gone.
#[test]
fn the_code_comes_from_the_origin() {
    let home = Home::new();
    let (code, origin) = (home.path().join("code"), home.path().join("origin.git"));
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let done = Command::new("git").args(identity).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let (code_path, origin_path) = (code.to_str().unwrap(), origin.to_str().unwrap());
    git(&["init", "--quiet", "--bare", origin_path]);
    git(&["clone", "--quiet", origin_path, code_path]);
    std::fs::write(code.join("train.sh"), "echo step 1: loss=0.375\n").unwrap();
    let file = code.join("job.toml");
    std::fs::write(&file, "[run]\nname = \"job\"\ncommand = [\"sh\", \"train.sh\"]\n").unwrap();
    git(&["-C", code_path, "add", "."]);
    git(&["-C", code_path, "commit", "--quiet", "-m", "first"]);
    git(&["-C", code_path, "push", "--quiet", "origin", "HEAD"]);
    let outside = home.path().join("home");
    let mut command = home.command(&["run", file.to_str().unwrap(), "--json"]);
    let run = answer(command.env("TRACKWAY_HOME", &outside).output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    // The working tree is gone; its commit is at the origin.
    std::fs::remove_dir_all(&code).unwrap();
    let folder = home.path().join("again");
    let written = home.json(&["reproduce", "job", "--out", folder.to_str().unwrap()]);
    assert!(written["rebuilt"].to_string().contains(&format!("or {origin_path}")), "{written}");
    let again = reproduced(&home, &folder);
    assert_eq!(again.code, 0, "{}\n{}", again.stdout, again.stderr);
    assert!(folder.join("code/train.sh").is_file() && again.stdout.contains("0.375"), "{}", again.stdout);
}

/// Proves that changes which were not committed are kept and applied, untracked files too, after the working tree
/// changed again; that a file which only the command names is compared by hash and copied; that neither evaluator nor
/// tasks have to be there; and that what changed since is named as what cannot be rebuilt.
#[test]
fn changes_that_were_not_committed_are_reproduced() {
    let home = Home::new();
    let code = home.path().join("code");
    std::fs::create_dir(&code).unwrap();
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let done = Command::new("git").arg("-C").arg(&code).args(identity).args(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let write = |name: &str, text: &str| std::fs::write(code.join(name), text).unwrap();
    write("train.sh", "echo step 1: loss=9\n");
    write(
        "job.toml",
        "[run]\nname = \"job\"\ncommand = [\"sh\", \"train.sh\", \"--more=more.txt\"]\n[data.train]\npath = \"rows.csv\"\n\
         [evaluate]\ncommand = [\"sh\", \"eval.sh\"]\ntask_set = \"tasks.csv\"\n",
    );
    write(".gitignore", "rows.csv\nmore.txt\neval.sh\ntasks.csv\n");
    write("more.txt", "5\n");
    write("eval.sh", "exit 1\n");
    write("tasks.csv", "id,label\n1,a\n");
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    write("rows.csv", "a,b\n1,2\n");
    write("train.sh", "echo step 1: loss=$(cat value.txt more.txt | tr -d '\\n'); cat rows.csv >/dev/null\n");
    write("value.txt", "0.375\n");
    write(".env", "PORT=80\n");
    let file = code.join("job.toml");
    let run = home.json(&["run", file.to_str().unwrap()]);
    assert_eq!(run["state"], "completed", "{run}");
    // The tree changes again.
    write("train.sh", "exit 1\n");
    std::fs::remove_file(code.join("value.txt")).unwrap();
    let folder = home.path().join("again");
    let written = home.json(&["reproduce", "last", "--out", folder.to_str().unwrap()]);
    assert!(written["rebuilt"].to_string().contains("what was not committed"), "{written}");
    assert!(written["missing"].to_string().contains("name is that of a file with secrets"), "{written}");
    assert!(!folder.join("untracked/.env").exists());
    let answer = reproduced(&home, &folder);
    assert_eq!(answer.code, 0, "{}\n{}", answer.stdout, answer.stderr);
    assert!(answer.stdout.contains("last loss") && answer.stdout.contains("0.3755"), "{}", answer.stdout);
    assert!(!folder.join("code/more.txt").is_symlink(), "the command may write it");
    write("rows.csv", "a,b\n1,2\n3,4\n");
    write("more.txt", "6\n");
    let other = home.path().join("other");
    let written = home.json(&["reproduce", "last", "--out", other.to_str().unwrap()]);
    let missing = written["missing"].to_string();
    assert!(missing.contains("is not what the attempt read"), "{written}");
    assert!(missing.contains("more.txt` of the command is not what it was at the launch"), "{written}");
    assert_eq!(home.trackway(&["gc", "--older-than", "0s", "--yes"]).code, 0);
    let third = home.path().join("third");
    assert_eq!(
        home.trackway(&["reproduce", "last", "--out", third.to_str().unwrap()]).code,
        0,
        "gc keeps the sources"
    );
}

/// Proves that the receipt says which data sets an attempt opened, with the process where it held the file open, that training data
/// which nothing opened is reported, and that a test set which nothing opened is not.
#[test]
fn what_a_script_opens_is_in_the_receipt() {
    let home = Home::new();
    for name in ["train.csv", "test.csv", "other.csv"] {
        home.write(name, "x,y\n1,2\n");
    }
    let run = |name: &str, script: &str| {
        let text = format!(
            "[run]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", \"{script}; echo '{{\\\"step\\\": 1, \\\"loss\\\": 1.0}}'\"]\n\
             [data.train]\npath = \"train.csv\"\n[data.test]\npath = \"test.csv\"\n"
        );
        home.write("run.toml", &text);
        home.json(&["run", "--skip-preflight", "--why", "a test", "run.toml"]);
        let row = home.sql("select data_opened, data_not_opened, attempt_id from training_attempts order by started_at desc limit 1")[0].clone();
        let attempt = row["attempt_id"].as_str().unwrap();
        let events = home.sql(&format!(
            "select kind, message, fields_json from events where attempt_id = '{attempt}' and kind like 'data%' order by at"
        ));
        (row, events)
    };
    let (right, events) = run("right", "exec 3<train.csv; sleep 0.5; read -r line <&3");
    assert_eq!((&right["data_opened"], &right["data_not_opened"]), (&json!("train"), &json!("test")));
    let fields =
        |event: &Value| serde_json::from_str::<Value>(event["fields_json"].as_str().unwrap()).unwrap();
    let train = events.iter().map(fields).rfind(|fields| fields["data"] == "train").unwrap();
    assert_eq!(train["by"], "attempt", "{events:?}");
    assert!(events.iter().all(|event| event["kind"] == "data_opened"), "{events:?}");
    let (quick, _) = run("quick", "cat train.csv test.csv >/dev/null");
    assert_eq!((&quick["data_opened"], &quick["data_not_opened"]), (&json!("test,train"), &Value::Null));
    let (wrong, events) = run("wrong", "cat other.csv");
    assert_eq!((&wrong["data_opened"], &wrong["data_not_opened"]), (&Value::Null, &json!("test,train")));
    let reported = events.iter().find(|event| event["kind"] == "data_not_opened").unwrap();
    assert!(
        reported["message"].as_str().unwrap().starts_with("data `train`: none of its files was opened"),
        "{reported}"
    );
    let shown = home.trackway(&["explain", "last"]).stdout;
    assert!(shown.contains("none of `test`, `train`"), "{shown}");
}
