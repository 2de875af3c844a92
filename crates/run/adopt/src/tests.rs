#![allow(clippy::disallowed_methods, reason = "the folder is of the test")]

mod names;
mod order;
mod parts;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_checkpoint::{CheckpointRoot, CheckpointView, Kind};
use trackway_core::{AttemptId, ManualClock, RunId, SequentialIds, Timestamp};
use trackway_layouts::Because;

use crate::{
    Adopter, AdopterSpec, Clearing, Company, Facts, History, Look, Past, Patterns, Saves, Seen, Writers,
    kept_by_default, models_beside, resumed_from,
};

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
    /// How often a copy may continue before it is interrupted.
    interrupted_after: u32,
    saves: Saves,
    /// What is seen of the writers of every file.
    seen: Seen,
    /// What the attempts so far wrote.
    past: Past,
}

/// The kernel names the attempt as the writer.
fn own() -> Seen {
    let kernel = Writers { own: true, ..Writers::default() };
    Seen { kernel, open: Writers::default(), company: Company::Alone }
}

impl World {
    fn new() -> Self {
        let ids = Arc::new(SequentialIds::default());
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        let (folder, run_id) = (tempfile::tempdir().unwrap(), RunId::new(ids.as_ref()));
        fs::create_dir(folder.path().join("work")).unwrap();
        Self {
            folder,
            clock,
            ids,
            run_id,
            at_ns: 0,
            last_step: None,
            is_open: false,
            ended: false,
            interrupted_after: u32::MAX,
            saves: Saves::default(),
            seen: own(),
            past: Past::default(),
        }
    }

    /// What the run is shown to have written.
    fn history(&mut self, adopter: &mut Adopter) -> History {
        if let Some(own) = adopter.own_if_changed() {
            self.past.record.own = own;
        }
        History::new(vec![self.past.clone()], [self.root().as_path()])
    }

    fn work(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn patterns(&self, patterns: &[&str]) -> Patterns {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Patterns::new(&self.work(""), &patterns, &self.work("home")).unwrap()
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
        let interrupted_after = Cell::new(self.interrupted_after);
        adopter.look(&Facts {
            at_ns: self.at_ns,
            saves: &self.saves,
            step_when_written: &|_| last_step,
            step_slack: 0,
            writers: &|_, _| self.seen.clone(),
            writers_ended: self.ended,
            is_open_for_writing: &|_| Some(is_open),
            is_interrupted: &|| {
                interrupted_after.get().checked_sub(1).map(|left| interrupted_after.set(left)).is_none()
            },
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

/// A pickle of an empty state.
const STATE: &[u8] = b"\x80\x02}.";

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

/// Proves that a copy which is interrupted before it begins or in its middle commits nothing, and that the next look commits the same state.
#[test]
fn an_interrupted_copy_is_made_by_the_next_look() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["ckpt.safetensors"]);
    write(&world.work("ckpt.safetensors"), &tensors(20 << 20, 1));
    world.look(&mut adopter);
    world.ended = true;
    for chunks in [0, 2] {
        world.interrupted_after = chunks;
        let look = world.look(&mut adopter);
        assert!(look.is_waiting && look.adopted.is_empty() && look.not_adopted.is_empty(), "{look:?}");
    }
    world.interrupted_after = u32::MAX;
    assert_eq!(world.look(&mut adopter).adopted.len(), 1);
    assert_eq!(world.view().resume_target().unwrap().unwrap().files().len(), 2, "the file and its origin");
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
    world.past.record.looked_until_ns = Some(i64::MAX);
    let put_back = |world: &mut World, adopter: &mut Adopter| {
        world.look(adopter);
        let history = world.history(adopter);
        Clearing { patterns: &patterns, quarantine: &quarantine, history: &history }.put_back(&target)
    };
    let restored = put_back(&mut world, &mut adopter).unwrap();
    assert!(!restored.written && restored.cleared.moved.is_empty() && restored.path == path, "{restored:?}");
    // Torn, and newer.
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2)[..50]);
    let moved = put_back(&mut world, &mut adopter).unwrap().cleared.moved;
    assert_eq!((moved.len(), &*moved[0].path), (1, "out/step-20.safetensors"));
    assert_eq!(fs::read(&moved[0].to).unwrap().len(), 50, "it is kept");
    // Made, and not written to.
    fs::create_dir_all(world.work("out/step-30.safetensors")).unwrap();
    let moved = put_back(&mut world, &mut adopter).unwrap().cleared.moved;
    assert!(moved.len() == 1 && moved[0].why == "it has no files", "{moved:?}");
    // Whole, and newer.
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2));
    let moved = put_back(&mut world, &mut adopter).unwrap().cleared.moved;
    assert!(moved.len() == 1 && moved[0].why.contains("step 20"), "{moved:?}");
    // Damaged.
    fs::write(&path, tensors(100, 9)).unwrap();
    let restored = put_back(&mut world, &mut adopter).unwrap();
    assert!(
        restored.written && restored.cleared.moved[0].why.contains("not what was committed"),
        "{restored:?}"
    );
    // Gone.
    fs::remove_dir_all(world.work("out")).unwrap();
    assert!(put_back(&mut world, &mut adopter).unwrap().written);
    assert_eq!(fs::read(&path).unwrap(), tensors(100, 1));
    // The script writes to its file: the committed bytes are others.
    fs::write(&path, "x").unwrap();
    world.view().verify(target.info.number).unwrap();
}

/// Proves that nothing of another training is moved or written over before a resume, whatever its step and however torn, nor anything that is not a
/// checkpoint, and that the committed one is not put where another's file is.
#[test]
fn what_is_not_the_runs_stays() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    write(&world.work("out/step-10.safetensors"), &tensors(100, 1));
    world.follow(&mut adopter, 9);
    let target = world.view().resume_target().unwrap().unwrap();
    let history = world.history(&mut adopter);
    let (patterns, quarantine) = (world.patterns(&["out/*"]), world.folder.path().join("quarantine"));
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    fs::create_dir_all(world.work("out/tb")).unwrap();
    fs::create_dir_all(world.work("out/step-30.safetensors")).unwrap();
    write(&world.work("out/eval/results.json"), b"{\"accuracy\": 0.");
    write(&world.work("out/step-900.safetensors"), &tensors(100, 2));
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2)[..50]);
    let restored = clearing.put_back(&target).unwrap();
    assert!(restored.cleared.moved.is_empty() && !restored.written, "{restored:?}");
    let all = clearing.clear_all("a reason").unwrap().moved;
    assert_eq!(all.iter().map(|one| &*one.path).collect::<Vec<_>>(), ["out/step-10.safetensors"]);
    assert!(clearing.put_back(&target).unwrap().written, "its place is free");
    // Another file at its place.
    write(&world.work("other"), &tensors(100, 3));
    fs::rename(world.work("other"), world.work("out/step-10.safetensors")).unwrap();
    let refused = clearing.put_back(&target).unwrap_err().to_string();
    assert!(refused.contains("out/step-10.safetensors") && refused.contains("left as it is"), "{refused}");
    assert_eq!(fs::read(world.work("out/step-10.safetensors")).unwrap(), tensors(100, 3));
}

/// Proves that a folder of which a rank had written only its own state when all were killed is moved before a resume, as the others of the run have such a
/// name, and that another folder with such a file is not.
#[test]
fn what_one_rank_began_is_moved() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    write(&world.work("out/checkpoint-10/model.safetensors"), &tensors(100, 1));
    write(&world.work("out/checkpoint-10/trainer_state.json"), br#"{"global_step": 10}"#);
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
    write(&world.work("out/checkpoint-15/rng_state_1.pth"), STATE);
    write(&world.work("out/notes/rng_state_1.pth"), STATE);
    world.ended = true;
    for _ in 0..9 {
        world.look(&mut adopter);
    }
    let history = world.history(&mut adopter);
    let (patterns, quarantine) = (world.patterns(&["out/*"]), world.folder.path().join("quarantine"));
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    let target = world.view().resume_target().unwrap().unwrap();
    let moved: Vec<String> =
        clearing.put_back(&target).unwrap().cleared.moved.into_iter().map(|one| one.path).collect();
    assert_eq!(moved, ["out/checkpoint-15"]);
}

/// Proves that neither the home nor a folder that holds it is found by a pattern.
#[test]
fn the_home_is_out_of_reach() {
    let world = World::new();
    write(&world.work("home/attempts/x/ckpt.pt"), STATE);
    write(&world.work("ckpt.pt"), STATE);
    for pattern in ["*", "**/ckpt.pt", "home", "home/attempts/*/ckpt.pt"] {
        let found = world.patterns(&[pattern]).paths();
        assert!(found.iter().all(|path| *path == world.work("ckpt.pt")), "{pattern}: {found:?}");
    }
    let above = Patterns::new(&world.work(""), &["../*".into()], &world.work("home")).unwrap();
    assert!(above.paths().iter().all(|path| !world.work("home").starts_with(path.canonicalize().unwrap())));
}

/// Proves that what another process wrote, or no process is known to have written, is named once with why, and is committed when the script reports it.
#[test]
fn what_is_not_shown_to_be_own_is_not_committed() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let other = || Writers { other: Some("process 7 (`python`)".into()), ..Writers::default() };
    let none = Writers::default;
    let company = Company::With("process 7 (`python`)".into());
    for (step, seen, says) in [
        (10, Seen { kernel: other(), ..own() }, "process 7 (`python`) wrote it"),
        (20, Seen { kernel: none(), open: none(), company }, "wrote at the same time"),
    ] {
        world.seen = seen;
        write(&world.work(&format!("out/step-{step}.safetensors")), &tensors(100, step));
        let mut not_own = Vec::new();
        for _ in 0..9 {
            let look = world.look(&mut adopter);
            assert!(look.adopted.is_empty(), "{look:?}");
            not_own.extend(look.not_own);
        }
        assert!(not_own.len() == 1 && not_own[0].why.contains(says), "{not_own:?}");
        assert!(adopter.own_if_changed().is_none_or(|own| own.is_empty()));
    }
    let reported = world.work("out").canonicalize().unwrap().join("step-20.safetensors");
    world.saves.report(reported, i64::MAX / 2, Some(20));
    let look = world.look(&mut adopter);
    assert_eq!(look.adopted[0].shown_by, trackway_formats::writers::ShownBy::Report);
}

/// Proves that the state of an optimizer alone is refused with why, and that of an optimizer with its step is committed.
#[test]
fn an_optimizer_alone_is_no_checkpoint() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.pkl"]);
    world.ended = true;
    // `{"param_groups": 1}` and `{"optimizer": 1, "step": 20}`.
    write(&world.work("out/optim-10.pkl"), b"\x80\x02}X\x0c\x00\x00\x00param_groupsK\x01s.");
    let refused = world.follow(&mut adopter, 9).not_adopted;
    assert!(refused.len() == 1 && refused[0].why.contains("no model"), "{refused:?}");
    let state = b"\x80\x02}(X\x09\x00\x00\x00optimizerK\x01X\x04\x00\x00\x00stepK\x14u.";
    write(&world.work("out/state-20.pkl"), state);
    assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 20);
}

/// Proves that a hard link to a checkpoint is the same one and committed once, and that another file of the same size and time is not.
#[test]
fn a_hard_link_is_the_same_checkpoint() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    world.finished("out/step-30.safetensors", &tensors(100, 1), 1);
    fs::hard_link(world.work("out/step-30.safetensors"), world.work("out/last.safetensors")).unwrap();
    world.finished("out/step-30-ema.safetensors", &tensors(100, 2), 1);
    world.ended = true;
    for _ in 0..5 {
        world.look(&mut adopter);
    }
    assert_eq!(world.view().list().len(), 2);
}

/// Proves that a file that cannot be read for a while is not called torn, and is committed when it can be. Skipped for root, who can read every file.
#[test]
fn what_cannot_be_read_is_not_damaged() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let path = world.work("out/step-10.safetensors");
    write(&path, &tensors(100, 1));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        println!("skipped: every file can be read by this user");
        return;
    }
    let refused = world.follow(&mut adopter, 9).not_adopted;
    assert!(refused[0].why.contains("cannot read"), "{refused:?}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
}

/// Proves that without a commit what is torn is moved aside, and what is whole stays.
#[test]
fn without_a_commit_what_is_torn_is_moved() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    write(&world.work("out/step-10.safetensors"), &tensors(100, 1));
    write(&world.work("out/step-20.safetensors"), &tensors(100, 2)[..50]);
    let (patterns, quarantine) = (world.patterns(&["out/*"]), world.folder.path().join("quarantine"));
    let nothing = History::default();
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &nothing };
    assert!(clearing.clear_torn().unwrap().moved.is_empty(), "it is not shown to be the run's");
    // Made before the attempt, and written to by it.
    write(&world.work("out/step-10.safetensors"), &tensors(100, 3));
    write(&world.work("out/step-20.safetensors"), &tensors(100, 4)[..50]);
    world.look(&mut adopter);
    let history = world.history(&mut adopter);
    let moved = Clearing { history: &history, ..clearing }.clear_torn().unwrap().moved;
    assert_eq!((moved.len(), &*moved[0].path), (1, "out/step-20.safetensors"));
    assert!(world.work("out/step-10.safetensors").exists());
}

/// Proves that without patterns the state of a trainer is found, wherever it is, and a booster whose name has its rounds, and neither another model nor
/// what is in hidden folders or the home; and that nothing is committed for a script that saves through Trackway.
#[test]
fn without_patterns_only_states_of_trainings_are_found() {
    let mut world = World::new();
    let mut adopter = world.adopter_of(1, Patterns::detecting(&world.work(""), &world.work("home")));
    for folder in ["runs/a/checkpoint-10", ".cache/checkpoint-10", "home/checkpoints/b/checkpoint-10"] {
        write(&world.work(&format!("{folder}/model.safetensors")), &tensors(100, 1));
        write(&world.work(&format!("{folder}/trainer_state.json")), br#"{"global_step": 10}"#);
    }
    write(&world.work("model.safetensors"), &tensors(100, 1));
    // Boosters of 10 rounds: XGBoost names them from 0.
    for name in ["xgb/model_9.json", "xgb/model_10.json", "xgb/fold_3.json", "xgb/final.json"] {
        let indices: Vec<String> = (0..=10).map(|round| round.to_string()).collect();
        let model =
            format!(r#"{{"learner":{{"iteration_indptr":[{}]}},"version":[3,2,0]}}"#, indices.join(","));
        write(&world.work(name), model.as_bytes());
    }
    world.ended = true;
    let looks = [world.follow(&mut adopter, 5), world.follow(&mut adopter, 5)];
    let mut paths: Vec<&str> =
        looks.iter().flat_map(|look| &look.adopted).map(|one| one.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["runs/a/checkpoint-10", "xgb/model_10.json", "xgb/model_9.json"]);

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

/// Proves that what an attempt wrote before its shim was lost is committed once, by the one look before the next attempt, and what was there
/// before it never.
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
        world.look(&mut adopter).adopted.len()
    };
    assert_eq!(follow(&mut world, i64::MAX), 0, "it is older than the attempt");
    assert_eq!(follow(&mut world, 0), 1);
    assert_eq!(follow(&mut world, 0), 0, "it was committed");
}

/// Proves that the file in which a framework looks for its newest checkpoint names the one that is put back, whatever it said, and that
/// it is left alone where it does.
#[test]
fn the_tracker_names_what_is_put_back() {
    for (newest, tracker, said, folder, says) in [
        ("ds/global_step20", "ds/latest", "global_step20", "ds/global_step10", "global_step10"),
        ("mega/iter_0000020", "mega/latest_checkpointed_iteration.txt", "20", "mega/iter_0000010", "10"),
    ] {
        let mut world = World::new();
        world.ended = true;
        let pattern = folder.replace("10", "*");
        let mut adopter = world.adopter(1, &[&pattern]);
        let file = match folder.starts_with("ds") {
            true => "mp_rank_00_model_states.pt",
            false => "mp_rank_00/model_optim_rng.pt",
        };
        write(&world.work(folder).join(file), STATE);
        write(&world.work(tracker), says.as_bytes());
        assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 10);
        let (patterns, quarantine) = (world.patterns(&[&pattern]), world.folder.path().join("quarantine"));
        let target = world.view().resume_target().unwrap().unwrap();
        let put_back = |world: &mut World, adopter: &mut Adopter| {
            world.look(adopter);
            let history = world.history(adopter);
            let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
            clearing.put_back(&target).unwrap().cleared.moved
        };
        assert!(put_back(&mut world, &mut adopter).is_empty(), "{tracker} is right");
        // A later one, which was not committed.
        write(&world.work(newest).join(file), STATE);
        write(&world.work(tracker), said.as_bytes());
        let moved = put_back(&mut world, &mut adopter);
        assert_eq!(moved.iter().map(|one| &*one.path).collect::<Vec<_>>(), [newest, tracker]);
        assert!(moved[1].why.contains(said), "{}", moved[1].why);
        assert_eq!(fs::read_to_string(world.work(tracker)).unwrap(), says);
        assert_eq!(fs::read_to_string(&moved[1].to).unwrap(), said, "it is kept");
        fs::remove_file(world.work(tracker)).unwrap();
        assert!(put_back(&mut world, &mut adopter).is_empty());
        assert_eq!(fs::read_to_string(world.work(tracker)).unwrap(), says);
    }
}

/// Proves that a checkpoint which the script's own retention deletes between the look and the copy, in part or as a whole, is not committed, that
/// the one before stays, and that the next one is committed.
#[test]
fn a_rotation_during_the_copy_commits_nothing() {
    for whole in [false, true] {
        let mut world = World::new();
        let mut adopter = world.adopter(1, &["out/checkpoint-*"]);
        let save = |world: &World, step: u64| {
            let folder = world.work(&format!("out/checkpoint-{step}"));
            write(&folder.join("model.safetensors"), &tensors(100, 1));
            write(&folder.join("trainer_state.json"), format!("{{\"global_step\": {step}}}").as_bytes());
            folder
        };
        save(&world, 10);
        assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 10);
        let rotated = save(&world, 20);
        // What is asked between the look and the copy.
        let rotate = |_: &[(u64, u64)]| {
            if whole {
                fs::remove_dir_all(&rotated).ok();
            } else {
                fs::remove_file(rotated.join("model.safetensors")).ok();
            }
            Some(false)
        };
        let facts = Facts {
            at_ns: 60 * SECOND_NS,
            step_when_written: &|_| None,
            step_slack: 0,
            writers: &|_, _| own(),
            writers_ended: false,
            saves: &Saves::default(),
            is_open_for_writing: &rotate,
            is_interrupted: &|| false,
        };
        let look = adopter.look(&facts);
        assert!(look.adopted.is_empty() && look.not_adopted.is_empty() && look.is_waiting, "{look:?}");
        assert_eq!(world.view().resume_target().unwrap().unwrap().step, 10);
        fs::remove_dir_all(&rotated).ok();
        save(&world, 30);
        world.at_ns = 61 * SECOND_NS;
        assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 30);
    }
}

/// Proves that neither a checkpoint with a symbolic link in it nor a link is committed, that each is said once, with the link's name, unless what it points to is
/// looked at itself, and that a link which points to nothing after its target was moved is moved too.
#[test]
fn links_are_not_committed() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let link = |target: &str, at: &str| std::os::unix::fs::symlink(target, world.work(at)).unwrap();
    write(&world.work("out/checkpoint-10/trainer_state.json"), br#"{"global_step": 10}"#);
    write(&world.work("out/step-20.safetensors"), &tensors(100, 1)[..50]);
    link("../../elsewhere.safetensors", "out/checkpoint-10/model.safetensors");
    link("step-20.safetensors", "out/step-last.safetensors");
    write(&world.work("elsewhere.safetensors"), &tensors(100, 1));
    link("../elsewhere.safetensors", "out/step-else.safetensors");
    world.ended = true;
    let mut refused = Vec::new();
    for _ in 0..20 {
        let look = world.look(&mut adopter);
        assert!(look.adopted.is_empty(), "{look:?}");
        refused.extend(look.not_adopted.into_iter().map(|one| (one.path, one.why)));
    }
    refused.sort();
    let [inside, torn, last] = refused.try_into().unwrap();
    assert_eq!(inside.0, "out/checkpoint-10");
    assert!(inside.1.contains("model.safetensors` in it is a symbolic link"), "{}", inside.1);
    assert_eq!(torn.0, "out/step-20.safetensors");
    assert_eq!(last.0, "out/step-else.safetensors");
    assert!(last.1.contains("it is a symbolic link: what it points to"), "{}", last.1);
    assert!(!world.root().exists());

    let (patterns, quarantine) = (world.patterns(&["out/step-*"]), world.folder.path().join("quarantine"));
    let history = world.history(&mut adopter);
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    let moved: Vec<String> = clearing.clear_torn().unwrap().moved.into_iter().map(|one| one.path).collect();
    assert_eq!(moved, ["out/step-20.safetensors", "out/step-last.safetensors"]);
    assert!(quarantine.join("step-last.safetensors").is_symlink());
}

/// Proves that a clock that jumps by an hour in either direction neither completes a file early nor keeps it from being committed.
#[test]
fn a_clock_that_jumps_changes_nothing() {
    for jumped_ns in [3_600 * SECOND_NS, 0] {
        let mut world = World::new();
        world.at_ns = 1_800 * SECOND_NS;
        let mut adopter = world.adopter(1, &["*.safetensors"]);
        write(&world.work("step-10.safetensors"), &tensors(100, 1));
        assert!(world.look(&mut adopter).adopted.is_empty());
        world.at_ns = jumped_ns;
        assert!(world.look(&mut adopter).adopted.is_empty(), "it was seen once before");
        assert_eq!(world.follow(&mut adopter, 4).adopted.len(), 1, "after a jump to {jumped_ns}");
    }
}

/// Names the test that runs on a small disk.
const SMALL_DISK: &str = "TRACKWAY_TEST_SMALL_DISK";

/// Proves that a disk that fills while a checkpoint is copied loses nothing: what was committed stays whole, the message says what happened, the
/// room is given back, and the next checkpoint is committed. Skipped with a printed line where no disk can be mounted in a namespace.
#[test]
fn a_disk_that_fills_keeps_what_was_committed() {
    if std::env::var_os(SMALL_DISK).is_some() {
        return on_a_small_disk();
    }
    let folder = tempfile::tempdir().unwrap();
    let unshare = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
        command.env("TMPDIR", folder.path()).env(SMALL_DISK, "1").output()
    };
    let mount = "mount -t tmpfs -o size=1m none \"$TMPDIR\"";
    if !unshare(mount).is_ok_and(|output| output.status.success()) {
        println!("skipped: no mount namespace for a test of a full disk");
        return;
    }
    let this = "tests::a_disk_that_fills_keeps_what_was_committed";
    let output = unshare(&format!("{mount} && exec \"$1\" --exact {this} --nocapture")).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{output:?}");
}

fn on_a_small_disk() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["*.safetensors"]);
    write(&world.work("step-10.safetensors"), &tensors(50_000, 1));
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
    write(&world.work("step-20.safetensors"), &tensors(600_000, 2));
    let look = world.follow(&mut adopter, 9);
    assert!(look.adopted.is_empty() && look.not_adopted[0].why.contains("the disk only"), "{look:?}");
    assert!(world.follow(&mut adopter, 9).not_adopted.is_empty(), "it is said once");
    fs::write(world.work("filler"), vec![0; 200_000]).expect("what was copied is deleted again");
    fs::remove_file(world.work("step-20.safetensors")).unwrap();
    write(&world.work("step-30.safetensors"), &tensors(50_000, 3));
    assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 30);
    let view = world.view();
    let committed: Vec<_> = view.list().into_iter().filter(|one| one.manifest_sha256.is_some()).collect();
    assert_eq!(committed.iter().map(|one| one.step).collect::<Vec<_>>(), [10, 30]);
    committed.iter().for_each(|one| view.verify(one.number).map(|_| ()).unwrap());
}

/// Files with these numbers as names. A further name of a file is made faster than a file; one has at most 65,000.
fn fill(folder: &Path, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let (first, at) =
            (folder.join((number - number % 50_000).to_string()), folder.join(number.to_string()));
        match number % 50_000 {
            0 => fs::write(at, "x").unwrap(),
            _ => fs::hard_link(first, at).unwrap(),
        }
    }
}

/// Proves that a folder with more files than a checkpoint may have, or than are listed, is refused once though it grows, and that the message says
/// what the limit is and what to do.
#[test]
fn a_checkpoint_of_too_many_files_is_refused_once() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let folder = world.work("out/checkpoint-10");
    write(&folder.join("trainer_state.json"), br#"{"global_step": 10}"#);
    fill(&folder, 0..100_000);
    let refused = world.look(&mut adopter).not_adopted;
    assert!(refused.len() == 1 && refused[0].why.contains("fewer than 100000 files"), "{refused:?}");
    fill(&folder, 100_000..100_010);
    assert!(world.look(&mut adopter).not_adopted.is_empty(), "it is said once");
    fill(&folder, 100_010..200_000);
    let refused: Vec<_> = (0..2).flat_map(|_| world.look(&mut adopter).not_adopted).collect();
    let says = "more than 200000 files and folders: name the checkpoints below it";
    assert!(refused.len() == 1 && refused[0].why.contains(says), "{refused:?}");
    assert!(!world.root().exists());
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

/// Proves what is kept where nothing is configured: a log without copies has no default, of copies alone the two newest are kept and no
/// older one has its files, and beside a model everything is kept.
#[test]
fn the_default_keeps_two_copies_and_every_model() {
    let mut world = World::new();
    assert_eq!(kept_by_default(&world.view()), None);
    let mut adopter = world.adopter(1, &["out/checkpoint-*"]);
    world.ended = true;
    for step in [10, 20, 30] {
        let folder = format!("out/checkpoint-{step}");
        write(&world.work(&format!("{folder}/model.safetensors")), &tensors(100, step));
        let state = format!("{{\"global_step\": {step}}}");
        write(&world.work(&format!("{folder}/trainer_state.json")), state.as_bytes());
        assert_eq!(world.follow(&mut adopter, 5).adopted.len(), 1);
    }
    let view = world.view();
    let kept = kept_by_default(&view).unwrap().last;
    let readable = view.list().iter().filter(|info| view.load(info.number).is_ok()).count();
    assert_eq!((kept, readable), (2, 2));
    let mut root = world.own_root(2);
    root.save(31, &[], |writer| writer.file("model.ubj", Kind::Weights, b"x")).unwrap();
    assert_eq!(kept_by_default(&world.view()), None);
}

/// Proves that a model which the script commits with `run.save_model` does not keep its framework's checkpoints from being adopted, that the
/// default retention of these does not delete the model, and that a retry continues from the newest of them.
#[test]
fn a_model_that_was_committed_is_no_save_through_trackway() {
    let mut world = World::new();
    let mut root = world.own_root(1);
    root.save(5, &[], |writer| writer.file("model.ubj", Kind::Weights, b"x")).unwrap();
    assert!(models_beside(&world.view()).is_empty(), "it is the only checkpoint there is");
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
    let found = view.resume_target().unwrap().unwrap();
    assert_eq!((found.step, resumed_from(&view, found).step), (31, 30));
    let beside = models_beside(&view);
    let models: Vec<u64> =
        view.list().iter().filter(|one| beside.contains(&one.object_prefix)).map(|one| one.step).collect();
    assert_eq!(models, [5, 31]);
    root.save(32, &[], |writer| {
        writer.file("model.ubj", Kind::Weights, b"z")?;
        writer.file("optimizer.json", Kind::Optimizer, b"{}")
    })
    .unwrap();
    write(&world.work("out/checkpoint-40/model.safetensors"), &tensors(100, 40));
    write(&world.work("out/checkpoint-40/trainer_state.json"), br#"{"global_step": 40}"#);
    assert!(world.follow(&mut adopter, 5).not_adopted[0].why.contains("saves through Trackway"));
}

/// Proves that a copy of a checkpoint, a symbolic link to it and a copy of its folder are the same one: committed once, so that the two copies that are
/// kept are of two steps; and that another file, and the same bytes under the name of another step, are not.
#[test]
fn a_copy_is_the_same_checkpoint() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    for step in [10_u8, 20, 30] {
        write(&world.work(&format!("out/step-{step}.safetensors")), &tensors(3 << 20, step));
        fs::copy(world.work(&format!("out/step-{step}.safetensors")), world.work("out/latest.safetensors"))
            .unwrap();
        fs::remove_file(world.work("out/link.safetensors")).ok();
        std::os::unix::fs::symlink(format!("step-{step}.safetensors"), world.work("out/link.safetensors"))
            .unwrap();
        for _ in 0..9 {
            assert!(world.look(&mut adopter).not_adopted.is_empty());
        }
    }
    let view = world.view();
    let readable: Vec<u64> =
        view.list().iter().filter_map(|info| view.load(info.number).ok()).map(|it| it.step).collect();
    assert_eq!((view.list().len(), readable), (3, vec![20, 30]));

    write(&world.work("out/latest.safetensors"), &tensors(3 << 20, 31));
    assert_eq!(world.follow(&mut adopter, 20).adopted.len(), 1, "other bytes");
    write(&world.work("out/step-40.safetensors"), &tensors(3 << 20, 30));
    assert_eq!(world.follow(&mut adopter, 20).adopted.len(), 1, "another step");
    for name in ["checkpoint-50", "checkpoint-best"] {
        write(&world.work(&format!("out/{name}/model.safetensors")), &tensors(100, 50));
        write(&world.work(&format!("out/{name}/trainer_state.json")), br#"{"global_step": 50}"#);
    }
    for _ in 0..9 {
        world.look(&mut adopter);
    }
    assert_eq!(world.view().list().len(), 6);
}
