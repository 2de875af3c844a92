//! `trackway rehearse` on scripts that do everything right, and on scripts that each do one thing wrong.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use trackway_recorder::facts::{Batches, Fact, Group, LossFunction, Model, TensorFacts};
use trackway_recorder::{Kind, ParameterUpdate, Recorder, UpdateWatch};

use crate::harness::{Home, answer, has_frameworks};
use crate::training::examples::wine_mlp;

/// What the training script of these tests does wrong.
const FLAW: &str = "REHEARSED_FLAW";
const CLASSES: usize = 4;
const FEATURES: usize = 12;
/// Fewer than there are features, so that they can be learned by heart.
const ROWS: usize = 8;

/// Proves nothing by itself: it is the training script of the tests below, which launch this very binary. Softmax
/// regression by hand on random points.
#[test]
fn toy() {
    let Ok(flaw) = std::env::var(FLAW) else { return };
    let run = Recorder::attach();
    run.stop_on_sigterm();
    let mut toy = Toy::new(&flaw);
    let resumed = run.resume().unwrap().filter(|_| flaw != "begins_anew");
    let first = resumed.as_ref().map_or(1, |found| found.step + 1);
    if let Some(found) = resumed.filter(|_| flaw != "forgets_weights") {
        toy.weights = floats(&found.read("weights.bin").unwrap());
    }
    for step in first..=5_000 {
        assert!(flaw != "crashes" || step < 2, "CUDA is not what it was");
        assert!(flaw != "out_of_memory" || fits(), "{OOM}");
        let batch = run.step_of_batch(step);
        let loss = toy.advance(&run, step, batch);
        run.log(step, &[("loss", loss)]);
        if step == first {
            run.log(step, &[("val_loss", loss)]);
        }
        if flaw != "never_saves" && (run.checkpoint_due(step) || run.should_stop()) {
            run.save_checkpoint(step, &[], |writer| {
                writer.file("weights.bin", Kind::Weights, &bytes(&toy.weights))
            })
            .unwrap();
        }
        if run.should_stop() {
            break;
        }
    }
    run.finish();
}

const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";

/// Whether the batch that the environment sets is small enough.
fn fits() -> bool {
    std::env::var("BATCH").is_ok_and(|batch| batch.parse::<u32>().is_ok_and(|batch| batch <= 16))
}

struct Toy {
    flaw: String,
    weights: Vec<f32>,
    watch: UpdateWatch,
}

impl Toy {
    fn new(flaw: &str) -> Self {
        let weights = (0..CLASSES * FEATURES).map(|index| 0.1 * noise(index as u64)).collect();
        Self { flaw: flaw.into(), weights, watch: UpdateWatch::default() }
    }

    /// The points and labels of a batch.
    fn batch(&self, number: u64) -> (Vec<f32>, Vec<u32>) {
        let from = number * 10_000;
        let scale = match self.flaw.as_str() {
            "constant_input" => 0.0,
            _ => 1.0,
        };
        let mut points: Vec<f32> =
            (0..ROWS * FEATURES).map(|index| scale * noise(from + index as u64)).collect();
        if self.flaw == "nan_feature" {
            points[7] = f32::NAN;
        }
        let shift = u32::from(self.flaw == "labels_off_by_one");
        let labels = (0..ROWS).map(|row| (row % CLASSES) as u32 + shift).collect();
        (points, labels)
    }

    fn learning_rate(&self) -> f32 {
        match self.flaw.as_str() {
            "learning_rate_times_1000" => 2e3,
            "learning_rate_over_1000000" => 2e-6,
            _ => 2.0,
        }
    }

    fn advance(&mut self, run: &Recorder, step: u64, batch: u64) -> f64 {
        let (points, labels) = self.batch(batch);
        if step == 1 {
            run.rehearsal_fact(&Fact::Inputs(vec![TensorFacts::of(
                "0",
                &points,
                &[ROWS as u64, FEATURES as u64],
            )]));
            let batches = Batches { taken: 1, ..Batches::default() };
            run.rehearsal_fact(&Fact::Batches(batches));
        }
        let (loss, gradient) = self.differentiate(&points, &labels);
        if step == 1 {
            let function = LossFunction::cross_entropy(CLASSES as u64, &labels, loss);
            run.rehearsal_fact(&Fact::LossFunction(function));
        }
        let before = self.weights.clone();
        let moving = match self.flaw.as_str() {
            "half_frozen" => 0..self.weights.len() / 2,
            "never_updates" => 0..0,
            _ => 0..self.weights.len(),
        };
        for index in moving {
            self.weights[index] -= self.learning_rate() * gradient[index];
        }
        if run.rehearsal().is_some() && self.watch.steps() < 5 {
            let norm = gradient.iter().map(|it| f64::from(it * it)).sum::<f64>().sqrt();
            let halves = ["lower", "upper"].into_iter().zip(before.chunks(24).zip(self.weights.chunks(24)));
            let updates: Vec<_> = halves
                .map(|(name, (before, after))| ParameterUpdate {
                    name,
                    before,
                    after,
                    gradient_norm: Some(norm),
                })
                .collect();
            self.watch.see(f64::from(self.learning_rate()), &updates);
            self.watch.facts("Toy").iter().for_each(|fact| run.rehearsal_fact(fact));
            if self.flaw == "large" {
                let parameters = Group { elements: 800_001, ..Group::default() };
                run.rehearsal_fact(&Fact::Model(Model { parameters, ..Model::default() }));
            }
        }
        loss
    }

    /// The mean cross-entropy and its gradient.
    fn differentiate(&self, points: &[f32], labels: &[u32]) -> (f64, Vec<f32>) {
        let (mut loss, mut gradient) = (0.0, vec![0.0; self.weights.len()]);
        for (point, label) in points.chunks(FEATURES).zip(labels) {
            let dot =
                |class: &[f32]| class.iter().zip(point).map(|(weight, value)| weight * value).sum::<f32>();
            let scores: Vec<f32> = self.weights.chunks(FEATURES).map(dot).collect();
            let highest = scores.iter().copied().fold(f32::MIN, f32::max);
            let total: f32 = scores.iter().map(|score| (score - highest).exp()).sum();
            for (class, score) in scores.iter().enumerate() {
                let share = (score - highest).exp() / total;
                let right = class as u32 == *label;
                loss -= if right { f64::from(score - highest - total.ln()) / ROWS as f64 } else { 0.0 };
                let slope = (share - f32::from(u8::from(right))) / ROWS as f32;
                for (place, value) in gradient[class * FEATURES..][..FEATURES].iter_mut().zip(point) {
                    *place += slope * value;
                }
            }
        }
        (loss, gradient)
    }
}

/// A number from -1.7 to 1.7 that depends on nothing but its index.
fn noise(index: u64) -> f32 {
    let mut mixed = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^= mixed >> 27;
    (mixed >> 40) as f32 / (1 << 24) as f32 * 3.4 - 1.7
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

pub fn toy_run_file(home: &Home, flaw: &str) -> String {
    let binary = home.program();
    let text = format!(
        "[run]\nname = \"{flaw}\"\ncommand = [\"{}\", \"checks::rehearsals::toy\", \"--exact\", \"--nocapture\"]\nseed = 17\n\
         environment = {{ {FLAW} = \"{flaw}\" }}\n",
        binary.display()
    );
    home.write(&format!("{flaw}.toml"), &text);
    format!("{flaw}.toml")
}

/// The exit code and the document of `trackway rehearse`.
fn rehearse(home: &Home, file: &str, options: &[&str]) -> (i32, Value) {
    document(home.trackway(&[&["rehearse", file, "--json"], options].concat()))
}

fn document(answer: crate::harness::Answer) -> (i32, Value) {
    let document = serde_json::from_str(&answer.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", answer.stdout, answer.stderr));
    (answer.code, document)
}

/// The first finding that names what is wrong.
fn diagnosis(answer: &Value) -> &str {
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().find_map(|finding| finding["column"].as_str()).unwrap_or("")
}

/// Proves that a script that learns passes, for one batch with a resume and for several without, and that its launches
/// are separate from training everywhere.
#[test]
fn a_script_that_learns_passes() {
    let home = Home::new();
    let file = toy_run_file(&home, "none");
    let (code, one) = rehearse(&home, &file, &[]);
    assert_eq!((code, &one["verdict"], &one["findings"]), (0, &json!("pass"), &json!([])), "{one}");
    assert_eq!(one["name"], "rehearsal.one_batch");
    let parts: Vec<&Value> = one["launches"].as_array().unwrap().iter().map(|it| &it["part"]).collect();
    assert_eq!(parts, ["learns", "resumes"], "{one}");
    assert_eq!(one["launches"][1]["resumed_from_step"], one["launches"][0]["last_committed_step"], "{one}");
    assert!(
        one["launches"][0]["last_step"].as_u64() < Some(200),
        "it ends once the loss is at its target: {one}"
    );

    let (code, several) = rehearse(&home, &file, &["--kind", "overfit", "--batches", "2"]);
    assert_eq!((code, &several["verdict"]), (0, &json!("pass")), "{several}");
    assert_eq!(
        (&several["name"], several["launches"].as_array().unwrap().len()),
        (&json!("rehearsal.overfit"), 1)
    );

    let kinds = home.sql("select kind, count(*) as launches from launches group by kind order by kind");
    assert_eq!(
        kinds,
        [json!({"kind": "one_batch", "launches": 2}), json!({"kind": "overfit", "launches": 1})]
    );
    assert!(home.sql("select attempt_id from training_attempts").is_empty());
    assert_eq!(home.json(&["runs"]), json!([]));
    let page = home.trackway(&["explain", one["launches"][0]["attempt_id"].as_str().unwrap()]);
    assert_eq!(page.code, 0, "{}", page.stderr);
    let page = home.trackway(&["rehearse", &file]).stdout;
    assert!(page.contains("pass: one batch: loss 1."), "{page}");
}

/// Proves that what a rehearsal measured counts in later pre-flights too, which do not repeat it: with the same config and script they
/// have the same finding about the size of the model; and that settings of a run file without `[training]` are not missed because of it.
#[test]
fn what_a_rehearsal_measured_is_not_lost() {
    let home = Home::new();
    let file = toy_run_file(&home, "large");
    let text = std::fs::read_to_string(home.path().join(&file)).unwrap();
    // A Python script is read for its use of batches; the toy takes its name for another test.
    let text = text.replacen("\"--nocapture\"", "\"--nocapture\", \"train.py\"", 1);
    home.write(&file, &format!("{text}[data.train]\npath = \"rows.csv\"\nlabel = \"y\"\n"));
    home.write(
        "train.py",
        "import trackway\n\nrun = trackway.attach()\nfor batch in run.batches([1]):\n    pass\n",
    );
    let rows: String = (0..100).map(|row| format!("{},{}\n", row * 37 % 101, row % 2)).collect();
    home.write("rows.csv", &format!("x,y\n{rows}"));
    let ran = home.trackway(&["run", &file]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let of_run = home.sql("select verdict from preflight_checks where check_name = 'config.model_size'");
    assert_eq!((of_run.len(), &of_run[0]["verdict"]), (1, &json!("warn")), "{of_run:?}");
    assert!(!ran.stderr.contains("not run"), "{}", ran.stderr);
    let report = home.json(&["preflight", &file]);
    let check = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{report:#}"))
    };
    assert_eq!(check("rehearsal.one_batch")["verdict"], "not_applicable", "{report:#}");
    let size = check("config.model_size");
    assert_eq!(size["verdict"], "warn", "{size:#}");
    assert!(size["findings"][0]["message"].as_str().unwrap().starts_with("800001 parameters"), "{size:#}");
    assert_eq!(
        home.sql("select count(*) as n from launches where kind = 'one_batch' and resumed_from_step is null")
            [0]["n"],
        1
    );
}

/// Proves that a script in Rust that does one thing wrong is found out, with the right name for it, and with exit code 3
/// where the run would be waste.
#[test]
fn what_is_wrong_is_named() {
    let home = Home::new();
    for (flaw, expected, verdict) in [
        ("learning_rate_times_1000", "learning_rate_too_high", "block"),
        ("learning_rate_over_1000000", "learning_rate_too_low", "block"),
        ("half_frozen", "unmoved_parameters", "block"),
        ("never_updates", "unmoved_parameters", "block"),
        ("labels_off_by_one", "labels_out_of_range", "block"),
        ("constant_input", "constant_input", "block"),
        ("nan_feature", "nan_in_batch", "block"),
        ("crashes", "crashed", "block"),
        ("never_saves", "not_saved", "warn"),
        ("begins_anew", "model_not_restored", "block"),
        ("forgets_weights", "model_not_restored", "block"),
    ] {
        let (code, found) = rehearse(&home, &toy_run_file(&home, flaw), &[]);
        let blocked = i32::from(verdict == "block") * 3;
        assert_eq!((diagnosis(&found), code), (expected, blocked), "{flaw}: {found:#}");
        assert_eq!(found["verdict"], verdict, "{flaw}: {found:#}");
    }
}

/// Proves that a script that runs out of memory is tried again with the entries of its retry plan: with one that fits the check warns
/// and names it, with none it blocks, and without a plan it is launched once.
#[test]
fn a_rehearsal_uses_the_plan_for_out_of_memory() {
    let home = Home::new();
    let file = toy_run_file(&home, "out_of_memory");
    let plain = std::fs::read_to_string(home.path().join(&file)).unwrap();
    let parts = |found: &Value| {
        let launches = found["launches"].as_array().unwrap().iter();
        launches.map(|it| (it["part"].clone(), it["set"]["BATCH"].clone())).collect::<Vec<_>>()
    };
    let (code, found) = rehearse(&home, &file, &[]);
    assert_eq!((code, diagnosis(&found), parts(&found).len()), (3, "crashed", 1), "{found:#}");

    let plan = |batches: [u32; 2]| {
        let [one, other] = batches.map(|batch| format!("{{ set = {{ BATCH = \"{batch}\" }} }}"));
        format!("{plain}[retry]\ndevice_oom = {{ plan = [{one}, {other}] }}\n")
    };
    home.write(&file, &plan([64, 16]));
    let (code, found) = rehearse(&home, &file, &[]);
    assert_eq!((code, diagnosis(&found)), (0, "out_of_memory"), "{found:#}");
    assert_eq!(found["verdict"], "warn");
    let message = found["findings"][0]["message"].as_str().unwrap();
    assert!(message.contains("with entry 2 of `[retry] device_oom` it fits: BATCH=16"), "{message}");
    let (learns, resumes) = (json!("learns"), json!("resumes"));
    let expected = [
        (learns.clone(), Value::Null),
        (learns.clone(), json!("64")),
        (learns, json!("16")),
        (resumes, json!("16")),
    ];
    assert_eq!(parts(&found), expected, "{found:#}");

    home.write(&file, &plan([64, 32]));
    let (code, found) = rehearse(&home, &file, &[]);
    assert_eq!((code, diagnosis(&found), parts(&found).len()), (3, "crashed", 3), "{found:#}");
}

/// Proves that a script without support of rehearsals is ended after its handshake is missed, or ends by itself, and
/// that neither blocks its real run.
#[test]
fn a_script_that_does_not_answer_is_not_judged() {
    let home = Home::new();
    for (script, expected) in
        [("true", "did not announce"), ("exec sleep 600", "did not speak to Trackway's recorder within 1 s")]
    {
        let command = format!("[run]\nname = \"mute\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n");
        home.write("mute.toml", &command);
        let (code, found) = rehearse(&home, "mute.toml", &["--handshake-timeout", "1"]);
        assert_eq!((code, &found["verdict"]), (0, &json!("not_applicable")), "{script}: {found}");
        assert!(found["why"].as_str().unwrap().contains(expected), "{script}: {found}");
    }
    assert_eq!(home.trackway(&["rehearse", "mute.toml", "--kind", "overfit", "--batches", "0"]).code, 2);
    assert_eq!(home.trackway(&["rehearse", "none.toml"]).code, 2);
}

/// Proves that both Rust examples pass with several seeds, and that two bugs that can be typed at one are named.
#[test]
fn the_rust_examples_pass() {
    let Some(wine) = wine_mlp() else { return };
    let home = Home::new();
    let verse = "The quality of mercy is not strain'd,\nIt droppeth as the gentle rain from heaven\n";
    let text = home.write("text.txt", &verse.repeat(150));
    let programs = format!("{}:{}", wine.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let chars = ["char_transformer", "--batch", "2", "--lr", "0.003", "--validate-every", "100", "--text"];
    let chars = [&chars[..], &[text.to_str().unwrap()]].concat();
    let table = [
        ("wine.toml", vec!["wine_mlp", "--lr", "0.001"], vec![17, 18, 19], ""),
        ("wine.toml", vec!["wine_mlp", "--lr", "1"], vec![17], "learning_rate_too_high"),
        ("wine.toml", vec!["wine_mlp", "--lr", "0.000000001"], vec![17], "learning_rate_too_low"),
        ("chars.toml", chars, vec![17], ""),
    ];
    for (file, argv, seeds, expected) in table {
        for seed in seeds {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(file);
            let mut command = home.command(&["rehearse", path.to_str().unwrap(), "--json"]);
            command.args(["--set", &format!("run.command={argv:?}"), "--set", &format!("run.seed={seed}")]);
            if file == "chars.toml" {
                // The evaluator is tried too, on the same text.
                let evaluator = ["char_transformer", "--evaluate", "--text", text.to_str().unwrap()];
                command.args(["--set", &format!("evaluate.command={evaluator:?}")]);
            }
            if file == "chars.toml" {
                command.args(["--set", &format!("data.text.path={text:?}")]);
            }
            let (_, found) = document(answer(command.env("PATH", &programs).output().unwrap()));
            assert_eq!(diagnosis(&found), expected, "{argv:?}, seed {seed}: {found:#}");
            let passed = found["verdict"] == "pass";
            assert_eq!(passed, expected.is_empty(), "{argv:?}, seed {seed}: {found:#}");
        }
    }
}

fn python_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../python/tests/scripts").canonicalize().unwrap()
}

/// The flaws of `train_flawed.py`, and what each must be called.
fn torch_flaws() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(python_tests().join("train_flawed.py")).unwrap();
    let table = text.split("FLAWS = {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let quoted: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
    quoted.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

fn torch_run_file(home: &Home, flaw: &str) -> String {
    let script = python_tests().join("train_flawed.py");
    let text =
        format!("[run]\nname = \"{flaw}\"\ncommand = [\"python\", {script:?}, \"{flaw}\"]\nseed = 17\n");
    home.write(&format!("{flaw}.toml"), &text);
    format!("{flaw}.toml")
}

/// What a rehearsal says of a planted flaw: its row of the table, and what is wrong with it.
fn torch_flaw(home: &Home, (flaw, expected): &(String, String)) -> (String, Option<String>) {
    let (_, found) = rehearse(home, &torch_run_file(home, flaw), &[]);
    let verdict = found["verdict"].as_str().unwrap();
    let first = found["findings"].as_array().unwrap().iter().find(|it| it["column"] == expected.as_str());
    let message = first.map_or("", |finding| finding["message"].as_str().unwrap());
    let row = format!("| `{flaw}` | {verdict} | `{}` | {message} |\n", diagnosis(&found));
    let right = diagnosis(&found) == expected && ["warn", "block"].contains(&verdict);
    (row, (!right).then(|| format!("{flaw}: expected {expected}: {found:#}")))
}

/// Proves that every bug planted in a PyTorch script is found with the right diagnosis, and prints the table of
/// docs/rehearsals.md. `make test-python FRAMEWORKS=main` prepares the interpreter and demands it.
#[test]
fn the_torch_flaws_are_named() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    let only = std::env::var("TRACKWAY_TEST_FLAWS").unwrap_or_default();
    let flaws: Vec<_> = torch_flaws().into_iter().filter(|(flaw, _)| flaw.contains(&only)).collect();
    // Most of a launch is one thread that imports PyTorch, so two run side by side.
    let (even, odd): (Vec<_>, Vec<_>) = flaws.iter().enumerate().partition(|(index, _)| index % 2 == 0);
    let half = |flaws: Vec<(usize, &(String, String))>| {
        let found = flaws.into_iter().map(|(index, flaw)| (index, torch_flaw(&home, flaw)));
        found.collect::<Vec<_>>()
    };
    let mut found = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(odd));
        let mut found = half(even);
        found.extend(odd.join().unwrap());
        found
    });
    found.sort_by_key(|(index, _)| *index);
    let table: String = found.iter().map(|(_, (row, _))| row.as_str()).collect();
    let wrong: Vec<_> = found.iter().filter_map(|(_, (_, wrong))| wrong.as_deref()).collect();
    println!("{table}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Proves that PyTorch scripts without a bug pass, over several seeds and both kinds.
#[test]
fn the_healthy_torch_scripts_pass() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").canonicalize().unwrap();
    let verse = "The quality of mercy is not strain'd,\nIt droppeth as the gentle rain from heaven\n";
    let text = home.write("text.txt", &verse.repeat(150));
    let script = examples.join("python/chars_torch.py");
    let command = ["python", script.to_str().unwrap(), "--batch", "4", "--text", text.to_str().unwrap()];
    // The evaluator is tried too, on the same text.
    let evaluator = ["python", script.to_str().unwrap(), "--evaluate", "--text", text.to_str().unwrap()];
    let chars = [
        format!("run.command={command:?}"),
        format!("data.text.path={text:?}"),
        format!("evaluate.command={evaluator:?}"),
    ];
    let chars_file = examples.join("chars_torch.toml").to_str().unwrap().to_owned();
    for (file, overrides) in [(torch_run_file(&home, "none"), &[][..]), (chars_file, &chars)] {
        for (kind, seed) in [("one_batch", 17), ("overfit", 17), ("one_batch", 18)] {
            let seed = format!("run.seed={seed}");
            let mut options = vec!["--kind", kind, "--set", &seed];
            overrides.iter().for_each(|set| options.extend(["--set", set]));
            let (code, found) = rehearse(&home, &file, &options);
            println!("{file} {kind} {seed}: {} {}", found["verdict"], found["why"]);
            assert_eq!((code, &found["verdict"]), (0, &json!("pass")), "{file} {kind} {seed}: {found:#}");
        }
    }
}
