//! Scripts that write their checkpoints themselves, without Trackway in them: what is adopted, under which names, and
//! whose it is among neighbours.

mod names;
mod neighbours;
mod safe_copies;
mod states_in_parts;

use std::time::Duration;

use serde_json::{Value, json};
use trackway_recorder::Recorder;

use crate::harness::{Home, eventually, files_below};
use crate::models::registry::{EASY, registry, set_policy};

/// Saves every 20 of 60 steps as `out/checkpoint-STEP`, as a trainer does, and looks there for its newest one when it begins. The first
/// attempt runs `END` after step 50.
const TRAIN: &str = r#"
import json, os, pathlib, shutil, signal, struct, sys, time

OUT = pathlib.Path("out")

def tensors(step):
    header = json.dumps({"w": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes([step % 256]) * 64

def save(step):
    folder = OUT / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(tensors(step))
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))

def newest():
    return max((int(path.name.split("-")[1]) for path in OUT.glob("checkpoint-*")), default=0)

def read(path):
    assert path.joinpath("model.safetensors").read_bytes()
    return json.loads(path.joinpath("trainer_state.json").read_text())["global_step"]

def committed(step):
    """Waits until Trackway has committed the checkpoint, which it does when others leave it a processor."""
    for _ in range(600):
        origins = pathlib.Path(os.environ["TRACKWAY_CHECKPOINTS"]).rglob("origin.json")
        if any(f"checkpoint-{step}\"" in origin.read_text() for origin in origins):
            return
        time.sleep(0.1)

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

first_attempt = not os.path.exists("began")
open("began", "w").close()
START
for step in range(step + 1, 61):
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if step % 20 == 0:
        save(step)
    if first_attempt and step == 50:
        END
"#;

/// Looks for the newest checkpoint, as most scripts do.
const LOOKS: &str = "step = newest() and read(OUT / f'checkpoint-{newest()}')";

/// Saves one file under two names, and reads the one that was not planned.
const SAVES_TWICE: &str = r#"
def save(step):
    shape = {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}
    header = json.dumps({"__metadata__": {"step": str(step)}, "w": shape}).encode()
    OUT.mkdir(exist_ok=True)
    for name in (f"step-{step}", "last"):
        (OUT / f"{name}.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))

step = max((int(path.stem.split("-")[1]) for path in OUT.glob("step-*")), default=0)
if step:
    planned = os.environ["PLANNED"].endswith("last.safetensors")
    (OUT / (f"step-{step}.safetensors" if planned else "last.safetensors")).read_bytes()
"#;

const FILE: &str = r#"
[run]
name = "own"
command = ["python3", "train.py"]
[checkpoint]
adopt = ["out/checkpoint-*"]
"#;

const RETRY: &str = "[retry]\nunknown = { attempts = 2, backoff = \"0s..0s\" }\n";

fn home(start: &str, end: &str, file: &str) -> Home {
    let home = Home::new();
    home.write("train.py", &TRAIN.replace("START", start).replace("END", end));
    home.write("own.toml", &format!("{file}{RETRY}"));
    home
}

fn run(home: &Home) -> Value {
    let run = home.json(&["run", "own.toml"]);
    assert_eq!(run["state"], "completed", "{run}");
    run
}

/// The attempts: the step that each resumed from, its first and its last committed step.
fn attempts(home: &Home) -> Vec<(Value, Value, Value)> {
    let query = "select resumed_from_step, first_step, last_committed_step from training_attempts order by started_at";
    let mut rows = home.sql(query);
    rows.iter_mut()
        .map(|row| {
            (row["resumed_from_step"].take(), row["first_step"].take(), row["last_committed_step"].take())
        })
        .collect()
}

fn messages(home: &Home, kind: &str) -> Vec<String> {
    let rows = home.sql(&format!("select message from events where kind = '{kind}' order by at"));
    rows.iter().map(|row| row["message"].as_str().unwrap().to_owned()).collect()
}

/// Proves that the checkpoints of a script which knows nothing of Trackway are committed, that a retry continues from the newest
/// of them, and that the receipt says so, with its digest, because the script was seen to read it.
#[test]
fn a_killed_script_continues_from_its_own_checkpoint() {
    let home = home(LOOKS, "killed()", FILE);
    let run = run(&home);
    assert_eq!(
        attempts(&home),
        [(Value::Null, json!(1), json!(40)), (json!(40), json!(41), json!(60))],
        "{run}"
    );
    let adopted = home.sql("select step from events where kind = 'checkpoint_adopted' order by at");
    assert_eq!(adopted.iter().map(|row| row["step"].as_u64().unwrap()).collect::<Vec<_>>(), [20, 40, 60]);
    let same = home.sql(
        "select count(*) as n from training_attempts a join training_attempts b on a.resumed_from_manifest_sha256 = b.last_committed_manifest_sha256",
    );
    assert_eq!(same[0]["n"], 1);
    assert_eq!(messages(&home, "checkpoint_other_resume"), Vec::<String>::new());
    assert_eq!(
        messages(&home, "checkpoint_put_back"),
        ["the checkpoint of step 40 is whole at `out/checkpoint-40`"]
    );
    let list = home.trackway(&["checkpoint", "ls", "last"]);
    assert!(list.stdout.contains("60"), "{}", list.stdout);
    // Two copies are kept, and that is what is said.
    let explained = home.trackway(&["explain", "last"]).stdout;
    assert_eq!(explained.matches("one of the 2 newest copies, the default").count(), 2, "{explained}");
    assert!(explained.contains("1 deleted by retention"), "{explained}");
    assert_eq!(home.trackway(&["checkpoint", "verify", "last"]).code, 0);
}

/// Proves that a checkpoint which was half written when the script died is moved out of its way and kept, and that the
/// whole one before it is continued from.
#[test]
fn a_torn_checkpoint_is_moved_aside() {
    let torn = "save(50); path = OUT / 'checkpoint-50/model.safetensors'; path.write_bytes(path.read_bytes()[:90]); killed()";
    let home = home(LOOKS, torn, FILE);
    run(&home);
    assert_eq!(attempts(&home)[1].0, 40);
    let moved = messages(&home, "checkpoint_moved_aside");
    assert!(moved.len() == 1 && moved[0].starts_with("`out/checkpoint-50` was moved to `"), "{moved:?}");
    assert!(moved[0].contains("model.safetensors"), "{moved:?}");
    let to = moved[0].split('`').nth(3).unwrap();
    let kept = home.state().join(to).join("model.safetensors");
    assert_eq!(std::fs::read(&kept).unwrap().len(), 90, "{}", kept.display());
    let shown = home.trackway(&["explain", "last"]).stdout;
    assert!(shown.contains("was moved to"), "{shown}");
}

/// Proves that a checkpoint which the script deleted, or wrote over, is written again as it was committed, and that an
/// argument and a variable name it to the script.
#[test]
fn a_lost_checkpoint_is_written_again_and_named() {
    let start = "assert first_attempt or sys.argv[1:] == ['--resume', 'out/checkpoint-40'] and os.environ['FROM'] == 'out/checkpoint-40', sys.argv\nstep = read(pathlib.Path(sys.argv[2])) if sys.argv[1:] else 0";
    let file = format!(
        "{FILE}resume = {{ args = [\"--resume\", \"{{path}}\"], environment = {{ FROM = \"{{path}}\" }} }}\n"
    );
    for end in [
        "committed(40); shutil.rmtree(OUT); killed()",
        "committed(40); (OUT / 'checkpoint-40/model.safetensors').write_bytes(b'x'); killed()",
    ] {
        let home = home(start, end, &file);
        run(&home);
        assert_eq!(attempts(&home)[1], (json!(40), json!(41), json!(60)), "{end}");
        let put_back = messages(&home, "checkpoint_put_back");
        assert_eq!(put_back, ["the checkpoint of step 40 was written again to `out/checkpoint-40`"], "{end}");
        let bytes = std::fs::read(home.path().join("out/checkpoint-40/model.safetensors")).unwrap();
        assert_eq!(bytes.last(), Some(&40));
    }
}

/// Proves that a script which does not look for its checkpoints is found out: the receipt has no resume, and a line says why.
#[test]
fn a_script_that_begins_again_is_found_out() {
    let home = home("step = 0; shutil.rmtree(OUT, ignore_errors=True)", "killed()", FILE);
    run(&home);
    assert_eq!(attempts(&home)[1], (Value::Null, json!(1), json!(60)));
    let reported = messages(&home, "checkpoint_other_resume");
    assert!(
        reported.len() == 1 && reported[0].contains("began with step 1, and not after step 40"),
        "{reported:?}"
    );
}

/// Proves that a script which continues from a file that nothing names is found out, both when its checkpoints are
/// committed and when none is known: the receipt has no resume, and a line says with which step it began.
#[test]
fn a_script_that_continues_from_elsewhere_is_found_out() {
    let elsewhere = "step = 0 if first_attempt else 45";
    let home = home(elsewhere, "killed()", FILE);
    run(&home);
    assert_eq!(attempts(&home)[1], (Value::Null, json!(46), json!(60)));
    let other = messages(&home, "checkpoint_other_resume");
    assert!(other[0].contains("read none of its checkpoints and began with step 46"), "{other:?}");

    let unnamed = FILE.replace("out/checkpoint-*", "none/*");
    let home = self::home(elsewhere, "killed()", &unnamed);
    run(&home);
    assert_eq!(attempts(&home)[1], (Value::Null, json!(46), Value::Null));
    let other = messages(&home, "checkpoint_other_resume");
    assert!(other[0].contains("began with step 46, and the first attempt with step 1"), "{other:?}");
}

/// Proves that a checkpoint which was committed under two names, as Lightning's `last.ckpt`, is what the script
/// continued from by either of them.
#[test]
fn either_name_of_a_save_is_what_was_continued_from() {
    let file = FILE.replace("checkpoint-*", "*.safetensors");
    let home = home(
        SAVES_TWICE,
        "killed()",
        &format!("{file}resume = {{ environment = {{ PLANNED = \"{{path}}\" }} }}\n"),
    );
    run(&home);
    assert_eq!(attempts(&home)[1], (json!(40), json!(41), json!(60)));
    let query = "select resumed_from_manifest_sha256 as manifest from training_attempts order by started_at";
    let manifest = home.sql(query)[1]["manifest"].as_str().unwrap().to_owned();
    let opened = home.sql("select fields_json as fields from events where kind = 'checkpoint_opened'");
    let opened: Vec<String> = opened.iter().map(|row| row["fields"].to_string()).collect();
    let read: Vec<&String> = opened.iter().filter(|fields| !fields.contains("none")).collect();
    assert!(read.iter().all(|fields| fields.contains(&manifest) && !fields.contains("yes")), "{opened:?}");
    assert!(opened.iter().any(|fields| fields.contains("yes") && fields.contains("none")), "{opened:?}");
    assert!(!read.is_empty());
    assert_eq!(messages(&home, "checkpoint_other_resume"), Vec::<String>::new());
}

/// Proves that checkpoints which were there before the run are not touched, and that the receipt of the first attempt
/// says that it continued from one of them.
#[test]
fn a_run_that_finds_an_older_checkpoint_says_so() {
    let home = home(LOOKS, "pass", FILE);
    std::fs::create_dir_all(home.path().join("out/checkpoint-30")).unwrap();
    let header = br#"{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
    let model = [&(header.len() as u64).to_le_bytes(), &header[..], b"ab"].concat();
    std::fs::write(home.path().join("out/checkpoint-30/model.safetensors"), model).unwrap();
    home.write("out/checkpoint-30/trainer_state.json", r#"{"global_step": 30}"#);
    run(&home);
    assert_eq!(attempts(&home), [(json!(30), json!(31), json!(60))]);
    let reported = messages(&home, "checkpoint_other_resume");
    assert!(
        reported.len() == 1 && reported[0].contains("`out/checkpoint-30` of step 30, which was there before"),
        "{reported:?}"
    );
    assert!(messages(&home, "checkpoint_moved_aside").is_empty());
}

/// Proves that what an attempt wrote is committed by the next one when its shim was killed with it, as at a power failure.
#[test]
fn what_a_dead_shim_left_is_committed_before_the_next_attempt() {
    let home = home(LOOKS, "os.kill(os.getppid(), signal.SIGKILL); killed()", FILE);
    let mut supervisor = home.spawn(&["run", "own.toml"]);
    eventually("the end of the run", || supervisor.try_wait().unwrap());
    assert_eq!(attempts(&home)[1], (json!(40), json!(41), json!(60)));
}

/// Proves that without a run file the checkpoints of a trainer are found by what they are, that `trackway resume`
/// continues from them, and that one line says how to write this down.
#[test]
fn a_bare_command_gets_its_checkpoints_adopted() {
    let home = home(LOOKS, "killed()", FILE);
    let ended = home.trackway(&["run", "--", "python3", "train.py"]);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    assert_eq!(home.trackway(&["resume", "last"]).code, 0);
    assert_eq!(attempts(&home)[1], (json!(40), json!(41), json!(60)));
    assert!(ended.stderr.contains("adopt = [\"out/checkpoint-*\"]"), "{}", ended.stderr);
}

/// Prints steps that begin again in each epoch of 30, saves after each epoch, and continues with the next one. The
/// first attempt is killed in epoch 5.
const BY_EPOCHS: &str = r#"
import glob, os, pickle, signal, time
saved = sorted(glob.glob("epoch_*.pkl"))
begin = pickle.load(open(saved[-1], "rb"))["epoch"] + 1 if saved else 1
for epoch in range(begin, 7):
    for step in (10, 20, 30):
        time.sleep(0.1)
        print(f"epoch {epoch} step {step} loss {1 / (epoch * step):.4f}", flush=True)
        if epoch == 5 and not saved:
            os.kill(os.getpid(), signal.SIGKILL)
    with open(f"epoch_{epoch}.pkl", "wb") as file:
        pickle.dump({"epoch": epoch, "weights": [0.5 * epoch], "optimizer": [0.1]}, file)
"#;

/// Proves that steps which begin again in each epoch are counted over the whole training: checkpoints have the steps
/// after which they were written, and an attempt that continues with the next epoch did continue.
#[test]
fn steps_of_epochs_are_those_of_the_training() {
    let home = Home::new();
    home.write("train.py", BY_EPOCHS);
    home.write("own.toml", &format!("{}{RETRY}", FILE.replace("out/checkpoint-*", "epoch_*.pkl")));
    run(&home);
    assert_eq!(attempts(&home), [(Value::Null, json!(10), json!(120)), (json!(120), json!(130), json!(180))]);
    assert_eq!(messages(&home, "checkpoint_other_resume"), Vec::<String>::new());
    assert_eq!(messages(&home, "checkpoint_moved_aside"), Vec::<String>::new());
}

/// Proves that a step is called an epoch where the script prints nothing finer, in what a run and its short explanation
/// print, and not where it prints steps.
#[test]
fn steps_that_are_epochs_are_called_so() {
    let by_epoch =
        BY_EPOCHS.replace("(10, 20, 30)", "(30,)").replace("epoch {epoch} step {step}", "Epoch {epoch}/6");
    for (script, last, are) in [
        (by_epoch.as_str(), "last step 6 (its steps are epochs)\n", true),
        (BY_EPOCHS, "last step 180\n", false),
    ] {
        let home = Home::new();
        home.write("train.py", script);
        home.write("own.toml", &format!("{}{RETRY}", FILE.replace("out/checkpoint-*", "epoch_*.pkl")));
        let ended = home.trackway(&["run", "own.toml"]);
        assert_eq!(ended.stderr.contains("its steps are epochs: "), are, "{}", ended.stderr);
        let short = home.trackway(&["explain", "last", "--short"]).stdout;
        assert!(short.contains(last), "{short}");
    }
}

/// Proves that the curve of a run that continued keeps each step once: those of the first attempt up to the checkpoint,
/// and those of the second after it.
#[test]
fn the_curve_keeps_what_was_not_trained_again() {
    let home = home(LOOKS, "killed()", FILE);
    run(&home);
    let rows =
        home.sql("select step, attempt_number from effective_metrics where name = 'loss' order by step");
    let curve: Vec<(u64, u64)> = rows
        .iter()
        .map(|row| (row["step"].as_u64().unwrap(), row["attempt_number"].as_u64().unwrap()))
        .collect();
    let expected: Vec<(u64, u64)> = (1..=60).map(|step| (step, if step <= 40 { 1 } else { 2 })).collect();
    assert_eq!(curve, expected);
}

/// Proves that a rehearsal of a script that writes checkpoints leaves nothing of them where the real run would find
/// them, or is refused where the system cannot keep them apart.
#[test]
fn a_rehearsal_leaves_the_folder_as_it_is() {
    let home = home(LOOKS, "time.sleep(60 if \"TRACKWAY_REHEARSAL_BATCHES\" in os.environ else 0)", FILE);
    let outside = |home: &Home| {
        let mut files = files_below(home.path());
        files.retain(|path| {
            !path.starts_with(home.state()) && !path.starts_with(home.path().join("settings"))
        });
        files.sort();
        files
    };
    let before = outside(&home);
    let rehearsed = home.trackway(&["rehearse", "own.toml", "--handshake-timeout", "3"]);
    assert_eq!(outside(&home), before, "{}", rehearsed.stderr);
    if rehearsed.code == 2 {
        trackway_skip::skip!("{}", rehearsed.stderr);
        assert!(rehearsed.stderr.contains("where the real run looks for them"), "{}", rehearsed.stderr);
        return;
    }
    assert!(rehearsed.stdout.contains("not_applicable"), "{} {}", rehearsed.stdout, rehearsed.stderr);
    let left =
        files_below(&home.state()).into_iter().filter(|path| path.ends_with("trainer_state.json")).count();
    assert_eq!(left, 0, "what it wrote is deleted");
    assert_eq!(run(&home)["state"], "completed");
}

/// Proves that a checkpoint which the script wrote itself is evaluated: the evaluator finds it as its framework does,
/// and a version of the registry is bound to it.
#[test]
fn an_adopted_checkpoint_is_evaluated_and_registered() {
    let evaluate = r#"
[evaluate]
command = ["sh", "eval.sh"]
gates = ["accuracy >= 0.5"]
"#;
    let home = home(LOOKS, "pass", &format!("{FILE}{evaluate}"));
    let rows = (0..40).map(|row| format!("{row},a,a")).collect::<Vec<_>>().join("\\n");
    let script = format!(
        "set -e\ngrep -q 60 \"$TRACKWAY_CHECKPOINT_PATH/trainer_state.json\"\ntest -s \"$TRACKWAY_CHECKPOINT_PATH/model.safetensors\"\n\
         test \"$(basename \"$TRACKWAY_CHECKPOINT_PATH\")\" = checkpoint-60\n\
         printf 'id,label,prediction\\n{rows}\\n' > \"$TRACKWAY_EVALUATION_OUT/predictions.csv\"\n"
    );
    home.write("eval.sh", &script);
    run(&home);
    let evaluated = home.sql("select c.step, e.state from evaluations e join checkpoints c on c.manifest_sha256 = e.checkpoint_manifest_sha256");
    assert_eq!(evaluated, [json!({"step": 60, "state": "completed"})]);
    let registered = home.trackway(&["registry", "register", "own", "--run", "last"]);
    assert_eq!(registered.code, 0, "{}", registered.stderr);
}

/// Saves one file with everything in it, as `torch.save` of a dictionary does, and at the end one of an optimizer alone.
const ONE_FILE: &str = r#"
import pickle, time
for step in range(1, 21):
    print(f"step {step} loss {1 / step:.4f}", flush=True)
pickle.dump({"step": 20, "model": {"w": [0.5] * 1000}, "optimizer": {"m": 1}}, open("ckpt.pt", "wb"))
"#;

/// Proves that a version which is one file with model and optimizer in it is exported and deployed as that file, under its name.
#[test]
fn a_file_with_everything_in_it_is_deployed() {
    let home = Home::new();
    home.write("t.py", ONE_FILE);
    let class = |row: u32| if row.is_multiple_of(2) { "a" } else { "b" };
    let rows = (0..40).map(|row| format!("{row},{0},{0}", class(row))).collect::<Vec<_>>().join("\\n");
    home.write(
        "eval.sh",
        &format!("printf 'id,label,prediction\\n{rows}\\n' > \"$TRACKWAY_EVALUATION_OUT/predictions.csv\"\n"),
    );
    home.write(
        "job.toml",
        "[run]\nname = \"one\"\ncommand = [\"python3\", \"t.py\"]\n[checkpoint]\nadopt = [\"ckpt.pt\"]\n\
         [evaluate]\ncommand = [\"sh\", \"eval.sh\"]\ngates = [\"accuracy >= 0.5\"]\n",
    );
    assert_eq!(home.json(&["run", "job.toml"])["state"], "completed");
    assert_eq!(registry(&home, &["register", "m", "--run", "last"]).0, 0);
    assert_eq!(registry(&home, &["export", "m", "1", "--out", "ex"]).0, 0);
    let saved = std::fs::read(home.path().join("ckpt.pt")).unwrap();
    let copied = |folder: &str| std::fs::read(home.path().join(folder).join("ckpt.pt")).ok();
    assert_eq!(copied("ex").as_ref(), Some(&saved));
    let bad = home.trackway(&[
        "gates", "fixture", "last", "--set", "accuracy=0.1", "--name", "bad", "--out", "bad.json",
    ]);
    assert_eq!(bad.code, 0, "{}", bad.stderr);
    assert_eq!(home.trackway(&["gates", "test", "job.toml", "--bad", "bad.json"]).code, 0);
    set_policy(&home, "m", &format!("{EASY}baseline = \"optional\"\n"));
    let promoted = registry(&home, &["promote", "m", "1", "--deploy", "srv"]);
    assert_eq!(promoted.0, 0, "{}", promoted.1);
    assert_eq!(copied("srv/current").as_ref(), Some(&saved));
}

/// Proves that a version of a folder with folders is exported under the names that the script gave its files, hidden
/// ones too, and that a state of an optimizer alone becomes no version.
#[test]
fn names_of_the_script_are_those_of_an_export() {
    // Before its last file, which completes it.
    let last = "    (folder / \"trainer_state.json\")";
    let more = "    (folder / 'extra').mkdir()\n    (folder / 'extra' / '.notes').write_text('m')\n    \
                (folder / 'origin.json').write_text('{}')\n";
    let home = home(LOOKS, "pass", FILE);
    home.write(
        "train.py",
        &TRAIN.replace("START", LOOKS).replace("END", "pass").replace(last, &format!("{more}{last}")),
    );
    run(&home);
    assert_eq!(registry(&home, &["register", "own", "--run", "last"]).0, 0);
    assert_eq!(registry(&home, &["export", "own", "1", "--out", "ex"]).0, 0);
    let text = |name: &str| std::fs::read_to_string(home.path().join("ex").join(name)).unwrap_or_default();
    assert_eq!((&*text("extra/.notes"), &*text("origin.json")), ("m", "{}"));
    assert!(text("trackway-origin.json").contains("checkpoint-60"), "{}", text("trackway-origin.json"));
    assert!(home.path().join("ex/model.safetensors").is_file());

    home.write("optim.py", "import pickle\nprint('step 1 loss 0.5')\npickle.dump({'state': {}, 'param_groups': []}, open('optimizer.pt', 'wb'))\n");
    home.write(
        "optim.toml",
        &FILE
            .replace("train.py", "optim.py")
            .replace("out/checkpoint-*", "optimizer.pt")
            .replace("\"own\"", "\"optim\""),
    );
    assert_eq!(home.json(&["run", "optim.toml"])["state"], "completed");
    let refused = home.trackway(&["registry", "register", "optim", "--run", "last"]);
    assert!(
        refused.code == 6 && refused.stderr.contains("no committed checkpoint"),
        "{} {}",
        refused.code,
        refused.stderr
    );
}

/// Its weight is NaN from step 51 on, unless `LR` is set; saves it every 20 of 160 steps in one file, and continues from that file. It ends
/// after step `LAST`.
const LOSES_ITS_WEIGHT: &str = r#"
import os, pickle, time
step, weight = 0, 1.0
if os.path.exists("ck.pkl"):
    state = pickle.load(open("ck.pkl", "rb"))
    step, weight = state["step"], state["weights"][0]
print("starts at", step, "weights", weight, flush=True)
is_sound = "LR" in os.environ
while step < int(os.environ.get("LAST", "160")):
    step += 1
    time.sleep(0.02)
    weight = float("nan") if weight != weight or step > 50 and not is_sound else weight * 0.99
    print(f"step {step} loss {weight}", flush=True)
    if step % 20 == 0 and (step <= 60 or is_sound):
        pickle.dump({"step": step, "weights": [weight], "optimizer": [0.0]}, open("ck.pkl", "wb"))
        time.sleep(3.5)
"#;

/// A run that diverges after step 50, and what it does then.
fn loses_its_weight(environment: &str, retry: &str) -> Home {
    let home = Home::new();
    home.write("n.py", LOSES_ITS_WEIGHT);
    home.write(
        "n.toml",
        &format!(
            "[run]\nname = \"n\"\ncommand = [\"python3\", \"n.py\"]\n{environment}\n\
             [checkpoint]\nadopt = [\"ck.pkl\"]\n[detect.non_finite]\npolicy = \"note\"\n{retry}"
        ),
    );
    home
}

fn states(home: &Home) -> Vec<(Value, Value)> {
    let listed = home.json(&["checkpoint", "ls", "last"]);
    let checkpoints = listed["checkpoints"].as_array().unwrap().iter();
    checkpoints.map(|one| (one["step"].clone(), one["state"].clone())).collect()
}

/// Proves that a retry after a divergence continues from the newest checkpoint that was saved before the loss became
/// NaN, that the file in the folder of the script is that one, and that what was saved later is marked, with the
/// evidence, wherever checkpoints are shown.
#[test]
fn a_retry_does_not_continue_from_a_nan() {
    let retry = "[retry]\nnumeric_divergence = { plan = [{ set = { LR = \"0.001\" } }] }\n";
    let home = loses_its_weight("environment = { LAST = \"90\" }", retry);
    let ended = home.trackway(&["run", "n.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("step 60 is skipped (unsafe: `loss` is NaN from step 51 on"),
        "{}",
        ended.stderr
    );
    assert_eq!(attempts(&home).iter().map(|row| row.0.clone()).collect::<Vec<_>>(), [Value::Null, json!(40)]);
    let said = home.trackway(&["logs", "last"]).stdout;
    assert!(said.contains("starts at 40 weights 0.66"), "{said}");
    let unsafe_rows =
        home.sql("select step, state, unsafe_because from checkpoints where unsafe_because is not null");
    assert_eq!((unsafe_rows.len(), &unsafe_rows[0]["step"]), (1, &json!(60)), "{unsafe_rows:?}");
    assert_eq!(
        home.sql("select count(*) as n from events where kind = 'checkpoint_unsafe'"),
        [json!({"n": 1})]
    );
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("step 60 is unsafe: `loss` is NaN from step 51 on"), "{page}");
    assert_eq!(home.trackway(&["verify", "last"]).code, 0, "the ledger agrees with the log");
}

/// Proves that checkpoints which count updates are judged by the epoch or the batch that the script printed when it
/// wrote them, and that retention keeps the newest safe one though all that is left at the end is committed at once.
#[test]
fn what_counts_otherwise_is_judged_by_what_was_printed() {
    // What is printed, of how many updates a checkpoint is, and the newest that is safe. A save comes right after its print.
    for (printed, updates, safe_step) in
        [("Epoch $i/9 - loss: $l", "$((i * 100))", 400), ("step $((i * 4)) loss $l", "$i", 4)]
    {
        let home = Home::new();
        let header = r#"{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
        let tensors = format!("\\{:03o}\\0\\0\\0\\0\\0\\0\\0{header}abcd", header.len());
        let save = format!(
            "d=out/checkpoint-{updates}; mkdir -p $d; printf '{tensors}' > $d/model.safetensors\n\
             echo '{{\"global_step\": '{updates}'}}' > $d/trainer_state.json"
        );
        home.write(
            "t.sh",
            &format!("mkdir -p out\nfor i in 1 2 3 4 5 6 7; do\nl=0.5; [ $i -lt 5 ] || l=nan\necho \"{printed}\"\n{save}\nsleep 0.1\ndone\nexit 1\n"),
        );
        home.write(
            "r.toml",
            "[run]\nname = \"x\"\ncommand = [\"sh\", \"t.sh\"]\n[checkpoint]\nadopt = [\"out/checkpoint-*\"]\n[retry]\nunknown = { attempts = 0 }\n\
             code_error = { attempts = 0 }\n",
        );
        let ended = home.trackway(&["run", "r.toml", "--skip-preflight", "--why", "a test"]);
        assert_eq!(ended.code, 4, "{}", ended.stderr);
        let target = home.json(&["checkpoint", "resume-target", "last"]);
        assert_eq!(target["standing"]["newest_is_unsafe"], true, "{printed}: {target}");
        assert_eq!(target["standing"]["safe_step"], safe_step, "{printed}: {target}");
    }
}

/// Proves that a run which only reports a divergence and ends is not continued from what it saved then, by a plain
/// `resume` neither, and that a person can decide otherwise, with a reason.
#[test]
fn what_is_unsafe_is_used_only_by_decision() {
    let home = loses_its_weight("environment = { LAST = \"70\" }", "");
    let ended = home.trackway(&["run", "n.toml", "--skip-preflight", "--why", "a test"]);
    assert_eq!(ended.code, 4, "{}", ended.stderr);
    let left = [(60, "unsafe"), (40, "committed"), (20, "superseded")];
    assert_eq!(states(&home), left.map(|(step, state)| (json!(step), json!(state))));
    let target = home.json(&["checkpoint", "resume-target", "last"]);
    assert_eq!(target["checkpoints"][0]["step"], 40, "{target}");
    assert_eq!(
        (
            &target["standing"]["newest_step"],
            &target["standing"]["newest_is_unsafe"],
            &target["standing"]["safe_step"]
        ),
        (&json!(60), &json!(true), &json!(40))
    );
    assert!(
        target["skipped"][0]["why"].as_str().unwrap().contains("unsafe: `loss` is NaN from step 51"),
        "{target}"
    );
    let text = home.trackway(&["checkpoint", "resume-target", "last"]);
    assert!(text.stderr.contains("newest step 60, unsafe; newest safe step 40"), "{}", text.stderr);

    let named = home.trackway(&["registry", "register", "m", "--run", "last", "--step", "60"]);
    assert!(
        named.code == 2 && named.stderr.contains("step 60 of run `n` is unsafe"),
        "{} {}",
        named.code,
        named.stderr
    );
    let (_, safe) = registry(&home, &["register", "m", "--run", "last"]);
    assert_eq!((&safe["step"], &safe["health"]), (&json!(40), &json!("broken")));
    assert!(safe["warnings"].to_string().contains("the attempt that wrote it is broken"), "{safe}");
    let accepted = registry(
        &home,
        &["register", "m", "--run", "last", "--step", "60", "--unsafe", "--why", "to study the divergence"],
    );
    assert_eq!((accepted.0, &accepted.1["version"]), (0, &json!(2)), "{}", accepted.1);
    let refused = registry(&home, &["promote", "m", "2", "--to", "staging"]);
    assert!(refused.1.to_string().contains("registry.unsafe_checkpoint"), "{}", refused.1);
    assert!(messages(&home, "checkpoint_accepted")[0].contains("to study the divergence"));
    let exported = home.trackway(&["registry", "export", "m", "2", "--out", "copy"]);
    let (warning, card) = (
        "its checkpoint is unsafe: `loss` is NaN",
        std::fs::read_to_string(home.path().join("copy/README.md")).unwrap(),
    );
    assert!(
        exported.code == 0 && exported.stderr.contains(&format!("warning: {warning}")),
        "{}",
        exported.stderr
    );
    assert!(accepted.1["warnings"].to_string().contains(warning), "{}", accepted.1);
    assert!(card.contains("| warning | its checkpoint is unsafe"), "{card}");
    home.write("s.toml", "[run]\nname = \"s\"\ncommand = [\"true\"]\nstart_from = \"n@60\"\n");
    let started = home.trackway(&["run", "s.toml", "--skip-preflight", "--why", "a test"]);
    let way_out =
        format!("trackway checkpoint clear {} --step 60 --why TEXT", accepted.1["run_id"].as_str().unwrap());
    assert!(started.code == 2 && started.stderr.contains(&way_out), "{}", started.stderr);
    assert!(
        started.stderr.contains("trackway runs bless"),
        "its attempt is broken as well: {}",
        started.stderr
    );

    let resumed = home.trackway(&["resume", "n"]);
    assert_ne!(resumed.code, 2, "{}", resumed.stderr);
    assert_eq!(attempts(&home).last().unwrap().0, json!(40), "{}", resumed.stderr);

    let cleared =
        home.trackway(&["checkpoint", "clear", "n", "--step", "60", "--why", "a test of the decision"]);
    assert_eq!(cleared.code, 0, "{}", cleared.stderr);
    let explained = home.trackway(&["checkpoint", "explain", "n", "--step", "60"]).stdout;
    assert!(!explained.contains("unsafe"), "{explained}");
}

/// Proves that a run of which no checkpoint is safe begins again and says so, without the file that the script would continue from.
#[test]
fn a_training_begins_again_without_what_is_unsafe() {
    let home = loses_its_weight(
        "environment = { LAST = \"30\" }",
        "[retry]\nnumeric_divergence = { plan = [{ set = { OTHER = \"1\" } }] }\n",
    );
    home.write("n.py", &LOSES_ITS_WEIGHT.replace("step > 50", "step > 10"));
    let ended = home.trackway(&["run", "n.toml", "--skip-preflight", "--why", "a test"]);
    assert!(
        ended.stderr.contains("the training begins again: no committed checkpoint is safe"),
        "{}",
        ended.stderr
    );
    let said = home.trackway(&["logs", "last"]).stdout;
    assert!(said.contains("starts at 0 weights 1.0"), "{said}");
    assert_eq!(attempts(&home).len(), 2);
}

/// Proves that after a loss was NaN and good again a checkpoint with a NaN in its tensors is unsafe, and one without is not.
#[test]
fn a_nan_in_tensors_outlives_that_of_the_loss() {
    let home = Home::new();
    let script = r#"
import json, struct, time
for step in range(1, 7):
    print(f"step {step} loss {'nan' if step == 1 else 0.5}", flush=True)
    if step < 5: continue
    header = json.dumps({"__metadata__": {"step": str(step)}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    value = float("nan") if step > 5 else 1.0
    open(f"m-{step}.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack("<ff", 0.5, value))
    time.sleep(3.5)
"#;
    home.write("t.py", script);
    home.write("t.toml", "[run]\nname = \"t\"\ncommand = [\"python3\", \"t.py\"]\n[checkpoint]\nadopt = [\"m-*.safetensors\"]\nkeep = { last = 5 }\nsafe_after = 3\n");
    home.json(&["run", "t.toml"]);
    let expected = [(6, "unsafe"), (5, "committed")].map(|(step, state)| (json!(step), json!(state)));
    assert_eq!(states(&home), expected);
    let explained = home.trackway(&["checkpoint", "explain", "t", "--step", "6"]).stdout;
    assert!(explained.contains("its tensor `w` holds NaN"), "{explained}");
}

/// Proves that a NaN in the tensors of a checkpoint after which no loss was recorded makes it unsafe, whatever the
/// script said at its end, and that the one before it stays safe.
#[test]
fn a_nan_that_no_loss_shows_is_found_in_the_values() {
    let script = r#"
import json, struct, sys, time
for step in range(1, 4):
    print(f"batch {step} of 3 done", flush=True)
    if step < 2: continue
    header = json.dumps({"__metadata__": {"step": str(step)}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    value = float("nan") if step > 2 else 1.0
    open(f"m-{step}.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack("<ff", 0.5, value))
    time.sleep(3.5)
sys.exit(sys.argv[1])
"#;
    for last_words in ["Loss is nan, stopping training", "that was all"] {
        let home = Home::new();
        home.write("t.py", script);
        home.write("t.toml", &format!("[run]\nname = \"t\"\ncommand = [\"python3\", \"t.py\", \"{last_words}\"]\n[checkpoint]\nadopt = [\"m-*.safetensors\"]\nkeep = {{ last = 5 }}\n[retry]\nunknown = {{ attempts = 0 }}\n"));
        let ended = home.trackway(&["run", "t.toml", "--skip-preflight", "--why", "a test"]);
        assert_eq!(ended.code, 4, "{}", ended.stderr);
        assert_eq!(
            home.sql("select name from metric_summaries where name like '%loss%'"),
            Vec::<Value>::new()
        );
        assert_eq!(states(&home)[0], (json!(3), json!("unsafe")), "{last_words}: {}", ended.stderr);
        assert!(states(&home).iter().all(|(step, state)| *step == 3 || state != "unsafe"), "{last_words}");
        let explained = home.trackway(&["checkpoint", "explain", "t", "--step", "3"]).stdout;
        assert!(explained.contains("tensor `w` holds NaN"), "{explained}");
    }
}

/// Proves that a checkpoint which was there before, and that the script does not read, is not called its beginning:
/// neither looking for checkpoints nor a script that writes other files changes that.
#[test]
fn what_trackway_reads_is_not_read_by_the_script() {
    let home = home(LOOKS, "pass", FILE);
    std::fs::create_dir_all(home.path().join("out/checkpoint-20")).unwrap();
    home.write("out/checkpoint-20/trainer_state.json", "{\"global_step\": 20}");
    home.write("ckpt.pkl", "no pickle");
    let script = "import time\nfor step in range(3):\n    open(f'log-{step}.txt', 'w').write('x')\n    time.sleep(1.2)\nprint('step 1 loss 0.5')\n";
    home.write("plain.py", script);
    let ended = home.trackway(&["run", "--", "python3", "plain.py"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(!ended.stderr.contains("continued from"), "{}", ended.stderr);
    let events = home
        .sql("select fields_json from events where kind in ('checkpoint_opened', 'checkpoint_other_resume')");
    let is_unread = |event: &Value| event["fields_json"].as_str().unwrap().contains("\"by\":\"none\"");
    assert!(events.iter().all(is_unread), "{events:?}");
}

/// Proves that a file which is renamed into place is committed because of that, without a wait until it is quiet.
#[test]
fn a_rename_into_place_completes_a_checkpoint() {
    let home = home(LOOKS, "pass", &FILE.replace("out/checkpoint-*", "step-*.safetensors"));
    let save = "    step = int(step)\n    open('.tmp', 'wb').write(tensors(step))\n    os.replace('.tmp', f'step-{step}.safetensors')\n    time.sleep(2.5)\n";
    let script = TRAIN.replace("START", "step = 0").replace("END", "pass");
    let (before, behind) = script.split_once("    folder = OUT").unwrap();
    let behind = behind.split_once("\ndef newest").unwrap().1;
    home.write("train.py", &format!("{before}{save}\ndef newest{behind}"));
    run(&home);
    let events =
        home.sql("select step, fields_json from events where kind = 'checkpoint_adopted' order by at");
    let complete: Vec<(u64, bool)> = events
        .iter()
        .map(|row| {
            let is_renamed = row["fields_json"].as_str().unwrap().contains("\"complete\":\"renamed\"");
            (row["step"].as_u64().unwrap(), is_renamed)
        })
        .collect();
    assert_eq!(complete, [(20, true), (40, true), (60, true)], "{events:?}");
}

/// Says that this binary is the script of the test below.
const RECORDS: &str = "ADOPTED_TEST_RECORDS";

/// Proves nothing by itself: it is a script that records its steps, prints none, and saves a file without a step after step 25. The first
/// attempt is killed after step 30.
#[test]
fn script_that_records() {
    if std::env::var_os(RECORDS).is_none() {
        return;
    }
    let run = Recorder::attach();
    let (path, first) = ("state.safetensors", !std::path::Path::new("began").exists());
    std::fs::write("began", "").unwrap();
    let from = if std::fs::read(path).is_ok() { 26 } else { 1 };
    for step in from..=35 {
        std::thread::sleep(Duration::from_millis(50));
        run.log(step, &[("loss", 1.0 / step as f64)]);
        if step == 25 {
            // Longer than a tick of the kernel's clock, as a real save takes: within one, which came first is not known.
            std::thread::sleep(Duration::from_millis(20));
            let header = r#"{"w":{"dtype":"U8","shape":[64],"data_offsets":[0,64]}}"#;
            let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[7; 64]].concat();
            std::fs::write(".tmp", bytes).unwrap();
            std::fs::rename(".tmp", path).unwrap();
        }
        if first && step == 30 {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
        }
    }
    run.finish();
}

/// Proves that a checkpoint without a step has the last one that the script recorded before it, as it has the last one
/// that was printed, and that a retry continues from there.
#[test]
fn recorded_steps_count_like_printed_ones() {
    let home = Home::new();
    let binary = home.program();
    let file = format!(
        "[run]\nname = \"own\"\ncommand = [\"{}\", \"adopted::script_that_records\", \"--exact\", \"--nocapture\"]\n\
         environment = {{ {RECORDS} = \"1\" }}\n[checkpoint]\nadopt = [\"state.safetensors\"]\n{RETRY}",
        binary.display()
    );
    home.write("own.toml", &file);
    let run = run(&home);
    let attempts = attempts(&home);
    assert_eq!(attempts[0], (Value::Null, json!(1), json!(25)), "{run}");
    assert_eq!((&attempts[1].0, &attempts[1].1), (&json!(25), &json!(26)), "{run}");
    let events = home.sql("select step, fields_json from events where kind = 'checkpoint_adopted'");
    let is_recorded = |event: &Value| {
        event["step"] == 25 && event["fields_json"].as_str().unwrap().contains("\"step_from\":\"progress\"")
    };
    assert!(events.len() == 1 && is_recorded(&events[0]), "{events:?}");
}
