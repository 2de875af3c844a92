//! Checkpoints of a script whose names are not UTF-8.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::Home;
use crate::models::registry::{EASY, registry, set_policy};

/// Saves every 20 of 60 steps as `out/ckpt-\xff-STEP.pt`, and continues from the file that an argument and a variable
/// name. The first attempt waits until step 40 is committed, damages its file, and is killed.
const ONE_FILE: &str = r#"
import os, pathlib, pickle, sys, time

def place(step):
    return os.path.join(b"out", b"ckpt-\xff-%d.pt" % step)

step = 0
if sys.argv[1:]:
    assert [os.fsencode(word) for word in sys.argv[1:]] == [b"--resume", b"at:" + place(40)], sys.argv
    assert os.environb[b"FROM"] == place(40)
    step = pickle.load(open(place(40), "rb"))["step"]
os.makedirs("out", exist_ok=True)
first = step == 0
while step < 60:
    step += 1
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if step % 20 == 0:
        with open(place(step), "wb") as file:
            pickle.dump({"step": step, "model": {"w": [float(step)] * 100}, "optimizer": {"m": 1}}, file)
    if first and step == 50:
        for _ in range(600):
            found = pathlib.Path(os.environ["TRACKWAY_CHECKPOINTS"]).rglob("origin.json")
            if any("-40.pt" in origin.read_text() for origin in found):
                break
            time.sleep(0.1)
        open(place(40), "wb").write(b"x")
        os.kill(os.getpid(), 9)
"#;

/// Saves every 20 of 60 steps as `run\xe9/checkpoint-STEP/`, as a trainer does, and looks there for its newest one. The
/// first attempt is killed at step 50, with a half of a checkpoint written.
const FOLDER: &str = r#"
import json, os, struct, time

OUT = b"run\xe9"

def save(step):
    folder = os.path.join(OUT, b"checkpoint-%d" % step)
    os.makedirs(folder)
    header = json.dumps({"w": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}}).encode()
    model = struct.pack("<Q", len(header)) + header + bytes([step]) * 64
    open(os.path.join(folder, b"model.safetensors"), "wb").write(model if step != 50 else model[:90])
    open(os.path.join(folder, b"vocab-\xff.txt"), "w").write(str(step))
    open(os.path.join(folder, b"trainer_state.json"), "w").write(json.dumps({"global_step": step}))

names = os.listdir(OUT) if os.path.isdir(OUT) else []
step = max([int(name.split(b"-")[1]) for name in names], default=0)
if step:
    folder = os.path.join(OUT, b"checkpoint-%d" % step)
    assert open(os.path.join(folder, b"model.safetensors"), "rb").read().endswith(bytes([step]) * 64)
    assert open(os.path.join(folder, b"vocab-\xff.txt")).read() == str(step)
first = step == 0
while step < 60:
    step += 1
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if step % 20 == 0:
        save(step)
    if first and step == 50:
        save(50)
        os.kill(os.getpid(), 9)
"#;

const RETRY: &str = "[retry]\nunknown = { attempts = 2, backoff = \"0s..0s\" }\n";

fn at(home: &Home, path: &[u8]) -> PathBuf {
    home.path().join(OsStr::from_bytes(path))
}

fn attempts(home: &Home) -> Vec<Value> {
    home.sql("select resumed_from_step as resumed, first_step as first, last_committed_step as committed from training_attempts order by started_at")
}

fn messages(home: &Home, kind: &str) -> Vec<String> {
    let rows = home.sql(&format!("select message from events where kind = '{kind}' order by at"));
    rows.iter().map(|row| row["message"].as_str().unwrap().to_owned()).collect()
}

/// The names in a folder, as bytes.
fn names(folder: &Path) -> Vec<Vec<u8>> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().as_bytes().to_vec());
    names.collect()
}

/// Proves that a file whose name is not UTF-8 is committed, written again after its damage, given to the script by its
/// very bytes, and evaluated, exported and deployed under its name.
#[test]
fn a_file_is_handled_like_any_other() {
    let home = Home::new();
    home.write("t.py", ONE_FILE);
    let class = |row: u32| if row.is_multiple_of(2) { "a" } else { "b" };
    let rows = (0..40).map(|row| format!("{row},{0},{0}", class(row))).collect::<Vec<_>>().join("\\n");
    home.write(
        "eval.sh",
        &format!(
            "set -e\ntest -s \"$TRACKWAY_CHECKPOINT_PATH\"\n\
             basename \"$TRACKWAY_CHECKPOINT_PATH\" > evaluated\n\
             printf 'id,label,prediction\\n{rows}\\n' > \"$TRACKWAY_EVALUATION_OUT/predictions.csv\"\n"
        ),
    );
    home.write(
        "job.toml",
        &format!(
            "[run]\nname = \"one\"\ncommand = [\"python3\", \"t.py\"]\n\
             [checkpoint]\nadopt = ['out/ckpt-\\xff-*.pt']\n\
             resume = {{ args = [\"--resume\", \"at:{{path}}\"], environment = {{ FROM = \"{{path}}\" }} }}\n\
             [evaluate]\ncommand = [\"sh\", \"eval.sh\"]\ngates = [\"accuracy >= 0.5\"]\n{RETRY}"
        ),
    );
    let run = home.json(&["run", "job.toml"]);
    assert_eq!(run["state"], "completed", "{run}");
    assert_eq!(
        attempts(&home),
        [
            json!({"resumed": null, "first": 1, "committed": 40}),
            json!({"resumed": 40, "first": 41, "committed": 60})
        ]
    );
    let put_back = messages(&home, "checkpoint_put_back");
    assert_eq!(put_back, ["the checkpoint of step 40 was written again to `out/ckpt-\\xff-40.pt`"]);
    let moved = messages(&home, "checkpoint_moved_aside");
    assert!(moved.len() == 1 && moved[0].starts_with("`out/ckpt-\\xff-40.pt` was moved to `"), "{moved:?}");
    let aside = moved[0].split('`').nth(3).unwrap().rsplit_once('/').unwrap();
    assert_eq!(aside.1, "ckpt-\\xff-40.pt");
    assert_eq!(
        fs::read(home.state().join(aside.0).join(OsStr::from_bytes(b"ckpt-\xff-40.pt"))).unwrap(),
        b"x"
    );
    let command = home.sql("select command from training_attempts where attempt_number = 2");
    assert!(command[0]["command"].as_str().unwrap().contains(r"ckpt-\\xff-40.pt"), "{command:?}");
    assert_eq!(messages(&home, "checkpoint_other_resume"), Vec::<String>::new());
    assert_eq!(fs::read(home.path().join("evaluated")).unwrap(), b"ckpt-\xff-60.pt\n");
    assert_eq!(home.trackway(&["checkpoint", "verify", "last"]).code, 0);

    assert_eq!(registry(&home, &["register", "m", "--run", "last"]).0, 0);
    assert_eq!(registry(&home, &["export", "m", "1", "--out", "ex"]).0, 0);
    let saved = fs::read(at(&home, b"out/ckpt-\xff-60.pt")).unwrap();
    assert_eq!(fs::read(at(&home, b"ex/ckpt-\xff-60.pt")).unwrap(), saved);
    assert_eq!(registry(&home, &["export", "m", "1", "--out", "ex"]).0, 0, "it is whole there");
    let bad = home.trackway(&[
        "gates", "fixture", "last", "--set", "accuracy=0.1", "--name", "bad", "--out", "bad.json",
    ]);
    assert_eq!(bad.code, 0, "{}", bad.stderr);
    assert_eq!(home.trackway(&["gates", "test", "job.toml", "--bad", "bad.json"]).code, 0);
    set_policy(&home, "m", &format!("{EASY}baseline = \"optional\"\n"));
    let deploy = || registry(&home, &["promote", "m", "1", "--deploy", "srv"]);
    let promoted = deploy();
    assert_eq!(promoted.0, 0, "{}", promoted.1);
    let deployed = at(&home, b"srv/current/ckpt-\xff-60.pt");
    assert_eq!(fs::read(&deployed).unwrap(), saved);
    fs::write(&deployed, b"damaged").unwrap();
    assert_eq!(deploy().0, 0);
    assert_eq!(fs::read(&deployed).unwrap(), saved, "it is replaced");
}

/// Proves that checkpoints in a folder in Latin-1, with a file in them whose name is not UTF-8, are found by what they
/// are and by patterns, that the script continues from them, and that a torn one is moved out of its way.
#[test]
fn a_folder_is_handled_like_any_other() {
    for (adopt, said) in [
        ("", true),
        ("[checkpoint]\nadopt = ['run\\xe9/checkpoint-*']\n", false),
        ("[checkpoint]\nadopt = ['run?/checkpoint-*']\n", false),
    ] {
        let home = Home::new();
        home.write("t.py", FOLDER);
        home.write(
            "r.toml",
            &format!("[run]\nname = \"own\"\ncommand = [\"python3\", \"t.py\"]\n{adopt}{RETRY}"),
        );
        let run = home.trackway(&["run", "r.toml"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let expected = json!({"resumed": 40, "first": 41, "committed": 60});
        assert_eq!(attempts(&home)[1], expected, "{adopt}: {}", run.stderr);
        assert_eq!(run.stderr.contains(r#"adopt = ["run\\xe9/checkpoint-*"]"#), said, "{}", run.stderr);
        let moved = messages(&home, "checkpoint_moved_aside");
        assert!(moved.len() == 1 && moved[0].starts_with("`run\\xe9/checkpoint-50`"), "{moved:?}");
        assert_eq!(registry(&home, &["register", "m", "--run", "last"]).0, 0);
        assert_eq!(registry(&home, &["export", "m", "1", "--out", "ex"]).0, 0);
        let exported = names(&home.path().join("ex"));
        assert!(exported.contains(&b"vocab-\xff.txt".to_vec()), "{exported:?}");
        assert_eq!(fs::read(at(&home, b"ex/vocab-\xff.txt")).unwrap(), b"60");
    }
}

/// Proves that a bare command which saves to such names is resumed, and that the run file which is drafted from it names them.
#[test]
fn a_run_file_is_drafted_with_the_names() {
    let home = Home::new();
    home.write("t.py", FOLDER);
    assert_eq!(home.trackway(&["run", "--", "python3", "t.py"]).code, 4);
    assert_eq!(home.trackway(&["resume", "last"]).code, 0);
    assert_eq!(attempts(&home)[1]["resumed"], 40);
    let drafted = home.trackway(&["init", "--from", "last", "--out", "r.toml"]);
    assert_eq!(drafted.code, 0, "{}", drafted.stderr);
    let text = fs::read_to_string(home.path().join("r.toml")).unwrap();
    assert!(text.contains(r#"adopt = ["run\\xe9/checkpoint-*"]"#), "{text}");
}
