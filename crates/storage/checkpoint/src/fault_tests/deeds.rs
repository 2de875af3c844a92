//! What is done to a root: the rows of the crash matrix, and the parts of actors that run together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use trackway_core::{Step, UnsafeEvidence};
use trackway_formats::checkpoint_manifest::{Kind, object_prefix};
use trackway_store::testing::FaultDisk;
use trackway_store::{Claim, Disk as _, Writer};

use super::scene::Scene;
use crate::bulk::{BackgroundSaver, DraftSave, Dtype, SaveEnd, TensorRef, TensorSpec};
use crate::error::CheckpointError;
use crate::history::CheckpointState;
use crate::history::entry::{Adopt, Body, CommitBody};
use crate::housekeeping::keeper::append;
use crate::reading::verify::verify;
use crate::retention::Retention;
use crate::tests::state;
use crate::{CheckpointRoot, CheckpointView};

/// What one process does.
pub(super) type Act = Box<dyn FnOnce() -> Result<(), CheckpointError> + Send>;

/// Something to do to a root.
pub(super) struct Deed {
    /// A row of the matrix.
    pub name: &'static str,
    /// What happened before, on a disk that works.
    pub before: fn(&Arc<Scene>),
    /// Opens what is needed in a process that works so far, and returns what it does then.
    pub act: fn(&Arc<Scene>, &FaultDisk) -> Act,
    /// Whether a reader sees that it was done.
    pub holds: fn(&CheckpointView) -> bool,
}

pub(super) const DEEDS: [Deed; 17] = [
    Deed {
        name: "open a new root and claim",
        before: nothing,
        act: claim_first,
        holds: |view| view.epoch() == Some(1),
    },
    Deed {
        name: "claim the next epoch",
        before: two,
        act: claim_next,
        holds: |view| view.epoch() == Some(2),
    },
    Deed { name: "resume", before: two, act: resume, holds: |_| false },
    Deed {
        name: "resume past a damaged one",
        before: newest_damaged,
        act: resume,
        holds: |view| has(view, 20, CheckpointState::Suspect),
    },
    Deed { name: "save, the first", before: nothing, act: save_thirty, holds: thirty_is_committed },
    Deed { name: "save", before: two, act: save_thirty, holds: thirty_is_committed },
    Deed {
        name: "save that shares a file",
        before: two_frozen,
        act: save_sharing,
        holds: thirty_is_committed,
    },
    Deed {
        name: "save of a draft, in the background",
        before: two,
        act: save_draft,
        holds: thirty_is_committed,
    },
    Deed {
        name: "save that is given up",
        before: two,
        act: give_up,
        holds: |view| has(view, 30, CheckpointState::Abandoned),
    },
    Deed {
        name: "save and retire by retention",
        before: two,
        act: save_and_retire,
        holds: |view| thirty_is_committed(view) && has(view, 10, CheckpointState::Retired),
    },
    Deed {
        name: "collect",
        before: four,
        act: collect,
        holds: |view| has(view, 10, CheckpointState::Retired) && has(view, 20, CheckpointState::Retired),
    },
    Deed {
        name: "collect what another one left",
        before: half_collected,
        act: collect,
        holds: |view| has(view, 20, CheckpointState::Retired),
    },
    Deed { name: "pin", before: four, act: pin, holds: |view| !view.pins().is_empty() },
    Deed { name: "unpin", before: four_pinned, act: unpin, holds: |view| view.pins().is_empty() },
    Deed {
        name: "call suspect",
        before: four,
        act: suspect,
        holds: |view| has(view, 40, CheckpointState::Suspect),
    },
    Deed {
        name: "mark unsafe",
        before: four,
        act: mark_unsafe,
        holds: |view| has(view, 40, CheckpointState::Unsafe),
    },
    Deed { name: "adopt what a remote says", before: four, act: adopt, holds: adopted },
];

fn has(view: &CheckpointView, step: Step, state: CheckpointState) -> bool {
    view.list().iter().any(|info| (info.step, info.state) == (step, state))
}

fn thirty_is_committed(view: &CheckpointView) -> bool {
    has(view, 30, CheckpointState::Committed)
}

fn adopted(view: &CheckpointView) -> bool {
    view.history().adopting().is_none() && view.list().iter().any(|info| info.number_there.is_some())
}

// What happened before.

fn nothing(_: &Arc<Scene>) {}

fn saved(scene: &Scene, steps: &[Step]) {
    let mut root = scene.resumed(&scene.disk, 1, None);
    for step in steps {
        scene.save(&mut root, *step).unwrap();
    }
}

fn two(scene: &Arc<Scene>) {
    saved(scene, &[10, 20]);
}

pub(super) fn four(scene: &Arc<Scene>) {
    saved(scene, &[10, 20, 30, 40]);
}

fn two_frozen(scene: &Arc<Scene>) {
    let mut root = scene.resumed(&scene.disk, 1, None);
    for step in [10, 20] {
        save_frozen(scene, &mut root, step).unwrap();
    }
}

fn newest_damaged(scene: &Arc<Scene>) {
    two(scene);
    scene.damage(number_of(scene, 20));
}

fn four_pinned(scene: &Arc<Scene>) {
    four(scene);
    let number = number_of(scene, 10);
    scene.house(&scene.disk).unwrap().pin("evaluation", number, "it is read", None).unwrap();
}

/// A process recorded what is deleted, and died before it deleted it.
pub(super) fn half_collected(scene: &Arc<Scene>) {
    four(scene);
    let mut house = scene.house(&scene.disk.another_process()).unwrap();
    let commits = vec![number_of(scene, 10)];
    append(house.view_mut(), Writer::Housekeeper, |_| {
        Some(Body::Retire { commits: commits.clone(), swept: vec![] })
    })
    .unwrap();
}

pub(super) fn number_of(scene: &Scene, step: Step) -> u64 {
    scene.reader().list().iter().find(|info| info.step == step).unwrap().number
}

// What is done then.

fn claim_first(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, disk) = (Arc::clone(scene), disk.clone());
    Box::new(move || scene.open(&disk, 1).map(drop))
}

fn claim_next(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, disk) = (Arc::clone(scene), disk.clone());
    Box::new(move || scene.open(&disk, 2).map(drop))
}

fn resume(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let mut root = scene.open(disk, 2).unwrap();
    let newest = if scene.promises().damaged.is_empty() { 20 } else { 10 };
    Box::new(move || {
        let target = root.resume_target()?.expect("something was committed");
        let unreadable = target.fallbacks.iter().any(|fallback| fallback.why.contains("cannot be read"));
        assert!(target.step == newest || unreadable, "{target:?}");
        Ok(())
    })
}

pub(super) fn save_sixty(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, mut root) = (Arc::clone(scene), scene.resumed(disk, 1, None));
    Box::new(move || scene.save(&mut root, 60).map(drop))
}

fn save_thirty(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, mut root) = (Arc::clone(scene), scene.resumed(disk, 1, None));
    Box::new(move || scene.save(&mut root, 30).map(drop))
}

fn save_frozen(scene: &Scene, root: &mut CheckpointRoot, step: Step) -> Result<(), CheckpointError> {
    let commit = root.save(step, &[], |writer| {
        writer.file("weights.bin", Kind::Weights, b"frozen")?;
        writer.file("head.bin", Kind::Weights, &state(step))
    })?;
    scene.promise(&commit);
    assert!(step == 10 || commit.written_bytes < commit.size_bytes || scene.disk.struck(), "it is shared");
    Ok(())
}

fn save_sharing(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, mut root) = (Arc::clone(scene), scene.resumed(disk, 1, None));
    Box::new(move || save_frozen(&scene, &mut root, 30))
}

/// A tensor that is large enough to be written past the page cache, by several threads, and cut at its end.
fn save_draft(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, mut root) = (Arc::clone(scene), scene.resumed(disk, 1, None));
    Box::new(move || {
        let commit = move |save: &DraftSave| root.save_draft(save, || Ok(()));
        let saver = BackgroundSaver::new(scene.world.clock.clone(), Box::new(commit))?;
        let mut save = saver.begin(30)?.expect("no other save is running");
        let bytes = vec![7; (1 << 20) + 4];
        let spec = TensorSpec::new("w", Dtype::F32, [bytes.len() as u64 / 4]);
        save.tensors("model", Kind::Weights, &[TensorRef { spec, bytes: &bytes }], &BTreeMap::new())?;
        save.bytes("cursor.json", Kind::DataCursor, b"{}")?;
        save.submit(vec![]);
        for outcome in saver.close(Duration::from_secs(60)) {
            match outcome.end {
                SaveEnd::Committed(saved) => scene.promise(&saved.commit),
                SaveEnd::Failed(error) => return Err(error),
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    })
}

fn give_up(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let mut root = scene.resumed(disk, 1, None);
    Box::new(move || {
        let saved = root.save(30, &[], |writer| {
            writer.file("weights.bin", Kind::Weights, b"half")?;
            Err(CheckpointError::state("a tensor is on a lost device"))
        });
        match saved {
            Err(CheckpointError::State { .. }) => Ok(()),
            other => other.map(drop),
        }
    })
}

fn save_and_retire(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, mut root) = (Arc::clone(scene), scene.resumed(disk, 1, Some(Retention::default())));
    Box::new(move || scene.save(&mut root, 30).map(drop))
}

pub(super) fn collect(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let mut house = scene.house(disk).unwrap();
    Box::new(move || house.collect(&Retention::default(), 0.0, false).map(drop))
}

pub(super) fn pin(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let number = number_of(scene, 10);
    let (scene, mut house) = (Arc::clone(scene), scene.house(disk).unwrap());
    Box::new(move || {
        house.pin("evaluation", number, "it is read", None)?;
        scene.promises().pinned.insert(number);
        Ok(())
    })
}

fn unpin(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let mut house = scene.house(disk).unwrap();
    Box::new(move || house.unpin("evaluation"))
}

pub(super) fn suspect(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let number = number_of(scene, 40);
    let (scene, mut house) = (Arc::clone(scene), scene.house(disk).unwrap());
    Box::new(move || {
        scene.promises().suspected.insert(number);
        house.suspect(number, "its loss is not a number")
    })
}

pub(super) fn mark_unsafe(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let number = number_of(scene, 40);
    let (scene, mut house) = (Arc::clone(scene), scene.house(disk).unwrap());
    Box::new(move || {
        // As for a suspect, a resume may take an older one from now on.
        scene.promises().suspected.insert(number);
        let evidence = UnsafeEvidence { why: "its loss is not a number".into(), ..UnsafeEvidence::default() };
        house.mark_unsafe(number, &evidence).map(drop)
    })
}

/// Another attempt: claims, resumes, saves.
pub(super) fn next_attempt(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, disk) = (Arc::clone(scene), disk.clone());
    Box::new(move || {
        let mut root = scene.open(&disk, 2)?;
        root.resume_target()?;
        scene.save(&mut root, 70).map(drop)
    })
}

pub(super) fn adopt(scene: &Arc<Scene>, disk: &FaultDisk) -> Act {
    let (scene, disk) = (Arc::clone(scene), disk.clone());
    Box::new(move || adopt_now(&scene, &disk, 2))
}

/// What a launch does with a remote whose log says that training continues from step 20, or else from another one that
/// this disk has, retired or not.
pub(super) fn adopt_now(scene: &Scene, disk: &FaultDisk, epoch: u64) -> Result<(), CheckpointError> {
    adopt_into(&mut scene.open(disk, epoch)?, scene, disk, epoch)
}

/// The same for an attempt that has claimed.
pub(super) fn adopt_into(
    root: &mut CheckpointRoot,
    scene: &Scene,
    disk: &FaultDisk,
    epoch: u64,
) -> Result<(), CheckpointError> {
    scene.promises().adoption = true;
    let history = root.view().history();
    let mut known: Vec<_> = history.commits().map(|(_, record)| record.clone()).collect();
    known.sort_by_key(|record| record.body.step.abs_diff(20));
    say(root, scene, epoch, None, None, known.is_empty())?;
    let mut result = Ok(());
    for record in known {
        let ulid = trackway_store::new_ulid(scene.world.ids.as_ref());
        let folder = object_prefix(record.body.step, epoch, &ulid);
        result = copy_folder(scene, disk, record.folder(), &folder).and_then(|()| {
            let whole = verify(disk, &scene.world.path().join(&folder), &record.body);
            whole.map(drop).map_err(|defect| CheckpointError::Damaged { step: record.body.step, defect })
        });
        if result.is_ok() {
            let body = CommitBody { parent: None, ..record.body };
            return say(root, scene, epoch, Some(body), Some(folder), true);
        }
    }
    result
}

fn say(
    root: &mut CheckpointRoot,
    scene: &Scene,
    epoch: u64,
    commit: Option<CommitBody>,
    folder: Option<String>,
    complete: bool,
) -> Result<(), CheckpointError> {
    let attempt_id = scene.attempt(epoch);
    let number_there = commit.as_ref().map(|_| 7);
    let run_id = scene.world.run_id();
    let adopt = Body::Adopt(Adopt { epoch, run_id, attempt_id, commit, folder, number_there, complete });
    let claim = Claim { epoch, holder: attempt_id.to_string() };
    append(root.view_mut(), Writer::Trainer(&claim), |_| Some(adopt.clone())).map(drop)
}

/// Links all files of a folder into a new one, durably.
fn copy_folder(scene: &Scene, disk: &FaultDisk, from: &str, to: &str) -> Result<(), CheckpointError> {
    let (from, to) = (scene.world.path().join(from), scene.world.path().join(to));
    let step_folder = to.parent().expect("a prefix has two parts").to_owned();
    let copy = || -> std::io::Result<()> {
        disk.make_folder(&step_folder)?;
        disk.make_folder(&to)?;
        let mut names: Vec<_> = std::fs::read_dir(&from)?.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            disk.link(&from.join(&name), &to.join(&name))?;
        }
        for folder in [&to, &step_folder, &scene.world.path()] {
            disk.sync_folder(folder)?;
        }
        Ok(())
    };
    copy().map_err(CheckpointError::storage("copy", &from))
}
