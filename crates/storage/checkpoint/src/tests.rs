use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trackway_core::{AttemptId, ManualClock, RunId, SequentialIds, Step, Timestamp};
use trackway_store::testing::{Fault, FaultDisk};
use trackway_store::{Disk, RealDisk};

use crate::history::entry::ClaimBody;
use crate::retention::Retention;
use crate::settings::Settings;
use crate::{
    CheckpointError, CheckpointRoot, CheckpointState, CheckpointView, Commit, ErrorKind, Housekeeper, Kind,
    ManifestFile, SameTensors,
};

/// Everything a test's root needs; ids are unique over all of its roots.
pub(crate) struct World {
    folder: tempfile::TempDir,
    run_id: RunId,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ids: Arc<SequentialIds>,
}

impl World {
    pub(crate) fn new() -> Self {
        let ids = Arc::new(SequentialIds::default());
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_795_244_400_000_000)));
        // In memory where there is such a folder: the fault disk keeps account of syncs, and thousands of roots are made.
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        Self { folder, run_id: RunId::new(ids.as_ref()), clock, ids }
    }

    /// Another machine with the same run and a different disk.
    pub(crate) fn other_machine(&self) -> Self {
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        Self { run_id: self.run_id, clock, ids, ..Self::new() }
    }

    pub(crate) fn run_id(&self) -> RunId {
        self.run_id
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("train-1")
    }

    pub(crate) fn attempt(&self) -> AttemptId {
        AttemptId::new(self.ids.as_ref())
    }

    pub(crate) fn open(&self, epoch: u64) -> Result<CheckpointRoot, CheckpointError> {
        self.open_as(Arc::new(FaultDisk::sound()), epoch, self.attempt(), None)
    }

    pub(crate) fn open_as(
        &self,
        disk: Arc<dyn Disk>,
        epoch: u64,
        attempt_id: AttemptId,
        keep_last: Option<usize>,
    ) -> Result<CheckpointRoot, CheckpointError> {
        self.open_keeping(
            disk,
            epoch,
            attempt_id,
            keep_last.map(|last| Retention { last, ..Retention::default() }),
        )
    }

    pub(crate) fn open_keeping(
        &self,
        disk: Arc<dyn Disk>,
        epoch: u64,
        attempt_id: AttemptId,
        keep: Option<Retention>,
    ) -> Result<CheckpointRoot, CheckpointError> {
        let claim = ClaimBody { epoch, run_id: self.run_id, attempt_id };
        let settings = Settings { keep, world_size: 1, ..Settings::default() };
        CheckpointRoot::open_on(disk, &self.path(), claim, settings, self.clock.clone(), self.ids.clone())
    }

    pub(crate) fn view(&self) -> CheckpointView {
        CheckpointView::open(&self.path()).unwrap()
    }
}

/// Saves a state derived from the step.
pub(crate) fn save(root: &mut CheckpointRoot, step: Step) -> Result<Commit, CheckpointError> {
    root.save(step, &[("loss", 1.0 / step as f64)], |writer| {
        writer.file("weights.bin", Kind::Weights, &state(step))?;
        writer.file("cursor.json", Kind::DataCursor, format!("{{\"step\":{step}}}").as_bytes())
    })
}

pub(crate) fn state(step: Step) -> Vec<u8> {
    step.to_le_bytes().repeat(16)
}

/// Proves the plain way, on the real disk: what was saved is what is resumed, byte for byte, and states follow each
/// other.
#[test]
fn the_newest_commit_is_resumed() {
    let world = World::new();
    assert!(world.view().resume_target().unwrap().is_none(), "nothing was committed");
    let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), None).unwrap();
    assert!(root.resume_target().unwrap().is_none());
    save(&mut root, 10).unwrap();
    let commit = save(&mut root, 20).unwrap();
    let mut next = world.open(2).unwrap();
    let loaded = next.resume_target().unwrap().unwrap();
    assert_eq!((loaded.step, loaded.read("weights.bin").unwrap()), (20, state(20)));
    assert_eq!(loaded.manifest.state_digest, commit.state_digest);
    assert!(loaded.fallbacks.is_empty());
    let missing = loaded.read("optimizer.bin").unwrap_err();
    assert_eq!(
        missing.to_string(),
        "the checkpoint of step 20 has no file `optimizer.bin`; it has cursor.json, weights.bin"
    );
    assert_eq!(save(&mut next, 30).unwrap().parent, Some(commit.number));
    let states: Vec<_> = world.view().list().iter().map(|info| (info.step, info.state)).collect();
    assert_eq!(
        states,
        [
            (10, CheckpointState::Superseded),
            (20, CheckpointState::Superseded),
            (30, CheckpointState::Committed)
        ]
    );
}

/// Proves that the same state has the same digest whichever rank writes it, and that files of kind `other` do not
/// count.
#[test]
fn the_state_digest_is_of_the_state_alone() {
    let world = World::new();
    let mut first = world.open(1).unwrap();
    let one = first
        .save(5, &[], |writer| {
            writer.file("w", Kind::Weights, b"same")?;
            writer.file("sample.txt", Kind::Other, b"one")
        })
        .unwrap();
    let mut second = world.open(2).unwrap();
    let two = second
        .save(7, &[("loss", f64::NAN)], |writer| {
            writer.file("sample.txt", Kind::Other, b"two")?;
            writer.file("w", Kind::Weights, b"same")
        })
        .unwrap();
    assert_eq!(one.state_digest, two.state_digest);
    assert_ne!(one.manifest_sha256, two.manifest_sha256);
    assert!(world.view().load(two.number).unwrap().manifest.metrics["loss"].is_nan());
}

/// What a run of saves managed to acknowledge before the disk stopped it.
fn scenario(world: &World, disk: &FaultDisk, saved: &mut Vec<Step>) -> Result<(), CheckpointError> {
    let mut root = world.open_as(Arc::new(disk.clone()), 2, world.attempt(), Some(2))?;
    root.resume_target()?;
    for step in [30, 40, 50] {
        save(&mut root, step)?;
        saved.push(step);
    }
    Ok(())
}

/// Every commit that is not retired verifies, the newest acknowledged one is what a resume takes, and a new attempt can
/// continue.
fn check_after_crash(world: &World, acknowledged: Step, situation: &str) {
    let view = world.view();
    let target = view.resume_target().unwrap_or_else(|error| panic!("{situation}: {error}"));
    let (step, fallbacks) = target.map_or((0, vec![]), |target| (target.step, target.fallbacks));
    assert!(
        step >= acknowledged,
        "{situation}: step {step} is older than {acknowledged}, which was acknowledged"
    );
    assert_eq!(fallbacks, vec![], "{situation}: something did not verify");
    for info in view
        .list()
        .iter()
        .filter(|info| matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded))
    {
        view.verify(info.number)
            .unwrap_or_else(|error| panic!("{situation}: commit {}: {error}", info.number));
    }
    let mut root = world.open(3).unwrap();
    root.resume_target().unwrap();
    save(&mut root, 60).unwrap();
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 60, "{situation}");
}

/// Proves that a kill, a torn write or a power cut at any single operation, over claiming, resuming, three saves and
/// retention, on an empty root and on one with checkpoints, never yields a commit that does not verify and never
/// loses one that was acknowledged.
#[test]
fn a_crash_at_any_operation_loses_no_commit() {
    for earlier in [&[][..], &[10, 20]] {
        for fault in Fault::DEADLY {
            let mut operations = 0;
            loop {
                let world = World::new();
                if !earlier.is_empty() {
                    let mut root = world.open(1).unwrap();
                    earlier.iter().for_each(|step| drop(save(&mut root, *step).unwrap()));
                }
                let disk = FaultDisk::new(fault, operations);
                let mut saved = earlier.to_vec();
                let outcome = scenario(&world, &disk, &mut saved);
                if !disk.struck() {
                    outcome.unwrap();
                    break;
                }
                disk.after_crash();
                let situation = format!("{fault:?} at operation {operations} after {earlier:?}");
                check_after_crash(&world, saved.last().copied().unwrap_or(0), &situation);
                operations += 1;
            }
            assert!(operations > 60, "only {operations} operations: the scenario does not do what it should");
        }
    }
}

/// Proves that a disk that is full for one operation, at any point, costs at most that one save, which succeeds when
/// it is tried again, and never keeps a run from resuming, also past a damaged checkpoint that cannot be marked.
#[test]
fn a_full_disk_costs_one_save() {
    for operation in 0.. {
        let world = World::new();
        let mut earlier = world.open(1).unwrap();
        save(&mut earlier, 10).unwrap();
        let damaged = save(&mut earlier, 15).unwrap();
        std::fs::write(world.path().join(damaged.object_prefix).join("weights.bin"), b"bad").unwrap();
        let disk = FaultDisk::new(Fault::Full, operation);
        let attempt = world.attempt();
        let open = || world.open_as(Arc::new(disk.clone()), 2, attempt, None);
        let mut root = open().or_else(|_| open()).unwrap();
        assert_eq!(root.resume_target().unwrap().unwrap().step, 10, "a full disk keeps nobody from resuming");
        let again = |result: Result<Commit, CheckpointError>, root: &mut CheckpointRoot| {
            result.or_else(|error| {
                assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
                assert!(world.view().resume_target().unwrap().unwrap().step >= 10);
                save(root, 20)
            })
        };
        let first = save(&mut root, 20);
        again(first, &mut root).unwrap();
        assert_eq!(world.view().resume_target().unwrap().unwrap().step, 20, "operation {operation}");
        if !disk.struck() {
            assert!(operation > 20, "only {operation} operations");
            return;
        }
    }
}

/// Proves that, whatever byte of the newest checkpoint changes (its files, its manifest, its commit), a resume takes the
/// one before and reports why; so does a missing or shortened file.
#[test]
fn any_flipped_byte_falls_back_one() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    save(&mut root, 10).unwrap();
    let newest = save(&mut root, 20).unwrap();
    let folder = world.path().join(&newest.object_prefix);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3);
    files.push(world.path().join(format!("log/{:08}.json", newest.number)));
    for path in files {
        let original = std::fs::read(&path).unwrap();
        for position in 0..original.len() {
            let mut bytes = original.clone();
            bytes[position] ^= 1 << (position % 8);
            std::fs::write(&path, &bytes).unwrap();
            assert_falls_back(&world, &format!("byte {position} of {}", path.display()));
        }
        std::fs::write(&path, &original[..original.len() - 1]).unwrap();
        assert_falls_back(&world, &format!("{} cut short", path.display()));
        std::fs::write(&path, &original).unwrap();
        if path.starts_with(&folder) {
            std::fs::remove_file(&path).unwrap();
            assert_falls_back(&world, &format!("{} removed", path.display()));
            std::fs::write(&path, &original).unwrap();
        }
    }
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 20, "all bytes are back");
}

fn assert_falls_back(world: &World, situation: &str) {
    let target = world.view().resume_target().unwrap().unwrap();
    assert_eq!((target.step, target.fallbacks.len()), (10, 1), "{situation}");
    assert!(!target.fallbacks[0].why.is_empty(), "{situation}");
}

/// Proves that a writer marks what does not verify, that the mark lasts, that the branch trained on from there leaves
/// it aside for good, and that nothing usable is an error with every reason in it.
#[test]
fn a_suspect_is_marked_and_left_aside() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let commits: Vec<_> = [10, 20].map(|step| save(&mut root, step).unwrap()).into();
    let weights = |commit: &Commit| world.path().join(&commit.object_prefix).join("weights.bin");
    let good = std::fs::read(weights(&commits[1])).unwrap();
    std::fs::write(weights(&commits[1]), b"bad").unwrap();
    let mut second = world.open(2).unwrap();
    let target = second.resume_target().unwrap().unwrap();
    assert_eq!(target.step, 10);
    assert_eq!(target.fallbacks[0].why, "`weights.bin` has 3 bytes and was committed with 128");
    assert_eq!(save(&mut second, 15).unwrap().parent, Some(commits[0].number));
    std::fs::write(weights(&commits[1]), good).unwrap();
    let states: Vec<_> = world.view().list().iter().map(|info| (info.step, info.state)).collect();
    assert_eq!(
        states,
        [(10, CheckpointState::Superseded), (20, CheckpointState::Suspect), (15, CheckpointState::Committed)]
    );
    for info in world.view().list() {
        std::fs::remove_dir_all(world.path().join(&info.object_prefix)).unwrap();
    }
    let error = world.open(3).unwrap().resume_target().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity);
    assert_eq!(
        error.to_string(),
        "no committed checkpoint verifies, so there is nothing to resume from (step 15: `manifest.json` is missing; \
         step 10: `manifest.json` is missing)"
    );
}

/// Proves that reading a resume target hands out every file it verified, marks what does not verify as a resume without
/// reading does, and continues from there; and that a commit can be read by its number.
#[test]
fn a_resume_may_keep_what_it_read() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let commits: Vec<_> = [10, 20].map(|step| save(&mut root, step).unwrap()).into();
    std::fs::write(world.path().join(&commits[1].object_prefix).join("weights.bin"), b"bad").unwrap();
    let mut second = world.open(2).unwrap();
    let (target, mut files) = second.resume_read().unwrap().unwrap();
    assert_eq!((target.step, target.fallbacks.len()), (10, 1));
    let names: Vec<_> = files.iter().map(|file| file.name().to_owned()).collect();
    assert_eq!(names, target.files().iter().map(|file| file.name.clone()).collect::<Vec<_>>());
    let weights = files.iter_mut().find(|file| file.name() == "weights.bin").unwrap();
    assert_eq!(weights.bytes(), state(10));
    weights.bytes_mut()[0] ^= 1;
    assert_ne!(weights.bytes(), state(10), "the memory is whoever's was given it");
    assert_eq!(save(&mut second, 15).unwrap().parent, Some(commits[0].number));
    assert_eq!(world.view().list()[1].state, CheckpointState::Suspect);
    assert_eq!(world.view().read(commits[0].number).unwrap().1.len(), names.len());
    assert_eq!(world.view().read(commits[1].number).err().unwrap().kind(), ErrorKind::Integrity);
    assert_eq!(world.view().resume_read().unwrap().unwrap().0.step, 15);
}

/// Proves exclusion while both write: after the claim of a higher epoch no commit of the lower one is made, its writer gets an
/// error that it must stop, and neither the same epoch nor a lower one can be claimed by another attempt.
#[test]
fn a_zombie_is_fenced() {
    let world = World::new();
    let mut zombie = world.open(1).unwrap();
    let replaced = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for step in 1.. {
                if let Err(error) = save(&mut zombie, step) {
                    return error;
                }
                assert!(!replaced.load(Ordering::SeqCst) || step < 10_000, "the zombie is never fenced");
            }
            unreachable!("steps do not end")
        });
        while world.view().list().len() < 3 {
            std::thread::yield_now();
        }
        let mut next = world.open(2).unwrap();
        replaced.store(true, Ordering::SeqCst);
        let resumed = next.resume_target().unwrap().unwrap();
        save(&mut next, resumed.step + 1_000).unwrap();
        writer.join().unwrap()
    });
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    let commits: Vec<_> =
        world.view().list().into_iter().filter(|info| info.manifest_sha256.is_some()).collect();
    let first_of_second = commits.iter().position(|info| info.epoch == 2).unwrap();
    assert!(
        commits[first_of_second..].iter().all(|info| info.epoch == 2),
        "a commit of epoch 1 stands behind the claim"
    );
    assert_eq!(commits[first_of_second].parent, Some(commits[first_of_second - 1].number));
    assert_eq!(world.open(2).err().unwrap().kind(), ErrorKind::Fenced);
    assert_eq!(world.open(1).err().unwrap().kind(), ErrorKind::Fenced);
}

/// Proves that writers of one attempt racing for numbers get exactly one commit per number and lose none.
#[test]
fn racing_writers_share_no_number() {
    const WRITERS: u64 = 4;
    const SAVES: u64 = 8;
    let world = World::new();
    let attempt = world.attempt();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let world = &world;
            scope.spawn(move || {
                let mut root = world.open_as(Arc::new(RealDisk), 1, attempt, None).unwrap();
                (1..=SAVES).for_each(|step| drop(save(&mut root, writer * 100 + step).unwrap()));
            });
        }
    });
    let list = world.view().list();
    let steps: std::collections::BTreeSet<_> = list.iter().map(|info| info.step).collect();
    let numbers: std::collections::BTreeSet<_> = list.iter().map(|info| info.number).collect();
    assert_eq!((steps.len(), numbers.len(), list.len()), (32, 32, (WRITERS * SAVES) as usize));
    list.iter().for_each(|info| drop(world.view().verify(info.number).unwrap()));
}

/// Proves that retention keeps the newest ones, deletes the files of the others, and deletes nothing while one of
/// those it would keep does not verify.
#[test]
fn retention_deletes_superseded_ones_only() {
    let world = World::new();
    let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), Some(2)).unwrap();
    for step in [1, 2, 3, 4] {
        save(&mut root, step).unwrap();
    }
    let kept = |world: &World| {
        let list = world.view().list();
        let on_disk = list.iter().filter(|info| world.path().join(&info.object_prefix).exists());
        on_disk.map(|info| info.step).collect::<Vec<_>>()
    };
    assert_eq!(kept(&world), [3, 4]);
    let fourth = world.view().list()[3].clone();
    let weights = world.path().join(&fourth.object_prefix).join("weights.bin");
    std::fs::write(&weights, b"bad").unwrap();
    save(&mut root, 5).unwrap();
    assert_eq!(kept(&world), [3, 4, 5], "with step 4 broken, step 3 is the second one that verifies");
}

/// Proves that a writer which spaces out keeps older ones whatever is set, from the third on, and that they go with the first collection.
#[test]
fn a_writer_that_spaces_out_keeps_older_ones() {
    let world = World::new();
    let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), Some(2)).unwrap();
    root.space_out(true);
    let kept = |world: &World| {
        let list = world.view().list();
        let on_disk = list.iter().filter(|info| world.path().join(&info.object_prefix).exists());
        on_disk.map(|info| info.step).collect::<Vec<_>>()
    };
    let expected: [(Step, &[Step]); 5] =
        [(3, &[1, 2, 3]), (4, &[1, 2, 3, 4]), (5, &[1, 2, 4, 5]), (6, &[1, 4, 5, 6]), (8, &[1, 4, 6, 7, 8])];
    for step in 1..=8 {
        save(&mut root, step).unwrap();
        let of_step = expected.iter().find(|(after, _)| *after == step);
        assert!(of_step.is_none_or(|(_, steps)| kept(&world) == *steps), "{step}: {:?}", kept(&world));
    }
    let mut house = Housekeeper::open(&world.path(), world.clock.clone(), world.ids.clone()).unwrap();
    house.collect(&Retention::default(), f64::INFINITY, false).unwrap();
    assert_eq!(kept(&world), [7, 8]);
}

/// Proves that the log says of each checkpoint of an attempt whether its weights are still those of the first, by their
/// bytes or by what the writer finds in them, and does so of those that retention deleted; the first checkpoint of an
/// attempt is compared with none.
#[test]
fn the_log_says_whether_weights_ever_moved() {
    let same_tensors: SameTensors = |one, other, _| {
        let numbers =
            |(folder, file): (&Path, &ManifestFile)| std::fs::read(folder.join(&file.name)).unwrap();
        numbers(one)[1..] == numbers(other)[1..]
    };
    let known = |saves: &[&str]| {
        let world = World::new();
        let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), Some(2)).unwrap();
        root.compare_tensors(same_tensors);
        for (step, weights) in (1..).zip(saves) {
            root.save(step, &[], |writer| {
                writer.file("w", Kind::Weights, weights.as_bytes())?;
                writer.file("o", Kind::Optimizer, &state(step))
            })
            .unwrap();
        }
        let mut retry = world.open(2).unwrap();
        retry.resume_target().unwrap();
        save(&mut retry, 100).unwrap();
        let same: Vec<bool> = world.view().list().iter().map(|info| info.same_weights).collect();
        assert!(!same[saves.len()], "a retry begins with what it continues from");
        same[..saves.len()].to_vec()
    };
    assert_eq!(known(&["1w", "1w", "2w", "3w"]), [false, true, true, true]);
    assert_eq!(known(&["1w", "2w", "3x", "3x", "3x"]), [false, true, false, false, false]);
}

/// Proves that a failing or careless closure commits nothing and that its mistake is named.
#[test]
fn a_failing_closure_commits_nothing() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let mut refused = |fill: &dyn Fn(&mut crate::CheckpointWriter<'_>) -> Result<(), CheckpointError>| {
        root.save(7, &[], fill).unwrap_err().to_string()
    };
    let failed = refused(&|_| Err(CheckpointError::state("tensor 3 is on a lost device")));
    assert_eq!(failed, "the state of step 7 could not be written: tensor 3 is on a lost device");
    assert_eq!(refused(&|_| Ok(())), "the checkpoint of step 7 was given no file; write at least one");
    for name in ["../escape", "a/b", "", ".hidden", "manifest.json"] {
        refused(&|writer| writer.file(name, Kind::Weights, b"x"));
    }
    let twice = refused(&|writer| {
        writer.file("w", Kind::Weights, b"x")?;
        writer.file("w", Kind::Weights, b"y")
    });
    assert_eq!(twice, "the manifest breaks a rule: `w` was written already");
    assert!(world.view().resume_target().unwrap().is_none());
    assert!(
        root.list()
            .unwrap()
            .iter()
            .all(|info| info.state == CheckpointState::Abandoned && info.why.is_some())
    );
    assert!(
        !Path::new(&world.path()).join("step-00000007").read_dir().unwrap().any(|_| true),
        "room is given back"
    );
}

/// Proves that a copy in another run's root is resumed from by a later epoch there with the same bytes, also when the original is
/// gone, and that the original's log is not written.
#[test]
fn a_copy_is_a_checkpoint_of_the_other_run() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let saved = root
        .save(7, &[("loss", 0.5)], |writer| {
            writer.file("w", Kind::Weights, b"weights")?;
            writer.file("rng", Kind::Rng, b"rng")
        })
        .unwrap();
    let source = world.view().load(saved.number).unwrap();
    let before = world.view().list();
    let other = World::new();
    other.open(0).unwrap().save_copy(&source).unwrap();
    assert_eq!(world.view().list(), before);
    std::fs::remove_dir_all(world.path()).unwrap();
    let resumed = other.open(1).unwrap().resume_target().unwrap().unwrap();
    assert_eq!((resumed.step, resumed.read("w").unwrap()), (7, b"weights".to_vec()));
    assert_eq!(resumed.manifest.state_digest, saved.state_digest);
    assert_eq!((resumed.manifest.run_id, resumed.manifest.metrics["loss"]), (other.run_id, 0.5));
}

/// Proves that a root of one run refuses another run by name.
#[test]
fn a_root_belongs_to_one_run() {
    let mut world = World::new();
    world.open(1).unwrap();
    world.run_id = RunId::new(world.ids.as_ref());
    assert!(matches!(world.open(2), Err(CheckpointError::WrongRun { .. })));
}
