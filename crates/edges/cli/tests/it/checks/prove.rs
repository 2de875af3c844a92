//! `trackway prove` on a training script whose resume is right, and on scripts that each do one thing wrong.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use trackway_core::Clock as _;
use trackway_recorder::{Kind, Recorder};
use trackway_system::SystemClock;

use crate::harness::{Home, answer, files_below, has_frameworks};
use crate::models::registry::{refusals, registry, set_policy};
use crate::training::examples::wine_mlp;

/// What the training script of these tests does wrong.
const FLAW: &str = "TOY_FLAW";
/// No flaw: it saves all that a resume needs, and ends.
const SAVES_ALL: &str = "saves_all";

/// Proves nothing by itself: it is the training script of the tests below, which launch this very binary. A walk of
/// four weights with momentum and noise.
#[test]
fn toy() {
    let Ok(flaw) = std::env::var(FLAW) else { return };
    let run = Recorder::attach();
    run.stop_on_sigterm();
    let mut toy = Toy::new(&flaw);
    let resumed = if flaw == "never_resumes" { None } else { run.resume().unwrap() };
    let first = match resumed.filter(|_| flaw != "ignores_it") {
        Some(found) => {
            toy.weights = floats(&found.read("weights.bin").unwrap());
            if flaw != "forgets_optimizer" {
                toy.momentum = floats(&found.read("momentum.bin").unwrap());
            }
            if flaw != "forgets_rng" {
                toy.noise = u64::from_le_bytes(found.read("rng.bin").unwrap().try_into().unwrap());
            }
            found.step + 1
        }
        None => 1,
    };
    let last = match flaw.as_str() {
        "ends_early" => 9,
        SAVES_ALL => 30,
        _ => 1_000,
    };
    for step in first..=last {
        toy.advance();
        run.log(step, &[("loss", toy.weights[0])]);
        assert!(flaw != "crashes" || step < 5, "CUDA is not what it was");
        let due = if flaw == "own_cadence" { step % 7 == 0 } else { run.checkpoint_due(step) };
        if due || run.should_stop() {
            toy.save(&run, step, &flaw);
        }
        if run.should_stop() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    run.finish();
}

struct Toy {
    weights: Vec<f64>,
    momentum: Vec<f64>,
    noise: u64,
}

impl Toy {
    fn new(flaw: &str) -> Self {
        let noise = if flaw == "time_as_seed" { SystemClock.now().as_micros() as u64 | 1 } else { 17 };
        Self { weights: vec![0.5; 4], momentum: vec![0.0; 4], noise }
    }

    fn advance(&mut self) {
        for (weight, momentum) in self.weights.iter_mut().zip(&mut self.momentum) {
            self.noise ^= self.noise << 13;
            self.noise ^= self.noise >> 7;
            self.noise ^= self.noise << 17;
            *momentum = 0.9 * *momentum + (self.noise >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
            *weight += *momentum;
        }
    }

    fn save(&self, run: &Recorder, step: u64, flaw: &str) {
        run.save_checkpoint(step, &[], |writer| {
            writer.file("weights.bin", Kind::Weights, &bytes(&self.weights))?;
            writer.file("momentum.bin", Kind::Optimizer, &bytes(&self.momentum))?;
            if flaw == "forgets_rng" {
                return Ok(());
            }
            if flaw == SAVES_ALL {
                writer.file("cursor.bin", Kind::DataCursor, &step.to_le_bytes())?;
            }
            writer.file("rng.bin", Kind::Rng, &self.noise.to_le_bytes())
        })
        .unwrap();
    }
}

fn bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks_exact(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap())).collect()
}

pub fn toy_run_file(home: &Home, flaw: &str) -> String {
    let binary = home.program();
    let text = format!(
        "[run]\nname = \"{flaw}\"\ncommand = [\"{}\", \"checks::prove::toy\", \"--exact\", \"--nocapture\"]\nseed = 17\n\
         environment = {{ {FLAW} = \"{flaw}\" }}\n[checkpoint]\nevery = {{ steps = 3 }}\n",
        binary.display()
    );
    home.write(&format!("{flaw}.toml"), &text);
    format!("{flaw}.toml")
}

/// The exit code and the document of `trackway prove`.
fn prove(home: &Home, file: &str, steps: &str, options: &[&str]) -> (i32, Value) {
    let answer = home.trackway(&[&["prove", file, "--steps", steps, "--json"], options].concat());
    let document = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr));
    (answer.code, document)
}

fn why(proof: &Value) -> &str {
    proof["why"].as_str().unwrap_or_default()
}

/// Proves that a script whose state is complete is found equal; that the proof is in the ledger with its runs, separate
/// from the training runs and attempts; and that `explain` of a later run of the same config shows it.
#[test]
fn a_whole_state_is_proved_equal() {
    let home = Home::new();
    let file = toy_run_file(&home, "none");
    let trained = home.json(&["run", &file]);
    assert_eq!(trained["state"], "completed", "{trained}");
    let page = home.json(&["explain", "last"]);
    assert_eq!(page["resume_proof"], Value::Null, "{page}");
    assert!(home.trackway(&["explain", "last"]).stdout.contains("never proved"));

    let (code, proof) = prove(&home, &file, "40", &[]);
    assert_eq!((code, &proof["verdict"]), (0, &json!("equal")), "{proof}");
    assert_eq!((&proof["resumed_from_step"], &proof["why"]), (&json!(20), &Value::Null), "{proof}");
    assert!(proof["killed_at_step"].as_u64().unwrap() >= 30, "{proof}");
    let kinds: Vec<&String> = proof["digests"].as_object().unwrap().keys().collect();
    assert_eq!(kinds, ["optimizer", "rng", "weights"]);
    for digests in proof["digests"].as_object().unwrap().values() {
        assert_eq!((&digests["control"], &digests["control"]), (&digests["repeated"], &digests["resumed"]));
    }
    let parts: Vec<&str> =
        proof["launches"].as_array().unwrap().iter().map(|it| it["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["control", "repeated", "killed", "resumed"]);
    let rows = home.sql("select verdict, steps, killed_at_step, resumed_from_step, control_state_digest = resumed_state_digest as same from resume_proofs");
    assert_eq!(rows[0]["verdict"], "equal", "{rows:?}");
    assert_eq!((&rows[0]["steps"], &rows[0]["same"]), (&json!(40), &json!(true)), "{rows:?}");
    let attempts =
        home.sql("select kind, termination_reason, attempt_number from launches order by attempt_id");
    let ends: Vec<&Value> = attempts.iter().map(|row| &row["termination_reason"]).collect();
    assert_eq!(ends, ["completed", "completed", "node_failure", "completed"], "{attempts:?}");
    assert_eq!(home.sql("select attempt_id from training_attempts").len(), 1);
    assert_eq!(home.json(&["runs"]).as_array().unwrap().len(), 1);
    assert_eq!(
        home.sql("select count(*) as points from metrics where kind = 'prove' and name = 'loss'")[0]["points"],
        130
    );

    home.json(&["run", &file]);
    let page = home.json(&["explain", "last"]);
    assert_eq!(page["resume_proof"]["verdict"], "equal", "{page}");
    let page = home.trackway(&["explain", "last"]).stdout;
    assert!(page.contains("proved equal"), "{page}");
    let refused = home.trackway(&["resume", proof["launches"][2]["run_id"].as_str().unwrap()]);
    assert!(refused.code == 2 && refused.stderr.contains("is of kind `prove`"), "{}", refused.stderr);
}

/// Proves that what a script forgets is found and named, and that a script that does not repeat is not blamed for
/// its resume.
#[test]
fn what_is_forgotten_is_named() {
    let home = Home::new();
    for (flaw, code, verdict, expected) in [
        ("forgets_rng", 7, "different", "holds nothing of kind rng"),
        ("forgets_optimizer", 7, "different", "`momentum.bin` (optimizer"),
        ("time_as_seed", 4, "nondeterministic", "Usual causes: a generator that is not seeded"),
    ] {
        let (found, proof) = prove(&home, &toy_run_file(&home, flaw), "24", &[]);
        assert_eq!((found, &proof["verdict"]), (code, &json!(verdict)), "{flaw}: {proof}");
        assert!(why(&proof).contains(expected), "{flaw}: {proof}");
        let differing: Vec<&str> =
            proof["differences"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect();
        assert!(differing.contains(&"weights"), "{flaw}: {proof}");
        let resumed = &proof["digests"]["weights"]["resumed"];
        assert_eq!(resumed.is_null(), verdict == "nondeterministic", "{flaw}: {proof}");
    }
    let page = home.trackway(&["prove", "forgets_optimizer.toml", "--steps", "24"]);
    assert!(page.stdout.contains("different: two uninterrupted runs agree"), "{}", page.stdout);
    let rows = home.sql("select differing_kinds from resume_proofs where name = 'forgets_optimizer'");
    assert_eq!(rows[0]["differing_kinds"], "weights,optimizer");
}

/// Proves that without anything to compare, the proof names what is missing and is never `equal`; and that a script
/// that never reports to the recorder is ended.
#[test]
fn nothing_to_compare_is_no_proof() {
    let home = Home::new();
    for (flaw, expected) in [
        ("never_resumes", "the next launch started from the beginning"),
        ("ignores_it", "resumed the checkpoint of step 12, but trained from step 1"),
        ("own_cadence", "no checkpoint was committed at step 12"),
        ("ends_early", "ended by itself at step 9, but should have continued to step 24"),
        ("crashes", "ended as `code_error`"),
    ] {
        let (code, proof) = prove(&home, &toy_run_file(&home, flaw), "24", &[]);
        assert_eq!((code, &proof["verdict"]), (4, &json!("not_proved")), "{flaw}: {proof}");
        assert!(why(&proof).contains(expected), "{flaw}: {proof}");
    }
    for (script, expected) in
        [("true", "never spoke to the recorder"), ("exec sleep 600", "it was ended after 1 s")]
    {
        home.write(
            "mute.toml",
            &format!("[run]\nname = \"mute\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"),
        );
        let (code, proof) = prove(&home, "mute.toml", "24", &["--handshake-timeout", "1"]);
        assert_eq!((code, &proof["verdict"]), (4, &json!("not_applicable")), "{script}: {proof}");
        assert!(why(&proof).contains(expected), "{script}: {proof}");
    }
    let rows =
        home.sql("select verdict, count(*) as proofs from resume_proofs group by verdict order by verdict");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(home.trackway(&["prove", "mute.toml", "--steps", "3"]).code, 2);
    assert_eq!(home.trackway(&["prove", "none.toml", "--steps", "30"]).code, 2);
}

/// What a script writes that knows nothing of Trackway: its framework's checkpoints, one of them over and over again, and a log.
const UNMODIFIED: &str = r#"
import json, pathlib, pickle, time

print("step", 0, "loss", 1.0, flush=True)
for step in range(1, 10_000):
    time.sleep(0.02)
    pickle.dump({"step": step, "optimizer": {"m": 1.0}}, open("ckpt.pkl", "wb"))
    folder = pathlib.Path(f"out/checkpoint-{step}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    with open("train.log", "a") as log:
        log.write(f"step {step}\\n")
"#;

/// Proves that a script without the recorder is not applicable, with the reason, and that nothing in its folder has
/// changed; where the system cannot keep it apart it is not launched at all.
#[test]
fn a_script_without_the_recorder_leaves_its_folder_as_it_was() {
    let home = Home::new();
    let folder = home.path().join("work");
    std::fs::create_dir_all(folder.join("out/checkpoint-7")).unwrap();
    home.write("work/out/checkpoint-7/trainer_state.json", "{\"global_step\": 7}");
    home.write("work/ckpt.pkl", "the state of the real run");
    home.write("work/train.py", UNMODIFIED);
    home.write("work/job.toml", "[run]\nname = \"plain\"\ncommand = [\"python3\", \"train.py\"]\n");
    let contents = || -> Vec<_> {
        let mut files = files_below(&folder);
        files.sort();
        files.into_iter().map(|path| (std::fs::read(&path).unwrap(), path)).collect()
    };
    let before = contents();
    let options = ["prove", "work/job.toml", "--steps", "24", "--json", "--handshake-timeout", "2"];
    let answer = home.trackway(&options);
    assert!(before == contents(), "the folder has changed: {:?}", files_below(&folder));
    if answer.code == 2 {
        assert!(
            answer.stderr.contains("not launched: the script would write its checkpoints"),
            "{}",
            answer.stderr
        );
        return;
    }
    let proof: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!((answer.code, &proof["verdict"]), (4, &json!("not_applicable")), "{proof}");
    assert!(
        why(&proof).contains("the script never spoke to the recorder; it was ended after 2 s"),
        "{proof}"
    );
    let launched = home.sql("select count(*) as n from launches where kind = 'prove'");
    assert_eq!(launched[0]["n"], 1, "{launched:?}");
}

/// Proves that the PyTorch example resumes exactly on the processor, and that without its seed it is called
/// nondeterministic and not different, with the usual causes. `make test-python FRAMEWORKS=main` prepares the interpreter
/// and demands it.
#[test]
fn the_torch_example_is_equal() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").canonicalize().unwrap();
    let whole = std::fs::read_to_string(examples.join("python/chars_torch.py")).unwrap();
    let unseeded = whole.replace("    trackway.seed(options.seed)\n", "");
    assert_ne!(whole, unseeded);
    let verse = "The quality of mercy is not strain'd,\nIt droppeth as the gentle rain from heaven\n";
    let text = home.write("text.txt", &verse.repeat(150));
    let file = examples.join("chars_torch.toml");
    for (script, code, verdict) in [(whole, 0, "equal"), (unseeded, 4, "nondeterministic")] {
        let script = home.write("train.py", &script);
        let command = ["python", script.to_str().unwrap(), "--steps", "16", "--batch", "4", "--text"];
        let command = [&command[..], &[text.to_str().unwrap()]].concat();
        let (command, data) = (format!("run.command={command:?}"), format!("data.text.path={text:?}"));
        let options = ["--set", &command, "--set", &data];
        let (found, proof) = prove(&home, file.to_str().unwrap(), "16", &options);
        assert_eq!((found, &proof["verdict"]), (code, &json!(verdict)), "{proof}");
        if verdict == "equal" {
            let kinds: Vec<&String> = proof["digests"].as_object().unwrap().keys().collect();
            assert_eq!(kinds, ["data_cursor", "optimizer", "rng", "scheduler", "weights"], "{proof}");
        } else {
            assert!(why(&proof).contains("Usual causes"), "{proof}");
        }
    }
}

/// Proves that both Rust examples resume exactly; the character model on a short text, since it is slow unoptimized.
#[test]
fn the_rust_examples_are_equal() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    let verse = "The quality of mercy is not strain'd,\nIt droppeth as the gentle rain from heaven\n";
    let text = home.write("text.txt", &verse.repeat(150));
    let command =
        ["char_transformer", "--batch", "2", "--validate-every", "100", "--text", text.to_str().unwrap()];
    let short = [format!("run.command={command:?}"), format!("data.text.path={text:?}")];
    for (file, steps, overrides) in [("wine.toml", "600", &[][..]), ("chars.toml", "4", &short[..])] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(file);
        let mut command = home.command(&["prove", path.to_str().unwrap(), "--steps", steps, "--json"]);
        overrides.iter().for_each(|set| {
            command.args(["--set", set]);
        });
        let programs = format!("{}:{}", wine.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let answer = answer(command.env("PATH", programs).output().unwrap());
        let proof: Value = serde_json::from_str(&answer.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr));
        assert_eq!((answer.code, &proof["verdict"]), (0, &json!("equal")), "{file}: {proof}");
    }
}

/// Proves that a training can show all that a policy can require of an attempt: that it ended well, was checked before,
/// read data that did not change, resumes to the same weights, and has everything that a resume needs in its
/// checkpoint.
#[test]
fn a_training_shows_what_a_policy_requires_of_an_attempt() {
    let home = Home::new();
    let rows: String = (0..200).map(|row| format!("{row},{}\n", row % 7)).collect();
    home.write("rows.csv", &format!("id,quality\n{rows}"));
    let file = toy_run_file(&home, SAVES_ALL);
    let text = std::fs::read_to_string(home.path().join(&file)).unwrap();
    home.write(&file, &format!("{text}[data.rows]\npath = \"rows.csv\"\n"));
    for words in [&["prove", &file, "--steps", "30", "--json"][..], &["run", &file]] {
        let ended = home.trackway(words);
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    }
    assert_eq!(registry(&home, &["register", "toy", "--run", "last"]).0, 0);
    let all = "[\"ended_well\", \"preflight\", \"data_unchanged\", \"resume_proved\", \"whole_checkpoint\"]";
    set_policy(&home, "toy", &format!("gates = []\napprovals = 1\nreceipt = []\nattempt = {all}\n"));
    let refused = registry(&home, &["promote", "toy", "1"]);
    assert!(refusals(&refused).contains(&"registry.not_approved"), "{}", refused.1);
    assert!(!refusals(&refused).contains(&"registry.attempt"), "{}", refused.1);
}
