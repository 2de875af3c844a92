//! Models of libraries, committed by `run.save_model` in Python, reach evaluation and registry.

use serde_json::{Value, json};

use crate::harness::{Home, has_frameworks};

/// Trains a model of the library that it is given, and saves it as that library does.
const TRAIN: &str = r#"
import sys
import pandas, trackway

library = sys.argv[1]
run = trackway.attach()
table = pandas.read_csv("rows.csv")
features, label = table[["a", "b"]], (table["label"] == "yes").astype(int)
if library == "sklearn":
    import joblib
    from sklearn.linear_model import LogisticRegression
    path = "model.joblib"
    joblib.dump(LogisticRegression().fit(features, label), path)
elif library == "xgboost":
    from xgboost import XGBClassifier
    path = "model.ubj"
    XGBClassifier(n_estimators=20, n_jobs=1).fit(features, label).save_model(path)
else:
    import lightgbm
    path = "model.txt"
    parameters = {"objective": "binary", "num_threads": 1, "verbose": -1}
    lightgbm.train(parameters, lightgbm.Dataset(features, label), 20).save_model(path)
run.log(20, accuracy=1.0)
run.save_model(path)
"#;

/// Loads it from the checkpoint and scores rows.
const SCORE: &str = r#"
import os, pathlib, sys
import trackway

[path] = pathlib.Path(os.environ["TRACKWAY_CHECKPOINT_DIR"]).glob("model.*")
if sys.argv[1] == "sklearn":
    import joblib
    model = joblib.load(path)
elif sys.argv[1] == "xgboost":
    from xgboost import XGBClassifier
    model = XGBClassifier()
    model.load_model(path)
else:
    import lightgbm
    model = lightgbm.Booster(model_file=str(path))
trackway.serve_scores(model)
"#;

/// Rows whose label is the sign of a sum.
fn rows() -> String {
    let value = |index: i64| (index * 7919 % 2003 - 1001) as f64 / 500.0;
    let row = |index: i64| {
        let (a, b) = (value(index), value(index * 31 + 5));
        format!("{a},{b},{}\n", if a + b > 0.0 { "yes" } else { "no" })
    };
    format!("a,b,label\n{}", (1..=300).map(row).collect::<String>())
}

/// Proves that a model of scikit-learn, XGBoost and LightGBM that its library saved is a checkpoint of weights, of the last recorded
/// step, that `run` evaluates it with a gate, and that it is registered as a version. `make test-python FRAMEWORKS=main` prepares the
/// interpreter that is called `python`.
#[test]
fn the_models_of_libraries_are_judged_and_registered() {
    if !has_frameworks() {
        return;
    }
    let home = Home::new();
    home.write("train.py", TRAIN);
    home.write("score.py", SCORE);
    home.write("rows.csv", &rows());
    let has_all = std::env::var("TRACKWAY_TEST_FRAMEWORKS").as_deref() == Ok("1");
    for (library, version) in [("sklearn", 1), ("xgboost", 2), ("lightgbm", 3)] {
        if library == "lightgbm" && !has_all {
            trackway_skip::skip!("TRACKWAY_TEST_FRAMEWORKS=1 does not say that `python` has LightGBM");
            continue;
        }
        let file = format!(
            "[run]\nname = \"saved\"\ncommand = [\"python\", \"train.py\", \"{library}\"]\n\
             [evaluate]\nscorer = \"python score.py {library}\"\nrows = \"rows.csv\"\nlabel = \"label\"\n\
             positive = \"yes\"\ngates = [\"accuracy >= 0.8\"]\nprobe_rows = 0\nblind_spots = false\n"
        );
        home.write("job.toml", &file);
        let run = home.json(&["run", "job.toml"]);
        assert_eq!((&run["state"], &run["evaluation"]["step"]), (&json!("completed"), &json!(20)), "{run}");
        assert_eq!(run["gates"][0]["verdict"], "pass", "{library}: {}", run["gates"]);
        let checkpoints = home.json(&["checkpoint", "ls", "last"])["checkpoints"].clone();
        assert_eq!(checkpoints.as_array().map(Vec::len), Some(1), "{checkpoints}");
        assert_eq!(checkpoints[0]["missing"], json!(["optimizer", "rng", "data_cursor"]), "{checkpoints}");
        let registered = home.json(&["registry", "register", "saved", "--run", "last"]);
        assert_eq!(registered["version"], json!(version), "{registered}");
        let shown: Value = home.json(&["eval", "show", "last"]);
        assert_eq!(shown["checkpoint_manifest_sha256"], checkpoints[0]["manifest_sha256"], "{library}");
    }
}
