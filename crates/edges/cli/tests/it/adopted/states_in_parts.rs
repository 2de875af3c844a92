//! Scripts that save one state in several files, or under several names.

use std::fs;

use serde_json::json;

use crate::harness::Home;

/// Saves model and optimizer in two files every 10 of 40 steps, and continues from the newest step of which both are
/// there. The first attempt is killed after step 25, in the middle of a save.
const TRAIN: &str = r#"
import os, pathlib, pickle, signal, time

out = pathlib.Path("out")
out.mkdir(exist_ok=True)
step = max((int(path.stem.split("-")[1]) for path in out.glob("model-*.pkl")), default=0)
if step:
    model, optim = (pickle.loads((out / f"{name}-{step}.pkl").read_bytes()) for name in ("model", "optim"))
    assert model["l.weight"] == optim["param_groups"] == step, (model, optim)
first_attempt = not os.path.exists("began")
open("began", "w").close()
while step < 40:
    step += 1
    print(f"step {step} loss {1 / step:.4f}", flush=True)
    if first_attempt and step == 25:
        (out / "model-25.pkl").write_bytes(pickle.dumps({"l.weight": step}))
        (out / "optim-25.pkl").write_bytes(pickle.dumps({"param_groups": step})[:9])
        os.kill(os.getpid(), signal.SIGKILL)
    if step % 10 == 0:
        (out / f"model-{step}.pkl").write_bytes(pickle.dumps({"l.weight": step}))
        (out / f"optim-{step}.pkl").write_bytes(pickle.dumps({"param_groups": step}))
        for _ in range(600):
            origins = pathlib.Path(os.environ["TRACKWAY_CHECKPOINTS"]).rglob("origin.json")
            if any(f"model-{step}.pkl" in origin.read_text() for origin in origins):
                break
            time.sleep(0.1)
"#;

const RETRY: &str = "[run]\nname = \"own\"\ncommand = [\"python3\", \"train.py\"]\n[retry]\nunknown = { attempts = 2, backoff = \"0s..0s\" }\n";

/// Proves that model and optimizer in two files of a step are one checkpoint, with and without `adopt`: a retry
/// continues from both, what a kill left of a later one is moved, a lost folder gets both back, what is recommended
/// names both, and what is registered and exported is the model's file.
#[test]
fn model_and_optimizer_in_two_files_are_one_checkpoint() {
    for adopt in ["", "[checkpoint]\nadopt = [\"out/*.pkl\"]\n"] {
        let home = Home::new();
        home.write("train.py", TRAIN);
        home.write("own.toml", &format!("{RETRY}{adopt}"));
        let run = home.trackway(&["run", "own.toml"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let attempts = home.sql("select resumed_from_step, first_step, last_committed_step from training_attempts order by started_at");
        let second = [&attempts[1]["resumed_from_step"], &attempts[1]["first_step"]];
        assert_eq!(second, [&json!(20), &json!(21)], "{}", run.stderr);
        assert_eq!(attempts[1]["last_committed_step"], json!(40));
        let committed =
            home.sql("select fields_json as fields from events where kind = 'checkpoint_adopted'");
        assert_eq!(committed.len(), 4, "{committed:?}");
        if adopt.is_empty() {
            assert!(
                run.stderr.contains("adopt = [\"out/model-*.pkl\", \"out/optim-*.pkl\"]"),
                "{}",
                run.stderr
            );
        }
        assert_eq!(home.trackway(&["registry", "register", "m", "--run", "own"]).code, 0);
        assert_eq!(home.trackway(&["registry", "export", "m", "1", "--out", "exported"]).code, 0);
        let exported = home.path().join("exported");
        assert!(exported.join("model-40.pkl").exists() && !exported.join("optim-40.pkl").exists());
    }
}

/// Proves that a folder that was lost with a checkpoint of two files gets both back before the run is resumed.
#[test]
fn both_files_come_back() {
    let home = Home::new();
    home.write("train.py", TRAIN);
    assert_eq!(home.trackway(&["run", "--name", "own", "--", "python3", "train.py"]).code, 4);
    fs::remove_dir_all(home.path().join("out")).unwrap();
    let resumed = home.trackway(&["resume", "own"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let attempts =
        home.sql("select resumed_from_step, first_step from training_attempts order by started_at");
    assert_eq!([&attempts[1]["resumed_from_step"], &attempts[1]["first_step"]], [&json!(20), &json!(21)]);
    for name in ["model-20.pkl", "optim-20.pkl"] {
        assert!(home.path().join("out").join(name).exists(), "{name}");
    }
}
