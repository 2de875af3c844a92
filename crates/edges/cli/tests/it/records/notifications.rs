//! Notifications, as a real server gets them: one that takes them, one that fails, one that does not answer, and none.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use trackway_api::contract::catalogue::DOCUMENTS;

use crate::evaluations::{GOOD, write_job};
use crate::harness::{Home, files_below, signal};
use crate::validate::faults;

/// What a server of a test does with a request.
#[derive(Clone, Copy, PartialEq)]
enum ServerBehaviour {
    Answer(u16),
    /// Refuses so many requests, and takes those that come then.
    FailFirst(usize),
    Hang,
}

/// A server on this machine; its address, and the documents that it gets.
fn server(does: ServerBehaviour) -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hooks/s3cret-path", listener.local_addr().unwrap());
    let (sender, documents) = channel();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut size = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
                    break;
                }
                let line = line.to_lowercase();
                size = line.strip_prefix("content-length:").map_or(size, |text| text.trim().parse().unwrap());
            }
            let mut body = vec![0; size];
            if reader.read_exact(&mut body).is_err()
                || sender.send(serde_json::from_slice(&body).unwrap()).is_err()
            {
                return;
            }
            let does = match does {
                ServerBehaviour::FailFirst(count) => {
                    ServerBehaviour::Answer(if number < count { 503 } else { 204 })
                }
                does => does,
            };
            match does {
                ServerBehaviour::Answer(status) => {
                    let head =
                        format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                    let _ = stream.write_all(head.as_bytes());
                }
                ServerBehaviour::Hang | ServerBehaviour::FailFirst(_) => open.push(stream),
            }
        }
    });
    (address, documents)
}

/// A home whose commands know the address, and a run file that prints a loss that is not a number.
fn home(address: &str, script: &str) -> Home {
    let home = Home::with(&[("HOOK".into(), address.into())]);
    home.write("train.sh", script);
    home.write(
        "hooked.toml",
        "[run]\nname = \"hooked\"\ncommand = [\"sh\", \"train.sh\"]\n[notify]\nwebhook = { env = \"HOOK\" }\n",
    );
    home
}

fn run(home: &Home) -> crate::harness::Answer {
    home.trackway(&["run", "hooked.toml", "--skip-preflight", "--why", "a test"])
}

fn failures(home: &Home) -> Vec<Value> {
    home.sql("select message, fields_json from events where kind = 'notification_failed' order by at")
}

/// Proves that a webhook gets what a detector found and then the end, as documents of the schema and without secrets, and that a
/// run with notifications has no other receipt.
#[test]
fn a_webhook_gets_detections_and_the_end() {
    let (address, documents) = server(ServerBehaviour::Answer(204));
    let lines = "for step in 1 2 3; do echo \"step $step: loss 0.5\"; done; sleep 1; \
                 echo 'step 4: loss nan'; sleep 1; echo 'step 5: loss 0.5'; sleep 1";
    let home = home(&address, &format!("{lines}\n"));
    let done = run(&home);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let entry = DOCUMENTS.iter().find(|entry| entry.name == "notify").unwrap();
    let schema = serde_json::Value::Object(entry.schema().unwrap());
    let next = || {
        let document = documents.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(faults(&schema, &document), Vec::<String>::new(), "{document}");
        document
    };
    let found = next();
    assert_eq!(
        (&found["about"], &found["detection"]["detector"]),
        (&json!("detection"), &json!("non_finite"))
    );
    assert_eq!((&found["version"], &found["run"]["name"]), (&json!(1), &json!("hooked")));
    let end = loop {
        let document = next();
        if document["about"] == "end" {
            break document;
        }
    };
    assert_eq!(
        (&end["run"]["state"], &end["run"]["attempt_count"]),
        (&json!("completed"), &json!(1)),
        "{end}"
    );
    assert!(end["text"].as_str().unwrap().starts_with("run `hooked` completed"), "{end}");
    assert_eq!(failures(&home), Vec::<Value>::new());
    let stored = home.sql("select config_json from runs")[0].to_string();
    assert!(!stored.contains("s3cret-path") && stored.contains("HOOK"), "{stored}");
}

/// Proves that an episode which gets worse, NaN that stays, is one message, and that the end says what the health of the run is.
#[test]
fn an_episode_is_one_message() {
    let (address, documents) = server(ServerBehaviour::Answer(204));
    let lines = "for step in $(seq 1 5); do echo \"step $step: loss 0.5\"; done; sleep 1; \
                 for step in $(seq 6 30); do echo \"step $step: loss nan\"; sleep 0.1; done; sleep 1";
    let home = home(&address, &format!("{lines}\n"));
    assert_eq!(run(&home).code, 4);
    let sent: Vec<Value> = documents.try_iter().collect();
    let about_nan = sent.iter().filter(|it| it["detection"]["detector"] == "non_finite").count();
    let found = home.sql("select count(*) as count from detections where detector = 'non_finite'");
    assert_eq!((about_nan, &found[0]["count"]), (1, &json!(2)), "{sent:?}");
    let end = sent.iter().find(|it| it["about"] == "end").unwrap_or_else(|| panic!("{sent:?}"));
    assert_eq!(end["run"]["health"], "broken", "{end}");
    assert!(end["text"].as_str().unwrap().ends_with(", and is broken"), "{end}");
}

/// Proves that a webhook that answers 500 is tried four times, that the run completes, and that the failure is in `explain`
/// without the secret part of the address.
#[test]
fn a_failing_webhook_fails_no_run() {
    let (address, documents) = server(ServerBehaviour::Answer(500));
    let home = home(&address, "echo 'step 1: loss 0.5'\n");
    let done = run(&home);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(documents.try_iter().count(), 4);
    let recorded = failures(&home);
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    let text = home.trackway(&["explain", "hooked"]).stdout;
    assert!(text.contains("after 4 tries: it answered with status 500"), "{text}");
    assert!(text.contains("http://127.0.0.1:"), "{text}");
    assert!(!(text + &done.stderr).contains("s3cret-path"));
}

/// Proves that a webhook that refuses is tried once, and that one that is not there, or does not answer, is a bounded wait at
/// the end of a run and a failure that is recorded.
#[test]
fn a_webhook_that_is_not_there() {
    let (address, documents) = server(ServerBehaviour::Answer(404));
    let refusing = home(&address, "echo 'step 1: loss 0.5'\n");
    assert_eq!(run(&refusing).code, 0);
    assert_eq!(documents.try_iter().count(), 1);
    let (address, _documents) = server(ServerBehaviour::Hang);
    let hanging = home(&address, "echo 'step 1: loss 0.5'\n");
    let began = std::time::Instant::now();
    assert_eq!(run(&hanging).code, 0);
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let absent = home("http://127.0.0.1:9/hooks/s3cret-path", "echo 'step 1: loss 0.5'\n");
    let done = run(&absent);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for home in [&refusing, &hanging, &absent] {
        let recorded = failures(home);
        assert_eq!(recorded.len(), 1, "{recorded:?}");
        assert!(!recorded[0].to_string().contains("s3cret-path"), "{recorded:?}");
    }
    let unset = Home::new();
    unset.write(
        "hooked.toml",
        "[run]\nname = \"a\"\ncommand = [\"true\"]\n[notify]\nwebhook = { env = \"HOOK_NOT_SET\" }\n",
    );
    let done = run(&unset);
    assert!(
        done.code == 0 && done.stderr.contains("`HOOK_NOT_SET` of `notify.webhook` is not set"),
        "{}",
        done.stderr
    );
    assert_eq!(failures(&unset).len(), 1);
}

/// Proves that a test notification goes to the webhook of the settings or of a run file, that `--json` prints what is sent, and
/// that the exit code says whether it was taken.
#[test]
fn a_test_notification_is_sent() {
    let (address, documents) = server(ServerBehaviour::Answer(200));
    let home = Home::with(&[("TRACKWAY_WEBHOOK".into(), address.clone()), ("HOOK".into(), address)]);
    let sent = home.json(&["config", "notify"]);
    assert_eq!((&sent["about"], documents.recv().unwrap()), (&json!("test"), sent.clone()));
    home.write(
        "hooked.toml",
        "[run]\nname = \"a\"\ncommand = [\"true\"]\n[notify]\nwebhook = { env = \"HOOK\" }\n",
    );
    let answer = home.trackway(&["config", "notify", "hooked.toml"]);
    assert!(answer.code == 0 && answer.stderr.contains("has taken a test notification"), "{}", answer.stderr);
    assert_eq!(documents.recv().unwrap()["about"], "test");
    let shown = home.trackway(&["config"]).stdout;
    assert!(shown.contains("http://127.0.0.1:") && !shown.contains("s3cret-path"), "{shown}");
    let nowhere = Home::new();
    let answer = nowhere.trackway(&["config", "notify"]);
    assert_eq!((answer.code, answer.stderr.contains("no webhook is set")), (2, true), "{}", answer.stderr);
    let (address, _documents) = server(ServerBehaviour::Answer(403));
    let refused = Home::with(&[("TRACKWAY_WEBHOOK".into(), address)]).trackway(&["config", "notify"]);
    assert_eq!((refused.code, refused.stderr.contains("status 403")), (1, true), "{}", refused.stderr);
}

/// Proves that with `on = ["gate"]` a webhook gets the verdicts of the gates of a run's evaluation, those that are met and those that are
/// not, and neither its detections nor its end.
#[test]
fn a_webhook_gets_the_verdicts_of_gates() {
    let (address, documents) = server(ServerBehaviour::Answer(204));
    let home = Home::with(&[("HOOK".into(), address)]);
    write_job(
        &home,
        GOOD,
        "[notify]\nwebhook = { env = \"HOOK\" }\non = [\"gate\"]\n",
        "task_set = \"tasks-v3.jsonl\"\ngates = [\"grade >= 0.2\", \"value(accuracy) >= 0.9\"]\n",
    );
    let done = home.trackway(&["run", "job.toml"]);
    assert_eq!(done.code, 5, "{}", done.stderr);
    let sent = documents.recv_timeout(Duration::from_secs(20)).unwrap();
    let entry = DOCUMENTS.iter().find(|entry| entry.name == "notify").unwrap();
    let schema = serde_json::Value::Object(entry.schema().unwrap());
    assert_eq!(faults(&schema, &sent), Vec::<String>::new(), "{sent}");
    assert_eq!((&sent["about"], &sent["run"]["name"]), (&json!("gate"), &json!("judged")), "{sent}");
    let verdicts: Vec<Value> =
        sent["gates"].as_array().unwrap().iter().map(|gate| json!([gate["rule"], gate["verdict"]])).collect();
    let expected = [json!(["grade >= 0.2", "pass"]), json!(["value(accuracy) >= 0.9", "fail"])];
    assert_eq!(verdicts, expected, "{sent}");
    assert!(sent["text"].as_str().unwrap().contains("value(accuracy) >= 0.9 (fail)"), "{sent}");
    assert_eq!(documents.try_iter().collect::<Vec<_>>(), Vec::<Value>::new());
    assert_eq!(failures(&home), Vec::<Value>::new());
}

/// What a tick did about notices.
fn duty(report: &Value) -> Value {
    let duties = report["duties"].as_array().unwrap();
    duties.iter().find(|duty| duty["name"] == "outbox").unwrap().clone()
}

/// A home whose run could not deliver that it ended, and its ledger, in which the notice is due.
fn undelivered(address: &str) -> (Home, rusqlite::Connection) {
    let home = home(address, "echo 'step 1: loss 0.5'\n");
    assert_eq!(run(&home).code, 0);
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    ledger.execute("update outbox set next_try_at = 0", []).unwrap();
    (home, ledger)
}

/// Proves that a tick does not send the notices of another home that has the same ledger.
#[test]
fn a_tick_sends_the_notices_of_its_home() {
    let (address, documents) = server(ServerBehaviour::FailFirst(4));
    let (first, _ledger) = undelivered(&address);
    assert_eq!(documents.try_iter().count(), 4);
    let second = home(&address, "true\n");
    assert_eq!(second.trackway(&["run", "--", "true"]).code, 0);
    let shared = first.state().join("ledger.db");
    let other = duty(&second.json(&["--ledger", shared.to_str().unwrap(), "tick"]));
    assert_eq!((&other["outcome"], &other["lines"]), (&json!("done"), &json!([])), "{other}");
    assert_eq!(documents.try_iter().count(), 0);
    assert_eq!(first.sql("select state, tries from outbox"), [json!({ "state": "waiting", "tries": 1 })]);
    let own = duty(&first.json(&["tick"]));
    assert!(own["lines"][0].as_str().unwrap().contains("was taken by"), "{own}");
    assert_eq!(documents.try_iter().count(), 1);
}

/// Proves that a notice that was not delivered is sent although the ledger was lost and rebuilt, once, and that one
/// that arrived is not sent again.
#[test]
fn a_notice_survives_the_loss_of_the_ledger() {
    let (address, documents) = server(ServerBehaviour::FailFirst(4));
    let (home, ledger) = undelivered(&address);
    drop(ledger);
    assert_eq!(documents.try_iter().count(), 4);
    let lose = || {
        for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
            let path = home.state().join(name);
            if path.exists() {
                std::fs::rename(&path, home.path().join(name)).unwrap();
            }
        }
        let rebuilt = home.trackway(&["doctor", "rebuild"]);
        assert_eq!(rebuilt.code, 0, "{}", rebuilt.stderr);
        // The copy knows of the failed try, and when the next one is due.
        let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
        ledger.execute("update outbox set next_try_at = 0 where state = 'waiting'", []).unwrap();
        home.json(&["tick"])
    };
    let ticked = duty(&lose());
    assert!(ticked["lines"][0].as_str().unwrap().contains("was taken by"), "{ticked}");
    assert_eq!(documents.recv_timeout(Duration::from_secs(20)).unwrap()["about"], "end");
    let again = duty(&lose());
    assert_eq!((&again["outcome"], &again["lines"]), (&json!("done"), &json!([])), "{again}");
    assert_eq!(home.sql("select state from outbox"), [json!({ "state": "delivered" })]);
    assert_eq!(documents.try_iter().count(), 0);
}

/// The count of an action of a duty.
fn count(duty: &Value, action: &str) -> Option<u64> {
    let counts = duty["counts"].as_array().unwrap();
    counts.iter().find(|one| one["action"] == action).and_then(|one| one["count"].as_u64())
}

/// Proves that a notice of which nothing shows whether it arrived, since its supervisor was killed while it was sent,
/// is named when the ledger is rebuilt: it may come twice.
#[test]
fn a_notice_that_was_being_sent_is_named_by_a_rebuild() {
    let (address, documents) = server(ServerBehaviour::Hang);
    let home = home(&address, "echo 'step 1: loss 0.5'\n");
    let mut supervisor = home.spawn(&["run", "hooked.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(documents.recv_timeout(Duration::from_secs(60)).unwrap()["about"], "end");
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(home.state().join(name));
    }
    let rebuilt = home.json(&["doctor", "rebuild"]);
    assert_eq!(rebuilt["may_be_sent_again_count"], 1, "{rebuilt}");
    assert_eq!(home.sql("select state, tries from outbox"), [json!({ "state": "waiting", "tries": 1 })]);
    let again = home.json(&["doctor", "rebuild"]);
    assert_eq!(again["may_be_sent_again_count"], 0, "{again}");
}

/// Proves that a notice which waited in a ledger of version 26, which kept no copies, gets one by a tick, so that it is
/// still there when the ledger was lost and rebuilt.
#[test]
fn a_notice_of_an_earlier_version_gets_a_copy() {
    let home = Home::new();
    let folder = home.state().join("runs/run_00000000000000000000000001");
    std::fs::create_dir_all(folder.join("ledger")).unwrap();
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    // It is not too old to be sent.
    let micros = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    let filled = trackway_ledger::conformance::migrations::filled(26, false);
    ledger.execute_batch(&filled.replace(", 7, 'end',", &format!(", {micros}, 'end',"))).unwrap();
    drop(ledger);
    let dry = duty(&home.json(&["tick", "--dry-run"]));
    let is_copy = |path: &std::path::PathBuf| path.to_string_lossy().contains("notice-");
    let copies = || files_below(&folder).into_iter().filter(is_copy);
    assert_eq!((count(&dry, "copies_written"), copies().count()), (Some(1), 0), "{dry}");
    let ticked = duty(&home.json(&["tick"]));
    assert_eq!((count(&ticked, "copies_written"), copies().count()), (Some(1), 1), "{ticked}");
    assert_eq!(count(&ticked, "notices_tried"), Some(0), "{ticked}");
    assert_eq!(home.run_script(&["--skip-preflight", "--why", "a test"], "true").0, 0);
    for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        let _ = std::fs::remove_file(home.state().join(name));
    }
    // Of a run of version 26 that this folder alone shows, the files have no plan.
    let rebuilt = home.trackway(&["doctor", "rebuild", "--json"]);
    let report: Value = serde_json::from_str(&rebuilt.stdout).unwrap();
    assert_eq!(report["may_be_sent_again_count"], 0, "how its last try ended is known: {report}");
    let waiting = home.sql("select notice_id, last_failure from outbox where state = 'waiting'");
    assert_eq!(waiting[0]["notice_id"], "run_00000000000000000000000001:end:2", "{}", rebuilt.stderr);
    assert_eq!(waiting[0]["last_failure"], "it answered with status 503");
}

/// Proves that what a supervisor could not deliver waits in the ledger, that a dry run of a tick says so and sends nothing, and that a tick
/// sends it, once.
#[test]
fn a_tick_delivers_what_a_supervisor_could_not() {
    let (address, documents) = server(ServerBehaviour::FailFirst(4));
    let home = home(&address, "echo 'step 1: loss 0.5'\n");
    assert_eq!(run(&home).code, 0);
    assert_eq!(documents.try_iter().count(), 4);
    let outbox = || home.sql("select state, tries from outbox");
    assert_eq!(outbox(), [json!({ "state": "waiting", "tries": 1 })]);
    let ledger = rusqlite::Connection::open(home.state().join("ledger.db")).unwrap();
    ledger.execute("update outbox set next_try_at = 0", []).unwrap();
    let dry = duty(&home.json(&["tick", "--dry-run"]));
    assert_eq!((&dry["outcome"], count(&dry, "notices_tried")), (&json!("due"), Some(1)), "{dry}");
    assert!(dry["lines"][0].as_str().unwrap().contains("(end) of run run_"), "{dry}");
    assert!(
        dry.to_string().contains("would be sent to http://127.0.0.1:") && !dry.to_string().contains("s3cret")
    );
    assert_eq!(documents.try_iter().count(), 0);
    let ticked = duty(&home.json(&["tick"]));
    assert_eq!(ticked["outcome"], "done", "{ticked}");
    let counts = ["notices_tried", "notices_delivered", "notices_given_up"].map(|it| count(&ticked, it));
    assert_eq!(counts, [Some(1), Some(1), Some(0)], "{ticked}");
    assert!(ticked["lines"][0].as_str().unwrap().contains("was taken by"), "{ticked}");
    assert_eq!(documents.recv_timeout(Duration::from_secs(20)).unwrap()["about"], "end");
    assert_eq!(outbox(), [json!({ "state": "delivered", "tries": 2 })]);
    assert_eq!(duty(&home.json(&["tick"]))["outcome"], "not_due");
    ledger.execute("update duties set due_at = 0", []).unwrap();
    let again = duty(&home.json(&["tick"]));
    assert_eq!((&again["outcome"], &again["lines"]), (&json!("done"), &json!([])));
    assert_eq!(documents.try_iter().count(), 0);
}
