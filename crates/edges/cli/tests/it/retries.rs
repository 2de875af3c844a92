//! What follows from an end.

use crate::harness::{Home, UNTIL_GO, answer, eventually};

const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";

/// Proves C3: an out-of-memory is tried again only with the next plan of the run file, and completes with it.
#[test]
fn out_of_memory_is_retried_only_with_another_plan() {
    let home = Home::new();
    let script = format!("[ \\\"$BATCH\\\" = 16 ] && exit 0; echo '{OOM}' >&2; exit 1");
    let file = home.write(
        "oom.toml",
        &format!(
            "[run]\nname = \"oom\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[retry]\ndevice_oom = {{ plan = [{{ set = {{ BATCH = \"16\" }} }}] }}\n"
        ),
    );
    let run = home.json(&["run", file.to_str().unwrap()]);
    assert_eq!(run["state"], "completed", "{run}");
    assert_eq!(run["attempts"][0]["termination_reason"], "device_oom");
    assert_eq!(run["attempts"][1]["termination_reason"], "completed");
    let retries = home.sql("select decision, rule, why from retries order by at");
    assert_eq!(retries[0]["decision"], "retry");
    assert!(!retries[0]["rule"].as_str().unwrap().is_empty());
}

/// Proves C4: after a data error nothing is launched again on the same data, until it changes.
#[test]
fn a_data_error_blocks_until_the_data_changes() {
    let home = Home::new();
    home.write("table.csv", "a,b\n1,2\n");
    let file = home.write(
        "data.toml",
        "[run]\nname = \"d\"\ncommand = [\"sh\", \"-c\", \"echo 'pandas.errors.ParserError: Error tokenizing data. C error: EOF inside string starting at row 7' >&2; exit 1\"]\n[data.train]\npath = \"table.csv\"\n",
    );
    let run = |extra: &[&str]| home.trackway(&[&["run", file.to_str().unwrap()], extra].concat());
    let first = run(&[]);
    assert_eq!(first.code, 4, "{}", first.stderr);
    let attempts = || home.sql("select termination_reason from training_attempts").len();
    assert_eq!(
        home.sql("select termination_reason from training_attempts")[0]["termination_reason"],
        "data_error"
    );
    let second = run(&[]);
    assert_eq!(second.code, 3, "{}", second.stderr);
    assert_eq!(attempts(), 1);
    assert_eq!(run(&["--retry-data-error"]).code, 4);
    home.write("table.csv", "a,b\n1,2\n3,4\n");
    assert_eq!(run(&[]).code, 4);
    assert_eq!(attempts(), 3);
}

/// Proves that a run whose stored plan cannot be read is not retried with default limits: its attempt is sealed, the
/// decision names the column, and so do commands that need the plan.
#[test]
fn an_unreadable_plan_is_no_reason_to_retry() {
    let home = Home::new();
    let script = format!("touch began; {UNTIL_GO}; kill -9 $$");
    let file = home.write(
        "r.toml",
        &format!("[run]\nname = \"r\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[retry]\nmax_usd = 1.0\n"),
    );
    let supervisor = home.spawn(&["run", file.to_str().unwrap()]);
    eventually("the script", || home.path().join("began").exists().then_some(()));
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    // Nothing of Trackway's gets past the trigger: only a damaged file does.
    let damage = "begin immediate; drop trigger runs_identity_update;
        update runs set config_json = json_set(config_json, '$.retry.max_usd', 'one'); commit";
    eventually("the damage", || ledger.execute_batch(damage).ok());
    home.go();
    let ended = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    let retries = home.sql("select decision, rule, why from retries");
    assert_eq!(retries.len(), 1, "{retries:?}");
    assert_eq!(retries[0]["rule"], "policy.unreadable_plan", "{retries:?}");
    assert!(retries[0]["why"].as_str().unwrap().contains("runs.config_json"), "{retries:?}");
    assert_eq!(home.sql("select * from training_attempts where sealed_at is not null").len(), 1);
    let listed = home.trackway(&["checkpoint", "ls", "r"]);
    assert_eq!(listed.code, 7, "{}{}", listed.stdout, listed.stderr);
    assert!(listed.stderr.contains("runs.config_json"), "{}", listed.stderr);
}

/// Proves that a code error is not tried again.
#[test]
fn a_code_error_stops() {
    let home = Home::new();
    let script = "printf 'Traceback (most recent call last):\\n  File \"t.py\", line 1, in <module>\\nNameError: name x is not defined\\n' >&2; exit 1";
    let (code, run) = home.run_script(&[], script);
    assert_eq!(code, 4);
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!(run["attempts"][0]["termination_reason"], "code_error");
    assert_eq!(home.sql("select decision from retries")[0]["decision"], "stop");
}
