//! What a tick does without a command that needs it.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Home, UNTIL_GO, eventually, files_below, signal};

fn duty(report: &Value, name: &str) -> Value {
    let duties = report["duties"].as_array().unwrap();
    duties.iter().find(|duty| duty["name"] == name).unwrap_or_else(|| panic!("{name}: {report}")).clone()
}

/// Proves that an attempt whose supervisor was killed is named by a dry run and sealed by a tick, and that a second tick finds nothing due.
#[test]
fn a_tick_seals_what_ended_without_a_supervisor() {
    let home = Home::new();
    let mut supervisor = home.spawn(&["run", "--", "sh", "-c", &format!("touch begun; {UNTIL_GO}")]);
    eventually("the script", || home.path().join("begun").exists().then_some(()));
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    home.go();
    let has_exit = || files_below(&home.state()).iter().any(|path| path.ends_with("exit.json"));
    eventually("the exit record", || has_exit().then_some(()));
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    let sealed = || -> i64 {
        let count = "select count(*) from training_attempts where sealed_at is not null";
        ledger.query_row(count, [], |row| row.get(0)).unwrap()
    };
    let dry = eventually("the end of its shim", || {
        let dry = duty(&home.json(&["tick", "--dry-run"]), "reap");
        dry["lines"].as_array().is_some_and(|lines| !lines.is_empty()).then_some(dry)
    });
    assert_eq!((&dry["outcome"], sealed()), (&json!("due"), 0));
    assert!(dry["lines"][0].as_str().unwrap().ends_with("has ended without a supervisor"), "{dry}");
    let one_sealed = json!([
        { "action": "attempts_sealed", "count": 1 },
        { "action": "evaluations_ended", "count": 0 },
    ]);
    assert_eq!(dry["counts"], one_sealed, "{dry}");
    let done = duty(&home.json(&["tick"]), "reap");
    assert_eq!((&done["outcome"], sealed()), (&json!("done"), 1), "{done}");
    assert_eq!(done["counts"], one_sealed, "{done}");
    assert!(done["lines"].to_string().contains("had ended without a supervisor: completed"), "{done}");
    let again = home.json(&["tick"]);
    for name in ["reap", "approvals", "pins", "outbox", "prune"] {
        assert_eq!(duty(&again, name)["outcome"], "not_due", "{again}");
    }
    let absent = Home::new().trackway(&["tick"]);
    assert_eq!(absent.code, 6, "{}", absent.stderr);
}
