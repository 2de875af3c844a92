//! What a person sees of checkpoints: of a healthy root, a damaged, an empty and a missing one, and of real runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use trackway_checkpoint::{CheckpointError, CheckpointRoot, Kind};
use trackway_core::{AttemptId, ManualClock, RunId, SequentialIds, Timestamp};

use crate::evaluations::trained;
use crate::harness::{Answer, Home, answer, files_below};
use crate::training::examples::wine_mlp;

/// Exit code, stdout and stderr as one text, without the temporary folder's path and without the ages of checkpoints.
fn transcript(home: &Home, arguments: &[&str]) -> String {
    let answer = home.trackway(&[&["checkpoint"], arguments].concat());
    let stdout = without_age(&answer.stdout);
    let text = format!("exit {}\n-- stdout\n{stdout}-- stderr\n{}", answer.code, answer.stderr);
    let folder = home.path().canonicalize().unwrap();
    text.replace(&*folder.to_string_lossy(), "[folder]").replace(&*home.path().to_string_lossy(), "[folder]")
}

/// Takes the column `age` out of a table, and the field out of a document.
fn without_age(stdout: &str) -> String {
    let header: Vec<char> = stdout.lines().next().unwrap_or_default().chars().collect();
    let at = |word: &str| header.iter().collect::<String>().find(word).filter(|_| header[0] != '{');
    let column = at("age  ")
        .zip(at("epoch"))
        .map(|(age, epoch)| (age, at("pins").map_or(epoch, |pins| pins.min(epoch))));
    let line = |line: &str| match column {
        Some((from, to)) => {
            let letters: Vec<char> = line.chars().collect();
            letters[..from].iter().chain(&letters[to..]).collect()
        }
        None if line.trim_start().starts_with("\"age_seconds\"") => {
            "      \"age_seconds\": [age],".to_owned()
        }
        None => line.to_owned(),
    };
    stdout.lines().map(|text| line(text) + "\n").collect()
}

fn vector_root(home: &Home) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/formats/vectors/checkpoint/root");
    let to = home.path().join("published");
    for file in files_below(&from) {
        let copy = to.join(file.strip_prefix(&from).unwrap());
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(file, copy).unwrap();
    }
    to
}

/// Two attempts: the first commits steps 10, 20 and 30, of which the large file never changes, and is killed while it
/// writes step 40; the second continues from 30 and commits 40 and 50. The same bytes at every call.
fn healthy_root(home: &Home) -> PathBuf {
    let root = home.path().join("healthy");
    let ids = Arc::new(SequentialIds::default());
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
    let run_id = RunId::new(ids.as_ref());
    let open = |epoch| {
        let attempt = AttemptId::new(ids.as_ref());
        CheckpointRoot::open(&root, epoch, run_id, attempt, clock.clone(), ids.clone()).unwrap()
    };
    let save = |root: &mut CheckpointRoot, step: u64| {
        clock.advance_micros(60_000_000);
        let loss = 1.0 / step as f64 + if step == 30 { -1.0 } else { 0.0 };
        root.save(step, &[("val_loss", loss)], |writer| {
            writer.file("backbone.bin", Kind::Weights, &vec![7; 1 << 20])?;
            writer.file("head.bin", Kind::Weights, &step.to_le_bytes().repeat(100))?;
            writer.file("adam.bin", Kind::Optimizer, &step.to_le_bytes().repeat(200))?;
            writer.file("cursor.json", Kind::DataCursor, format!("{{\"step\":{step}}}").as_bytes())
        })
        .unwrap();
    };
    let mut first = open(1);
    for step in [10, 20, 30] {
        save(&mut first, step);
    }
    first.save(40, &[], |_| Err(CheckpointError::state("killed"))).unwrap_err();
    let mut second = open(2);
    second.resume_target().unwrap();
    for step in [40, 50] {
        save(&mut second, step);
    }
    root
}

fn prefix_of(root: &Path, step: u64) -> String {
    let folder = format!("step-{step:08}");
    let epoch = std::fs::read_dir(root.join(&folder)).unwrap().next().unwrap().unwrap().file_name();
    format!("{folder}/{}", epoch.to_string_lossy())
}

/// Every command that reads, on a root.
const READING: [(&str, &[&str]); 7] = [
    ("ls", &["ls"]),
    ("verify", &["verify"]),
    ("explain", &["explain"]),
    ("resume_target", &["resume-target"]),
    ("gc", &["gc", "--older-than", "0s"]),
    ("doctor", &["doctor"]),
    ("doctor_json", &["doctor", "--json"]),
];

fn snapshot_reading(home: &Home, name: &str, root: &str) {
    for (command, arguments) in READING {
        let arguments = [arguments, &[root]].concat();
        insta::assert_snapshot!(format!("{name}_{command}"), transcript(home, &arguments));
    }
}

/// Proves the output of every command for a healthy root, without a home and without a run.
#[test]
fn a_healthy_root() {
    let home = Home::new();
    healthy_root(&home);
    snapshot_reading(&home, "healthy", "./healthy");
    insta::assert_snapshot!("healthy_ls_json", transcript(&home, &["ls", "healthy", "--json"]));
    insta::assert_snapshot!(
        "healthy_explain_older",
        transcript(&home, &["explain", "healthy", "--step", "20"])
    );
    insta::assert_snapshot!("healthy_explain_json", transcript(&home, &["explain", "healthy", "--json"]));
    assert!(!home.state().exists(), "looking at a folder made a home");
}

/// Proves pins and deleting from start to end: a pin holds, a dry run deletes nothing, what is deleted is gone and
/// reported, and a second time there is nothing to do.
#[test]
fn pins_hold_and_the_rest_goes() {
    let home = Home::new();
    let root = healthy_root(&home);
    let rules = ["gc", "healthy", "--keep-last", "2", "--keep-best", "min val_loss", "--older-than", "0s"];
    let steps: [(&str, &[&str]); 11] = [
        ("pin", &["pin", "promoted", "healthy", "--step", "10", "--why", "in production"]),
        ("pin_until", &["pin", "eval-7", "healthy", "--until", "2126-01-31T12:00:00Z"]),
        ("pinned_ls", &["ls", "healthy"]),
        ("pinned_explain", &["explain", "healthy", "--step", "10"]),
        ("gc_dry", &rules),
        ("gc_yes", &[&rules[..], &["--yes"]].concat()),
        ("gc_again", &[&rules[..], &["--yes"]].concat()),
        ("ls_all", &["ls", "healthy", "--all"]),
        ("unpin", &["unpin", "promoted", "healthy"]),
        ("unpin_again", &["unpin", "promoted", "healthy"]),
        ("pin_deleted", &["pin", "late", "healthy", "--step", "20"]),
    ];
    for (name, arguments) in steps {
        insta::assert_snapshot!(format!("retention_{name}"), transcript(&home, arguments));
    }
    assert!(root.join(prefix_of(&root, 10)).join("head.bin").exists(), "pinned");
    assert!(!root.join("step-00000020").exists(), "deleted");
    let doctor = home.json(&["checkpoint", "doctor", "healthy"]);
    assert_eq!(doctor["findings"], serde_json::json!([]), "{doctor}");
    let again = home.json(&["checkpoint", "doctor", "healthy"]);
    assert_eq!(doctor, again, "the doctor leaves nothing behind");
}

/// Proves that a secret in the reason of a pin does not reach the log of the checkpoints.
#[test]
fn a_pin_holds_no_secret() {
    let home = Home::new();
    let root = healthy_root(&home);
    let token = format!("ghp{}{}", "_", "a1B2c3D4e5F6".repeat(3));
    let why = format!("asked for with {token}");
    assert_eq!(home.json(&["checkpoint", "pin", "p", "healthy", "--why", "x"])["name"], "p");
    let pinned = home.trackway(&["checkpoint", "pin", "p", "healthy", "--why", &why]);
    assert_eq!(pinned.code, 0, "{}", pinned.stderr);
    let shown = home.trackway(&["checkpoint", "explain", "healthy"]).stdout;
    assert!(shown.contains("[redacted:github-token]"), "{shown}");
    for file in files_below(&root) {
        assert!(!String::from_utf8_lossy(&std::fs::read(&file).unwrap()).contains(&token), "{file:?}");
    }
}

/// Proves the output of every command for the published root, where step 20 is damaged and marked.
#[test]
fn the_published_root() {
    let home = Home::new();
    vector_root(&home);
    snapshot_reading(&home, "published", "./published");
    insta::assert_snapshot!(
        "published_explain_20",
        transcript(&home, &["explain", "published", "--step", "20"])
    );
    insta::assert_snapshot!(
        "published_verify_10",
        transcript(&home, &["verify", "published", "--step", "10"])
    );
}

/// Proves the output of every command when the newest checkpoint was cut, another lost a file, an entry of the log has
/// a changed byte, and there are foreign files.
#[test]
fn a_damaged_root() {
    let home = Home::new();
    let root = healthy_root(&home);
    let cut = root.join(prefix_of(&root, 50)).join("adam.bin");
    std::fs::write(&cut, &std::fs::read(&cut).unwrap()[..512]).unwrap();
    std::fs::remove_file(root.join(prefix_of(&root, 20)).join("backbone.bin")).unwrap();
    let entry = root.join("log/00000009.json");
    let text = std::fs::read_to_string(&entry).unwrap();
    std::fs::write(&entry, text.replace("killed", "filled")).unwrap();
    std::fs::write(root.join("log/.new-01jd8c4w9m7n2q5r8t0v3x6y9z"), "half").unwrap();
    std::fs::write(root.join(prefix_of(&root, 30)).join("notes.txt"), "mine").unwrap();
    snapshot_reading(&home, "damaged", "./healthy");
}

/// Proves that an entry that is lost in the middle of the log is reported with the entries after it that no reader
/// reaches.
#[test]
fn a_root_with_a_gap() {
    let home = Home::new();
    let root = healthy_root(&home);
    std::fs::remove_file(root.join("log/00000006.json")).unwrap();
    snapshot_reading(&home, "gap", "./healthy");
}

/// Proves that an empty root and one that is not there are exit code 6 for every command, and that nothing is made.
#[test]
fn nothing_there_is_exit_code_6() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("empty/log")).unwrap();
    std::fs::create_dir_all(home.path().join("other/things")).unwrap();
    snapshot_reading(&home, "empty", "./empty");
    insta::assert_snapshot!("empty_pin", transcript(&home, &["pin", "p", "empty"]));
    insta::assert_snapshot!("empty_unpin", transcript(&home, &["unpin", "p", "empty"]));
    insta::assert_snapshot!("missing_ls", transcript(&home, &["ls", "./missing"]));
    insta::assert_snapshot!("other_ls", transcript(&home, &["ls", "./other"]));
    for root in ["./empty", "./missing", "./other"] {
        for (_, arguments) in READING {
            let arguments = [&["checkpoint"], arguments, &[root]].concat();
            let answer = home.trackway(&arguments);
            assert_eq!(answer.code, 6, "{arguments:?}: {}", answer.stderr);
        }
    }
    assert!(!home.state().exists());
    assert!(files_below(home.path()).is_empty());
}

/// Proves that wrong arguments are usage errors with a hint, and that the help of every command has examples.
#[test]
fn wrong_words_about_checkpoints() {
    let home = Home::new();
    healthy_root(&home);
    for (name, arguments) in [
        ("step", &["explain", "healthy", "--step", "soon"][..]),
        ("duration", &["gc", "healthy", "--older-than", "tomorrow"]),
        ("metric", &["gc", "healthy", "--keep-best", "most val_loss"]),
        ("moment", &["pin", "p", "healthy", "--until", "tomorrow"]),
        ("past", &["pin", "p", "healthy", "--until", "2020-01-01T00:00:00Z"]),
        ("both", &["gc", "healthy", "--yes", "--dry-run"]),
        ("no_step", &["explain", "healthy", "--step", "25"]),
    ] {
        insta::assert_snapshot!(format!("checkpoint_usage_{name}"), transcript(&home, arguments));
    }
    for command in ["ls", "verify", "explain", "resume-target", "pin", "unpin", "gc", "doctor", "now"] {
        let answer = home.trackway(&["checkpoint", command, "--help"]);
        assert_eq!(answer.code, 0);
        assert!(answer.stdout.contains("Examples:"), "{command}");
        assert!(answer.stdout.contains("--json"), "{command}");
    }
    insta::assert_snapshot!("checkpoint_help", transcript(&home, &["--help"]));
    insta::assert_snapshot!("checkpoint_help_gc", transcript(&home, &["gc", "--help"]));
}

/// Steps of an attempt that is to be killed: enough that a supervisor which sees the step of the kill seconds later
/// still finds the script alive.
pub const STEPS_OF_A_KILLED: u64 = 20_000;

/// A wine classifier started by a script, so that its arguments can be changed between attempts: they are in a file, and
/// are those of an attempt that is to be killed.
fn wine_behind_a_script(home: &Home, wine: &Path, keep: &str) {
    home.has_gpus(2);
    home.write("arguments", &format!("--batch 64 --steps {STEPS_OF_A_KILLED}"));
    let script =
        format!("exec {} --step-millis 3 $(cat {}/arguments)\n", wine.display(), home.path().display());
    home.write("job.sh", &script);
    home.write(
        "job.toml",
        &format!(
            "[run]\nname = \"job\"\ncommand = [\"sh\", \"job.sh\"]\nseed = 17\n[checkpoint]\nevery = {{ steps = 30 }}\nkeep = {keep}\n[resources]\ngpus = 2\n[retry]\ninfrastructure = {{ attempts = 0 }}\n"
        ),
    );
}

/// Proves that a checkpoint whose load crashes two attempts in a row is suspect for the next one, that the attempt
/// steps back once and not again however often it crashes, that this is reported and explained with its cost, and that
/// the run continues from there once the crash is fixed.
#[test]
fn a_load_that_crashes_twice_steps_back_once() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    wine_behind_a_script(&home, &wine, "{ last = 5 }");
    let run = home.json(&["run", "job.toml", "--inject", "kill@step=110"]);
    assert_eq!(run["attempts"][0]["signal"], 9, "{run}");
    let newest = run["attempts"][0]["last_committed_step"].as_u64().unwrap();
    assert!(newest >= 90, "{run}");
    // Another batch size: the job refuses the cursor of the checkpoint after it loaded it.
    let steps = newest + 40;
    home.write("arguments", &format!("--batch 65 --steps {steps}"));
    let mut resumed = Vec::new();
    let mut reported = Vec::new();
    for _ in 0..5 {
        let answer = home.trackway(&["resume", "job", "--json"]);
        let run: Value = serde_json::from_str(&answer.stdout).unwrap();
        let attempts = run["attempts"].as_array().unwrap().clone();
        resumed.push(attempts.last().unwrap()["resumed_from_step"].as_u64().unwrap());
        reported.push(answer.stderr.contains("is suspect from now on"));
    }
    let older = newest - 30;
    assert_eq!(resumed, [newest, newest, older, older, older]);
    assert_eq!(reported, [false, false, true, false, false]);
    let list = home.json(&["checkpoint", "ls", "job"]);
    let suspects: Vec<_> =
        list["checkpoints"].as_array().unwrap().iter().filter(|it| it["state"] == "suspect").collect();
    assert_eq!(suspects.len(), 1, "{list}");
    let why = suspects[0]["why"].as_str().unwrap();
    assert!(why.contains("attempt 2 (att_") && why.contains("attempt 3 (att_"), "{why}");
    home.write("arguments", &format!("--batch 64 --steps {steps}"));
    assert_eq!(home.json(&["resume", "job"])["state"], "completed");
    let page = home.json(&["explain", "job"]);
    assert_eq!(page["fall_back"]["steps"], 30, "{}", page["fall_back"]);
    assert!(page["fall_back"]["gpu_hours"].as_f64().unwrap() > 0.0, "{}", page["fall_back"]);
    let text = home.trackway(&["explain", "job"]).stdout;
    let sentence = format!(
        "this attempt fell back from step {newest} to step {older}: 30 steps are trained again, about "
    );
    assert!(text.contains(&sentence), "{text}");
    assert!(text.contains("checkpoint_suspect"), "the timeline tells of it: {text}");
}

/// Proves that the run file's `keep` reaches the attempt and the housekeeper, that a real root is healthy, that damaged
/// bytes are skipped and the cost is in the run's output, and that one without an older live one is left alone.
#[test]
fn a_real_run_keeps_and_steps_over() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    wine_behind_a_script(&home, &wine, "{ last = 2, every = 120, best = \"min val_loss\" }");
    let run = home.json(&["run", "job.toml", "--inject", "kill@step=200"]);
    let steps = |list: &Value| -> Vec<u64> {
        list["checkpoints"].as_array().unwrap().iter().filter_map(|it| it["step"].as_u64()).collect()
    };
    let list = home.json(&["checkpoint", "ls", "job"]);
    let reached = run["attempts"][0]["last_step"].as_u64().unwrap();
    // The two newest, the best, one every 120 steps, and one that was committed after the last housekeeping.
    let most = 4 + reached as usize / 120;
    assert!(steps(&list).contains(&120) && steps(&list).len() <= most, "{run} {list}");
    assert!(!steps(&list).contains(&30), "no rule keeps it: {list}");
    let doctor = home.json(&["checkpoint", "doctor", "job"]);
    // The kill may have met a save or a removal: what was begun and not finished is reported and no fault.
    let begun = |it: &&Value| it["severity"] == "note" || it["check"] == "retired_not_deleted";
    let faults = doctor["findings"].as_array().unwrap().iter().filter(|it| !begun(it));
    assert_eq!(faults.count(), 0, "{doctor}");
    let newest = home.json(&["checkpoint", "resume-target", "job"]);
    let entry = &newest["checkpoints"][0];
    assert_eq!(newest["cost"]["steps"], 0);
    let prefix = entry["object_prefix"].as_str().unwrap();
    let largest = files_below(&home.state().join("checkpoints"))
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(prefix))
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap();
    let mut bytes = std::fs::read(&largest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0);
    std::fs::write(&largest, bytes).unwrap();
    let doctor = home.trackway(&["checkpoint", "doctor", "job"]);
    assert_eq!(doctor.code, 7, "{}", doctor.stdout);
    let said = doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&format!("it is zero from byte {middle} on")), "{said}");
    let target = home.json(&["checkpoint", "resume-target", "job"]);
    let lost = target["cost"]["steps"].as_u64().unwrap();
    assert!(lost > 0 && target["cost"]["gpu_hours"].as_f64().unwrap() > 0.0, "{target}");
    home.write("arguments", &format!("--batch 64 --steps {}", reached + 40));
    let answer = home.trackway(&["resume", "job", "--json"]);
    let sentence = format!("{lost} steps are trained again, about ");
    let one = "1 step is trained again, about ";
    assert!(
        answer.stderr.contains(&sentence) || (lost == 1 && answer.stderr.contains(one)),
        "{}",
        answer.stderr
    );
    let run: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(run["state"], "completed", "{run}");
    let collected = home.json(&["checkpoint", "gc", "job", "--older-than", "0s"]);
    assert_eq!(collected["places"][0]["retire"][0]["why"], "suspect", "{collected}");
    assert!(
        collected["policy"].as_str().unwrap().starts_with("the 2 newest, one every 120 steps"),
        "{collected}"
    );
}

/// Seconds in which a command must have answered that could wait for ever.
const ANSWERS_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);

/// The answer of a command; one that waits for ever is killed, and fails the test.
fn answered(home: &Home, arguments: &[&str]) -> Answer {
    let mut process = home.spawn(arguments);
    let began = std::time::Instant::now();
    while process.try_wait().unwrap().is_none() {
        if began.elapsed() > ANSWERS_WITHIN {
            process.kill().unwrap();
            panic!("{arguments:?} waits for ever");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    answer(process.wait_with_output().unwrap())
}

/// Replaces a file with a pipe that has no writer.
fn make_pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

/// Proves that `checkpoint verify` and `checkpoint doctor` end and name the pipe that replaced a file of a checkpoint,
/// that one beside the files does not block either, and that `doctor`, which reads no checkpoint, ends too.
#[test]
fn a_pipe_in_a_checkpoint_is_named() {
    let home = Home::new();
    let root = healthy_root(&home);
    let newest = root.join(prefix_of(&root, 50));
    make_pipe(&newest.join("extra"));
    for command in ["verify", "doctor"] {
        answered(&home, &["checkpoint", command, "./healthy"]);
    }
    for name in ["head.bin", "manifest.json"] {
        make_pipe(&newest.join(name));
        for command in ["verify", "doctor"] {
            let answer = answered(&home, &["checkpoint", command, "./healthy"]);
            let said = format!("{}{}", answer.stdout, answer.stderr);
            assert!(answer.code != 0 && said.contains(name), "{command}: {} {said}", answer.code);
            assert!(said.contains("pipe") || said.contains("no regular file"), "{command}: {said}");
        }
    }

    let home = trained("true", "");
    let weights = files_below(&home.state().join("checkpoints"));
    let weights = weights.into_iter().filter(|path| path.ends_with("weights.bin")).max().unwrap();
    make_pipe(&weights);
    assert_eq!(answered(&home, &["doctor"]).code, 0);
    for arguments in [["checkpoint", "verify", "last"], ["checkpoint", "doctor", "last"]] {
        let answer = answered(&home, &arguments);
        let said = format!("{}{}", answer.stdout, answer.stderr);
        assert!(answer.code != 0 && said.contains("weights.bin"), "{arguments:?}: {} {said}", answer.code);
    }
}
