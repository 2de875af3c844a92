//! `trackway run --queue`: at most so many runs of a queue at once.

use std::process::Child;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{Home, UNTIL_GO, answer, eventually, signal};

/// A home whose user lets so many runs of the queue `gpu` run at once.
fn home(at_most: u32) -> Home {
    let home = Home::new();
    let folder = home.path().join("settings/trackway");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), format!("[queues.gpu]\nat_most = {at_most}\n")).unwrap();
    home
}

fn queued(home: &Home, name: &str, script: &str) -> Child {
    home.spawn(&["run", "--json", "--queue", "gpu", "--name", name, "--", "sh", "-c", script])
}

/// How many events of this kind the ledger has.
fn count(home: &Home, kind: &str) -> u64 {
    let rows = home.sql(&format!("select count(*) as found from events where kind = '{kind}'"));
    rows[0]["found"].as_u64().unwrap()
}

fn state_of(home: &Home, name: &str) -> Value {
    home.sql(&format!("select state from runs where name = '{name}'"))[0]["state"].clone()
}

fn ends(run: Child, code: i32) {
    let ended = answer(run.wait_with_output().unwrap());
    assert_eq!(ended.code, code, "{}{}", ended.stdout, ended.stderr);
}

/// Proves that of four runs of a queue of two never more than two run at once, that the others are shown as waiting
/// with their queue and their place in it, that all four complete, and that nothing of a run begins before it has its
/// place.
#[test]
fn no_more_runs_than_places() {
    let home = home(2);
    let script = format!("touch in-$$; ls in-* | wc -l >> counts; {UNTIL_GO}; rm in-$$");
    let runs: Vec<Child> = (1..=4).map(|number| queued(&home, &format!("r{number}"), &script)).collect();
    eventually("two runs that wait", || (count(&home, "queue_joined") == 2).then_some(()));
    eventually("two runs that run", || {
        let counts = std::fs::read_to_string(home.path().join("counts")).unwrap_or_default();
        (counts.lines().count() == 2).then_some(())
    });
    let waiting = home.sql("select name from runs where state = 'waiting' order by name");
    assert_eq!(waiting.len(), 2, "{waiting:?}");
    let sample = home.json(&["watch", waiting[0]["name"].as_str().unwrap(), "--once"]);
    assert_eq!(
        (&sample["queue"]["name"], &sample["queue"]["running"]),
        (&json!("gpu"), &json!(2)),
        "{sample}"
    );
    let explained = home.trackway(&["explain", waiting[0]["name"].as_str().unwrap()]);
    assert!(explained.stdout.contains(" of 2 in queue gpu, 2 may run (2 running)"), "{}", explained.stdout);
    let listed = home.json(&["runs", "--where", "state = 'waiting'"]);
    let mut places: Vec<&Value> =
        listed.as_array().unwrap().iter().map(|run| &run["queue"]["place"]).collect();
    places.sort_by_key(|place| place.as_u64());
    assert_eq!(places, [&json!(1), &json!(2)], "{listed}");
    home.go();
    runs.into_iter().for_each(|run| ends(run, 0));
    let counts = std::fs::read_to_string(home.path().join("counts")).unwrap();
    let counts: Vec<u32> = counts.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(counts.len() == 4 && counts.iter().all(|count| *count <= 2), "{counts:?}");
    assert_eq!(count(&home, "queue_place_taken"), 4);
    let early = "select count(*) as found from training_attempts a join events e on e.run_id = a.run_id \
                 where e.kind = 'queue_place_taken' and a.started_at < e.at";
    assert_eq!(home.sql(early)[0]["found"], 0);
}

/// Proves that a supervisor that is killed leaves its place to its script, and that the next run gets the place once that is killed too.
#[test]
fn a_killed_run_frees_its_place() {
    let home = home(1);
    let mut first = queued(&home, "first", &format!("echo $$ > pid.new; mv pid.new pid; {UNTIL_GO}"));
    let pid = eventually("the script", || std::fs::read_to_string(home.path().join("pid")).ok());
    let mut second = queued(&home, "second", "true");
    eventually("the second in the line", || (count(&home, "queue_joined") == 1).then_some(()));
    signal(&first, Signal::SIGKILL);
    first.wait().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(second.try_wait().unwrap().is_none(), "the script of the first still runs");
    let script = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
    nix::sys::signal::kill(script, Signal::SIGKILL).unwrap();
    ends(second, 0);
}

/// Proves that the place of a run stays taken by its rehearsal where the supervisor is killed meanwhile, and is free
/// once the rehearsal has ended.
#[test]
fn a_rehearsal_holds_the_place_of_its_run() {
    let home = home(1);
    // What a rehearsal writes in its own folder is not seen outside of it.
    let elsewhere = Home::new();
    let pid = elsewhere.path().join("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; {UNTIL_GO}", pid.display());
    let command = json!(["sh", "-c", script]);
    home.write(
        "job.toml",
        &format!("[run]\nname = \"first\"\ncommand = {command}\n[preflight]\none_batch = true\n"),
    );
    let mut first = home.spawn(&["run", "--json", "--queue", "gpu", "job.toml"]);
    let pid = eventually("the rehearsal", || std::fs::read_to_string(&pid).ok());
    assert_eq!(home.sql("select kind from runs where kind <> 'train'"), [json!({ "kind": "one_batch" })]);
    let mut second = queued(&home, "second", "true");
    eventually("the second in the line", || (count(&home, "queue_joined") == 1).then_some(()));
    signal(&first, Signal::SIGKILL);
    first.wait().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert!(second.try_wait().unwrap().is_none(), "the rehearsal still runs");
    let script = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
    nix::sys::signal::kill(script, Signal::SIGKILL).unwrap();
    ends(second, 0);
}

/// Proves that every view of a run that waits for a place says that no process supervises it once its supervisor was
/// killed, with what to do, that `watch` then ends, that the one behind it does not wait for it, and that a resume
/// continues it.
#[test]
fn a_wait_without_a_supervisor_is_said() {
    let home = home(1);
    let first = queued(&home, "first", &format!("touch began; {UNTIL_GO}"));
    eventually("the script", || home.path().join("began").exists().then_some(()));
    let mut second = queued(&home, "second", "true");
    eventually("the second in the line", || (count(&home, "queue_joined") == 1).then_some(()));
    let third = queued(&home, "third", "true");
    eventually("the third in the line", || (count(&home, "queue_joined") == 2).then_some(()));
    assert_eq!(home.json(&["watch", "second", "--once"])["unsupervised"], false);
    signal(&second, Signal::SIGKILL);
    second.wait().unwrap();
    for command in ["watch", "explain", "attempts"] {
        let shown = home.trackway(&[command, "second"]);
        let text = shown.stdout + &shown.stderr;
        assert_eq!(shown.code, 0, "{command}: {text}");
        assert!(text.contains("no process supervises it"), "{command}: {text}");
        assert!(text.contains("trackway resume run_"), "{command}: {text}");
    }
    let listed = home.trackway(&["runs"]);
    assert!(listed.stdout.contains("waiting, no process supervises it"), "{}", listed.stdout);
    assert!(listed.stderr.contains("trackway resume run_"), "{}", listed.stderr);
    let listed = home.json(&["runs", "--where", "name = 'second'"]);
    assert_eq!((&listed[0]["unsupervised"], &listed[0]["queue"]["place"]), (&json!(true), &Value::Null));
    let explained = home.json(&["explain", "second"]);
    assert_eq!(explained["run"]["unsupervised"], true, "{explained}");
    let behind = home.json(&["watch", "third", "--once"]);
    assert_eq!((&behind["queue"]["place"], &behind["queue"]["waiting"]), (&json!(1), &json!(1)), "{behind}");
    home.go();
    ends(first, 0);
    ends(third, 0);
    let resumed = home.trackway(&["resume", "second"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

/// Proves that Ctrl-C ends a run that waits at once, as a stopped run that can be explained and that a resume
/// continues; that `--detach` does not wait for a place; that `trackway stop` reaches a run that waits; and that a ledger
/// which is rebuilt has what happened in the queue.
#[test]
fn a_run_that_waits_can_be_stopped() {
    let home = home(1);
    let first = queued(&home, "first", &format!("touch began; {UNTIL_GO}"));
    eventually("the script", || home.path().join("began").exists().then_some(()));
    let second = queued(&home, "second", "true");
    eventually("the second in the line", || (count(&home, "queue_joined") == 1).then_some(()));
    signal(&second, Signal::SIGINT);
    ends(second, 4);
    assert_eq!(state_of(&home, "second"), "stopped");
    let explained = home.json(&["explain", "second"]);
    assert_eq!((&explained["run"]["state"], &explained["attempt"]), (&json!("stopped"), &Value::Null));
    let events = explained["timeline"].as_array().unwrap();
    for kind in ["queue_joined", "queue_left"] {
        assert!(events.iter().any(|event| event["kind"] == kind), "{kind}: {explained}");
    }
    assert!(explained["next_actions"][0].as_str().unwrap().contains("trackway resume run_"), "{explained}");

    let third =
        home.trackway(&["run", "--json", "--detach", "--queue", "gpu", "--name", "third", "--", "true"]);
    let detached: Value = serde_json::from_str(&third.stdout).unwrap();
    assert_eq!((third.code, &detached["attempt_id"]), (0, &Value::Null), "{}", third.stderr);
    eventually("the third in the line", || (state_of(&home, "third") == "waiting").then_some(()));
    let stopped = home.trackway(&["stop", "third"]);
    assert!(stopped.stderr.contains("the next attempt does not start"), "{}", stopped.stderr);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    eventually("the end of the third", || (state_of(&home, "third") == "stopped").then_some(()));

    home.go();
    ends(first, 0);
    let resumed = home.trackway(&["resume", "second"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(state_of(&home, "second"), "completed");

    let timeline = || home.json(&["explain", "third"])["timeline"].clone();
    let before = timeline();
    for part in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(home.state().join(format!("ledger.db{part}")));
    }
    eventually("the rebuild", || (home.trackway(&["doctor", "rebuild"]).code == 0).then_some(()));
    assert!(before.as_array().unwrap().len() >= 2, "{before}");
    assert_eq!(timeline(), before);
}

/// Proves that the receipt of a run names the script as it was when the run got its place, and not as it was when the run began to wait.
#[test]
fn what_changed_while_a_run_waited_is_recorded() {
    let home = home(1);
    home.write("train.sh", "echo before");
    let first = queued(&home, "first", &format!("touch began; {UNTIL_GO}"));
    eventually("the script", || home.path().join("began").exists().then_some(()));
    let of_script =
        |name: &str| home.spawn(&["run", "--json", "--queue", "gpu", "--name", name, "--", "sh", "train.sh"]);
    let second = of_script("second");
    eventually("the second in the line", || (count(&home, "queue_joined") == 1).then_some(()));
    home.write("train.sh", "echo after");
    home.go();
    ends(first, 0);
    ends(second, 0);
    ends(of_script("third"), 0);
    let scripts = "select distinct a.script_blake3 from training_attempts a join runs r on r.run_id = a.run_id \
                   where r.name in ('second', 'third')";
    let found = home.sql(scripts);
    assert!(found.len() == 1 && found[0]["script_blake3"].is_string(), "{found:?}");
}
