//! A ledger that was lost is made again from the files of its home.

use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Home, UNTIL_GO, files_below};

const RECEIPTS: &str = "select attempt_id, receipt_sha256, exit_code, termination_reason, attempt_number from training_attempts order by attempt_id";
const RUNS: &str =
    "select run_id, name, state, attempt_count, config_sha256, wall_seconds from runs order by run_id";
const DECISIONS: &str = "select attempt_id, decision, rule, next_attempt_id from retries order by attempt_id";
const METRICS: &str =
    "select attempt_id, name, last_value, mean_value from metric_summaries order by attempt_id, name";

fn three_runs() -> Home {
    let home = Home::new();
    assert_eq!(
        home.run_script(
            &["--name", "good"],
            "echo '{\"step\": 1, \"loss\": 0.1}'; echo '{\"step\": 2, \"loss\": 0.3333333333333333}'"
        )
        .0,
        0
    );
    assert_eq!(
        home.run_script(&["--name", "bad"], "echo 'RuntimeError: CUDA out of memory' >&2; exit 3").0,
        4
    );
    let plan = "[run]\nname = \"again\"\ncommand = [\"sh\", \"-c\", \"[ \\\"$BATCH\\\" = 16 ] && exit 0; echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.' >&2; exit 1\"]\n[retry]\ndevice_oom = { plan = [{ set = { BATCH = \"16\" } }] }\n";
    home.write("again.toml", plan);
    assert_eq!(home.trackway(&["run", "again.toml"]).code, 0);
    home
}

fn lose(home: &Home) -> PathBuf {
    let ledger = home.state().join("ledger.db");
    for part in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{part}", ledger.display()));
    }
    ledger
}

fn snapshot(home: &Home) -> Vec<Vec<Value>> {
    [RECEIPTS, RUNS, DECISIONS, METRICS].iter().map(|query| home.sql(query)).collect()
}

/// Proves that a ledger that is missing is made again with the same digests, and that a second rebuild changes nothing.
#[test]
fn a_missing_ledger_is_made_again_with_the_same_digests() {
    let home = three_runs();
    let before = snapshot(&home);
    lose(&home);
    let rebuilt = home.json(&["doctor", "rebuild"]);
    assert_eq!(rebuilt["failed"].as_array().map(Vec::len), Some(0), "{rebuilt}");
    assert_eq!((&rebuilt["run_count"], &rebuilt["receipt_count"]), (&3.into(), &4.into()), "{rebuilt}");
    assert_eq!(rebuilt["missing"], Value::Array(Vec::new()), "nothing is named that was never there");
    assert!(rebuilt["not_known"].to_string().contains("events that are part of no receipt"), "{rebuilt}");
    assert_eq!(snapshot(&home), before);
    assert_eq!(home.json(&["doctor"])["healthy"], true);
    let again = home.json(&["doctor", "rebuild"]);
    assert_eq!((&again["found"], &again["receipt_count"]), (&"sound".into(), &0.into()), "{again}");
    assert_eq!(again["not_known"], Value::Array(Vec::new()), "{again}");
    let shown = home.trackway(&["doctor", "rebuild"]).stdout;
    assert!(shown.ends_with("3 runs found, nothing to restore\n"), "{shown}");
    assert_eq!(snapshot(&home), before);
    assert_eq!(home.trackway(&["run", "--", "true"]).code, 0, "the ledger takes new runs");
}

/// Proves that what was in the lost ledger alone is named with its number, where the files show that it was there:
/// imported runs, and the lists of files of data.
#[test]
fn what_is_lost_is_named() {
    let home = Home::new();
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../storage/ledger/tests/vectors/import/mlruns");
    let imported = home.json(&["import", "mlflow", vectors])["imported_count"].as_u64().unwrap();
    home.write("d.csv", "x,y\n1,2\n3,4\n");
    home.write(
        "r.toml",
        "[run]\nname = \"d\"\ncommand = [\"cat\", \"d.csv\"]\n[data.train]\npath = \"d.csv\"\n",
    );
    assert_eq!(home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]).code, 0);
    lose(&home);
    let rebuilt = home.json(&["doctor", "rebuild"]);
    let missing: Vec<&str> =
        rebuilt["missing"].as_array().unwrap().iter().map(|what| what.as_str().unwrap()).collect();
    let runs = format!("{imported} imported runs: import them again");
    assert!(imported > 1 && missing.len() == 2 && missing[0].starts_with(&runs), "{rebuilt}");
    assert!(missing[1].starts_with("the lists of files of 1 data set ("), "{rebuilt}");
    assert_eq!(rebuilt["failed"], Value::Array(Vec::new()), "{rebuilt}");
}

/// Proves that receipts are computed from the attempts' folders where nothing was kept of them, with the same reasons.
#[test]
fn receipts_are_computed_from_folders() {
    let home = three_runs();
    let reasons =
        "select attempt_id, termination_reason, exit_code from training_attempts order by attempt_id";
    let before = home.sql(reasons);
    for file in files_below(&home.state().join("runs")) {
        if file.parent().is_some_and(|folder| folder.ends_with("ledger")) {
            std::fs::remove_file(file).unwrap();
        }
    }
    lose(&home);
    let rebuilt = home.json(&["doctor", "rebuild"]);
    assert_eq!(rebuilt["computed_count"], 4, "{rebuilt}");
    assert_eq!(home.sql(reasons), before);
    assert_eq!(home.sql("select name from runs order by name")[0]["name"], "again");
}

/// Proves that a damaged ledger is kept beside the new one, and that a kept receipt that was changed is not used.
#[test]
fn a_damaged_ledger_is_kept_and_a_changed_receipt_is_refused() {
    let home = three_runs();
    let ledger = lose(&home);
    std::fs::write(&ledger, "this is no database ".repeat(1000)).unwrap();
    assert_eq!(home.json(&["doctor"])["ledger_state"], "damaged");
    let receipt = files_below(&home.state().join("runs"))
        .into_iter()
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with("receipt-"))
        .unwrap();
    let text = std::fs::read_to_string(&receipt).unwrap();
    std::fs::write(&receipt, text.replace("\"exit_code\":", "\"exit_code\":9")).unwrap();
    let answer = home.trackway(&["doctor", "rebuild", "--json"]);
    assert_eq!(answer.code, 7, "{}", answer.stderr);
    let rebuilt: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert!(
        rebuilt["failed"][0].as_str().unwrap().contains("differs from the one it was sealed with"),
        "{rebuilt}"
    );
    let old = rebuilt["old_ledger"].as_str().unwrap();
    assert!(std::fs::read_to_string(old).unwrap().starts_with("this is no database"));
    // The truth is in the attempt's folder.
    assert_eq!(home.sql("select * from training_attempts where exit_code >= 90").len(), 0);
    assert_eq!(home.sql("select * from training_attempts where sealed_at is null").len(), 0);
}

/// Proves that a ledger that is open in a supervisor is not replaced under it, and that every command names the process that has it.
#[test]
fn a_ledger_is_not_replaced_under_a_supervisor() {
    let home = Home::new();
    let mut supervisor = home.spawn(&["run", "--", "sh", "-c", &format!("touch begun; {}", UNTIL_GO)]);
    crate::harness::eventually("the script", || home.path().join("begun").exists().then_some(()));
    lose(&home);
    let answer = home.trackway(&["doctor", "rebuild"]);
    assert_eq!(answer.code, 3, "{} {}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains("has a supervisor"), "{}", answer.stderr);
    let process = format!("`kill -KILL {}`", supervisor.id());
    for command in [&["doctor", "rebuild"][..], &["doctor"], &["stop", "last"], &["runs"]] {
        let answer = home.trackway(command);
        assert!(answer.stderr.contains(&process), "{command:?}: {}", answer.stderr);
    }
    home.go();
    supervisor.wait().unwrap();
    assert_eq!(home.trackway(&["doctor", "rebuild"]).code, 0);
    assert_eq!(home.sql("select * from training_attempts where sealed_at is not null").len(), 1);
}

/// Proves that of a ledger of a newer version no rebuild is proposed, which would be refused, but a newer program.
#[test]
fn a_newer_ledger_is_not_made_again() {
    let home = Home::new();
    assert_eq!(home.run_script(&["--skip-preflight", "--why", "a test"], "true").0, 0);
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    ledger.execute("insert into schema_version values (9999)", []).unwrap();
    drop(ledger);
    for command in [&["doctor"][..], &["doctor", "rebuild"]] {
        let answer = home.trackway(command);
        let said = answer.stdout + &answer.stderr;
        assert!(answer.code != 0 && said.contains("9999"), "{command:?}: {said}");
        assert!(!said.contains("trackway doctor rebuild"), "{command:?}: {said}");
    }
}

/// Proves that runs on one data set, and a run that was resumed on another one, are all made again with the data of each attempt, and that
/// the home verifies then.
#[test]
fn runs_on_the_same_data_are_made_again() {
    const READ: &str = "select a.attempt_id, s.rows from attempt_data d join training_attempts a on a.attempt_id = d.attempt_id join data_snapshots s on s.data_sha256 = d.data_sha256 order by a.attempt_id";
    const BEGUN: &str = "select run_id, name, data_sha256 from run_data order by run_id";
    let home = Home::new();
    home.write("d.csv", "x,y\n1,2\n3,4\n");
    home.write(
        "r.toml",
        "[run]\nname = \"d\"\ncommand = [\"sh\", \"-c\", \"cat d.csv; test -e ok\"]\n\
         [data.train]\npath = \"d.csv\"\n[retry]\nunknown = { attempts = 1, backoff = \"0s\" }\n",
    );
    let run = || home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]).code;
    assert_eq!((run(), run()), (4, 4));
    home.write("ok", "");
    home.write("d.csv", "x,y\n1,2\n3,4\n5,6\n");
    let resumed = home.trackway(&["resume", "last"]);
    assert_eq!((resumed.code, run()), (0, 0), "{}", resumed.stderr);
    let tables = || -> Vec<Vec<Value>> {
        let queries = [RECEIPTS, RUNS, DECISIONS, METRICS, READ, BEGUN];
        queries.iter().map(|query| home.sql(query)).collect()
    };
    let before = tables();
    assert_eq!((before[4].len(), before[5].len()), (6, 3));
    lose(&home);
    let rebuilt = home.json(&["doctor", "rebuild"]);
    assert_eq!(rebuilt["failed"].as_array().map(Vec::len), Some(0), "{rebuilt}");
    assert_eq!(tables(), before);
    let verified = home.trackway(&["verify", "--all"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let again = home.json(&["doctor", "rebuild"]);
    assert_eq!((&again["failed"], &again["other_count"]), (&Value::Array(Vec::new()), &0.into()), "{again}");
}

/// Proves that a change of data is shown with the numbers of its files where the ledger that had their list was lost.
#[test]
fn changed_data_keeps_the_number_of_its_files() {
    let home = Home::new();
    home.write("ok", "");
    home.write("d.csv", "x,y\n1,2\n3,4\n");
    home.write(
        "r.toml",
        "[run]\nname = \"d\"\ncommand = [\"sh\", \"-c\", \"cat d.csv; test -e ok\"]\n\
         [data.train]\npath = \"d.csv\"\n[retry]\nunknown = { attempts = 1, backoff = \"0s\" }\n",
    );
    let run = || home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]).code;
    assert_eq!(run(), 0);
    std::fs::remove_file(home.path().join("ok")).unwrap();
    home.write("d.csv", "x,y\n1,2\n3,4\n5,6\n");
    assert_eq!(run(), 4);
    lose(&home);
    home.json(&["doctor", "rebuild"]);
    let text = home.trackway(&["explain", "last"]).stdout;
    assert!(
        text.contains("2 rows, 12 bytes in 1 file, ") && text.contains("3 rows, 16 bytes in 1 file, "),
        "{text}"
    );
    assert!(!text.contains("0 files"), "{text}");
}

/// Proves that a kept row which the ledger has otherwise is reported, and that the ledger's stays.
#[test]
fn a_row_that_differs_is_reported() {
    let home = Home::new();
    home.write("d.csv", "x,y\n1,2\n3,4\n");
    home.write(
        "r.toml",
        "[run]\nname = \"d\"\ncommand = [\"cat\", \"d.csv\"]\n[data.train]\npath = \"d.csv\"\n",
    );
    assert_eq!(home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]).code, 0);
    let kept = files_below(&home.state().join("runs"))
        .into_iter()
        .find(|path| path.ends_with("ledger/run.json"))
        .unwrap();
    let text = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, text.replace("\"file_count\":1", "\"file_count\":2")).unwrap();
    let answer = home.trackway(&["doctor", "rebuild", "--json"]);
    assert_eq!(answer.code, 7, "{}", answer.stderr);
    let rebuilt: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert!(rebuilt["failed"][0].as_str().unwrap().contains("another `file_count`"), "{rebuilt}");
    assert_eq!(home.sql("select file_count from data_snapshots")[0]["file_count"], 1);
}
