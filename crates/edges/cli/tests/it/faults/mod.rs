//! What must hold when things are killed, stopped, or in each other's way, and when the ledger goes away.

mod database_loss;
mod full_disk;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod kill_steps;
mod postgres;
mod supervisors;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

use nix::sys::signal::Signal;
use serde_json::Value;
use trackway_recorder::{Kind, Recorder};

use crate::harness::{Home, UNTIL_GO, answer, eventually, files_below, signal};

/// The process id of the script, once it wrote it to `pid` in its working directory.
fn script_pid(home: &Home) -> i32 {
    eventually("the script's pid", || {
        std::fs::read_to_string(home.path().join("pid")).ok()?.trim().parse().ok()
    })
}

fn alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

const WAITS: &str = "FAULTS_SAVE_AND_WAIT";

/// Proves nothing by itself: it is the training script of the test below. It commits three steps and waits for its end.
#[test]
fn saves_and_waits() {
    if std::env::var_os(WAITS).is_none() {
        return;
    }
    let run = Recorder::attach();
    for step in 1..=3 {
        run.log(step, &[("loss", 1.0)]);
        run.save_checkpoint(step, &[], |writer| {
            writer.file("weights.bin", Kind::Weights, &step.to_le_bytes())
        })
        .unwrap();
    }
    std::fs::write("pid", std::process::id().to_string()).unwrap();
    loop {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Proves that a run whose checkpoints and their log are all gone does not begin again at step 0 silently, although its
/// supervisor was killed before the attempt was sealed: commits in the flight record are looked for even then.
#[test]
fn lost_checkpoints_are_no_step_0() {
    for shim_dies in [false, true] {
        let home = Home::new();
        let binary = home.program();
        let text = format!(
            "[run]\nname = \"lost\"\ncommand = [\"{}\", \"faults::saves_and_waits\", \"--exact\"]\n\
             environment = {{ {WAITS} = \"1\" }}\n[checkpoint]\nevery = {{ steps = 1 }}\n",
            binary.display()
        );
        home.write("lost.toml", &text);
        let mut supervisor = home.spawn(&["run", "lost.toml"]);
        let script = script_pid(&home);
        signal(&supervisor, Signal::SIGKILL);
        supervisor.wait().unwrap();
        if shim_dies {
            kill_process(shim_pid(&home));
        }
        kill_process(script);
        std::fs::remove_file(home.path().join("pid")).unwrap();
        std::fs::remove_dir_all(home.state().join("checkpoints")).unwrap();
        let resumed = home.trackway(&["resume", "lost"]);
        assert_eq!(resumed.code, 7, "{}{}", resumed.stdout, resumed.stderr);
        assert!(resumed.stderr.contains("not launched: step 3 was committed"), "{}", resumed.stderr);
        assert!(resumed.stderr.contains("restore the checkpoints, or start a new run"), "{}", resumed.stderr);
        assert!(!home.path().join("pid").exists(), "it began again");
    }
}

fn kill_process(pid: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    eventually("the end of a process", || (!alive(pid)).then_some(()));
}

/// The process id of the shim of the newest attempt.
fn shim_pid(home: &Home) -> i32 {
    eventually("the shim", || {
        let found = files_below(&home.state()).into_iter().find(|path| path.ends_with("shim.json"))?;
        let record: Value = serde_json::from_slice(&std::fs::read(found).ok()?).ok()?;
        record["child"]["pid"].as_i64()?;
        i32::try_from(record["shim"]["pid"].as_i64()?).ok()
    })
}

/// Proves that a kill is called a kill: by `stop --kill`, also of an attempt whose shim was stopped, by the receipt,
/// and by a second `stop`, which does not wait for the grace period of the first.
#[test]
fn a_kill_is_not_called_graceful() {
    let stopped = |shim_is_stopped: bool, first: &[&str]| {
        let home = Home::new();
        let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done";
        let text = format!(
            "[run]\nname = \"deaf\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n[supervise]\ngrace = \"10m\"\n"
        );
        home.write("deaf.toml", &text);
        let supervisor = home.spawn(&["run", "deaf.toml", "--json"]);
        script_pid(&home);
        if shim_is_stopped {
            let shim = nix::unistd::Pid::from_raw(shim_pid(&home));
            nix::sys::signal::kill(shim, Signal::SIGSTOP).unwrap();
        }
        let asked = home.json(&[&["stop", "deaf"], first].concat());
        let modes = match first {
            [] => [asked["mode"].clone(), home.json(&["stop", "deaf"])["mode"].clone()],
            _ => [asked["mode"].clone(), "kill".into()],
        };
        let run: Value = serde_json::from_slice(&supervisor.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!((&run["attempts"][0]["signal"], &run["state"]), (&9.into(), &"stopped".into()), "{run}");
        let evidence = home.json(&["explain", "deaf"])["termination"]["evidence"].to_string();
        assert!(evidence.contains("SIGKILL at once"), "{evidence}");
        assert!(!evidence.contains("grace"), "{evidence}");
        modes.map(|mode| mode.as_str().unwrap().to_owned())
    };
    assert_eq!(stopped(false, &["--kill"]), ["kill", "kill"]);
    assert_eq!(stopped(true, &["--kill"]), ["kill", "kill"]);
    assert_eq!(stopped(false, &[]), ["graceful", "kill"]);
    assert_eq!(stopped(true, &[]), ["graceful", "kill"]);
}

/// Proves that a killed supervisor costs nothing: the script continues, and the next command seals its receipt.
#[test]
fn a_killed_supervisor_costs_nothing() {
    let home = Home::new();
    let script = format!("echo $$ > pid; {UNTIL_GO}; echo done > done; exit 3");
    let mut supervisor = home.spawn(&["run", "--", "sh", "-c", &script]);
    let pid = script_pid(&home);
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    assert!(alive(pid), "the script died with its supervisor");
    let rows = home.sql("select state, termination_reason from training_attempts");
    assert_eq!(rows[0]["termination_reason"], Value::Null, "a live attempt was declared dead: {rows:?}");
    home.go();
    eventually("the script's end", || home.path().join("done").exists().then_some(()));
    eventually("a sealed receipt", || {
        let rows = home.sql("select exit_code from training_attempts where sealed_at is not null");
        (rows.len() == 1).then(|| assert_eq!(rows[0]["exit_code"], 3))
    });
}

/// Proves that `resume` attaches to a live attempt and sees it to its end.
#[test]
fn resume_attaches_to_a_live_attempt() {
    let home = Home::new();
    let mut supervisor = home.spawn(&["run", "--", "sh", "-c", "echo $$ > pid; sleep 2; echo bye"]);
    script_pid(&home);
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    let run = home.json(&["resume", "last"]);
    assert_eq!(run["state"], "completed", "{run}");
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1));
}

/// Proves that Ctrl-C reaches the script as it would without Trackway, stops gracefully, and is recorded as cancelled.
#[test]
fn ctrl_c_cancels() {
    let home = Home::new();
    let script = "trap 'echo saw Ctrl-C; exit 0' INT; echo $$ > pid; while :; do sleep 0.05; done";
    let supervisor = home.spawn(&["run", "--json", "--", "sh", "-c", script]);
    script_pid(&home);
    signal(&supervisor, Signal::SIGINT);
    let answer = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(run["state"], "stopped");
    assert_eq!(run["attempts"][0]["termination_reason"], "cancelled");
    assert_eq!(run["attempts"][0]["exit_code"], 0);
    assert!(home.trackway(&["logs", "last"]).stdout.contains("saw Ctrl-C"));
}

/// Proves that a limit on the size of files (`ulimit -f`) is an error with a sentence and a way out, and kills no
/// process of Trackway; and that a script meets the limit as it would without Trackway.
#[test]
fn a_limit_of_files_is_reported() {
    let home = Home::new();
    let limited = |blocks: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new("bash");
        let plain = home.command(&[]);
        command.args(["-c", &format!("ulimit -f {blocks}; exec \"$@\""), "bash"]);
        command.arg(plain.get_program()).args(arguments).current_dir(home.path()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        answer(command.output().unwrap())
    };
    let refused = limited("100", &["run", "--", "true"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("ulimit -f unlimited"), "{}", refused.stderr);
    let script = "head -c 20000000 /dev/zero > large; echo code $?; head -c 20000000 /dev/zero | tr '\\0' x";
    let ran = limited("10000", &["run", "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("code 153"), "SIGXFSZ ended what wrote the file");
    let explained = home.trackway(&["explain", "last"]);
    assert!(explained.stdout.contains("output_lost"), "{}", explained.stdout);
}

/// Proves that a second Ctrl-C kills a script that ignores signals, long before its grace period is over.
#[test]
fn ctrl_c_twice_kills() {
    let home = Home::new();
    let supervisor = home.spawn(&[
        "run",
        "--json",
        "--",
        "sh",
        "-c",
        "trap '' INT TERM; echo $$ > pid; while :; do sleep 0.05; done",
    ]);
    let pid = script_pid(&home);
    signal(&supervisor, Signal::SIGINT);
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert!(alive(pid), "one Ctrl-C must leave the grace period");
    signal(&supervisor, Signal::SIGINT);
    let answer = answer(supervisor.wait_with_output().unwrap());
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(run["attempts"][0]["signal"], 9, "{run}");
    assert_eq!(run["attempts"][0]["termination_reason"], "cancelled");
    assert!(!alive(pid));
}

/// Proves that an attempt whose shim was lost before the script reported a step took the time until then, and costs it.
#[test]
fn an_attempt_without_its_shim_costs_its_time() {
    let home = Home::new();
    home.has_gpus(1);
    let file = home.write(
        "lost.toml",
        "[run]\nname = \"lost\"\ncommand = [\"sh\", \"-c\", \"sleep 4; kill -9 $PPID\"]\n\
         [resources]\ngpus = 1\nusd_per_gpu_hour = 3600.0\n[retry]\nmax_usd = 100\nunknown = { attempts = 0 }\n",
    );
    home.trackway(&["run", "--skip-preflight", "--why", "a test", file.to_str().unwrap()]);
    let rows = home.sql("select wall_seconds, cost_usd from training_attempts");
    let (seconds, usd) = (rows[0]["wall_seconds"].as_f64().unwrap(), rows[0]["cost_usd"].as_f64().unwrap());
    assert!((2.0..30.0).contains(&seconds) && (seconds - usd).abs() < 0.01, "{rows:?}");
}

/// Proves that fifty runs that start at the same time in one home all run.
#[test]
fn many_runs_start_at_once() {
    let home = Home::new();
    let runs: Vec<Child> = (0..50).map(|_| home.spawn(&["run", "--", "true"])).collect();
    for run in runs {
        let answer = answer(run.wait_with_output().unwrap());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
    let ended =
        home.sql("select count(*) as ended from training_attempts where termination_reason = 'completed'");
    assert_eq!(ended[0]["ended"], 50);
}

/// Proves that `stop` reaches a run in another terminal, through the control file and SIGTERM, and that a script that
/// ignores both is killed after its grace period.
#[test]
fn stop_ends_a_script_that_ignores_sigterm() {
    let home = Home::new();
    let file = home.write(
        "deaf.toml",
        "[run]\nname = \"deaf\"\ncommand = [\"sh\", \"-c\", \"trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done\"]\n[supervise]\ngrace = \"1s\"\n",
    );
    let supervisor = home.spawn(&["run", "--json", file.to_str().unwrap()]);
    let pid = script_pid(&home);
    assert_eq!(home.trackway(&["stop", "deaf", "--why", "enough"]).code, 0);
    let answer = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(run["attempts"][0]["termination_reason"], "cancelled");
    assert!(!alive(pid));
    let control =
        files_below(&home.state()).into_iter().find(|path| path.ends_with("control.jsonl")).unwrap();
    assert!(std::fs::read_to_string(control).unwrap().contains("enough"));
    let page = home.trackway(&["explain", "deaf"]).stdout;
    assert!(page.contains("enough"), "{page}");
}

/// Proves that a time limit ends the attempt as `timeout`, whatever the exit status looks like.
#[test]
fn a_time_limit_is_a_timeout() {
    let home = Home::new();
    let file = home.write(
        "slow.toml",
        "[run]\nname = \"slow\"\ncommand = [\"sleep\", \"30\"]\n[supervise]\ntimeout = \"1s\"\ngrace = \"1s\"\n",
    );
    let run = home.json(&["run", file.to_str().unwrap()]);
    assert_eq!(run["attempts"][0]["termination_reason"], "timeout", "{run}");
}

/// Proves that a fault injected at a step is done once, recorded as what it is, and followed by another attempt.
#[test]
fn an_injected_kill_is_followed_by_another_attempt() {
    let home = Home::new();
    home.write(
        "job.sh",
        "[ ! -e first ] || second=1; touch first\n\
         for i in 1 2 3 4 5 6 7 8; do echo \"{\\\"step\\\": $i, \\\"loss\\\": 1}\"; sleep 0.1; done\n\
         [ -n \"$second\" ] || sleep 60\n",
    );
    home.write("job.toml", "[run]\nname = \"job\"\ncommand = [\"sh\", \"job.sh\"]\n[retry]\ninfrastructure = { attempts = 1, backoff = \"0s..0s\" }\n");
    let run = home.json(&["run", "job.toml", "--inject", "kill@step=3"]);
    let attempts = run["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{run}");
    assert_eq!(attempts[0]["signal"], 9);
    assert_eq!(attempts[1]["termination_reason"], "completed");
    assert!(
        home.trackway(&["explain", attempts[0]["attempt_id"].as_str().unwrap()]).stdout.contains("--inject")
    );
}

/// Proves that a script that forks and exits is followed while the fork holds its output, and that a process which
/// released the output is ended with the attempt.
#[test]
fn a_script_that_forks_and_exits_is_followed() {
    let home = Home::new();
    let (code, _) = home.run_script(&[], "(sleep 1; echo from the fork) & exit 0");
    assert_eq!(code, 0);
    assert!(home.trackway(&["logs", "last"]).stdout.contains("from the fork"));
    let (code, _) = home.run_script(&[], "sleep 300 > /dev/null 2>&1 & echo $! > pid; exit 0");
    assert_eq!(code, 0);
    assert!(!alive(script_pid(&home)), "the background process outlived the attempt");
    let events = home.sql("select message from events where kind = 'processes_ended'");
    assert_eq!(
        events.last().unwrap()["message"],
        "1 process that the script left behind was ended: `sleep`",
        "{events:?}"
    );
}

/// Proves that a script which ended with code 0 has completed, whatever limit of silence there is, although a process
/// that it left behind holds its output, and that this process is ended soon after it and named.
#[test]
fn what_a_script_leaves_behind_is_no_hang() {
    let home = Home::new();
    home.write("job.sh", "sleep 300 &\necho $! > pid\necho '{\"step\": 1, \"loss\": 1}'\n");
    home.write(
        "job.toml",
        "[run]\nname = \"job\"\ncommand = [\"sh\", \"job.sh\"]\n[supervise]\nhang_after = \"2s\"\n",
    );
    let run = home.json(&["run", "job.toml"]);
    let attempts = run["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "{run}");
    assert_eq!(attempts[0]["termination_reason"], "completed", "{run}");
    assert!(!alive(script_pid(&home)), "the process that was left outlived the attempt");
    let events = home.sql("select message from events where kind = 'processes_ended'");
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0]["message"].as_str().unwrap().contains("`sleep`"), "{events:?}");
}

/// Proves that two runs at once in one home both leave whole receipts.
#[test]
fn two_runs_at_once_share_a_home() {
    let home = Home::new();
    let runs: Vec<_> =
        (0..4).map(|_| home.spawn(&["run", "--json", "--", "sh", "-c", "sleep 0.2; echo ok"])).collect();
    for run in runs {
        let answer = answer(run.wait_with_output().unwrap());
        assert_eq!(answer.code, 0, "{}", answer.stderr);
    }
    let rows = home.sql("select count(*) as sealed from training_attempts where sealed_at is not null");
    assert_eq!(rows[0]["sealed"], 4);
}

/// Proves that a ledger locked by another process stops a launch with a clear message, and launches nothing.
#[test]
fn a_locked_ledger_launches_nothing() {
    let home = Home::new();
    assert_eq!(home.run_script(&[], "true").0, 0);
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    ledger.execute_batch("begin exclusive").unwrap();
    let answer = home.trackway(&["run", "--", "sh", "-c", "echo started > started"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    assert!(answer.stderr.contains("locked"), "{}", answer.stderr);
    assert!(!home.path().join("started").exists());
}

/// Proves that a ledger that is locked while an attempt ends loses nothing: the receipt is sealed later.
#[test]
fn a_ledger_locked_at_the_end_loses_nothing() {
    let home = Home::new();
    let mut supervisor =
        home.spawn(&["run", "--", "sh", "-c", &format!("echo $$ > pid; {UNTIL_GO}; exit 5")]);
    script_pid(&home);
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    // The script starts before it is in the ledger.
    eventually("the attempt to run in the ledger", || {
        let query = "select count(*) from training_attempts where state = 'running'";
        ledger.query_row(query, [], |row| row.get::<_, i64>(0)).ok().filter(|count| *count == 1)
    });
    eventually("the lock", || ledger.execute_batch("begin exclusive").ok());
    home.go();
    // Printed once a writer has waited for another one as long as it does: the supervisor must come back for it.
    let mut said = BufReader::new(supervisor.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting for the ledger") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended without a word about the ledger");
    }
    ledger.execute_batch("rollback").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(supervisor.wait().unwrap().code(), Some(4), "{rest}");
    assert!(rest.contains("the ledger is available again"), "{rest}");
    let rows = home.sql("select exit_code from training_attempts where sealed_at is not null");
    assert_eq!(rows[0]["exit_code"], 5);
}

/// Proves that a huge output without a newline is passed on and stored whole.
#[test]
fn output_without_a_newline_is_stored_whole() {
    let home = Home::new();
    let megabytes = 64;
    let answer = home.trackway(&[
        "run",
        "--",
        "sh",
        "-c",
        &format!("head -c {megabytes}000000 /dev/zero | tr '\\0' x"),
    ]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(answer.stdout.len(), megabytes * 1_000_000);
    let log = files_below(&home.state()).into_iter().find(|path| path.ends_with("stdout.log")).unwrap();
    assert_eq!(log.metadata().unwrap().len(), megabytes as u64 * 1_000_000);
}

/// Proves that a sealed receipt cannot be changed, not even directly in the database.
#[test]
fn a_sealed_receipt_cannot_be_changed() {
    let home = Home::new();
    home.run_script(&[], "exit 1");
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    for change in [
        "update training_attempts set termination_reason = 'completed'",
        "delete from training_attempts",
        "delete from retries",
    ] {
        let refused = ledger.execute(change, []).unwrap_err().to_string();
        assert!(refused.contains("trackway integrity: "), "`{change}`: {refused}");
    }
}

/// Proves that a ledger used by two homes does not seal the other home's live attempt.
#[test]
fn another_homes_attempt_is_left_alone() {
    let (here, there) = (Home::new(), Home::new());
    let ledger = here.path().join("shared.db");
    let ledger = ledger.to_str().unwrap();
    let supervisor = here.spawn(&[
        "--ledger",
        ledger,
        "run",
        "--json",
        "--",
        "sh",
        "-c",
        &format!("echo $$ > pid; {UNTIL_GO}; exit 7"),
    ]);
    script_pid(&here);
    assert_eq!(there.trackway(&["--ledger", ledger, "run", "--", "true"]).code, 0);
    here.go();
    let answer = answer(supervisor.wait_with_output().unwrap());
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(run["attempts"][0]["exit_code"], 7, "{run}");
    let attempt = run["attempts"][0]["attempt_id"].as_str().unwrap();
    let logs = there.trackway(&["--ledger", ledger, "logs", attempt]);
    assert_eq!(logs.code, 6);
    assert!(logs.stderr.contains("are in another home: `"), "{}", logs.stderr);
}

/// Proves that a damaged exit record keeps no receipt open: the attempt is proved gone and sealed as unknown.
#[test]
fn a_damaged_exit_record_keeps_no_receipt_open() {
    let home = Home::new();
    let mut supervisor = home.spawn(&["run", "--", "sh", "-c", &format!("echo $$ > pid; {UNTIL_GO}")]);
    script_pid(&home);
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    home.go();
    let record = eventually("the exit record", || {
        files_below(&home.state()).into_iter().find(|path| path.ends_with("exit.json"))
    });
    std::fs::write(record, "{broken").unwrap();
    eventually("a sealed receipt", || {
        let rows = home.sql("select termination_reason from training_attempts where sealed_at is not null");
        (rows.len() == 1).then(|| assert_eq!(rows[0]["termination_reason"], "unknown"))
    });
}

/// Proves that `stop` reaches a run that waits for its next attempt.
#[test]
fn stop_reaches_a_waiting_run() {
    let home = Home::new();
    home.write(
        "job.sh",
        "echo 'requests.exceptions.ConnectionError: Connection reset by peer' >&2; exit 1\n",
    );
    home.write(
        "w.toml",
        "[run]\nname = \"w\"\ncommand = [\"sh\", \"job.sh\"]\n[retry]\ninfrastructure = { attempts = 5, backoff = \"10m..10m\" }\n",
    );
    let supervisor = home.spawn(&["run", "--json", "w.toml"]);
    // Checked by the command, not by the helper: at first there is no home yet.
    eventually("a waiting run", || {
        let states = home.trackway(&["sql", "select state from runs", "--csv"]).stdout;
        states.contains("waiting").then_some(())
    });
    assert_eq!(home.trackway(&["stop", "w"]).code, 0);
    let answer = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(answer.code, 4, "{}", answer.stderr);
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(run["state"], "stopped", "{run}");
    assert_eq!(run["attempts"].as_array().map(Vec::len), Some(1));
}
