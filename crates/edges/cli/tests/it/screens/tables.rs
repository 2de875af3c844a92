//! What a person sees of data sets, predictions and models that are asked.

use super::{assert_screens, home, screen, table};
use crate::evaluations::{metrics, probe, score, slices};

/// Proves what `data snapshot`, `ls`, `diff`, `infer`, `validate` and `images` show.
#[test]
fn data_sets_are_shown() {
    let home = home();
    table(&home, "train.csv", false);
    assert_screens(
        &home,
        &[
            ("data_ls_none", &["data", "ls"]),
            ("data_snapshot", &["data", "snapshot", "train.csv", "--name", "train", "--label", "label"]),
            ("data_snapshot_same", &["data", "snapshot", "train.csv", "--name", "train", "--label", "label"]),
            ("data_infer", &["data", "infer", "train.csv", "--out", "schema.toml"]),
            ("data_infer_text", &["data", "infer", "train.csv"]),
            ("data_validate", &["data", "validate", "train.csv", "--schema", "schema.toml"]),
        ],
    );
    table(&home, "train.csv", true);
    home.write("other.csv", "id,age,town\n1,old,Bern\n2,31,Rome\n3\n");
    assert_screens(
        &home,
        &[
            ("data_snapshot_new", &["data", "snapshot", "train.csv", "--name", "train", "--label", "label"]),
            ("data_snapshot_unnamed", &["data", "snapshot", "other.csv"]),
            ("data_ls", &["data", "ls"]),
            ("data_diff", &["data", "diff", "train", "train.csv"]),
            ("data_diff_other", &["data", "diff", "train", "other.csv"]),
            ("data_validate_dirty", &["data", "validate", "train.csv", "--schema", "schema.toml"]),
            ("data_validate_other", &["data", "validate", "other.csv", "--schema", "schema.toml"]),
            ("data_profile_rejected", &["data", "profile", "other.csv"]),
            ("data_drift_other", &["data", "drift", "--reference", "train.csv", "--current", "other.csv"]),
        ],
    );
    std::fs::create_dir(home.path().join("images")).unwrap();
    home.write("images/broken.png", "not an image");
    home.write("images/notes.txt", "plain text");
    assert_screens(&home, &[("data_images", &["data", "images", "images"])]);
}

/// Proves what `data split` shows of a split, of one with folds and rungs, and of parts that cannot be.
#[test]
fn splits_are_shown() {
    let home = home();
    table(&home, "all.csv", false);
    let split = ["data", "split", "all.csv", "--parts"];
    let with = |more: &[&'static str]| [&split[..], more].concat();
    assert_screens(
        &home,
        &[
            ("data_split", &with(&["train=0.8,test=0.2", "--out", "one"])),
            (
                "data_split_stratified",
                &with(&[
                    "train=0.8,test=0.2", "--strategy", "stratified", "--label", "label", "--folds", "2",
                    "--rungs", "10%,100%", "--out", "two", "--write-rows",
                ]),
            ),
            ("data_split_wrong", &with(&["train=0.8,test=0.3", "--out", "three"])),
            ("data_split_nothing", &["data", "split", "all.csv", "--out", "four"]),
        ],
    );
}

/// Proves what `metrics` shows of a table of predictions, with slices, fairness and a baseline.
#[test]
fn metrics_are_shown() {
    let home = home();
    home.write("new.csv", &metrics::table(600, 0, true));
    home.write("old.csv", &metrics::table(600, 0, false));
    let hard = "hard=kind = 'b' and age >= 60";
    assert_screens(
        &home,
        &[
            ("metrics", &["eval", "metrics", "old.csv"]),
            ("metrics_slices", &["eval", "metrics", "old.csv", "--slice", hard, "--fairness", "kind"]),
            ("metrics_baseline", &["eval", "metrics", "new.csv", "--baseline", "old.csv", "--slice", hard]),
            ("metrics_wrong", &["eval", "metrics", "old.csv", "--label", "lable"]),
        ],
    );
}

/// Proves what `eval slices` shows of a planted slice, without held-out rows, and since an earlier search.
#[test]
fn slices_are_shown() {
    let home = home();
    home.write("predictions.csv", &slices::predictions(4000));
    let find = [
        "eval", "slices", "predictions.csv", "--label", "truth", "--ignore", "id,old", "--prediction", "new",
    ];
    let few = [&find[..], &["--bins", "4", "--top", "3"]].concat();
    let all = [&few[..], &["--no-holdout"]].concat();
    insta::assert_snapshot!("slices_find", screen(&home, &few));
    insta::assert_snapshot!("slices_find_all", screen(&home, &all));
    home.write("before.json", &home.trackway(&[&few[..], &["--json"]].concat()).stdout);
    insta::assert_snapshot!(
        "slices_find_since",
        screen(&home, &[&few[..], &["--since", "before.json"]].concat())
    );
}

/// Proves what `score` and `probe` show of a model in a process, and of rows and commands that do not work.
#[test]
fn models_are_asked() {
    let home = home();
    home.write("score.sh", score::MODEL);
    home.write("rows.csv", &score::rows(300));
    let score = [
        "eval", "score", "rows.csv", "--command", "sh score.sh", "--label", "truth", "--positive", "yes",
        "--out",
    ];
    assert_screens(
        &home,
        &[
            ("score", &[&score[..], &["out.csv"]].concat()),
            ("score_one", &[&score[..], &["one.csv", "--limit", "1"]].concat()),
            ("score_fails", &["eval", "score", "rows.csv", "--command", "exit 9", "--out", "out.csv"]),
        ],
    );
    let home = probe::home();
    let probed = ["eval", "probe", "rows.csv", "--command", "sh score.sh", "--label", "truth"];
    assert_screens(
        &home,
        &[("probe", &probed), ("probe_fails", &["eval", "probe", "rows.csv", "--command", "exit 9"])],
    );
}
