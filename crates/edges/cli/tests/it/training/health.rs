//! The health of an attempt beside its ending, and what acts on it.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Answer, Home};

/// Prints a line for every step; `body` computes it from `step` and the noise `n`.
fn script(steps: u32, every: u32, body: &str) -> String {
    format!(
        "import json, math, pickle, random\nrandom.seed(3)\n\
         for step in range(1, {steps} + 1):\n\
         \x20   n = random.gauss(0, 1)\n\
         \x20   {body}\n\
         \x20   if step % {every} == 0: print(line, flush=True)\n"
    )
}

fn run(home: &Home, text: &str, options: &[&str]) -> Answer {
    home.write("t.py", text);
    home.write("r.toml", "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\n");
    let file = home.path().join("r.toml");
    home.trackway(&[&["run"], options, &[file.to_str().unwrap()]].concat())
}

fn findings(page: &Value) -> Vec<String> {
    let found = page["health"]["report"]["findings"].as_array().unwrap_or_else(|| panic!("{page}"));
    found.iter().map(|finding| finding["found_by"].as_str().unwrap().to_owned()).collect()
}

/// Proves which health each kind of training has that ends by itself, often and seldom printed, and that only what is
/// good reads that no action is needed.
#[test]
fn what_completed_is_not_taken_for_good() {
    let falls = "line = f'step {step} loss {2.3 / (1 + step / 40) + 0.02 * n:.5f}'";
    let guess = "line = f'step {step} loss {math.log(10) + 0.02 * n:.5f}'";
    let two = "line = f'step {step} loss {0.713 + 0.1 * n:.4f} acc {sum(random.random() < 0.5 for _ in range(16)) / 16:.4f}'";
    let majority = "line = f'step {step} loss {0.327 + 0.003 * n:.4f} accuracy {0.9 + 0.01 * n:.4f}'";
    let language = "line = f'step {step} loss {2.87 + 0.08 * n:.4f}'";
    let exploded_before = "line = f'step {step} loss {5e17 if step == 1 else 800 + 50 * n:.1f}'";
    let exploded = "line = f'step {step} loss {0.9 if step < 3 else 5e17 if step < 20 else 548.0}'";
    let flat = "line = f'step {step} loss {0.31 + 0.002 * n:.6f}'";
    let overfit = "line = f'step {step} loss {0.02 / step:.6f} val_loss {4.0 + step / 1000:.5f}'";
    let silent = "line = f'fitted {step}'";
    let grid = "line = f'step {(step - 1) % 60 + 1} loss {6.7 * math.exp(-0.05 * ((step - 1) % 60)):.5f}'";
    let fell = "line = f'step {step} train_acc {0.5 if step > 40 else 1 - 0.5 * math.exp(-step / 8):.4f}'";
    let queue =
        "line = f'step {step} loss {1 + 0.08 * min(step, 80) - 0.012 * max(0, step - 80) + 0.05 * n:.4f}'";
    let cases = [
        (script(200, 1, queue), "unknown", ""),
        (script(300, 1, falls), "ok", ""),
        (script(300, 10, falls), "ok", ""),
        (script(300, 10, guess), "broken", "chance_level"),
        (script(600, 1, two), "broken", "chance_level"),
        (script(400, 1, majority), "broken", "chance_level"),
        (script(400, 1, language), "suspect", "plateau"),
        (script(400, 1, exploded_before), "suspect", "loss_exploded"),
        (script(300, 1, exploded), "broken", "loss_exploded"),
        (script(300, 10, flat), "suspect", "plateau"),
        (script(300, 10, overfit), "suspect", "generalization_gap"),
        (script(300, 10, silent), "unknown", ""),
        (script(180, 1, grid), "ok", ""),
        (script(60, 1, fell), "broken", "score_went_back"),
    ];
    for (text, health, found_by) in cases {
        let home = Home::new();
        let answer = run(&home, &text, &[]);
        assert_eq!(answer.code, 0, "{text}{}", answer.stderr);
        let page = home.json(&["explain", "last"]);
        assert_eq!(page["health"]["health"], health, "{text}{page}");
        let found = findings(&page);
        assert_eq!(found.is_empty(), found_by.is_empty(), "{found:?}");
        assert!(found.is_empty() || found.contains(&found_by.to_owned()), "{found:?}");
        let next = page["next_actions"].to_string();
        let is_good = matches!(health, "ok" | "unknown");
        assert_eq!(next.contains("no action is needed"), is_good, "{next}");
        assert_eq!(next.contains("trackway runs bless"), !is_good, "{next}");
        let rows = home
            .sql("select a.health, r.health as of_run from training_attempts a join runs r using (run_id)");
        assert_eq!((&rows[0]["health"], &rows[0]["of_run"]), (&health.into(), &health.into()));
        let listed = home.trackway(&["runs", "--health"]).stdout;
        assert!(listed.contains(health), "{listed}");
        let short = home.trackway(&["explain", "last", "--short"]).stdout;
        assert!(short.contains(&format!("health      {health}")), "{short}");
        assert_eq!(short.contains(&format!(", attempt 1, {health}")), !is_good, "{short}");
        assert_eq!(short.contains(&format!(", but {health}: ")), !is_good, "{short}");
        assert_eq!(home.trackway(&["verify", "--all"]).code, 0);
    }
}

/// Proves that an accuracy which stays at the fraction of the largest class that pre-flight counted is that of a model
/// that guesses, and that the data is named; and that at another one it is only a loss that does not fall.
#[test]
fn the_largest_class_of_the_data_is_known() {
    for (of_fifty, found_by) in [(29, "chance_level"), (35, "plateau")] {
        let home = Home::new();
        let row = |number: usize| {
            let label = if number % 50 < of_fifty { "a" } else { ["b", "c", "d"][number % 3] };
            format!("{},{},{label}\n", number * 37 % 1000, number * 53 % 997)
        };
        home.write("train.csv", &("x,y,level\n".to_owned() + &(0..1000).map(row).collect::<String>()));
        home.write(
            "t.py",
            &script(400, 1, "line = f'step {step} loss {1.08 + 0.003 * n:.4f} acc {0.58 + 0.01 * n:.4f}'"),
        );
        home.write("r.toml", "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\n[data.train]\npath = \"train.csv\"\nlabel = \"level\"\n");
        let answer = home.trackway(&["run", "r.toml"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let page = home.json(&["explain", "last"]);
        let found = findings(&page);
        assert!(found.contains(&found_by.to_owned()), "{of_fifty}: {found:?}");
        assert_eq!(found.contains(&"chance_level".to_owned()), of_fifty == 29, "{found:?}");
        let said = "and the largest class of `train.csv` has 0.580 of its labels";
        assert_eq!(page["health"].to_string().contains(said), of_fifty == 29, "{page}");
    }
}

/// Proves that a training whose weights never change is broken also where the files around them do: the number of the step is in them.
#[test]
fn weights_that_never_move_are_found_in_changing_files() {
    for (update, health) in [("w", "broken"), ("w + step", "ok")] {
        let home = Home::new();
        home.write(
            "t.py",
            &format!(
                "import json, os, struct, time\nw = 1.5\nfor step in range(1, 61):\n\
                 \x20   print(f'step {{step}} loss {{2.3 / (1 + step / 9):.5f}}', flush=True)\n\
                 \x20   time.sleep(0.02)\n\
                 \x20   if step % 20: continue\n\
                 \x20   head = json.dumps({{'__metadata__': {{'step': str(step)}}, 'w': {{'dtype': 'F64', 'shape': [2], 'data_offsets': [0, 16]}}}}).encode()\n\
                 \x20   with open('new', 'wb') as file: file.write(struct.pack('<Q', len(head)) + head + struct.pack('<dd', {update}, 1.0))\n\
                 \x20   os.rename('new', f'model-{{step}}.safetensors')\n"
            ),
        );
        home.write("r.toml", "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\n[checkpoint]\nadopt = [\"model-*.safetensors\"]\n");
        let answer = home.trackway(&["run", "r.toml"]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        let page = home.json(&["explain", "last"]);
        assert_eq!(page["health"]["health"], health, "{}{}", page["health"], answer.stderr);
        assert_eq!(findings(&page).contains(&"unmoved_weights".to_owned()), health == "broken", "{page}");
    }
}

/// Proves that a run which completes with a health that its starter refuses ends with 5, and that the health of a
/// killed training counts as well.
#[test]
fn a_starter_refuses_a_health() {
    let guess = script(300, 1, "line = f'step {step} loss {math.log(10) + 0.01 * n:.5f}'");
    let falls = script(300, 1, "line = f'step {step} loss {2 / (1 + step / 40):.5f}'");
    let silent = script(3, 1, "line = 'done'");
    for (text, fail_on, code) in
        [(&guess, "broken", 5), (&falls, "suspect", 0), (&silent, "suspect", 0), (&silent, "unknown", 5)]
    {
        let answer = run(&Home::new(), text, &["--fail-on", fail_on]);
        assert_eq!(answer.code, code, "{fail_on}: {}", answer.stderr);
    }
    let home = Home::new();
    let dies = format!("{falls}    if step == 250: raise KeyError('batch')\n");
    assert_eq!(run(&home, &dies, &["--fail-on", "broken"]).code, 4);
    assert_eq!(home.json(&["explain", "last"])["health"]["health"], "ok");
}

/// Proves that a run whose health is suspect is not what later ones are compared with, until a person vouches for it,
/// and that a tag which the run was started with does not count as that.
#[test]
fn only_a_good_run_is_compared_with() {
    let home = Home::new();
    let falls = script(200, 1, "line = f'step {step} loss {2 / (1 + step / 40):.5f}'");
    let flat = script(200, 1, "line = f'step {step} loss {0.31 + 0.001 * n:.6f}'");
    run(&home, &falls, &[]);
    let good = home.json(&["explain", "last"])["run"]["run_id"].clone();
    run(&home, &flat, &["--tag", "blessed=yes"]);
    let flat_run = home.json(&["explain", "last"])["run"]["run_id"].as_str().unwrap().to_owned();
    run(&home, &falls, &[]);
    let page = home.json(&["explain", "last"]);
    assert_eq!(page["since_last_good"]["against"], good, "{}", page["since_last_good"]);
    let refused = home.trackway(&["runs", "bless", &flat_run]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert_eq!(home.trackway(&["runs", "bless", &flat_run, "--why", "a finished model"]).code, 0);
    let page = home.json(&["explain", "last"]);
    assert_eq!(page["since_last_good"]["against"], *flat_run, "{}", page["since_last_good"]);
    let blessed = home.json(&["explain", &flat_run]);
    assert_eq!(blessed["health"]["blessed_because"], "a finished model");
    assert!(blessed["next_actions"].to_string().contains("no action is needed"));
}

/// Proves that the checkpoints of a model that guesses are unsafe, that nothing is started from them, and that a
/// version of a broken attempt is not promoted by the default policy.
#[test]
fn weights_of_a_broken_attempt_go_nowhere() {
    let home = Home::new();
    let guess = script(
        300,
        1,
        "line = f'step {step} loss {math.log(10) + 0.02 * n:.5f}'\n    \
         if step % 100 == 0: pickle.dump({'step': step, 'model': [0.5] * 100, 'optimizer': {}}, open('ckpt.pkl', 'wb'))",
    );
    assert_eq!(run(&home, &guess, &[]).code, 0);
    let page = home.json(&["explain", "last"]);
    assert_eq!((&page["health"]["health"], &page["standing"]["safe_step"]), (&"broken".into(), &Value::Null));
    let register = home.trackway(&["registry", "register", "m", "--run", "last"]);
    assert_eq!(register.code, 2, "{}", register.stderr);
    let accepted =
        home.trackway(&["registry", "register", "m", "--run", "last", "--unsafe", "--why", "to look at it"]);
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    let promoted = home.trackway(&["registry", "promote", "m", "1", "--to", "staging"]);
    assert_eq!(promoted.code, 5, "{}", promoted.stderr);
    assert!(promoted.stderr.contains("registry.health") || promoted.stdout.contains("registry.health"));
}

/// Proves which part decides about which use of weights by the one function, that each use has such a part, and that
/// one which no longer does is missed. That none decides by itself is ensured by the compiler: only `Weights` does, and
/// the marks in the log are private.
#[test]
fn who_asks_whether_weights_may_be_used() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut asking = std::collections::BTreeSet::new();
    let mut folders = vec![crates.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if path.is_dir() && !["tests", "target", "core"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !name.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
                let file = path.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
                for used in text.split("CheckpointUse::").skip(1) {
                    let used = used.split(|letter: char| !letter.is_alphanumeric()).next().unwrap();
                    asking.insert((used.to_owned(), file.clone()));
                }
            }
        }
    }
    let expected = [
        ("Best", "app/flows/src/checkpoints/hold.rs"),   // chosen by name
        ("Best", "storage/checkpoint/src/retention.rs"), // `keep.best`
        ("Evaluate", "app/engine/src/good_runs.rs"),     // what a person can do
        ("Evaluate", "app/flows/src/evaluation/evaluate/mod.rs"),
        ("Keep", "app/flows/src/checkpoints/hold.rs"), // a checkpoint that is looked at
        ("Keep", "app/flows/src/checkpoints/mod.rs"),  // pinned, loaded
        ("Keep", "storage/checkpoint/src/remote/replica.rs"), // the newest good one there
        ("Keep", "storage/checkpoint/src/remote/upload.rs"),
        ("Keep", "storage/checkpoint/src/retention.rs"),
        ("Register", "app/engine/src/good_runs.rs"), // what a person can do
        ("Register", "app/flows/src/registry/register.rs"),
        ("Release", "app/flows/src/registry/artifact.rs"), // going back
        ("Release", "app/flows/src/registry/change.rs"),   // what a person can do
        ("Release", "decide/rules/src/registry/promotion.rs"), // promotion, and the warnings of a copy
        ("Resume", "storage/checkpoint/src/history/mod.rs"), // resume, retry, roll back; what retention counts
        ("Start", "app/engine/src/run/ladder/warm_start.rs"), // ladder, and each launch with other weights
        ("Start", "app/flows/src/training/start.rs"),        // `run.start_from`, cross-validation
    ];
    let asking: Vec<(&str, &str)> =
        asking.iter().map(|(used, file)| (used.as_str(), file.as_str())).collect();
    assert_eq!(asking, expected);
}

/// Proves that no other training starts with weights of a broken attempt although its checkpoint is safe, until a
/// person vouches for the run.
#[test]
fn nothing_starts_with_weights_of_a_broken_attempt() {
    let home = Home::new();
    home.write(
        "t.py",
        "import pickle, time\n\
         for step in range(1, 4000):\n\
         \x20   print(f'step {step} loss {1 / (1 + min(step, 50))}', flush=True)\n\
         \x20   if step == 40: pickle.dump({'step': step, 'model': [0.5] * 100, 'optimizer': {}}, open('ckpt.pkl', 'wb'))\n\
         \x20   time.sleep(0.01)\n",
    );
    home.write(
        "r.toml",
        "[run]\nname = \"r\"\ncommand = [\"python3\", \"t.py\"]\n[checkpoint]\nadopt = [\"ckpt.pkl\"]\n[detect]\ndead_input = \"stop\"\n",
    );
    home.write("next.toml", "[run]\nname = \"next\"\ncommand = [\"true\"]\nstart_from = \"r\"\n");
    let launch = |file: &str| home.trackway(&["run", "--skip-preflight", "--why", "a test", file]);
    assert_eq!(launch("r.toml").code, 4);
    let page = home.json(&["explain", "last"]);
    assert_eq!((&page["health"]["health"], &page["standing"]["safe_step"]), (&"broken".into(), &40.into()));
    let refused = launch("next.toml");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("the attempt that wrote step 40 is broken"), "{}", refused.stderr);
    assert!(refused.stderr.contains("trackway runs bless"), "{}", refused.stderr);
    assert_eq!(home.trackway(&["runs", "bless", "r", "--why", "the loss may repeat"]).code, 0);
    let started = launch("next.toml");
    assert_eq!(started.code, 0, "{}", started.stderr);
}
