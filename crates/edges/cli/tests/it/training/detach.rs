//! Supervisors without a terminal, and the terminal of those that have one.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::{BINARY, Home, UNTIL_GO, eventually};

/// Starts a detached run of this script, whose attempts of unknown end are retried at once.
fn detached(home: &Home, script: &str) -> Value {
    home.write("train.sh", script);
    let file = "[run]\nname = \"night\"\ncommand = [\"sh\", \"train.sh\"]\n\
                [retry]\nunknown = { attempts = 3, backoff = \"0s\" }\n";
    home.write("night.toml", file);
    home.json(&["run", "night.toml", "--detach", "--skip-preflight", "--why", "a test"])
}

fn supervisor(run: &Value) -> Pid {
    Pid::from_raw(i32::try_from(run["supervisor_pid"].as_i64().unwrap()).unwrap())
}

fn state(home: &Home) -> String {
    home.json(&["runs", "--limit", "1"])[0]["state"].as_str().unwrap_or_default().to_owned()
}

/// Proves that a detached run is retried after the command that started it has ended, that SIGHUP does not end its supervisor,
/// that `watch` and `logs` follow it, and that its messages are in the file that the command names.
#[test]
fn retries_outlive_the_command() {
    let home = Home::new();
    let script =
        format!("[ -e second ] || {{ touch second; {UNTIL_GO}; kill -9 $$; }}; echo 'step 7: loss 0.5'\n");
    let run = detached(&home, &script);
    assert_eq!((&run["name"], &run["attempt_number"]), (&json!("night"), &json!(1)), "{run}");
    assert_eq!(state(&home), "running");
    kill(supervisor(&run), Signal::SIGHUP).expect("the supervisor lives");
    let watched = home.json(&["watch", "night", "--once"]);
    assert_eq!(watched["run_id"], run["run_id"], "{watched}");
    home.go();
    eventually("the retry", || (state(&home) == "completed").then_some(()));
    assert_eq!(home.sql("select attempt_number from training_attempts").len(), 2);
    assert!(home.trackway(&["logs", "night"]).stdout.contains("step 7"));
    let log = run["supervisor_log"].as_str().unwrap();
    let log = eventually("the last line", || {
        let text = std::fs::read_to_string(log).unwrap();
        text.contains("completed after 2 attempts").then_some(text)
    });
    assert!(log.contains("attempt 1 ended: ") && !log.contains("step 7"), "{log}");
    eventually("the end of the supervisor", || kill(supervisor(&run), None).is_err().then_some(()));
}

/// Proves that a detached run is stopped as any other, and that the command prints its id alone on standard output.
#[test]
fn a_detached_run_is_stopped() {
    let home = Home::new();
    let script = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
    let answer = home.trackway(&["run", "--detach", "--name", "day", "--", "sh", "-c", script]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let run_id = home.json(&["runs"])[0]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(answer.stdout, format!("{run_id}\n"));
    for part in ["detached: process", "trackway watch", "trackway stop", "trackway logs", "supervisor.log"] {
        assert!(answer.stderr.contains(part), "{part}: {}", answer.stderr);
    }
    assert_eq!(home.trackway(&["stop", "day"]).code, 0);
    eventually("the stop", || (state(&home) == "stopped").then_some(()));
    let refused = home.trackway(&["resume", "nobody", "--detach"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (6, ""), "{}", refused.stderr);
    let resumed = home.json(&["resume", "day", "--detach"]);
    assert_eq!((&resumed["run_id"], &resumed["attempt_number"]), (&json!(run_id), &json!(2)));
    assert_eq!(home.trackway(&["stop", "day", "--kill"]).code, 0);
    eventually("the end", || (state(&home) == "stopped").then_some(()));
}

/// Proves that the command reports what forbids a launch, with the exit code of a run with a terminal, and that nothing of it
/// continues.
#[test]
fn what_is_refused_is_seen_by_the_command() {
    let home = Home::new();
    let absent = home.trackway(&["run", "--detach", "--", "no-such-program"]);
    assert_eq!((absent.code, absent.stdout.as_str()), (2, ""), "{}", absent.stderr);
    assert!(absent.stderr.contains("is not in the PATH"), "{}", absent.stderr);
    let wrong = home.trackway(&["run", "--detach", "--exit-with-child", "--", "true"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    for name in ["train.csv", "test.csv"] {
        home.write(name, "x,label\n1,0\n2,1\n");
    }
    home.write(
        "blocked.toml",
        "[run]\nname = \"blocked\"\ncommand = [\"true\"]\n[data.train]\npath = \"train.csv\"\nlabel = \"label\"\n\
         [data.test]\npath = \"test.csv\"\n",
    );
    let plain = home.trackway(&["run", "blocked.toml"]);
    let blocked = home.trackway(&["run", "blocked.toml", "--detach"]);
    assert_eq!((plain.code, blocked.code), (3, 3), "{}", blocked.stderr);
    let document = home.json(&["run", "blocked.toml", "--detach"]);
    assert_eq!((&document["state"], &document["attempts"]), (&json!("blocked"), &json!([])), "{document}");
}

/// Proves that the status line is not drawn into a progress bar of the script, and that it comes back after it.
#[test]
fn progress_bars_of_the_script_stay_whole() {
    let home = Home::new();
    let bar =
        "printf '\\r10%%|#'; sleep 0.7; printf '\\r20%%|##'; sleep 0.7; printf '\\rdone\\n'; sleep 0.7\n";
    home.write("bar.sh", bar);
    let command = format!("{BINARY} run -- sh bar.sh");
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-e", "-c", &command, "/dev/null"]).current_dir(home.path());
    terminal.env("TRACKWAY_HOME", home.state()).env("TERM", "xterm").env("NO_COLOR", "1");
    let Ok(answer) = terminal.stdin(std::process::Stdio::null()).output() else {
        trackway_skip::skip!("progress bars in a terminal need `script` of util-linux");
        return;
    };
    let shown = String::from_utf8_lossy(&answer.stdout);
    let Some((_, after)) = shown.split_once("\r10%|#\r20%|##\rdone\r\n") else {
        panic!("the bar is not whole: {shown:?}")
    };
    assert!(after.contains("running"), "the status line comes back: {shown:?}");
}
