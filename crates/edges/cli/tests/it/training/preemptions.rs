//! SIGTERM from outside that the run file calls a preemption, and what continues afterwards.

use nix::sys::signal::Signal;

use crate::harness::{Home, answer, eventually, signal};

/// Trains 40 steps and leaves its process id; the first time it waits after step 10.
const SCRIPT: &str = "import os, time\n\
    first = not os.path.exists('pid')\n\
    for step in range(1, 41):\n    print(f'step {step} loss {1 / step}', flush=True)\n    time.sleep(0.01)\n\
    \x20   if step == 10: open('pid.new', 'w').write(str(os.getpid())); os.rename('pid.new', 'pid')\n\
    \x20   if step == 10 and first: time.sleep(60)\n";
const RUN_FILE: &str = "[run]\nname = \"spot\"\ncommand = [\"python3\", \"t.py\"]\n[supervise]\ngrace = \"2s\"\nsigterm = \"preempted\"\n\
    [retry]\npreempted = { attempts = 5, backoff = \"10ms\" }\n";

fn home() -> Home {
    let home = Home::new();
    home.write("t.py", SCRIPT);
    home.write("r.toml", RUN_FILE);
    home
}

/// The process id of the script, once it waits.
fn pid(home: &Home) -> i32 {
    eventually("the script waits", || std::fs::read_to_string(home.path().join("pid")).ok()?.parse().ok())
}

fn ends(home: &Home) -> Vec<String> {
    let rows = home
        .sql("select termination_reason, termination_rule from training_attempts order by attempt_number");
    let word = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or("–").to_owned();
    rows.iter()
        .map(|row| format!("{} {}", word(row, "termination_reason"), word(row, "termination_rule")))
        .collect()
}

/// Proves that SIGTERM to the script alone is a preemption where the run file says so, and that the budget of preemptions retries it.
#[test]
fn a_script_that_is_taken_away_is_launched_again() {
    let home = home();
    let supervisor = home.spawn(&["run", "r.toml"]);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid(&home)), Signal::SIGTERM).unwrap();
    let answer = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(ends(&home), ["preempted process.sigterm_preempts", "completed process.exit_0"]);
}

/// Proves that SIGTERM to the supervisor, as at every shutdown, leaves the run waiting, and that `resume --all`
/// continues it without a terminal and leaves alone what has ended.
#[test]
fn a_shutdown_leaves_the_run_for_the_next_boot() {
    let home = home();
    let supervisor = home.spawn(&["run", "r.toml"]);
    pid(&home);
    signal(&supervisor, Signal::SIGTERM);
    let ended = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert!(ended.stderr.contains("trackway resume --all"), "{}", ended.stderr);
    assert_eq!(ends(&home), ["preempted own_action.preemption_notice"]);
    assert_eq!(home.sql("select state from runs")[0]["state"], "waiting");
    let resumed = home.trackway(&["resume", "--all"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    eventually("the run completes", || {
        (home.sql("select state from runs")[0]["state"] == "completed").then_some(())
    });
    assert_eq!(ends(&home).last().unwrap(), "completed process.exit_0");
    let nothing = home.trackway(&["resume", "--all"]);
    assert_eq!((nothing.code, nothing.stderr.contains("no run waits")), (0, true), "{}", nothing.stderr);
}
