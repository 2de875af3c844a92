use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use trackway_core::{AttemptId, Clock as _, Step};
use trackway_store::testing::FaultDisk;
use trackway_store::{Disk, RealDisk};

use crate::history::entry::ClaimBody;
use crate::ranks::{RankedRoot, RankedSave};
use crate::retention::Retention;
use crate::settings::Settings;
use crate::tests::World;
use crate::{CheckpointError, CheckpointState, Commit, ErrorKind, Housekeeper, Kind, LoadedCheckpoint};
use crate::{RankError, RankGroup};

/// Long enough for every machine where all ranks are there.
const PATIENT_SECONDS: f64 = 60.0;
/// For tests in which a rank is missing.
const HASTY_SECONDS: f64 = 0.2;

impl World {
    pub(super) fn rank(
        &self,
        disk: Arc<dyn Disk>,
        (epoch, attempt_id): (u64, AttemptId),
        group: RankGroup,
    ) -> Result<RankedRoot, CheckpointError> {
        let claim = ClaimBody { epoch, run_id: self.run_id(), attempt_id };
        self.rank_with(disk, claim, group, Settings::default())
    }

    fn rank_with(
        &self,
        disk: Arc<dyn Disk>,
        claim: ClaimBody,
        group: RankGroup,
        settings: Settings,
    ) -> Result<RankedRoot, CheckpointError> {
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        RankedRoot::open_on(disk, &self.path(), claim, settings, group, clock, ids)
    }

    /// Runs something as every rank of a new attempt, each in its thread.
    fn ranks<T: Send>(
        &self,
        epoch: u64,
        world_size: u32,
        run: impl Fn(&mut RankedRoot) -> T + Sync,
    ) -> Vec<T> {
        self.ranks_waiting(PATIENT_SECONDS, epoch, world_size, run)
    }

    fn ranks_waiting<T: Send>(
        &self,
        wait_seconds: f64,
        epoch: u64,
        world_size: u32,
        run: impl Fn(&mut RankedRoot) -> T + Sync,
    ) -> Vec<T> {
        let attempt = self.attempt();
        each_rank(world_size, |rank| {
            let group = RankGroup::new(rank, world_size).unwrap().waiting(wait_seconds);
            run(&mut self.rank(sound(), (epoch, attempt), group).unwrap())
        })
    }

    pub(super) fn newest_file(&self, name: &str) -> PathBuf {
        let list = self.view().list();
        let newest = list.iter().rfind(|info| info.manifest_sha256.is_some()).unwrap();
        self.path().join(&newest.object_prefix).join(name)
    }
}

pub(super) fn sound() -> Arc<dyn Disk> {
    Arc::new(FaultDisk::sound())
}

pub(super) fn each_rank<T: Send>(world_size: u32, run: impl Fn(u32) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..world_size).map(|rank| scope.spawn(move || run(rank))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// What a rank's shard holds at a step.
pub(super) fn shard(rank: u32, step: Step) -> Vec<u8> {
    [u64::from(rank), step].map(u64::to_le_bytes).concat().repeat(8)
}

/// Saves values derived from rank and step, and something that never changes.
pub(super) fn save(root: &mut RankedRoot, step: Step) -> Result<Commit, CheckpointError> {
    save_at(root, step, format!("sample {step}").as_bytes())
}

fn save_at(root: &mut RankedRoot, step: Step, global_cursor: &[u8]) -> Result<Commit, CheckpointError> {
    let group = root.group();
    let metrics = [("loss", 1.0 / step as f64)];
    root.save(&RankedSave { step, metrics: &metrics, global_cursor }, |writer| {
        if group.coordinates() {
            writer.file("cursor.json", Kind::DataCursor, global_cursor)?;
        }
        writer.file(&group.file_name("frozen.bin"), Kind::Weights, &shard(group.rank(), 0))?;
        writer.file(&group.file_name("model.bin"), Kind::Weights, &shard(group.rank(), step))
    })
}

pub(super) fn resume_step(root: &mut RankedRoot) -> Step {
    resume(root).unwrap().step
}

fn resume(root: &mut RankedRoot) -> Option<LoadedCheckpoint> {
    root.resume_target().unwrap()
}

fn texts<T: std::fmt::Debug>(results: Vec<Result<T, CheckpointError>>) -> Vec<String> {
    results.into_iter().map(|result| result.unwrap_err().to_string()).collect()
}

/// Proves the plain way, on the real disk: every rank gets the same one commit per save, which lists the files of each
/// rank; unchanged shards are shared rank by rank; every rank finds its shard again; and votes go with their
/// checkpoint.
#[test]
fn ranks_save_and_resume_together() {
    let world = World::new();
    let attempt_id = world.attempt();
    let open = |rank, epoch, attempt_id| {
        let claim = ClaimBody { epoch, run_id: world.run_id(), attempt_id };
        let keep = Some(Retention::default());
        let group = RankGroup::new(rank, 4).unwrap().waiting(PATIENT_SECONDS);
        world.rank_with(Arc::new(RealDisk), claim, group, Settings { keep, ..Settings::default() }).unwrap()
    };
    let commits = each_rank(4, |rank| {
        let mut root = open(rank, 1, attempt_id);
        assert!(resume(&mut root).is_none());
        [10, 20, 30].map(|step| save(&mut root, step).unwrap())
    });
    for step in 0..3 {
        let of_step: Vec<_> = commits
            .iter()
            .map(|commits| Commit { seconds: 0.0, written_bytes: 0, ..commits[step].clone() })
            .collect();
        assert!(of_step.iter().all(|commit| *commit == of_step[0]), "{of_step:?}");
    }
    let newest = world.view().load(commits[0][2].number).unwrap();
    assert_eq!((newest.manifest.world_size, newest.manifest.metrics["loss"]), (4, 1.0 / 30.0));
    let owners: Vec<_> = newest.files().iter().map(|file| (file.name.as_str(), file.rank)).collect();
    assert_eq!(
        owners[..3],
        [("cursor.json", None), ("rank-0000-frozen.bin", Some(0)), ("rank-0000-model.bin", Some(0))]
    );
    assert_eq!(owners.len(), 9);
    let first_prefix = &commits[0][0].object_prefix;
    for file in newest.files() {
        let expected = file.name.ends_with("frozen.bin").then_some(first_prefix);
        assert_eq!(file.stored_in.as_ref(), expected, "{}", file.name);
    }
    assert!(newest.folder.join("votes/rank-0003.json").exists());
    let diagnosis = crate::doctor::diagnose(&world.path(), world.clock.now(), &|_, _| ()).unwrap();
    assert_eq!(diagnosis.findings, [], "votes are where they belong");
    assert!(!world.path().join(first_prefix).exists(), "retention took the first one, votes and all");

    let attempt_id = world.attempt();
    each_rank(4, |rank| {
        let mut root = open(rank, 2, attempt_id);
        let loaded = resume(&mut root).unwrap();
        assert_eq!((loaded.step, loaded.lost_steps), (30, 0));
        assert_eq!(loaded.read(&root.group().file_name("model.bin")).unwrap(), shard(rank, 30));
        let commit = save(&mut root, 40).unwrap();
        assert_eq!((commit.parent, commit.epoch), (Some(commits[0][2].number), 2));
    });
    assert!(
        world
            .view()
            .list()
            .iter()
            .filter(|info| info.epoch == 1)
            .all(|info| info.state != CheckpointState::Writing)
    );
}

/// Proves that any number of ranks continues from what any other number saved, one process included, and that every
/// file is verified then too.
#[test]
fn another_number_of_ranks_resumes() {
    let world = World::new();
    crate::tests::save(&mut world.open(1).unwrap(), 10).unwrap();
    for (epoch, world_size, from, to) in [(2, 3, 10, 20), (3, 5, 20, 30), (4, 1, 30, 40), (5, 2, 40, 50)] {
        world.ranks(epoch, world_size, |root| {
            assert_eq!(resume(root).unwrap().step, from);
            save(root, to).unwrap();
        });
    }
    for name in ["rank-0000-model.bin", "rank-0001-model.bin", "cursor.json"] {
        let path = world.newest_file(name);
        let original = std::fs::read(&path).unwrap();
        std::fs::write(&path, vec![7; original.len()]).unwrap();
        for world_size in [1, 3, 4] {
            let epoch = world.view().epoch().unwrap() + 1;
            let steps = world.ranks(epoch, world_size, |root| resume(root).unwrap().step);
            assert!(steps.iter().all(|step| *step == 40), "{name} by {world_size}: {steps:?}");
        }
        std::fs::write(&path, original).unwrap();
        assert!(world.view().resume_target().unwrap().unwrap().step == 40, "it is marked suspect");
        let epoch = world.view().epoch().unwrap() + 1;
        world.ranks(epoch, 2, |root| {
            resume(root).unwrap();
            save(root, 50).unwrap();
        });
    }
}

/// Proves that ranks at different positions of the data commit nothing, that the error on every rank names those that
/// differ, and that the next save is not affected.
#[test]
fn ranks_that_disagree_commit_nothing() {
    let world = World::new();
    let results = world.ranks(1, 4, |root| {
        let strays = [1, 3].contains(&root.group().rank());
        let cursor: &[u8] = if strays { b"sample 9" } else { b"sample 10" };
        let first = save_at(root, 10, cursor);
        save(root, 20).unwrap();
        first
    });
    let why = "ranks 1 and 3 and rank 0 disagree about the position in the data";
    for text in texts(results) {
        assert_eq!(text, format!("the checkpoint of step 10 was given up: {why}"));
    }
    let list = world.view().list();
    let states: Vec<_> = list.iter().map(|info| (info.step, info.state)).collect();
    assert_eq!(states, [(10, CheckpointState::Abandoned), (20, CheckpointState::Committed)]);
    assert_eq!(list[0].why.as_deref(), Some(why));
    assert!(!world.path().join(&list[0].object_prefix).exists(), "room is given back");
}

/// Proves that all ranks learn at once of a rank whose state cannot be written, whichever rank it is, and that a file
/// with another rank's name is such a failure.
#[test]
fn one_failing_rank_is_reported_to_all() {
    for failing in [0, 2] {
        let world = World::new();
        let results = world.ranks(1, 3, |root| {
            let rank = root.group().rank();
            let first = root.save(&RankedSave { step: 10, metrics: &[], global_cursor: b"" }, |writer| {
                match rank == failing {
                    true => Err(CheckpointError::state("its device is lost")),
                    false => writer.file(&format!("rank-{rank:04}-w"), Kind::Weights, b"w"),
                }
            });
            save(root, 20).unwrap();
            first
        });
        for (rank, text) in texts(results).into_iter().enumerate() {
            let own = "the state of step 10 could not be written: its device is lost";
            let others = format!("the checkpoint of step 10 was given up: rank {failing} failed: {own}");
            assert_eq!(text, if rank as u32 == failing { own } else { &others });
        }
    }
    let world = World::new();
    let results = world.ranks(1, 2, |root| {
        root.save(&RankedSave { step: 10, metrics: &[], global_cursor: b"" }, |writer| {
            writer.file("model.bin", Kind::Weights, b"w")
        })
    });
    let why = "rank 1 cannot write a file named `model.bin`: its files begin with `rank-0001-`; rank 0 may also write \
               files of any other name but `votes`";
    let reported = texts(results);
    assert_eq!(
        reported,
        [format!("the checkpoint of step 10 was given up: rank 1 failed: {why}"), why.to_owned()]
    );
    assert!(world.view().resume_target().unwrap().is_none());
}

/// Proves that a checkpoint without any files is refused, and that a rank may write nothing when another does.
#[test]
fn a_rank_may_have_nothing_to_write() {
    let world = World::new();
    let results = world.ranks(1, 2, |root| {
        let rank = root.group().rank();
        let save = |step| RankedSave { step, metrics: &[], global_cursor: b"" };
        let nothing = root.save(&save(10), |_| Ok(()));
        let one = root.save(&save(20), |writer| match rank {
            0 => writer.file("model.bin", Kind::Weights, b"w"),
            _ => Ok(()),
        });
        (nothing.unwrap_err().to_string(), one.unwrap().step)
    });
    assert_eq!(results[0], ("the checkpoint of step 10 was given no file; write at least one".into(), 20));
    assert_eq!(results[1].1, 20);
}

/// Proves that damage in one rank's shard, whichever and however, takes all ranks back together; that the mark names
/// the rank; and that a rank which resumes again, alone and later, gets the same answer.
#[test]
fn one_bad_shard_takes_all_ranks_back() {
    type Damage = fn(&std::path::Path);
    let damages: [(&str, Damage); 3] = [
        ("flipped", |path| {
            let mut bytes = std::fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
            std::fs::write(path, bytes).unwrap();
        }),
        ("cut", |path| std::fs::write(path, b"short").unwrap()),
        ("removed", |path| std::fs::remove_file(path).unwrap()),
    ];
    for (name, files) in
        [("rank-0002-model.bin", "rank 2"), ("cursor.json", "rank 0"), ("manifest.json", "rank 3")]
    {
        for (damage, apply) in damages {
            let world = World::new();
            world.ranks(1, 4, |root| drop([10, 20].map(|step| save(root, step).unwrap())));
            apply(&world.newest_file(name));
            let attempt = world.attempt();
            let again = |rank| {
                let group = RankGroup::new(rank, 4).unwrap().waiting(PATIENT_SECONDS);
                let mut root = world.rank(sound(), (2, attempt), group).unwrap();
                resume(&mut root).unwrap()
            };
            for loaded in each_rank(4, again) {
                assert_eq!((loaded.step, loaded.lost_steps), (10, 10), "{name} {damage}");
                assert!(
                    loaded.fallbacks[0].why.contains(files),
                    "{name} {damage}: {}",
                    loaded.fallbacks[0].why
                );
            }
            let marked = &world.view().list()[1];
            assert_eq!(marked.state, CheckpointState::Suspect, "{name} {damage}");
            assert!(marked.why.as_deref().unwrap().contains(files), "{name} {damage}: {marked:?}");
            assert_eq!(again(3).step, 10, "alone, later");
            assert_eq!(again(0).step, 10, "alone, later");
        }
    }
}

/// Proves that a mark of suspicion that any process adds while the ranks resume does not make them take different
/// commits: their order was settled when the round began.
#[test]
fn a_later_suspect_does_not_part_the_ranks() {
    let world = World::new();
    world.ranks(1, 3, |root| drop([10, 20].map(|step| save(root, step).unwrap())));
    let attempt = world.attempt();
    let group = |rank| RankGroup::new(rank, 3).unwrap().waiting(PATIENT_SECONDS);
    let open = |rank| world.rank(sound(), (2, attempt), group(rank)).unwrap();
    let (mut first, mut second) = (open(0), open(1));
    let newest = world.view().list().last().unwrap().number;
    let mut house = Housekeeper::open(&world.path(), world.clock.clone(), world.ids.clone()).unwrap();
    house.suspect(newest, "it crashed twice while it was loaded").unwrap();
    thread::scope(|scope| {
        let others = [scope.spawn(|| resume(&mut first)), scope.spawn(|| resume(&mut second))];
        let mut third = open(2);
        assert_eq!(resume(&mut third).unwrap().step, 20);
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap().unwrap().step, 20));
    });
    assert_eq!(world.ranks(3, 2, |root| resume(root).unwrap().step), [10, 10], "the next round knows of it");
}

/// Proves that without all votes no rank resumes and nothing is committed, that the error names the ranks, and that
/// ranks whose rank 0 never starts get such an error.
#[test]
fn missing_ranks_are_named() {
    let world = World::new();
    world.ranks(1, 2, |root| drop(save(root, 10).unwrap()));
    let attempt = world.attempt();
    let there = [0, 2];
    let results = each_rank(2, |index| {
        let group = RankGroup::new(there[index as usize], 4).unwrap().waiting(PATIENT_SECONDS);
        let mut root = world.rank(sound(), (2, attempt), group).unwrap();
        root.group = group.waiting(HASTY_SECONDS);
        let resumed = root.resume_target();
        (resumed.map(drop), save(&mut root, 20).map(drop))
    });
    let (resumes, saves): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    assert!(resumes.iter().all(|error| error.as_ref().unwrap_err().kind() == ErrorKind::Retry));
    for text in texts(resumes) {
        assert_eq!(
            text,
            "ranks 1 and 3 did not report whether the checkpoint of step 10 verifies within 0.2 s"
        );
    }
    assert!(texts(saves)[0].ends_with("was given up: ranks 1 and 3 did not vote within 0.2 s"));
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 10);

    let alone = RankGroup::new(1, 2).unwrap().waiting(HASTY_SECONDS);
    let error = world.rank(sound(), (3, world.attempt()), alone).err().unwrap();
    assert_eq!(error.to_string(), "rank 0 did not begin a round of this attempt within 0.2 s");
    assert_eq!(world.view().epoch(), Some(2), "only rank 0 claims");
}

/// Proves exclusion for groups while both write: after the claim of a newer group the old one commits nothing, every
/// rank of the old one is stopped, and the new one resumes and saves undisturbed.
#[test]
fn a_zombie_group_is_fenced() {
    let world = World::new();
    let old = world.attempt();
    let (zombies, resumed) = thread::scope(|scope| {
        let zombies = scope.spawn(|| {
            each_rank(3, |rank| {
                let group = RankGroup::new(rank, 3).unwrap().waiting(PATIENT_SECONDS);
                let mut root = world.rank(sound(), (1, old), group).unwrap();
                resume(&mut root);
                (1..).find_map(|step| save(&mut root, step).err()).unwrap()
            })
        });
        while world.view().list().len() < 3 {
            thread::yield_now();
        }
        let resumed = world.ranks(2, 2, |root| {
            let resumed = resume(root).unwrap().step;
            (1..=3).for_each(|step| drop(save(root, resumed + step * 1_000).unwrap()));
            resumed
        });
        (zombies.join().unwrap(), resumed)
    });
    assert!(zombies.iter().all(|error| error.kind() == ErrorKind::Fenced), "{zombies:?}");
    assert_eq!(resumed[0], resumed[1]);
    let list = world.view().list();
    let epochs: Vec<_> =
        list.iter().filter(|info| info.manifest_sha256.is_some()).map(|info| info.epoch).collect();
    assert!(
        epochs.is_sorted() && epochs.ends_with(&[2, 2, 2]) && !epochs.ends_with(&[2, 2, 2, 2]),
        "{epochs:?}"
    );
    list.iter()
        .filter(|info| info.manifest_sha256.is_some())
        .for_each(|info| drop(world.view().verify(info.number).unwrap()));
    let late = RankGroup::new(1, 3).unwrap().waiting(HASTY_SECONDS);
    assert_eq!(world.rank(sound(), (1, old), late).err().unwrap().kind(), ErrorKind::Fenced);
}

/// Proves that ranks which are all restarted within an attempt continue from what was committed since; that ranks of
/// the earlier start can commit no more; and that a rank which is restarted alone is refused.
#[test]
fn a_new_round_overtakes_the_old_one() {
    let world = World::new();
    let attempt = world.attempt();
    let group = |rank, world_size| RankGroup::new(rank, world_size).unwrap().waiting(PATIENT_SECONDS);
    let open = |group| world.rank(sound(), (1, attempt), group);
    let mut old = each_rank(2, |rank| {
        let mut root = open(group(rank, 2)).unwrap();
        save(&mut root, 10).unwrap();
        root
    });
    let alone = open(group(1, 2)).unwrap().resume_target().unwrap_err();
    assert!(matches!(alone, CheckpointError::Ranks(RankError::RoundIsOver { step: 10 })), "{alone}");
    let votes = || std::fs::read_dir(world.path().join("votes")).map_or(0, Iterator::count);
    for (round, world_size) in [(1, 3), (2, 2)] {
        each_rank(world_size, |rank| {
            let mut root = open(group(rank, world_size).in_round(round)).unwrap();
            assert_eq!(resume(&mut root).unwrap().step, u64::from(round) * 10);
            save(&mut root, u64::from(round + 1) * 10).unwrap();
        });
        assert_eq!(votes(), 1, "votes of older rounds are gone");
    }
    for root in &mut old {
        let error = save(root, 99).unwrap_err();
        assert!(
            matches!(error, CheckpointError::Ranks(RankError::Overtaken { round: 0, found_round: 2 })),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Fenced);
    }
    let other_size = open(group(1, 4).in_round(2)).err().unwrap();
    assert_eq!(other_size.to_string(), "rank 0 trains with 2 ranks, but the world size of this process is 4");
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 30);
}

/// Proves that a rank which skips a save blocks no other: what it declined, or missed, is abandoned at once, and all
/// take part in the next save.
#[test]
fn a_declined_save_delays_no_rank() {
    let world = World::new();
    let results = world.ranks(1, 3, |root| {
        let decliner = root.decliner();
        if root.group().rank() == 1 {
            // As a loop does that finds the saver busy with step 10 when step 20 is due.
            decliner.decline(20);
        }
        let steps: &[Step] = match root.group().rank() {
            1 => &[10, 40],
            2 => &[10, 20, 40],
            _ => &[10, 20, 30, 40],
        };
        steps
            .iter()
            .map(|step| (*step, save(root, *step).err().map(|error| error.to_string())))
            .collect::<Vec<_>>()
    });
    let given_up = |step: Step, rank| {
        Some(format!(
            "the checkpoint of step {step} was given up: rank {rank} failed: it did not save step {step}"
        ))
    };
    assert_eq!(results[0][0], (10, None));
    assert_eq!(results[0][1], (20, given_up(20, 1)));
    assert!(results[0][2].1.as_deref().unwrap().contains("it did not save step 30"), "{:?}", results[0]);
    for results in &results {
        assert_eq!(results.last().unwrap(), &(40, None));
    }
    assert_eq!(results[2][1], (20, given_up(20, 1)));
    let steps: BTreeSet<Step> = world
        .view()
        .list()
        .iter()
        .filter(|info| info.manifest_sha256.is_some())
        .map(|info| info.step)
        .collect();
    assert_eq!(steps, BTreeSet::from([10, 40]));
}

/// Proves that a root may be handed to the thread that saves in the background.
#[test]
fn a_root_may_go_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<RankedRoot>();
    assert_send::<super::Decliner>();
}

/// Proves that a resume that reads gives each rank its files and the common ones, and every file to ranks of another
/// number; that no rank opens a file of another; and that damage in one rank's file makes all step back.
#[test]
fn ranks_read_what_they_need() {
    let world = World::new();
    world.ranks(1, 3, |root| [10, 20].map(|step| save(root, step).unwrap()));
    let read = |root: &mut RankedRoot| {
        let (loaded, files) = root.resume_read().unwrap().unwrap();
        let names: Vec<_> = files.iter().map(|file| file.name().to_owned()).collect();
        (root.group().rank(), loaded.step, names)
    };
    for (rank, step, names) in world.ranks(2, 3, read) {
        let own = ["frozen.bin", "model.bin"].map(|name| format!("rank-{rank:04}-{name}"));
        assert_eq!((step, names), (20, [vec!["cursor.json".to_owned()], own.to_vec()].concat()));
    }
    assert!(world.ranks(3, 2, read).iter().all(|(_, _, names)| names.len() == 7));
    std::fs::write(world.newest_file("rank-0002-model.bin"), b"x").unwrap();
    assert!(world.ranks(4, 3, read).iter().all(|(_, step, _)| *step == 10));
    assert_eq!(world.view().list()[1].state, CheckpointState::Suspect);
}
