//! What a person sees of a home and what it keeps: diagnosis, clearing, stopping, importing, settings.

use std::path::Path;

use super::{assert_screens, home, masked, runs, screen};

/// Proves what `doctor` and `gc` show of a home without problems, of one with a damaged record, and of what is deleted.
#[test]
fn a_home_is_diagnosed_and_cleared() {
    let fresh = home();
    assert_screens(
        &fresh,
        &[("doctor_no_home", &["doctor"]), ("gc_nothing", &["gc", "--older-than", "90d"])],
    );
    let home = runs();
    let clear = ["gc", "--keep-last", "1"];
    assert_screens(
        &home,
        &[
            ("doctor_healthy", &["doctor"]),
            ("gc_no_rule", &["gc"]),
            ("gc_dry_run", &clear),
            ("gc_where", &["gc", "--older-than", "0s", "--where", "state = 'failed'"]),
            ("gc_deleted", &[&clear[..], &["--yes"]].concat()),
            ("gc_wrong", &["gc", "--older-than", "90 days ago"]),
        ],
    );
    let id = home.json(&["attempts"])[0]["attempt_id"].as_str().unwrap().to_owned();
    std::fs::rename(home.state().join("attempts").join(&id), home.path().join("elsewhere")).unwrap();
    insta::assert_snapshot!("doctor_missing_folder", screen(&home, &["doctor"]));
    std::fs::rename(home.state().join("ledger.db"), home.path().join("ledger.db")).unwrap();
    insta::assert_snapshot!("doctor_lost_ledger", screen(&home, &["doctor"]));
    insta::assert_snapshot!("ledger_rebuild", screen(&home, &["doctor", "rebuild"]));
}

/// Proves what `stop`, `resume`, `logs` and `watch` show of runs that ended, and of names that no run has.
#[test]
fn ended_runs_are_left_alone() {
    let home = runs();
    assert_screens(
        &home,
        &[
            ("stop_ended", &["stop", "good"]),
            ("stop_unknown", &["stop", "absent"]),
            ("resume_ended", &["resume", "good"]),
            ("rollback_nothing", &["rollback", "good"]),
            ("logs_times", &["logs", "bug", "--tail", "1", "--times"]),
            ("runs_limited", &["runs", "--limit", "1"]),
            ("runs_columns", &["runs", "--sort", "-loss", "--columns", "name,loss,min.loss"]),
            ("sql", &["sql", "select name, state from runs order by name"]),
            ("sql_wrong", &["sql", "select nam from runs"]),
        ],
    );
}

/// Proves what `classify` shows of logs, with and without what the system says.
#[test]
fn logs_are_classified() {
    let home = home();
    home.write("oom.log", "step 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n");
    home.write("quiet.log", "step 1\nstep 2\n");
    assert_screens(
        &home,
        &[
            ("classify_oom", &["classify", "--log", "oom.log", "--exit-code", "1"]),
            ("classify_killed", &["classify", "--log", "quiet.log", "--signal", "KILL"]),
            ("classify_quiet", &["classify", "--log", "quiet.log"]),
            ("classify_missing", &["classify", "--log", "absent.log"]),
        ],
    );
}

/// Proves what `import` shows of a store, of the same store again, and of a path without one.
#[test]
fn imports_are_shown() {
    let home = home();
    let vectors =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../storage/ledger/tests/vectors/import/mlruns");
    let store = vectors.canonicalize().unwrap().to_string_lossy().into_owned();
    let import = |path: &str| {
        let text = screen(&home, &["import", "mlflow", path]).replace(&store, "[store]");
        masked(&text)
    };
    insta::assert_snapshot!("import_mlflow", import(&store));
    insta::assert_snapshot!("import_again", import(&store));
    insta::assert_snapshot!("import_nothing", import("."));
}
