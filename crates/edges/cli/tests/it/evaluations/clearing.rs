//! `trackway gc` of what evaluations leave.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use trackway_formats::sha256_hex;

use super::{GOOD, begun, ended, evaluate, pins, trained, waiting};
use crate::harness::{Home, files_below};

const GC: [&str; 3] = ["gc", "--keep-last", "0"];

fn evaluation_folders(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.state().join("evaluations")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("evl_")).collect()
}

fn attempts(home: &Home) -> usize {
    std::fs::read_dir(home.state().join("attempts")).unwrap().count()
}

fn size_of(folder: &std::path::Path) -> u64 {
    files_below(folder).iter().map(|path| path.metadata().unwrap().len()).sum()
}

/// Proves that a run that is deleted takes with it the logs of its evaluators and their output, as much as was reported
/// before; that every receipt stays what it was, the rows that it names too; and that later evaluations are still
/// compared with them.
#[test]
fn what_evaluators_leave_goes_with_the_run() {
    let home = trained(GOOD, "baseline = \"last\"\n");
    let (code, first) = evaluate(&home, &["--checkpoint", "1"]);
    assert_eq!(code, 0, "{first}");
    home.write("eval.sh", "head -c 5000 /dev/zero > $TRACKWAY_EVALUATION_OUT/core; exit 1");
    assert_eq!(evaluate(&home, &["--checkpoint", "2", "--set", "evaluate.retry.attempts=0"]).0, 4);
    let scratch: u64 =
        evaluation_folders(&home).iter().map(|id| size_of(&home.state().join("evaluations").join(id))).sum();
    assert!(scratch > 5000, "{scratch}");
    assert_eq!((evaluation_folders(&home).len(), attempts(&home)), (2, 3));

    let young = home.json(&["gc", "--older-than", "1h", "--yes"]);
    assert_eq!(young["kept"][0]["why"], "too young", "{young}");
    let before = home.sql("select * from evaluations order by evaluation_id");
    let dry = home.json(&GC);
    assert_eq!((evaluation_folders(&home).len(), attempts(&home)), (2, 3), "nothing goes without --yes");
    let done = home.json(&[&GC[..], &["--yes"]].concat());
    assert_eq!(dry["gone"], done["gone"]);
    assert!(done["gone"][0]["size_bytes"].as_u64().unwrap() > scratch, "{done}");
    assert_eq!((evaluation_folders(&home).len(), attempts(&home)), (0, 0));
    assert_eq!(home.json(&[&GC[..], &["--yes"]].concat())["gone"], json!([]));

    assert_eq!(home.sql("select * from evaluations order by evaluation_id"), before);
    let shown = home.json(&["eval", "show", first["evaluation_id"].as_str().unwrap()]);
    assert_eq!(shown, first);
    let kept = home.state().join(first["raw_outputs"]["path"].as_str().unwrap());
    assert_eq!(first["raw_outputs"]["sha256"], sha256_hex(&std::fs::read(kept).unwrap()));
    home.write("eval.sh", GOOD);
    let (code, third) = evaluate(&home, &[]);
    assert_eq!((code, &third["baseline_evaluation_id"]), (0, &first["evaluation_id"]), "{third}");
    assert!(third["comparison"].is_object(), "{third}");
}

/// Proves that a run stays while it is evaluated, with the pin and without, and while a version of a model is one of
/// its checkpoints.
#[test]
fn a_run_that_is_evaluated_or_registered_stays() {
    let home = trained(&waiting(), "");
    let child = home.spawn(&["eval", "run", "job.toml", "--json"]);
    begun(&home, 1);
    let why = || home.json(&[&GC[..], &["--yes"]].concat())["kept"][0]["why"].as_str().unwrap().to_owned();
    assert!(why().starts_with("a checkpoint is pinned as `evl_"), "{}", why());
    let pin = pins(&home).remove(0);
    assert_eq!(home.trackway(&["checkpoint", "unpin", &pin, "last"]).code, 0);
    assert_eq!(why(), format!("evaluation {pin} is still running"));
    home.write("go", "");
    let (code, receipt) = ended(child);
    assert_eq!((code, &receipt["state"]), (0, &json!("completed")), "{receipt}");
    assert_eq!(home.trackway(&["registry", "register", "income", "--run", "last"]).code, 0);
    assert!(why().starts_with("a checkpoint is pinned as `model-income-"), "{}", why());
    assert_eq!(evaluation_folders(&home).len(), 1);
}

/// Proves that what a kill left half written goes when it is old, and only where every run is looked at; and that rows
/// that are kept never do.
#[test]
fn what_was_left_half_written_goes() {
    let home = trained(GOOD, "");
    let (_, receipt) = evaluate(&home, &[]);
    let outputs = home.state().join("evaluations/outputs");
    let draft = |name: &str, age: &str| -> PathBuf {
        let folder = outputs.join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("predictions.parquet"), "half").unwrap();
        touch(&folder, age);
        folder
    };
    let (old, young) = (draft(".new-1", "2 days ago"), draft(".new-2", "2 hours ago"));
    let kept = home.state().join(receipt["raw_outputs"]["path"].as_str().unwrap());
    touch(&kept, "2 days ago");
    let rule = ["gc", "--older-than", "9d"];
    let left = json!([{ "path": "evaluations/outputs/.new-1", "size_bytes": 4, "why": "incomplete" }]);
    let dry = home.json(&rule);
    assert_eq!((&dry["leftovers"], &dry["freed_bytes"]), (&left, &json!(4)), "{dry}");
    let others = home.json(&[&rule[..], &["--where", "name = 'judged'", "--yes"]].concat());
    assert_eq!(others["leftovers"], json!([]), "{others}");
    assert!(old.is_dir());
    let table = home.trackway(&rule);
    assert!(table.stdout.contains("incomplete"), "{}", table.stdout);
    let done = home.json(&[&rule[..], &["--yes"]].concat());
    assert_eq!(done["leftovers"], left);
    assert!(!old.exists() && young.is_dir() && kept.is_file());
    assert_eq!(home.json(&rule)["leftovers"], Value::Array(Vec::new()));
}

fn touch(path: &std::path::Path, when: &str) {
    assert!(Command::new("touch").args(["-d", when]).arg(path).status().unwrap().success());
}
