//! Runs whose checkpoints have their truth in an object store: moto's S3 server, over a socket.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::harness::{Home, answer, eventually, signal};
use crate::models::checkpoints::STEPS_OF_A_KILLED;
use crate::training::examples::{STEPS, final_digest, wine_mlp};

const BUCKET: &str = "runs";

mod data;
mod evaluations;
mod faults;

/// moto's S3 server, in a separate process.
struct Moto {
    process: Child,
    port: u16,
}

impl Moto {
    /// Starts it with the interpreter beside the executable that `TRACKWAY_TEST_MOTO` names; `None`: it names none.
    fn start() -> Option<Self> {
        let Some(executable) = std::env::var_os("TRACKWAY_TEST_MOTO") else {
            trackway_skip::skip!("TRACKWAY_TEST_MOTO does not name moto_server");
            return None;
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(PathBuf::from(executable).with_file_name("python"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/moto_server.py"))
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("TRACKWAY_TEST_MOTO names moto_server");
        let moto = Self { process, port };
        eventually("moto's bucket", || moto.make_bucket());
        Some(moto)
    }

    fn make_bucket(&self) -> Option<()> {
        self.send(&format!("/{BUCKET}"), b"")
    }

    /// Makes an object in the bucket.
    fn put(&self, name: &str, bytes: &[u8]) {
        self.send(&format!("/{BUCKET}/{name}"), bytes).expect("moto is there");
    }

    /// Deletes an object of the bucket.
    fn delete(&self, name: &str) {
        self.request("DELETE", &format!("/{BUCKET}/{name}"), b"").expect("moto is there");
    }

    /// A PUT that must succeed; `None`: the server does not listen yet.
    fn send(&self, path: &str, body: &[u8]) -> Option<()> {
        self.request("PUT", path, body)
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Option<()> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let length = body.len();
        // Without a signature, of which moto believes any, an object cannot be made a second time.
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=KEYOFTEST/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host, Signature=0\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        Some(())
    }

    /// What a person would set.
    fn environment(&self) -> Vec<(String, String)> {
        let set = [
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "KEYOFTEST".into()),
            ("AWS_SECRET_ACCESS_KEY", "SECRETOFTEST".into()),
        ];
        set.map(|(name, value)| (name.into(), value)).into()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The wine job, which reports its process id, with its checkpoints at the remote.
fn run_file(home: &Home, name: &str, wine: &Path, step_millis: u32, remote: bool) -> String {
    let remote = if remote { "remote = \"s3://runs/tests\"\n" } else { "" };
    let job = format!("echo $$ > pid; exec '{}' --steps {STEPS} --step-millis {step_millis}", wine.display());
    let text = format!(
        "[run]\nname = \"{name}\"\ncommand = [\"sh\", \"-c\", \"{job}\"]\nseed = 17\n\
         [checkpoint]\nevery = {{ steps = 40 }}\nkeep = {{ last = 3 }}\n{remote}\
         [retry]\ninfrastructure = {{ attempts = 2, backoff = \"0s..0s\" }}\n"
    );
    home.write(&format!("{name}.toml"), &text);
    format!("{name}.toml")
}

fn kill_script(home: &Home) {
    let pid = std::fs::read_to_string(home.path().join("pid")).unwrap().trim().parse().unwrap();
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
}

/// The newest run's state of its remote, from its supervisor.
fn status(home: &Home) -> Option<Value> {
    let runs = std::fs::read_dir(home.state().join("runs")).ok()?;
    let newest = runs.flatten().map(|entry| entry.path()).max()?;
    serde_json::from_slice(&std::fs::read(newest.join("remote.json")).ok()?).ok()
}

fn uploaded(home: &Home, at_least: u64) {
    eventually(&format!("step {at_least} at the remote"), || {
        status(home)?["uploaded_step"].as_u64().filter(|step| *step >= at_least)
    });
}

fn control_digest(wine: &Path) -> String {
    let home = Home::new();
    let run = home.json(&["run", &run_file(&home, "control", wine, 0, false)]);
    assert_eq!(run["state"], "completed", "{run}");
    final_digest(&home, "control")
}

/// Proves that a run outlives everything on its machine: the script is killed, then the supervisor, then the local
/// checkpoints are deleted; `resume` fetches them from the remote, and the final weights are those of an undisturbed
/// run.
#[test]
fn a_run_outlives_its_machine() {
    let (Some(wine), Some(moto)) = (wine_mlp(), Moto::start()) else { return };
    let home = Home::with(&moto.environment());
    let file = run_file(&home, "far", &wine, 20, true);
    let mut supervisor = home.spawn(&["run", &file, "--inject", "kill@step=60"]);
    uploaded(&home, 120);
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    kill_script(&home);
    std::fs::remove_dir_all(home.state().join("checkpoints")).unwrap();
    let run = home.json(&["resume", "far"]);
    assert_eq!(run["state"], "completed", "{run}");
    let attempts = run["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 3, "{run}");
    assert_eq!(attempts[1]["resumed_from_step"], 40);
    assert!(attempts[2]["resumed_from_step"].as_u64().unwrap() >= 120, "{run}");
    assert_eq!(final_digest(&home, "far"), control_digest(&wine));
    let remote = &run["remote"];
    assert_eq!((remote["uploaded_step"].as_u64(), &remote["waiting_uploads"]), (Some(STEPS), &0.into()));
    let events = home.sql("select message from events where kind = 'checkpoint_fetch'");
    assert!(events.iter().any(|row| row["message"].as_str().unwrap().contains("was brought from s3://")));
    let stored =
        home.trackway(&["sql", "select config_json, command from training_attempts", "--csv"]).stdout;
    assert!(!stored.contains("SECRETOFTEST"));
}

/// Proves one authoritative log with two machines: A continues alone without its supervisor, so that its commits wait;
/// B takes the run over from what A had handed over, and completes it; A is back, gets a report of what it lost, and
/// continues from B's.
#[test]
fn two_machines_have_one_truth() {
    let (Some(wine), Some(moto)) = (wine_mlp(), Moto::start()) else { return };
    // B is on another machine, so it waits until A's lease has expired.
    let environment = [moto.environment(), vec![("TRACKWAY_LEASE_SECONDS".into(), "1".into())]].concat();
    let a = Home::with(&environment);
    let mut supervisor = a.spawn(&["run", &run_file(&a, "pair", &wine, 20, true)]);
    uploaded(&a, 40);
    signal(&supervisor, Signal::SIGKILL);
    supervisor.wait().unwrap();
    let handed_over = status(&a).unwrap()["uploaded_step"].as_u64().unwrap();
    let b = Home::with(&environment);
    let copied = Command::new("cp").arg("-r").arg(a.state()).arg(b.state()).status().unwrap();
    assert!(copied.success());
    std::fs::remove_dir_all(b.state().join("checkpoints")).unwrap();
    eventually("a commit that waits", || {
        let entries = a.json(&["checkpoint", "ls", "pair"])["checkpoints"].clone();
        let newest = entries.as_array()?.iter().filter_map(|entry| entry["step"].as_u64()).max()?;
        (newest >= handed_over + 80).then_some(())
    });
    kill_script(&a);

    let run = b.json(&["resume", "pair"]);
    assert_eq!(run["state"], "completed", "{run}");
    let attempts = run["attempts"].as_array().unwrap();
    let resumed = attempts.last().unwrap()["resumed_from_step"].as_u64().unwrap();
    assert!(resumed >= handed_over && resumed < STEPS, "{run}");
    assert_eq!(final_digest(&b, "pair"), control_digest(&wine));

    let answer = a.trackway(&["resume", "pair", "--json"]);
    let run: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
    assert_eq!(run["state"], "completed", "{run}");
    assert_eq!(run["attempts"].as_array().unwrap().last().unwrap()["resumed_from_step"], STEPS, "{run}");
    assert!(answer.stderr.contains("never became part of the run"), "{}", answer.stderr);
    assert!(answer.stderr.contains("was brought from s3://"), "{}", answer.stderr);
}

/// Proves that without an answer from the remote nothing is launched, and that the error contains what to do.
#[test]
fn nothing_is_launched_without_the_remote() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let home = Home::with(&[
        ("AWS_ENDPOINT_URL".into(), format!("http://{closed}")),
        ("AWS_ALLOW_HTTP".into(), "true".into()),
        ("AWS_ACCESS_KEY_ID".into(), "KEYOFTEST".into()),
        ("AWS_SECRET_ACCESS_KEY".into(), "SECRETOFTEST".into()),
        ("TRACKWAY_REMOTE_RETRY_SECONDS".into(), "1".into()),
    ]);
    home.write(
        "alone.toml",
        "[run]\nname = \"alone\"\ncommand = [\"sh\", \"-c\", \"echo ran > ran\"]\n\
         [checkpoint]\nremote = \"s3://runs/tests\"\n[retry]\ninfrastructure = { attempts = 1, backoff = \"0s..0s\" }\n",
    );
    let answer = home.trackway(&["run", "alone.toml"]);
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    for words in ["not launched: no epoch was granted", "trying again", "trackway resume", "storage_error"] {
        assert!(answer.stderr.contains(words), "no `{words}` in {}", answer.stderr);
    }
    assert!(!answer.stderr.contains("SECRETOFTEST"));
    assert!(!home.path().join("ran").exists());
}

/// The entries of a listing as `step where`.
fn places(listing: &Value) -> Vec<String> {
    let entries = listing["checkpoints"].as_array().unwrap();
    entries.iter().map(|it| format!("{} {}", it["step"], it["where"].as_str().unwrap())).collect()
}

/// Proves that every command shows what is where: of a run that is whole at both places, of one whose machine lost its
/// checkpoints, and when the remote does not answer; that pins hold at the remote and that what is deleted, is deleted
/// there too.
#[test]
fn commands_tell_what_is_where() {
    let (Some(wine), Some(moto)) = (wine_mlp(), Moto::start()) else { return };
    let home = Home::with(&moto.environment());
    let run = home.json(&["run", &run_file(&home, "told", &wine, 0, true)]);
    assert_eq!(run["state"], "completed", "{run}");
    let ls = home.json(&["checkpoint", "ls"]);
    assert_eq!(places(&ls), ["240 local+remote", "200 local+remote", "160 local+remote"]);
    assert_eq!(ls["remote"]["answers"], true, "{ls}");
    let target = home.json(&["checkpoint", "resume-target"]);
    assert_eq!((&target["source"], &target["fetch_bytes"]), (&"local".into(), &0.into()), "{target}");
    let pinned = home.json(&["checkpoint", "pin", "promoted", "--step", "160", "--why", "in production"]);
    assert_eq!(pinned["step"], 160, "{pinned}");
    let page = home.trackway(&["explain"]).stdout;
    assert!(page.contains(", at the remote "), "the upload lag is measured: {page}");

    std::fs::remove_dir_all(home.state().join("checkpoints")).unwrap();
    let ls = home.json(&["checkpoint", "ls"]);
    assert_eq!(places(&ls), ["240 remote", "200 remote", "160 remote"]);
    assert_eq!(ls["checkpoints"][0]["state"], "committed", "{ls}");
    let target = home.json(&["checkpoint", "resume-target"]);
    assert_eq!((&target["source"], &target["checkpoints"][0]["step"]), (&"remote".into(), &240.into()));
    assert_eq!(target["fetch_bytes"], ls["checkpoints"][0]["size_bytes"], "{target}");
    let verified = |answer: &Value| answer["checkpoints"][0]["verified"].clone();
    assert_eq!(verified(&home.json(&["checkpoint", "verify"])), Value::Null);
    assert_eq!(verified(&home.json(&["checkpoint", "verify", "--remote"])), true);
    let story = home.trackway(&["checkpoint", "explain", "last", "--step", "200"]).stdout;
    assert!(story.contains("and not on this disk"), "{story}");
    let doctor = home.trackway(&["checkpoint", "doctor"]);
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    assert!(
        doctor.stdout.contains("none verifies on this disk; a resume takes step 240"),
        "{}",
        doctor.stdout
    );

    let gc =
        |options: &[&str]| home.json(&[&["checkpoint", "gc", "last", "--keep-last", "2"], options].concat());
    let steps = |list: &Value| -> Vec<u64> {
        list.as_array().unwrap().iter().map(|it| it["step"].as_u64().unwrap()).collect()
    };
    assert_eq!(steps(&gc(&["--yes"])["places"][1]["retire"]), [0; 0], "the pin holds");
    home.json(&["checkpoint", "unpin", "promoted"]);
    let dry = gc(&[])["places"][1].clone();
    assert_eq!((steps(&dry["retire"]), &dry["removed_objects"]), (vec![160], &0.into()), "{dry}");
    assert_eq!(places(&home.json(&["checkpoint", "ls"])).len(), 3, "a dry run deletes nothing");
    let done = gc(&["--yes"])["places"][1].clone();
    assert!(done["removed_objects"].as_u64().unwrap() >= 3, "{done}");
    assert_eq!(places(&home.json(&["checkpoint", "ls"])), ["240 remote", "200 remote"]);

    drop(moto);
    let target = home.trackway(&["checkpoint", "resume-target"]);
    assert_eq!(target.code, 6, "nothing is here, and nobody says what is there: {}", target.stderr);
    for arguments in [&["pin", "p"][..], &["verify", "--remote"], &["gc", "last", "--yes"]] {
        let answer = home.trackway(&[&["checkpoint"], arguments].concat());
        assert_eq!(answer.code, 1, "{arguments:?}: {}", answer.stderr);
        assert!(answer.stderr.contains("s3://runs/tests"), "{arguments:?}: {}", answer.stderr);
    }
}

/// Proves what a run does whose remote stops answering for good: it continues to its end, the newest checkpoints wait
/// on the disk up to the bound, the deletion of older ones is reported and in the ledger, and no command claims to know
/// the remote's state.
#[test]
fn an_outage_is_reported_and_fills_no_disk() {
    let (Some(wine), Some(moto)) = (wine_mlp(), Moto::start()) else { return };
    let mut environment = moto.environment();
    environment.push(("TRACKWAY_REMOTE_RETRY_SECONDS".into(), "1".into()));
    let home = Home::with(&environment);
    // 48 commits, six times the bound: also on a busy machine enough are left when the remote is gone.
    let file = run_file(&home, "cut", &wine, 40, true);
    let more = ["--set", "checkpoint.every.steps=5", "--set", "checkpoint.upload_wait=1s"];
    let supervisor = home.spawn(&[&["run", &file][..], &more].concat());
    uploaded(&home, 5);
    drop(moto);
    let ended = answer(supervisor.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for words in ["older ones were deleted", "not everything was uploaded", "trackway resume"] {
        assert!(ended.stderr.contains(words), "no `{words}` in {}", ended.stderr);
    }
    let events = home.sql("select message from events where kind = 'upload_dropped'");
    assert_eq!(events.len(), 1, "{events:?}");
    let ls = home.json(&["checkpoint", "ls"]);
    assert_eq!(ls["remote"]["answers"], false, "{ls}");
    let waiting = places(&ls).into_iter().filter(|place| place.ends_with("waiting")).count();
    assert_eq!(waiting, 8, "{ls}");
    let target = home.trackway(&["checkpoint", "resume-target", "--json"]);
    let document: Value = serde_json::from_str(&target.stdout).unwrap();
    assert_eq!((target.code, &document["checkpoints"][0]["step"]), (1, &STEPS.into()), "{document}");
    let doctor = home.trackway(&["checkpoint", "doctor"]);
    let said = doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("without it nothing is launched"), "{said}");
}

/// Proves that a checkpoint whose load crashes two attempts in a row is stepped back from when the one before it is only
/// at the remote: it is fetched from there; and that what was suspect here is suspect everywhere.
#[test]
fn a_load_that_crashes_steps_back_to_the_remote() {
    let (Some(wine), Some(moto)) = (wine_mlp(), Moto::start()) else { return };
    let home = Home::with(&moto.environment());
    home.write("arguments", &format!("--batch 64 --steps {STEPS_OF_A_KILLED}"));
    let command = format!("exec {} --step-millis 5 $(cat arguments)", wine.display());
    home.write(
        "crash.toml",
        &format!(
            "[run]\nname = \"crash\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\nseed = 17\n\
             [checkpoint]\nevery = {{ steps = 30 }}\nremote = \"s3://runs/tests\"\n[retry]\ninfrastructure = {{ attempts = 0 }}\n"
        ),
    );
    let run = home.json(&["run", "crash.toml", "--inject", "kill@step=110"]);
    let newest = run["attempts"][0]["last_committed_step"].as_u64().unwrap();
    assert_eq!(run["remote"]["uploaded_step"], newest, "{run}");
    std::fs::remove_dir_all(home.state().join("checkpoints")).unwrap();
    let steps = newest + 40;
    home.write("arguments", &format!("--batch 65 --steps {steps}"));
    let resume = || {
        let answer = home.trackway(&["resume", "crash", "--json"]);
        let run: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
        let last = run["attempts"].as_array().unwrap().last().unwrap().clone();
        (last["resumed_from_step"].as_u64().unwrap(), answer.stderr)
    };
    assert_eq!((resume().0, resume().0), (newest, newest));
    let (older, reported) = resume();
    assert_eq!(older, newest - 30, "{reported}");
    assert!(reported.contains("is suspect from now on"), "{reported}");
    assert!(reported.contains(&format!("step {older} was brought from s3://")), "{reported}");
    let ls = home.json(&["checkpoint", "ls", "crash"]);
    let suspect: Vec<&Value> =
        ls["checkpoints"].as_array().unwrap().iter().filter(|it| it["state"] == "suspect").collect();
    assert_eq!((suspect.len(), &suspect[0]["step"]), (1, &newest.into()), "{ls}");
    home.write("arguments", &format!("--batch 64 --steps {steps}"));
    let run = home.json(&["resume", "crash"]);
    assert_eq!(run["state"], "completed", "{run}");
}

/// Proves that what a run leaves when it goes back is left at its remote too: on a machine that has none of its
/// checkpoints the run continues from after the rollback, and the suspects there are those of the attempt that broke.
#[test]
fn a_roll_back_holds_at_the_remote() {
    use crate::training::roll_backs::{self, ROLL_BACK, after_roll_back, trained};

    let Some(moto) = Moto::start() else { return };
    let home = Home::with(&moto.environment());
    let file = roll_backs::run_file(&home, "waits", ROLL_BACK);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[checkpoint]\n", "[checkpoint]\nremote = \"s3://runs/rolled\"\n"))
        .unwrap();
    let run = home.spawn(&["run", "--json", "--skip-preflight", "--why", "a test", &file]);
    uploaded(&home, 120);
    home.go();
    let run = answer(run.wait_with_output().unwrap());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(trained(&home)[&2], after_roll_back(111..=roll_backs::STEPS));
    std::fs::remove_dir_all(home.state().join("checkpoints")).unwrap();
    let listed = home.json(&["checkpoint", "ls", "waits", "--all"]);
    let broken: Vec<&Value> = listed["checkpoints"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"))
        .iter()
        .filter(|line| line["epoch"] == 1 && line["step"].as_u64() > Some(110))
        .collect();
    assert!(!broken.is_empty() && broken.iter().all(|line| line["state"] == "suspect"), "{listed}");
}
