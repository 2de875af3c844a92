#![allow(clippy::disallowed_methods, reason = "the folder is of the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_checkpoint::{CheckpointRoot, CheckpointView, Kind};
use trackway_core::{AttemptId, ManualClock, RunId, SequentialIds, Timestamp};
use trackway_layouts::Because;

use crate::{Adopter, AdopterSpec, Clearing, Facts, Look, Patterns, Saves, newest_adopted};

const SECOND_NS: u64 = 1_000_000_000;

/// A working directory, a root for checkpoints, and a time that only the test moves.
struct World {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    ids: Arc<SequentialIds>,
    run_id: RunId,
    at_ns: u64,
    last_step: Option<u64>,
    is_open: bool,
    ended: bool,
    saves: Saves,
}

impl World {
    fn new() -> Self {
        let ids = Arc::new(SequentialIds::default());
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        let (folder, run_id) = (tempfile::tempdir().unwrap(), RunId::new(ids.as_ref()));
        fs::create_dir(folder.path().join("work")).unwrap();
        let saves = Saves::default();
        Self { folder, clock, ids, run_id, at_ns: 0, last_step: None, is_open: false, ended: false, saves }
    }

    fn work(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn patterns(&self, patterns: &[&str]) -> Patterns {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Patterns::new(&self.work(""), &patterns).unwrap()
    }

    fn adopter(&self, epoch: u64, patterns: &[&str]) -> Adopter {
        self.adopter_of(epoch, self.patterns(patterns))
    }

    fn adopter_of(&self, epoch: u64, patterns: Patterns) -> Adopter {
        self.adopter_for(epoch, AttemptId::new(self.ids.as_ref()), patterns)
    }

    fn adopter_for(&self, epoch: u64, attempt_id: AttemptId, patterns: Patterns) -> Adopter {
        Adopter::new(self.spec(epoch, attempt_id, patterns), self.clock.clone(), self.ids.clone())
    }

    fn spec(&self, epoch: u64, attempt_id: AttemptId, patterns: Patterns) -> AdopterSpec {
        let (checkpoint_root, run_id, quiet_ns) = (self.root(), self.run_id, 2 * SECOND_NS);
        AdopterSpec { patterns, checkpoint_root, run_id, attempt_id, epoch, parent: None, quiet_ns }
    }

    /// The root as the script opens it itself.
    fn own_root(&self, epoch: u64) -> CheckpointRoot {
        let attempt_id = AttemptId::new(self.ids.as_ref());
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        CheckpointRoot::open(&self.root(), epoch, self.run_id, attempt_id, clock, ids).unwrap()
    }

    /// Looks once each second, until something happens or nothing will.
    fn follow(&mut self, adopter: &mut Adopter, seconds: u64) -> Look {
        for _ in 0..seconds {
            let look = self.look(adopter);
            if !look.adopted.is_empty() || !look.not_adopted.is_empty() || look.is_fenced {
                return look;
            }
        }
        Look::default()
    }

    fn look(&mut self, adopter: &mut Adopter) -> Look {
        self.at_ns += SECOND_NS;
        let (is_open, last_step) = (self.is_open, self.last_step);
        adopter.look(&Facts {
            at_ns: self.at_ns,
            saves: &self.saves,
            step_when_written: &|_| last_step,
            writers_ended: self.ended,
            is_open_for_writing: &|_| Some(is_open),
        })
    }

    fn view(&self) -> CheckpointView {
        CheckpointView::open(&self.root()).unwrap()
    }
}

/// A file of safetensors with one tensor of so many bytes.
fn tensors(bytes: usize, fill: u8) -> Vec<u8> {
    let header = format!("{{\"w\":{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":[0,{bytes}]}}}}");
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(vec![fill; bytes]);
    file
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Proves that a file which is whole and quiet is committed once, with its step, and is whole whatever the script does to its file later;
/// and that the file written again in place is another commit.
#[test]
fn a_file_that_is_overwritten_is_two_checkpoints() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["ckpt.safetensors"]);
    assert!(
        world.follow(&mut adopter, 5).adopted.is_empty() && !world.root().exists(),
        "there is nothing yet"
    );
    let path = world.work("ckpt.safetensors");
    world.last_step = Some(20);
    write(&path, &tensors(100, 1));
    world.is_open = true;
    assert!(world.follow(&mut adopter, 20).adopted.is_empty(), "it is still open");
    world.is_open = false;
    let first = world.follow(&mut adopter, 5).adopted.remove(0);
    assert_eq!((first.commit.step, first.step_origin, first.layout), (20, "progress", "safetensors"));
    assert!(world.follow(&mut adopter, 20).adopted.is_empty(), "it did not change");
    world.last_step = Some(40);
    fs::write(&path, tensors(100, 2)).unwrap();
    let second = world.follow(&mut adopter, 20).adopted.remove(0);
    assert_eq!((second.commit.step, second.commit.parent), (40, Some(first.commit.number)));
    for (commit, fill) in [(first.commit.number, 1), (second.commit.number, 2)] {
        let loaded = world.view().load(commit).unwrap();
        assert_eq!(loaded.read("ckpt.safetensors").unwrap(), tensors(100, fill));
    }
}

/// Proves that what is torn is given up once, that a script which dies in the middle of a save commits nothing of it, and that the one before
/// stays.
#[test]
fn what_is_torn_is_not_committed() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.safetensors"]);
    write(&world.work("out/step-10.safetensors"), &tensors(100, 1));
    assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 10);
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2)[..90]);
    world.ended = true;
    let refused = world.follow(&mut adopter, 20);
    assert!(refused.adopted.is_empty() && refused.not_adopted[0].why.contains("not whole"), "{refused:?}");
    assert!(world.follow(&mut adopter, 20).not_adopted.is_empty(), "it is said once");
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 10);
}

/// Proves that a checkpoint which was there before the attempt is not its work, unless it changes.
#[test]
fn what_was_there_before_is_not_the_attempts_work() {
    let mut world = World::new();
    write(&world.work("out/step-10.safetensors"), &tensors(100, 1));
    let mut adopter = world.adopter(1, &["out/*.safetensors"]);
    assert!(world.follow(&mut adopter, 20).adopted.is_empty());
    fs::write(world.work("out/step-10.safetensors"), tensors(100, 3)).unwrap();
    assert_eq!(world.follow(&mut adopter, 20).adopted.len(), 1, "now it is");
}

/// Proves that an attempt whose run was taken over commits nothing more.
#[test]
fn a_replaced_attempt_adopts_nothing() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["*.safetensors"]);
    write(&world.work("step-10.safetensors"), &tensors(100, 1));
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
    let attempt = AttemptId::new(world.ids.as_ref());
    let (clock, ids) = (world.clock.clone(), world.ids.clone());
    CheckpointRoot::open(&world.root(), 2, world.run_id, attempt, clock, ids).unwrap();
    write(&world.work("step-20.safetensors"), &tensors(100, 2));
    let look = world.follow(&mut adopter, 9);
    assert!(look.is_fenced && look.adopted.is_empty(), "{look:?}");
    assert_eq!(world.view().list().len(), 1);
}

/// Proves that before a resume the committed checkpoint is what the script finds: written again where it is gone or damaged, left alone
/// where it is whole, with what is torn moved aside and nothing deleted.
#[test]
fn the_script_finds_what_was_committed() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.safetensors"]);
    let path = world.work("out/step-10.safetensors");
    write(&path, &tensors(100, 1));
    world.follow(&mut adopter, 9);
    let (patterns, quarantine) =
        (world.patterns(&["out/*.safetensors"]), world.folder.path().join("quarantine"));
    let target = world.view().resume_target().unwrap().unwrap();
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, since_ns: None };
    let restored = clearing.put_back(&target).unwrap();
    assert!(!restored.written && restored.moved.is_empty() && restored.path == path, "{restored:?}");
    // Torn, and newer.
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2)[..50]);
    let moved = clearing.put_back(&target).unwrap().moved;
    assert_eq!((moved.len(), &*moved[0].path), (1, "out/step-20.safetensors"));
    assert_eq!(fs::read(&moved[0].to).unwrap().len(), 50, "it is kept");
    // Made, and not written to.
    fs::create_dir_all(world.work("out/step-30.safetensors")).unwrap();
    let moved = clearing.put_back(&target).unwrap().moved;
    assert!(moved.len() == 1 && moved[0].why == "it has no files", "{moved:?}");
    // Whole, and newer.
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2));
    let moved = clearing.put_back(&target).unwrap().moved;
    assert!(moved.len() == 1 && moved[0].why.contains("step 20"), "{moved:?}");
    // Damaged.
    fs::write(&path, tensors(100, 9)).unwrap();
    let restored = clearing.put_back(&target).unwrap();
    assert!(restored.written && restored.moved[0].why.contains("not what was committed"), "{restored:?}");
    // Gone.
    fs::remove_dir_all(world.work("out")).unwrap();
    assert!(clearing.put_back(&target).unwrap().written);
    assert_eq!(fs::read(&path).unwrap(), tensors(100, 1));
    // The script writes to its file: the committed bytes are others.
    fs::write(&path, "x").unwrap();
    world.view().verify(target.info.number).unwrap();
}

/// Proves that without a commit what is torn is moved aside, and what is whole stays.
#[test]
fn without_a_commit_what_is_torn_is_moved() {
    let world = World::new();
    write(&world.work("out/step-10.safetensors"), &tensors(100, 1));
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2)[..50]);
    let (patterns, quarantine) = (world.patterns(&["out/*"]), world.folder.path().join("quarantine"));
    let clearing = |since_ns| Clearing { patterns: &patterns, quarantine: &quarantine, since_ns };
    assert!(clearing(Some(i64::MAX)).clear_torn().unwrap().is_empty(), "it is older than the run");
    let moved = clearing(None).clear_torn().unwrap();
    assert_eq!((moved.len(), &*moved[0].path), (1, "out/step-20.safetensors"));
    assert!(world.work("out/step-10.safetensors").exists());
}

/// Proves that without patterns the state of a trainer is found, wherever it is, and neither a model without one nor what is in hidden folders or
/// the home; and that nothing is committed for a script that saves through Trackway.
#[test]
fn without_patterns_only_states_of_trainings_are_found() {
    let mut world = World::new();
    let mut adopter = world.adopter_of(1, Patterns::detecting(&world.work(""), &world.work("home")));
    for folder in ["runs/a/checkpoint-10", ".cache/checkpoint-10", "home/checkpoints/b/checkpoint-10"] {
        write(&world.work(&format!("{folder}/model.safetensors")), &tensors(100, 1));
        write(&world.work(&format!("{folder}/trainer_state.json")), br#"{"global_step": 10}"#);
    }
    write(&world.work("model.safetensors"), &tensors(100, 1));
    world.ended = true;
    let adopted = world.follow(&mut adopter, 5).adopted;
    let paths: Vec<&str> = adopted.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["runs/a/checkpoint-10"]);

    let mut root = world.own_root(2);
    root.save(5, &[], |writer| writer.file("model", Kind::Optimizer, b"x")).unwrap();
    let attempt_id = root.list().unwrap().last().unwrap().attempt_id;
    let mut adopter =
        world.adopter_for(2, attempt_id, Patterns::detecting(&world.work(""), &world.work("home")));
    write(&world.work("runs/a/checkpoint-20/model.safetensors"), &tensors(100, 1));
    write(&world.work("runs/a/checkpoint-20/trainer_state.json"), br#"{"global_step": 20}"#);
    let look = world.follow(&mut adopter, 5);
    assert!(
        look.adopted.is_empty() && look.not_adopted[0].why.contains("saves through Trackway"),
        "{look:?}"
    );
}

/// Proves that what an attempt wrote before its shim was lost is committed once, and what was there before it never.
#[test]
fn what_was_left_is_committed_once() {
    let mut world = World::new();
    world.ended = true;
    write(&world.work("out/step-10.safetensors"), &tensors(100, 1));
    let attempt_id = AttemptId::new(world.ids.as_ref());
    let patterns = world.patterns(&["out/*"]);
    let follow = |world: &mut World, since_ns| {
        let spec = world.spec(1, attempt_id, patterns.clone());
        let mut adopter = Adopter::of_ended(spec, since_ns, world.clock.clone(), world.ids.clone());
        world.follow(&mut adopter, 3).adopted.len()
    };
    assert_eq!(follow(&mut world, i64::MAX), 0, "it is older than the attempt");
    assert_eq!(follow(&mut world, 0), 1);
    assert_eq!(follow(&mut world, 0), 0, "it was committed");
}

/// Proves that a save which the script reported, and one that was renamed into place, are committed at the first look, the former with the
/// step of the report; that a report or a rename before the last write is of another state; and that what is torn is not believed.
#[test]
fn finished_saves_need_no_quiet_time() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let now_ns = |path: &Path| {
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        i64::try_from(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos()).unwrap()
    };
    let names =
        ["reported", "renamed", "early", "torn"].map(|name| world.work(&format!("out/{name}.safetensors")));
    for (path, fill) in names.iter().zip(1..) {
        let bytes = tensors(100, fill);
        write(path, &bytes[..if path == &names[3] { 50 } else { bytes.len() }]);
    }
    let real = |path: &Path| path.parent().unwrap().canonicalize().unwrap().join(path.file_name().unwrap());
    world.saves.report(real(&names[0]), now_ns(&names[0]), Some(70));
    world.saves.rename(real(&names[1]), now_ns(&names[1]));
    world.saves.report(real(&names[2]), now_ns(&names[2]) - 1_000_000_000, Some(71));
    world.saves.report(real(&names[3]), now_ns(&names[3]), Some(72));
    let look = world.look(&mut adopter);
    let mut shown: Vec<(&str, Because, u64)> =
        look.adopted.iter().map(|one| (one.path.as_str(), one.because, one.commit.step)).collect();
    shown.sort_by_key(|(path, ..)| *path);
    let expected = [
        ("out/renamed.safetensors", Because::Renamed, 0),
        ("out/reported.safetensors", Because::Reported, 70),
    ];
    assert_eq!(shown, expected);
    assert!(look.is_waiting);
}

/// Proves that a model which the script commits with `run.save_model` does not keep its framework's checkpoints from being adopted, that the
/// default retention of these does not delete the model, and that a retry continues from the newest of them.
#[test]
fn a_model_that_was_committed_is_no_save_through_trackway() {
    let mut world = World::new();
    let mut root = world.own_root(1);
    root.save(5, &[], |writer| writer.file("model.ubj", Kind::Weights, b"x")).unwrap();
    let attempt_id = root.list().unwrap().last().unwrap().attempt_id;
    let mut adopter = world.adopter_for(1, attempt_id, world.patterns(&["out/checkpoint-*"]));
    world.ended = true;
    for step in [10, 20, 30] {
        let folder = format!("out/checkpoint-{step}");
        write(&world.work(&format!("{folder}/model.safetensors")), &tensors(100, step));
        write(
            &world.work(&format!("{folder}/trainer_state.json")),
            format!("{{\"global_step\": {step}}}").as_bytes(),
        );
        let look = world.follow(&mut adopter, 5);
        assert_eq!(look.adopted.len(), 1, "{look:?}");
    }
    root.save(31, &[], |writer| writer.file("model.ubj", Kind::Weights, b"y")).unwrap();
    let view = world.view();
    let readable = view.list().iter().filter(|info| view.load(info.number).is_ok()).count();
    assert_eq!((readable, view.list().last().unwrap().step), (5, 31));
    assert_eq!(newest_adopted(&view).unwrap().step, 30);
    root.save(32, &[], |writer| {
        writer.file("model.ubj", Kind::Weights, b"z")?;
        writer.file("optimizer.json", Kind::Optimizer, b"{}")
    })
    .unwrap();
    write(&world.work("out/checkpoint-40/model.safetensors"), &tensors(100, 40));
    write(&world.work("out/checkpoint-40/trainer_state.json"), br#"{"global_step": 40}"#);
    assert!(world.follow(&mut adopter, 5).not_adopted[0].why.contains("saves through Trackway"));
}
