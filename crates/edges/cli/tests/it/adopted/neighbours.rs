//! Several trainings in one working folder: a checkpoint belongs to who wrote it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::harness::{Home, eventually, files_below, rest};

/// `t.py FOLDER STEPS SECONDS [die]`: saves every 10 steps, keeps the hash of each file beside its own log, and fails
/// if a file that it wrote is gone or another one. With `die` it ends at step 25, the first time.
const TRAIN: &str = r#"
import hashlib, os, pathlib, pickle, sys, time

folder, steps, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
log = pathlib.Path(sys.argv[1].replace("/", "-") + ".log")
saved = sorted(folder.glob("ckpt-*.pkl"), key=lambda path: int(path.stem[5:]))
step = pickle.loads(saved[-1].read_bytes())["step"] if saved else 0
print("starts after", step, flush=True)
while step < steps:
    step += 1
    time.sleep(seconds)
    print("step", step, "loss", 1 / step, flush=True)
    if step % 10 == 0:
        path = folder / f"ckpt-{step}.pkl"
        path.write_bytes(pickle.dumps({"step": step, "model": f"weights of {folder}", "optimizer": {}}))
        with log.open("a") as lines:
            print(hashlib.sha256(path.read_bytes()).hexdigest(), path, file=lines)
    if step == 25 and "die" in sys.argv and not pathlib.Path(str(log) + ".died").exists():
        pathlib.Path(str(log) + ".died").write_text("")
        time.sleep(2)
        os.kill(os.getpid(), 9)
"#;

fn end(child: &mut Child) -> (i32, String) {
    let text = rest(child.stderr.take());
    let status = child.wait().unwrap();
    (status.code().unwrap_or(-1), text)
}

/// Every file that a training said it wrote, where it wrote it, with the hash that it had then; the last one counts.
fn must_be_there(home: &Home, log: &str) {
    let text = fs::read_to_string(home.path().join(log)).unwrap();
    let written: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once(' ')).map(|(hash, path)| (path, hash)).collect();
    assert!(!written.is_empty(), "{log}");
    for (path, hash) in written {
        let bytes = fs::read(home.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(trackway_formats::sha256_hex(&bytes), hash, "{path}");
    }
}

/// The last step and the last committed one of a run, and that every checkpoint which is kept of it has its own weights.
fn only_own(home: &Home, name: &str, folder: &str) -> (u64, Option<u64>) {
    let rows = home.sql(&format!(
        "select r.run_id, max(a.last_step) as last, max(a.last_committed_step) as committed from training_attempts a join runs r using (run_id) where r.name = '{name}' group by r.run_id"
    ));
    let root = home.state().join("checkpoints").join(rows[0]["run_id"].as_str().unwrap());
    let states: Vec<PathBuf> = files_below(&root)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|it| it == "pkl"))
        .collect();
    for path in &states {
        let bytes = fs::read(path).unwrap();
        let own = format!("weights of {folder}");
        assert!(String::from_utf8_lossy(&bytes).contains(&own), "{} is not of {name}", path.display());
    }
    let (last, committed) = (rows[0]["last"].as_u64().unwrap(), rows[0]["committed"].as_u64());
    assert!(committed.is_none_or(|committed| committed <= last), "{rows:?}");
    (last, committed)
}

/// Whether the kernel names writers to this user: then every checkpoint is committed, whatever else trains.
fn kernel_names_writers() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Proves that of two runs that train side by side in one folder each commits only what it wrote, that resuming one
/// that was killed touches nothing of the other, which still trains, and that what is registered are its own weights.
/// Each run reports the other one.
#[test]
fn two_runs_side_by_side_keep_what_is_theirs() {
    let home = Home::new();
    home.write("t.py", TRAIN);
    let train = |name: &str, rest: &[&str]| {
        home.spawn(&[&["run", "--name", name, "--", "python3", "t.py"], rest].concat())
    };
    let mut other = train("b", &["out-b", "120", "0.08"]);
    eventually("the other training", || home.path().join("out-b/ckpt-10.pkl").exists().then_some(()));
    let mut first = train("a", &["out-a", "40", "0.04", "die"]);
    let (code, said) = end(&mut first);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("run `b`") && said.contains("only what it is shown to have written"), "{said}");
    let resumed = home.trackway(&["resume", "a"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(!resumed.stderr.contains("was moved"), "{}", resumed.stderr);
    let (code, said) = end(&mut other);
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("out-a/ckpt-10.pkl` was moved"), "{said}");
    must_be_there(&home, "out-a.log");
    must_be_there(&home, "out-b.log");
    let (of_a, of_b) = (only_own(&home, "a", "out-a"), only_own(&home, "b", "out-b"));
    assert_eq!((of_a.0, of_b.0), (40, 120));
    if kernel_names_writers() {
        assert_eq!((of_a.1, of_b.1), (Some(40), Some(120)));
        let by = home.sql("select distinct fields_json from events where kind = 'checkpoint_adopted'");
        assert!(by.iter().all(|row| row["fields_json"].as_str().unwrap().contains("\"kernel\"")), "{by:?}");
    }
    if of_a.1.is_some() {
        assert_eq!(home.trackway(&["registry", "register", "m", "--run", "a"]).code, 0);
    }
}

/// Proves that a training without Trackway in the same folder is left alone by a run that is resumed, and by
/// `trackway gc`, and that what was not committed is named.
#[test]
fn a_training_of_the_users_own_is_left_alone() {
    let home = Home::new();
    home.write("t.py", TRAIN);
    let mut mine = Command::new("python3")
        .args(["t.py", "mine", "70", "0.05"])
        .current_dir(home.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let died = home.trackway(&["run", "--name", "a", "--", "python3", "t.py", "out-a", "40", "0.06", "die"]);
    assert_eq!(died.code, 4, "{}", died.stderr);
    assert!(mine.wait().unwrap().success());
    let resumed = home.trackway(&["resume", "a"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    only_own(&home, "a", "out-a");
    let candidates = home.sql("select fields_json from events where kind = 'checkpoint_candidate'");
    assert!(
        !candidates.is_empty() && died.stderr.contains("was not committed and stays where it is"),
        "{}",
        died.stderr
    );
    let cleared = home.trackway(&["gc", "--run", "a", "--yes"]);
    assert_eq!(cleared.code, 0, "{}", cleared.stderr);
    must_be_there(&home, "mine.log");
    must_be_there(&home, "out-a.log");
}

/// Writes two checkpoints through names in the folder it is given, each of which has a second name in `out` before it is written to.
const LINKS: &str = r#"
import json, os, struct, sys, time

os.makedirs("out")
for step in (1, 2):
    print(f"step {step} loss 0.5", flush=True)
    header = json.dumps({"__metadata__": {"step": str(step)}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
    name = f"{sys.argv[1]}/{step}"
    with open(name, "wb") as file:
        os.link(name, f"out/m-{step}.safetensors")
        file.write(struct.pack("<Q", len(header)) + header.encode() + struct.pack("<f", step))
    time.sleep(2.5)
"#;

/// Proves that a checkpoint which the script wrote by a name elsewhere, and of which a hard link is where its
/// checkpoints are, is its own by what the kernel says, if it names writers, and not only by the absence of others.
#[test]
fn a_hard_link_of_what_was_written_elsewhere_is_seen() {
    let (home, elsewhere) = (Home::new(), Home::new());
    home.write("links.py", LINKS);
    let folder = elsewhere.path().display().to_string();
    let run_file = format!(
        "[run]\nname = \"links\"\ncommand = [\"python3\", \"links.py\", \"{folder}\"]\n[checkpoint]\nadopt = [\"out/m-*.safetensors\"]\n"
    );
    home.write("links.toml", &run_file);
    let ended = home.trackway(&["run", "links.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let record = files_below(&home.state()).into_iter().find(|path| path.ends_with("writers.json")).unwrap();
    let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    let own = record["own"].as_array().unwrap();
    assert_eq!(own.len(), 2, "{record}");
    assert!(!kernel_names_writers() || own.iter().all(|one| one["by"] == "kernel"), "{record}");
}

/// Proves that a second run which names the same checkpoints is refused before it starts, with the first run's name,
/// and that a dead one holds nothing.
#[test]
fn two_runs_cannot_name_the_same_checkpoints() {
    let home = Home::new();
    home.write("t.py", TRAIN);
    let file = |name: &str, folder: &str| {
        format!(
            "[run]\nname = \"{name}\"\ncommand = [\"python3\", \"t.py\", \"{folder}\", \"30\", \"0.1\"]\n[checkpoint]\nadopt = [\"out/*/ckpt-*.pkl\"]\n"
        )
    };
    home.write("first.toml", &file("first", "out/first"));
    home.write("second.toml", &file("second", "out/second"));
    let mut first = home.spawn(&["run", "first.toml"]);
    eventually("the first run", || home.path().join("out/first").exists().then_some(()));
    let refused = home.trackway(&["run", "second.toml"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("run `first`") && refused.stderr.contains("adopt"), "{}", refused.stderr);
    assert!(!home.path().join("out/second").exists());
    assert_eq!(home.sql("select count(*) as n from runs")[0]["n"], json!(1));
    assert_eq!(end(&mut first).0, 0);
    assert_eq!(home.trackway(&["run", "second.toml"]).code, 0);
    only_own(&home, "second", "out/second");
}

/// Proves that a symbolic link does not hide that a second run names the checkpoints of the first one.
#[test]
fn a_link_does_not_hide_the_same_checkpoints() {
    let home = Home::new();
    home.write("t.py", TRAIN);
    fs::create_dir(home.path().join("out")).unwrap();
    std::os::unix::fs::symlink("out", home.path().join("link")).unwrap();
    for folder in ["out", "link"] {
        let text = format!(
            "[run]\nname = \"{folder}\"\ncommand = [\"python3\", \"t.py\", \"{folder}\", \"60\", \"0.1\"]\n[checkpoint]\nadopt = [\"{folder}/*.pkl\"]\n"
        );
        home.write(&format!("{folder}.toml"), &text);
    }
    let mut first = home.spawn(&["run", "out.toml"]);
    eventually("the first run", || home.path().join("out/ckpt-10.pkl").exists().then_some(()));
    let refused = home.trackway(&["run", "link.toml"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("run `out`") && refused.stderr.contains("adopt"), "{}", refused.stderr);
    assert_eq!(end(&mut first).0, 0);
}

/// Proves that a launch which is refused leaves the run as one that has ended and that a person continues: its state,
/// the reason in its history and in `explain` with the file in the way and the command, which works once the file is
/// gone.
#[test]
fn a_refused_launch_waits_for_a_person() {
    let home = Home::new();
    home.write("t.py", TRAIN);
    home.write(
        "x.toml",
        "[run]\nname = \"x\"\ncommand = [\"python3\", \"t.py\", \"out\", \"40\", \"0.03\", \"die\"]\n[checkpoint]\nadopt = [\"out/*.pkl\"]\n[retry]\nunknown = { attempts = 0 }\n",
    );
    let died = home.trackway(&["run", "x.toml"]);
    assert_eq!(died.code, 4, "{}", died.stderr);
    let of_another = "import os, pickle; pickle.dump({'step': 777, 'model': 'of another', 'optimizer': {}}, open('new', 'wb')); os.replace('new', 'out/ckpt-20.pkl')";
    let wrote = Command::new("python3").args(["-c", of_another]).current_dir(home.path()).status().unwrap();
    assert!(wrote.success());
    let refused = home.trackway(&["resume", "x"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    let run = home.sql("select run_id, state, ended_at from runs").remove(0);
    assert!(run["state"] == "failed" && run["ended_at"] != Value::Null, "{run}");
    let why = home.sql("select message from events where kind = 'launch_refused'");
    assert!(why.len() == 1 && why[0]["message"].as_str().unwrap().contains("out/ckpt-20.pkl"), "{why:?}");
    let next = home.json(&["explain", "last"])["next_actions"].to_string();
    let resume = format!("trackway resume {}", run["run_id"].as_str().unwrap());
    assert!(next.contains("move `out/ckpt-20.pkl` away") && next.contains(&resume), "{next}");
    fs::rename(home.path().join("out/ckpt-20.pkl"), home.path().join("kept")).unwrap();
    let resumed = home.trackway(&["resume", "x"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let second = home.sql("select resumed_from_step from training_attempts where attempt_number = 2");
    assert_eq!(second, [json!({ "resumed_from_step": 20 })]);
}

/// Proves that what is beside the checkpoints that a wide pattern names stays where it is before a retry, a name that
/// is not UTF-8 among them, and that the run continues.
#[test]
fn a_wide_pattern_moves_nothing_but_checkpoints() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = Home::new();
    home.write("t.py", &TRAIN.replace("print(\"starts", "assert os.path.isdir(\"out/tb\") and os.path.exists(\"out/pretrained-900000.pkl\")\nprint(\"starts"));
    fs::create_dir_all(home.path().join("out/tb")).unwrap();
    fs::create_dir_all(home.path().join("out/eval")).unwrap();
    home.write("out/eval/results.json", "{\"accuracy\": 0.");
    fs::write(home.path().join("out/pretrained-900000.pkl"), b"\x80\x02}.").unwrap();
    let no_text = home.path().join("out").join(std::ffi::OsStr::from_bytes(b"notes-\xff.pt"));
    fs::write(&no_text, "x").unwrap();
    home.write(
        "r.toml",
        "[run]\nname = \"x\"\ncommand = [\"python3\", \"t.py\", \"out\", \"40\", \"0.03\", \"die\"]\n[checkpoint]\nadopt = [\"out/*\"]\n[retry]\nunknown = { attempts = 2, backoff = \"1ms\" }\n",
    );
    let run = home.json(&["run", "r.toml"]);
    assert_eq!(run["state"], "completed", "{run}");
    assert_eq!(home.sql("select * from events where kind = 'checkpoint_moved_aside'"), Vec::<Value>::new());
    for path in ["out/tb", "out/eval/results.json", "out/pretrained-900000.pkl"] {
        assert!(home.path().join(path).exists(), "{path}");
    }
    assert!(no_text.exists() && Path::new(&home.state()).join("ledger.db").exists());
    let resumed = home.sql("select resumed_from_step from training_attempts where attempt_number = 2");
    assert_eq!(resumed, [json!({ "resumed_from_step": 20 })]);
}

/// Proves that a script which reads its checkpoint and then begins again is said to have done so, and that every step counts as new.
#[test]
fn a_read_is_no_resume_if_the_first_step_contradicts_it() {
    let home = Home::new();
    let begins_again = TRAIN.replace("[\"step\"] if saved else 0", "[\"step\"] * 0 if saved else 0");
    home.write("t.py", &begins_again);
    home.write(
        "r.toml",
        "[run]\nname = \"x\"\ncommand = [\"python3\", \"t.py\", \"out\", \"40\", \"0.03\", \"die\"]\n[checkpoint]\nadopt = [\"out/*.pkl\"]\n[retry]\nunknown = { attempts = 2, backoff = \"1ms\" }\n",
    );
    assert_eq!(home.json(&["run", "r.toml"])["state"], "completed");
    let second =
        home.sql("select resumed_from_step, first_step from training_attempts where attempt_number = 2");
    assert_eq!(second, [json!({ "resumed_from_step": null, "first_step": 1 })]);
    let said = home.sql("select message from events where kind = 'checkpoint_other_resume'");
    assert!(said[0]["message"].as_str().unwrap().contains("began again with step 1"), "{said:?}");
}

/// Proves that after a lost machine a checkpoint without a step in it gets the step that was printed before it was
/// written, not the attempt's last one.
#[test]
fn a_late_commit_has_the_step_of_its_time() {
    let home = Home::new();
    home.write(
        "t.py",
        r#"
import os, pickle, time
os.makedirs("out", exist_ok=True)
step = int(pickle.load(open("out/state.pkl", "rb"))["model"]) if os.path.exists("out/state.pkl") else 0
first = step == 0
while step < 20:
    step += 1
    print("step", step, "loss", 1 / step, flush=True)
    time.sleep(0.12)
    if step == 10: pickle.dump({"model": float(step), "optimizer": {"m": 1}}, open("out/state.pkl", "wb"))
    if step == 16 and first:
        os.kill(int(open("supervisor").read()), 9); os.kill(os.getppid(), 9); os.kill(os.getpid(), 9)
"#,
    );
    home.write(
        "r.toml",
        "[run]\nname = \"x\"\ncommand = [\"python3\", \"t.py\"]\n[checkpoint]\nadopt = [\"out/*.pkl\"]\n",
    );
    let mut lost = home.spawn(&["run", "r.toml"]);
    home.write("supervisor", &lost.id().to_string());
    lost.wait().unwrap();
    let resumed = home.trackway(&["resume", "x"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let second =
        home.sql("select resumed_from_step, first_step from training_attempts where attempt_number = 2");
    assert_eq!(second, [json!({ "resumed_from_step": 10, "first_step": 11 })], "{}", resumed.stderr);
}

/// Proves that what was moved out of a script's way is named by `trackway gc` and kept, and deleted only on request.
#[test]
fn what_was_set_aside_is_deleted_only_on_request() {
    let home = Home::new();
    let torn =
        "path.write_bytes(path.read_bytes()[:9])\n        time.sleep(2)\n        os.kill(os.getpid(), 9)";
    home.write("t.py", &TRAIN.replace("time.sleep(2)\n        os.kill(os.getpid(), 9)", torn));
    home.write(
        "r.toml",
        "[run]\nname = \"a\"\ncommand = [\"python3\", \"t.py\", \"out\", \"40\", \"0.02\", \"die\"]\n[checkpoint]\nadopt = [\"out/*.pkl\"]\n",
    );
    let ended = home.trackway(&["run", "r.toml"]);
    assert_eq!(ended.code, 0, "its retry continues: {}", ended.stderr);
    let moved = home.sql("select fields_json from events where kind = 'checkpoint_moved_aside'");
    assert_eq!(moved.len(), 1, "{}", ended.stderr);
    let set_aside = || {
        files_below(&home.state())
            .into_iter()
            .any(|path| path.to_string_lossy().contains("quarantine/ckpt-20.pkl"))
    };
    let cleared = home.json(&["gc", "--run", "a", "--yes"]);
    assert!(cleared["set_aside"][0]["goes"] == json!(false) && set_aside(), "{cleared}");
    let dry = home.trackway(&["gc", "--run", "a", "--quarantined"]);
    assert!(dry.stdout.contains("quarantine") && set_aside(), "{}", dry.stdout);
    let gone = home.json(&["gc", "--run", "a", "--quarantined", "--yes"]);
    assert!(gone["set_aside"][0]["goes"] == json!(true) && !set_aside(), "{gone}");
}
