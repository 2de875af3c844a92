//! What follows from an end.

use crate::harness::{Home, UNTIL_GO, answer, eventually};

const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";

/// Proves that an out-of-memory is tried again only with the next plan of the run file, and completes with it.
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

/// Proves that after a data error nothing is launched again on the same data, until it changes.
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

/// Proves that the block is about data, its contract and the code: another seed does not open it; a changed script, rule or
/// table does.
#[test]
fn a_data_error_is_opened_by_code_and_contract_not_by_a_seed() {
    let home = Home::new();
    home.write("table.csv", "a,b\n1,2\n");
    let script = "import sys\nsys.exit('pandas.errors.ParserError: Error tokenizing data. C error: EOF inside string starting at row 7')\n";
    home.write("train.py", script);
    let text = |rules: &str| {
        format!(
            "[run]\nname = \"d\"\nseed = 1\ncommand = [\"python3\", \"train.py\"]\n[data.train]\npath = \"table.csv\"\n{rules}"
        )
    };
    let file = home.write("data.toml", &text(""));
    let run = |extra: &[&str]| home.trackway(&[&["run", file.to_str().unwrap()], extra].concat());
    let first = run(&[]);
    assert_eq!(first.code, 4, "{}", first.stderr);
    let reason = &home.sql("select termination_reason from training_attempts")[0]["termination_reason"];
    assert_eq!(reason, "data_error");
    let again = run(&["--set", "run.seed=2"]);
    assert_eq!(again.code, 3, "{}", again.stderr);
    assert!(
        again.stderr.contains("neither the data nor its schema, rules or code changed"),
        "{}",
        again.stderr
    );
    home.write("data.toml", &text("rules = [\"a > 0\"]\n"));
    assert_eq!(run(&[]).code, 4, "another contract");
    assert_eq!(run(&[]).code, 3, "the same again");
    home.write("train.py", "print('fixed')\n");
    let fixed = run(&[]);
    assert_eq!(fixed.code, 0, "{}", fixed.stderr);
}

/// Proves that each attempt's receipt has the hash of the data that it was launched with, that the change is shown, and that
/// the run file may forbid it.
#[test]
fn changed_data_shows_in_the_receipt_of_the_retry() {
    let script = "if [ $(wc -l < t.csv) = 2 ]; then echo '3,4' >> t.csv; kill -9 $$; fi";
    let text = |policy: &str| {
        format!(
            "[run]\nname = \"d\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[data.train]\npath = \"t.csv\"\n\
             [retry]\nunknown = {{ attempts = 1, backoff = \"0s\" }}\n{policy}"
        )
    };
    let home = Home::new();
    home.write("t.csv", "a,b\n1,2\n");
    let file = home.write("d.toml", &text(""));
    let run = home.trackway(&["run", file.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("since attempt 1 its data changed"), "{}", run.stderr);
    let hashes = home.sql("select data_sha256 from training_attempts order by attempt_number");
    assert_eq!(hashes.len(), 2);
    assert_ne!(hashes[0], hashes[1]);
    assert_eq!(home.sql("select * from data_snapshots").len(), 2);
    let page = home.json(&["explain", "last"]);
    let changes = page["parent_diff"]["changes"].as_array().unwrap();
    assert!(changes.iter().any(|change| change["kind"] == "data" && change["key"] == "train"), "{changes:?}");

    let home = Home::new();
    home.write("t.csv", "a,b\n1,2\n");
    let file = home.write("d.toml", &text("[supervise]\non_data_change = \"block\"\n"));
    let run = home.trackway(&["run", file.to_str().unwrap()]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_eq!(home.sql("select * from training_attempts").len(), 1);
    assert_eq!(home.trackway(&["resume", "last"]).code, 3, "it is still changed");
    home.write("t.csv", "a,b\n1,2\n");
    let resumed = home.trackway(&["resume", "last"]);
    assert_ne!(resumed.code, 3, "{}", resumed.stderr);
    assert_eq!(home.sql("select * from training_attempts").len(), 2);
}

/// Proves that a plan's values reach the script as they are, whatever their names, and that only the stored copy is without
/// them, also after a supervisor was replaced.
#[test]
fn plan_values_reach_the_script() {
    let home = Home::new();
    let script = format!(
        "echo \\\"<$TOKEN_BATCH>\\\"; [ \\\"$TOKEN_BATCH\\\" = 2048 ] && exit 0; echo '{OOM}' >&2; exit 1"
    );
    let file = home.write(
        "oom.toml",
        &format!(
            "[run]\nname = \"oom\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[retry]\n\
             device_oom = {{ plan = [{{ set = {{ TOKEN_BATCH = \"4096\" }} }}, {{ set = {{ TOKEN_BATCH = \"2048\" }} }}] }}\n"
        ),
    );
    let run = home.trackway(&["run", file.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let stored = home.sql("select changes_json from retries order by at");
    assert!(stored[0]["changes_json"].to_string().contains("[redacted:"), "{stored:?}");
    assert!(!stored[1]["changes_json"].to_string().contains("2048"), "{stored:?}");
}

/// Proves that a resume of a run whose hours are spent launches nothing and ends with 3, whatever its run file has by
/// now, that no number of hours is below 0, and that `explain` proposes another run in the place of a resume; before,
/// each resume launched an attempt, ended it at once and had -0.00 hours left.
#[test]
fn spent_hours_are_not_resumed() {
    let home = Home::new();
    let text = |hours: &str| {
        let script = "trap 'kill $!; sleep 0.2; exit 1' TERM; sleep 60 & wait";
        format!(
            "[run]\nname = \"h\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[retry]\nmax_hours = {hours}\n"
        )
    };
    home.write("h.toml", &text("0.0003"));
    let run = home.trackway(&["run", "h.toml"]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    let attempts = || home.sql("select termination_reason from training_attempts");
    assert_eq!(attempts()[0]["termination_reason"], "budget_exhausted");
    for (hours, said) in
        [("0.0003", "with a higher `retry.max_hours`, start a new run: "), ("1", "the run file has 1 now")]
    {
        home.write("h.toml", &text(hours));
        let resumed = home.trackway(&["resume", "last"]);
        assert_eq!(resumed.code, 3, "{}", resumed.stderr);
        for part in ["of 0.00030 hours are spent (`retry.max_hours`)", said, "trackway run "] {
            assert!(resumed.stderr.contains(part), "{part}: {}", resumed.stderr);
        }
        assert!(!resumed.stderr.contains("-0."), "{}", resumed.stderr);
    }
    assert_eq!(attempts().len(), 1, "nothing was launched");
    let page = home.json(&["explain", "last"])["next_actions"].to_string();
    assert!(page.contains("start a new run: trackway run ") && !page.contains("trackway resume"), "{page}");
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

/// Proves that an exception which two launches raise at the same step is not launched a third time, whatever the budgets, with the reason
/// in the verdict; and that one which comes after a newer step each time is.
#[test]
fn the_same_exception_is_launched_once_more() {
    let attempts = |steps: &str| {
        let home = Home::new();
        let step = format!("echo \"{{\\\"step\\\": {steps}, \\\"loss\\\": 2}}\"");
        let thrown = "echo \"KeyError: 'target'\" >&2; exit 1";
        home.write("train.sh", &format!("echo x >> tries; n=$(wc -l < tries)\n{step}\n{thrown}\n"));
        let retries = "[retry]\nunknown = { attempts = 2, backoff = \"0s\" }\n";
        let run = "[run]\nname = \"r\"\ncommand = [\"sh\", \"train.sh\"]\n";
        home.write("r.toml", &format!("{run}{retries}"));
        let answer = home.trackway(&["run", "r.toml"]);
        assert_eq!(answer.code, 4, "{}", answer.stderr);
        let stopped = home.sql("select rule, why from retries where decision = 'stop'").remove(0);
        let steps = home.sql("select last_step, termination_reason, termination_confidence from training_attempts order by attempt_number");
        (steps, stopped, home.trackway(&["explain", "last"]).stdout)
    };
    let (launched, stopped, page) = attempts("7");
    assert_eq!(launched.len(), 2, "{launched:?} {stopped}");
    assert_eq!(
        (&launched[1]["last_step"], &stopped["rule"]),
        (&7.into(), &"no_retry.same_end_expected".into())
    );
    let sentence = "`KeyError: 'target'` ended two launches in a row at step 7: the code, its settings, its data or its rights must change";
    assert!(stopped["why"].as_str().unwrap().starts_with(sentence), "{stopped}");
    assert!(page.split_whitespace().collect::<Vec<_>>().join(" ").contains(sentence), "{page}");
    let (launched, stopped, _) = attempts("$n");
    assert_eq!(launched.len(), 3, "{launched:?} {stopped}");
}
