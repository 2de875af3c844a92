//! The test vector `docs/formats/vectors/checkpoint/`: a whole root, and how a reader must interpret it. Set
//! `TRACKWAY_WRITE_VECTORS=1` to write it again after a deliberate change of the format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use trackway_core::{AttemptId, ManualClock, RunId, SequentialIds, Timestamp, UnsafeEvidence};
use trackway_store::testing::FaultDisk;

use crate::history::entry::ClaimBody;
use crate::settings::Settings;
use crate::{CheckpointError, CheckpointRoot, CheckpointView, Housekeeper, Kind};

/// Two attempts: the first commits steps 10 and 20, of which 20 is damaged afterwards; the second finds that out,
/// continues from 10, commits steps 15, 25 and 30, of which the last two are marked unsafe and step 25 is cleared, and
/// is stopped while it writes step 35.
fn make_root(path: &Path) {
    let ids = Arc::new(SequentialIds::default());
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
    let run_id = RunId::new(ids.as_ref());
    let settings = Settings { config_sha256: Some("c0".repeat(32)), world_size: 1, ..Settings::default() };
    let open = |epoch| {
        let claim = ClaimBody { epoch, run_id, attempt_id: AttemptId::new(ids.as_ref()) };
        CheckpointRoot::open_on(
            Arc::new(FaultDisk::sound()),
            path,
            claim,
            settings.clone(),
            clock.clone(),
            ids.clone(),
        )
    };
    let save = |root: &mut CheckpointRoot, step: u64| {
        clock.advance_micros(1_000_000);
        root.save(step, &[("loss", 1.0 / step as f64), ("grad_norm", f64::NAN)], |writer| {
            writer.file("weights.txt", Kind::Weights, format!("weights of step {step}\n").as_bytes())?;
            writer.file("cursor.txt", Kind::DataCursor, format!("{step}\n").as_bytes())
        })
    };
    let mut first = open(1).unwrap();
    save(&mut first, 10).unwrap();
    let damaged = save(&mut first, 20).unwrap();
    std::fs::write(path.join(damaged.object_prefix).join("weights.txt"), "weights of step 2O\n").unwrap();
    let mut second = open(2).unwrap();
    second.resume_target().unwrap();
    save(&mut second, 15).unwrap();
    let marked = [25, 30].map(|step| save(&mut second, step).unwrap().number);
    let mut house =
        Housekeeper::open_on(Arc::new(FaultDisk::sound()), path, clock.clone(), ids.clone()).unwrap();
    let evidence = UnsafeEvidence {
        why: "`loss` is NaN from step 22 on, and was not good again for 50 recorded steps in a row".into(),
        found_by: "non_finite".into(),
        first_step: Some(22),
        value: Some("NaN".into()),
        of: Some("loss".into()),
    };
    for number in marked {
        house.mark_unsafe(number, &evidence).unwrap();
    }
    house.clear_unsafe(marked[0], "the loss was divided by 0 rows, its weights are finite").unwrap();
    let stopped = second.save(35, &[], |_| Err(CheckpointError::state("stopped")));
    let stopped = stopped.map(drop).unwrap_err().to_string();
    assert!(stopped.ends_with("could not be written: stopped"), "{stopped}");
}

fn meaning(root: &Path) -> Value {
    let view = CheckpointView::open(root).unwrap();
    let target = view.resume_target().unwrap().unwrap();
    json!({
        "checkpoints": view.list(),
        "epoch": view.epoch(),
        "resume_target": {
            "number": target.info.number, "step": target.step, "fallbacks": target.fallbacks,
            "weights.txt": String::from_utf8(target.read("weights.txt").unwrap()).unwrap(),
        },
    })
}

fn files_below(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(
                    path.strip_prefix(folder).unwrap().to_owned(),
                    std::fs::read_to_string(&path).unwrap(),
                );
            }
        }
    }
    files
}

/// Proves that this writer makes exactly the published root, and that this reader interprets it as published.
#[test]
fn the_published_root_holds() {
    let folder =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/formats/vectors/checkpoint"));
    let (root, expected) = (folder.join("root"), folder.join("expected.json"));
    if std::env::var_os("TRACKWAY_WRITE_VECTORS").is_some() {
        let _ = std::fs::remove_dir_all(&root);
        make_root(&root);
        std::fs::write(&expected, serde_json::to_string_pretty(&meaning(&root)).unwrap() + "\n").unwrap();
    }
    let made = tempfile::tempdir().unwrap();
    make_root(made.path());
    assert_eq!(files_below(made.path()), files_below(&root), "the writer no longer makes the published root");
    let expected: Value = serde_json::from_slice(&std::fs::read(&expected).unwrap()).unwrap();
    assert_eq!(meaning(&root), expected, "the reader no longer reads the published root");
}
