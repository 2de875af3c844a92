use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use trackway_core::{Step, UnsafeEvidence};
use trackway_store::{Log, RealDisk, Writer};

use super::keeper::append;
use crate::history::History;
use crate::history::entry::{Adopt, Body};
use crate::history::summary::Summary;
use crate::retention::{Best, Retention, RetireReason, plan};
use crate::tests::{World, save};
use crate::{
    CheckpointError, CheckpointRoot, CheckpointState, CheckpointView, Commit, ErrorKind, FallbackKind,
    Housekeeper, KeepReason, Kind,
};

const DAY_SECONDS: f64 = 86_400.0;

impl World {
    fn house(&self) -> Housekeeper {
        Housekeeper::open(&self.path(), self.clock.clone(), self.ids.clone()).unwrap()
    }

    /// Steps whose folders are on the disk.
    fn on_disk(&self) -> Vec<Step> {
        let exists = |info: &crate::CheckpointInfo| self.path().join(&info.object_prefix).exists();
        let mut steps: Vec<_> =
            self.view().list().iter().filter(|info| exists(info)).map(|info| info.step).collect();
        steps.dedup();
        steps
    }
}

fn save_with(root: &mut CheckpointRoot, step: Step, backbone: &[u8], val_loss: f64) -> Commit {
    root.save(step, &[("val_loss", val_loss)], |writer| {
        writer.file("backbone.bin", Kind::Weights, backbone)?;
        writer.file("head.bin", Kind::Weights, &step.to_le_bytes())
    })
    .unwrap()
}

/// Proves that a file that did not change is not written again but shared, that the manifest names the other
/// checkpoint, that every checkpoint stays whole when the one that wrote it is deleted, and that a changed one is
/// written.
#[test]
fn unchanged_files_are_shared() {
    let world = World::new();
    let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), Some(2)).unwrap();
    let commits: Vec<_> = [10, 20, 30, 40].map(|step| save_with(&mut root, step, b"frozen", 0.5)).into();
    assert_eq!(world.on_disk(), [30, 40], "the one that wrote the backbone is deleted");
    let view = world.view();
    let last = view.load(commits[3].number).unwrap();
    let backbone = last.files().iter().find(|file| file.name == "backbone.bin").unwrap();
    assert_eq!(backbone.stored_in.as_deref(), Some(commits[0].object_prefix.as_str()));
    assert_eq!(last.read("backbone.bin").unwrap(), b"frozen");
    assert_eq!(std::fs::metadata(last.folder.join("backbone.bin")).unwrap().nlink(), 2);
    let changed = save_with(&mut root, 50, b"thawed", 0.5);
    let changed = world.view().load(changed.number).unwrap();
    assert!(changed.files().iter().all(|file| file.stored_in.is_none()));
}

/// Proves that sharing continues over a resume, and that nothing is shared with a checkpoint that did not verify.
#[test]
fn a_resumed_attempt_shares_with_what_it_resumed() {
    let world = World::new();
    let mut first = world.open(1).unwrap();
    save_with(&mut first, 10, b"frozen", 0.5);
    let bad = save_with(&mut first, 20, b"frozen!", 0.5);
    std::fs::write(world.path().join(&bad.object_prefix).join("backbone.bin"), b"rotten!").unwrap();
    let mut second = world.open(2).unwrap();
    let target = second.resume_target().unwrap().unwrap();
    assert_eq!((target.step, target.lost_steps), (10, 10));
    let shared = save_with(&mut second, 15, b"frozen", 0.5);
    let written = save_with(&mut second, 20, b"frozen!", 0.5);
    let view = world.view();
    let stored_in = |commit: &Commit| view.load(commit.number).unwrap().files()[0].stored_in.clone();
    assert!(stored_in(&shared).is_some());
    assert_eq!(stored_in(&written), None, "the rotten file is not shared");
    assert_eq!(view.load(written.number).unwrap().read("backbone.bin").unwrap(), b"frozen!");
}

/// Proves which checkpoints each rule keeps, over one history of ten with a metric.
#[test]
fn every_rule_keeps_its_own() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let losses = [0.9, 0.8, 0.3, 0.5, 0.4, f64::NAN, 0.6, 0.7, 0.5, 0.6];
    let mut number_of = BTreeMap::new();
    for (step, loss) in (1..).map(|index| index * 10).zip(losses) {
        number_of.insert(step, save_with(&mut root, step, b"x", loss).number);
    }
    world.house().pin("promoted", number_of[&20], "in production", None).unwrap();
    let policy =
        Retention { last: 2, every_steps: Some(35), best: Best::parse("val_loss"), ..Retention::default() };
    let view = world.view();
    let plan = plan(view.history(), &policy, trackway_core::Timestamp::from_micros(0), None);
    let step_of = |number: &u64| view.commit_step(*number).unwrap();
    let keep: Vec<_> =
        plan.keep.iter().map(|(number, why)| (step_of(number), why.iter().next().unwrap().clone())).collect();
    assert_eq!(
        keep,
        [
            (20, KeepReason::Pinned("promoted".into())),
            (30, KeepReason::Best),
            (40, KeepReason::Every),
            (70, KeepReason::Every),
            (90, KeepReason::Last),
            (100, KeepReason::Last),
        ]
    );
    assert_eq!(plan.retire.keys().map(step_of).collect::<Vec<_>>(), [10, 50, 60, 80]);
    assert_eq!(
        Best::parse("max accuracy").map(|best| (best.more_is_better, best.metric)),
        Some((true, "accuracy".into()))
    );
}

/// Proves that nothing is deleted where the metric that decides the best has no value.
#[test]
fn an_unknown_best_keeps_everything() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    (1..=5).for_each(|step| drop(save_with(&mut root, step, b"x", 0.5)));
    let kept = |metric: &str| {
        let policy = Retention { best: Best::parse(metric), ..Retention::default() };
        let view = world.view();
        let plan = plan(view.history(), &policy, trackway_core::Timestamp::from_micros(0), None);
        (plan.retire.len(), plan.keep.values().filter(|why| why.contains(&KeepReason::BestUnknown)).count())
    };
    assert_eq!(kept("accuracy"), (0, 5));
    assert_eq!(kept("val_loss").1, 0);
}

/// Proves that pins whose time is over are taken away, each once, and that others stay.
#[test]
fn expired_pins_are_taken_away() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let commit = save(&mut root, 10).unwrap().number;
    let mut house = world.house();
    let now = trackway_core::Clock::now(world.clock.as_ref());
    house.pin("short", commit, "eval-7 reads it", Some(now.plus_seconds(60.0))).unwrap();
    house.pin("long", commit, "eval-8 reads it", Some(now.plus_seconds(3_600.0))).unwrap();
    house.pin("promoted", commit, "in production", None).unwrap();
    let mut names = |seconds: f64| -> Vec<String> {
        let gone = house.unpin_expired(now.plus_seconds(seconds)).unwrap();
        gone.into_iter().map(|pin| pin.name).collect()
    };
    assert_eq!(names(59.0), Vec::<String>::new());
    assert_eq!(names(60.0), ["short"]);
    assert_eq!(names(61.0), Vec::<String>::new());
    let left: Vec<String> = world.view().pins().into_iter().map(|pin| pin.name).collect();
    assert_eq!(left, ["long", "promoted"]);
}

/// Proves that a dry run touches nothing, that collecting deletes what no rule keeps, that pins hold until they are
/// taken away or end, and that what is deleted cannot be pinned.
#[test]
fn collecting_spares_what_is_pinned() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let commits: Vec<_> = [10, 20, 30, 40].map(|step| save(&mut root, step).unwrap()).into();
    let mut house = world.house();
    let in_an_hour = trackway_core::Clock::now(world.clock.as_ref()).plus_seconds(3_600.0);
    house.pin("evaluation", commits[0].number, "eval-7 reads it", Some(in_an_hour)).unwrap();
    house.pin("promoted", commits[1].number, "in production", None).unwrap();
    let policy = Retention::default();
    let dry = house.collect(&policy, DAY_SECONDS, true).unwrap();
    assert!(dry.plan.retire.is_empty(), "all are kept: {dry:?}");
    house.unpin("promoted").unwrap();
    let dry = house.collect(&policy, DAY_SECONDS, true).unwrap();
    assert_eq!(dry.plan.retire, BTreeMap::from([(commits[1].number, RetireReason::Superseded)]));
    assert_eq!(world.on_disk(), [10, 20, 30, 40], "a dry run deletes nothing");
    house.collect(&policy, DAY_SECONDS, false).unwrap();
    assert_eq!(world.on_disk(), [10, 30, 40]);
    world.clock.advance_micros(3_600_000_000);
    house.collect(&policy, DAY_SECONDS, false).unwrap();
    assert_eq!(world.on_disk(), [30, 40], "the pin ended by itself");
    let error = house.pin("late", commits[1].number, "", None).unwrap_err();
    assert_eq!(error.to_string(), "the checkpoint of step 20 is retired: its files are gone");
    assert_eq!(house.pin("late", 999, "", None).unwrap_err().kind(), ErrorKind::Input);
    assert!(matches!(house.unpin("promoted"), Err(CheckpointError::NoSuchPin { .. })));
    assert_eq!(save(&mut root, 50).unwrap().parent, Some(commits[3].number), "no writer was fenced");
}

/// Proves that nothing is deleted when fewer than two of those that stay verify, and that those that do not are
/// marked.
#[test]
fn two_that_verify_always_stay() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let commits: Vec<_> = [10, 20, 30, 40].map(|step| save(&mut root, step).unwrap()).into();
    for commit in &commits[2..] {
        std::fs::write(world.path().join(&commit.object_prefix).join("weights.bin"), b"bad").unwrap();
    }
    let collected = world.house().collect(&Retention::default(), DAY_SECONDS, false).unwrap();
    assert_eq!(collected.suspects, [commits[3].number, commits[2].number]);
    assert!(collected.plan.retire.is_empty());
    assert_eq!(world.on_disk(), [10, 20, 30, 40]);
    std::fs::remove_file(world.path().join(&commits[1].object_prefix).join("weights.bin")).unwrap();
    world.clock.advance_micros(2 * 86_400_000_000);
    let collected = world.house().collect(&Retention::default(), DAY_SECONDS, false).unwrap();
    assert!(collected.refused.is_some(), "the old suspects would go, and only one checkpoint verifies");
    assert_eq!(world.on_disk(), [10, 20, 30, 40]);
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 10);
}

/// Proves that what fenced attempts and failed saves leave behind, suspects and dead branches are swept by age, that
/// what is being written is not, and that a second sweep finds nothing.
#[test]
fn orphans_are_swept_by_age_and_epoch() {
    let world = World::new();
    let mut first = world.open(1).unwrap();
    save(&mut first, 10).unwrap();
    let dead = save(&mut first, 20).unwrap();
    // A kill in the middle of a save: begun, some bytes, and no further entry.
    append(first.view_mut(), Writer::Housekeeper, |_| None).unwrap();
    let torn = world.path().join("step-00000025/epoch-0001-00000000000000000000000zzz");
    let begin = crate::history::entry::Begin {
        ranks: None,
        epoch: 1,
        run_id: dead.run_id,
        attempt_id: dead.attempt_id,
        step: 25,
        object_prefix: "step-00000025/epoch-0001-00000000000000000000000zzz".into(),
    };
    append(first.view_mut(), Writer::Housekeeper, |_| Some(Body::Begin(begin.clone()))).unwrap();
    std::fs::create_dir_all(&torn).unwrap();
    std::fs::write(torn.join("weights.bin"), b"half").unwrap();
    let states =
        |world: &World| world.view().list().iter().map(|info| (info.step, info.state)).collect::<Vec<_>>();
    assert_eq!(states(&world).last(), Some(&(25, CheckpointState::Writing)));
    let collect = |world: &World| world.house().collect(&Retention::default(), DAY_SECONDS, false).unwrap();
    world.clock.advance_micros(2 * 86_400_000_000);
    assert_eq!(collect(&world).orphans, [] as [u64; 0], "its epoch may still be writing");
    let mut second = world.open(2).unwrap();
    std::fs::write(world.path().join(&dead.object_prefix).join("weights.bin"), b"bad").unwrap();
    second.resume_target().unwrap();
    for step in [15, 30, 40] {
        save(&mut second, step).unwrap();
    }
    let collected = collect(&world);
    assert_eq!(collected.orphans.len(), 1);
    assert_eq!(collected.plan.retire[&dead.number], RetireReason::Suspect);
    assert!(!torn.exists());
    assert_eq!(world.on_disk(), [30, 40]);
    assert_eq!(collect(&world), crate::Collected { plan: collect(&world).plan, ..Default::default() });
    assert!(collect(&world).plan.retire.is_empty());
}

/// Proves that with a remote nothing is deleted from this disk before it is at the remote too.
#[test]
fn what_is_nowhere_else_stays() {
    let world = World::new();
    let keep = Retention { only_uploaded: true, ..Retention::default() };
    let mut root = world.open_keeping(Arc::new(RealDisk), 1, world.attempt(), Some(keep)).unwrap();
    let commits: Vec<_> = [10, 20, 30].map(|step| save(&mut root, step).unwrap()).into();
    assert_eq!(world.on_disk(), [10, 20, 30]);
    world.house().uploaded(commits[0].number, "s3://bucket/run").unwrap();
    save(&mut root, 40).unwrap();
    assert_eq!(world.on_disk(), [20, 30, 40]);
    assert_eq!(world.view().list()[0].uploaded_to.as_deref(), Some("s3://bucket/run"));
}

/// Proves that what was adopted from the truth elsewhere is what a resume takes, although this disk's own newer
/// commits are whole (a dead branch of a fenced epoch); that adopting nothing means a fresh start; that an adoption
/// which was cut off does not; and that deleting the old folder leaves the adopted one.
#[test]
fn adopted_commits_replace_a_dead_branch() {
    let world = World::new();
    let mut first = world.open(1).unwrap();
    let kept = save(&mut first, 300).unwrap();
    save(&mut first, 500).unwrap();
    let attempt = world.attempt();
    let mut third = world.open_as(Arc::new(RealDisk), 3, attempt, None).unwrap();
    let body = world.view().history().commit(kept.number).unwrap().body.clone();
    let folder = "step-00000300/epoch-0003-00000000000000000000000zzz";
    let adopt = |commit: Option<crate::history::entry::CommitBody>, complete| {
        let folder = commit.as_ref().map(|_| folder.to_owned());
        let number_there = commit.as_ref().map(|_| 7);
        let (epoch, run_id, attempt_id) = (3, kept.run_id, attempt);
        Some(Body::Adopt(Adopt { epoch, run_id, attempt_id, commit, folder, number_there, complete }))
    };
    append(third.view_mut(), Writer::Housekeeper, |_| adopt(None, false)).unwrap();
    assert!(matches!(third.resume_target(), Err(CheckpointError::HalfAdopted { epoch: 3 })));
    append(third.view_mut(), Writer::Housekeeper, |_| adopt(None, true)).unwrap();
    assert!(third.resume_target().unwrap().is_none(), "adopting nothing is a fresh start");
    std::fs::create_dir_all(world.path().join(folder)).unwrap();
    for file in std::fs::read_dir(world.path().join(&kept.object_prefix)).unwrap().flatten() {
        std::fs::hard_link(file.path(), world.path().join(folder).join(file.file_name())).unwrap();
    }
    append(third.view_mut(), Writer::Housekeeper, |_| adopt(Some(body.clone()), true)).unwrap();
    let target = third.resume_target().unwrap().unwrap();
    assert_eq!((target.step, target.info.number_there, &*target.info.folder), (300, Some(7), folder));
    let next = save(&mut third, 310).unwrap();
    assert_eq!(next.parent, Some(target.info.number));
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 310);
    world.clock.advance_micros(2 * 86_400_000_000);
    world.house().collect(&Retention::default(), DAY_SECONDS, false).unwrap();
    assert!(!world.path().join(&kept.object_prefix).exists() && world.path().join(folder).exists());
    assert_eq!(world.view().load(target.info.number).unwrap().read("weights.bin").unwrap().len(), 128);
}

/// Proves that nothing is deleted while a newer attempt has not shown what it continues from.
#[test]
fn nothing_is_retired_under_a_resuming_attempt() {
    let world = World::new();
    let mut first = world.open(1).unwrap();
    for step in [10, 20, 30] {
        save(&mut first, step).unwrap();
    }
    let mut second = world.open(2).unwrap();
    let collect = || world.house().collect(&Retention::default(), DAY_SECONDS, false).unwrap();
    assert!(collect().plan.keep.values().all(|why| why.contains(&KeepReason::Unsettled)));
    assert_eq!(world.on_disk(), [10, 20, 30]);
    second.resume_target().unwrap();
    save(&mut second, 40).unwrap();
    collect();
    assert_eq!(world.on_disk(), [30, 40]);
}

/// Proves that a reader that begins at a summary decides like one that read everything, over a history with every
/// kind of entry, and that such a log is opened without reading all of it.
#[test]
fn a_summary_replaces_what_is_before_it() {
    let world = World::new();
    let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), Some(3)).unwrap();
    let mut pinned = None;
    for step in 1..=60 {
        let commit = save(&mut root, step).unwrap();
        if step == 5 {
            world.house().pin("five", commit.number, "", None).unwrap();
            pinned = Some(commit.number);
        }
        if step % 20 == 0 {
            let _ = root.save(step + 1, &[], |_| Err(CheckpointError::state("no")));
        }
    }
    let backend = || Arc::new(trackway_store::LocalBackend::new(&world.path(), world.ids.clone()));
    let short = Log::<History>::open(backend(), world.clock.clone(), world.ids.clone()).unwrap();
    let whole = Log::<History>::open_whole(backend(), world.clock.clone(), world.ids.clone()).unwrap();
    assert!(short.position().began_at > 100, "{:?}", short.position());
    assert_eq!(short.state().live_chain(), whole.state().live_chain());
    assert!(short.state().live_chain().contains(&pinned.unwrap()), "the way leads past what is gone");
    assert_eq!(short.state().claimed(), whole.state().claimed());
    assert_eq!(short.state().pin_list(), whole.state().pin_list());
    let now = trackway_core::Timestamp::from_micros(0);
    let plans = [&short, &whole].map(|log| plan(log.state(), &Retention::default(), now, None));
    assert_eq!(plans[0], plans[1]);
    let live = |list: Vec<crate::CheckpointInfo>| {
        list.into_iter()
            .filter(|info| info.state != CheckpointState::Retired)
            .map(|info| info.number)
            .collect::<Vec<_>>()
    };
    assert_eq!(live(short.state().checkpoints()), live(CheckpointView::open(&world.path()).unwrap().list()));
}

/// Proves that a run that goes back to a step resumes from there, that what is left stays on the disk and is reported,
/// that doing it again adds nothing, and that the next commit follows the one that was gone back to.
#[test]
fn later_commits_are_left() {
    let world = World::new();
    let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), None).unwrap();
    let commits: Vec<_> = [10, 20, 30, 40].map(|step| save(&mut root, step).unwrap()).into();
    let mut house = world.house();
    assert_eq!(house.leave_after(25, "rolled back to step 20").unwrap(), [30, 40]);
    assert!(house.leave_after(25, "again").unwrap().is_empty());
    assert_eq!(world.on_disk(), [10, 20, 30, 40]);
    let states: Vec<CheckpointState> = world.view().list().iter().map(|info| info.state).collect();
    assert_eq!(
        states,
        [
            CheckpointState::Superseded,
            CheckpointState::Committed,
            CheckpointState::Suspect,
            CheckpointState::Suspect
        ]
    );
    let mut next = world.open_as(Arc::new(RealDisk), 2, world.attempt(), None).unwrap();
    let resumed = next.resume_target().unwrap().unwrap();
    assert_eq!((resumed.info.step, resumed.info.number), (20, commits[1].number));
    let followed = save(&mut next, 30).unwrap();
    let infos = world.view().list();
    let info = infos.iter().find(|info| info.number == followed.number).unwrap();
    assert_eq!((info.parent, info.state), (Some(commits[1].number), CheckpointState::Committed));
}

fn lost(why: &str) -> UnsafeEvidence {
    UnsafeEvidence {
        why: why.into(),
        found_by: "non_finite".into(),
        first_step: Some(25),
        ..UnsafeEvidence::default()
    }
}

/// Proves that a resume passes what is marked unsafe, with the reason, takes it again once it is cleared, and that
/// nothing marks it then; and that the mark is none of a defect.
#[test]
fn what_is_unsafe_is_passed_until_it_is_cleared() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let commits: Vec<_> = [10, 20, 30].map(|step| save(&mut root, step).unwrap()).into();
    let mut house = world.house();
    assert!(house.mark_unsafe(commits[2].number, &lost("`loss` is NaN from step 25 on")).unwrap());
    assert!(!house.mark_unsafe(commits[2].number, &lost("again")).unwrap(), "the first reason stays");
    let mut next = world.open(2).unwrap();
    let loaded = next.resume_target().unwrap().unwrap();
    assert_eq!((loaded.step, loaded.lost_steps), (20, 10));
    assert_eq!(loaded.fallbacks[0].why, "unsafe: `loss` is NaN from step 25 on");
    assert_eq!(loaded.fallbacks[0].kind, FallbackKind::Unsafe);
    let info = world.view().list().pop().unwrap();
    assert_eq!((info.state, info.on_branch), (CheckpointState::Unsafe, false));
    assert_eq!(info.unsafe_evidence, Some(lost("`loss` is NaN from step 25 on")));
    let unverified = world.view().verify(commits[2].number).err().map(|error| error.to_string());
    assert_eq!(unverified, None, "its bytes are whole");
    assert!(house.clear_unsafe(commits[2].number, "a logging error").unwrap());
    assert!(!house.mark_unsafe(commits[2].number, &lost("once more")).unwrap());
    let cleared = world.view().list().pop().unwrap();
    assert_eq!(
        (cleared.state, cleared.cleared.as_deref()),
        (CheckpointState::Committed, Some("a logging error"))
    );
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 30);
}

/// Proves that a training begins again where nothing but unsafe checkpoints was committed, and that this is not so where one is damaged.
#[test]
fn a_training_begins_again_where_nothing_is_safe() {
    let world = World::new();
    let mut root = world.open(1).unwrap();
    let commits: Vec<_> = [10, 20].map(|step| save(&mut root, step).unwrap()).into();
    let mut house = world.house();
    for commit in &commits {
        house.mark_unsafe(commit.number, &lost("NaN")).unwrap();
    }
    assert!(world.view().resume_target().unwrap().is_none());
    assert_eq!(world.view().skipped().len(), 2);
    let mut next = world.open(2).unwrap();
    assert!(next.resume_target().unwrap().is_none());
    assert_eq!(save(&mut next, 5).unwrap().parent, None);
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 5);
    house.suspect(world.view().list().last().unwrap().number, "torn").unwrap();
    assert!(matches!(world.view().resume_target(), Err(CheckpointError::NothingVerifies { .. })));
}

/// Proves that retention never deletes the newest safe checkpoint while unsafe ones are newer, keeps two of these for a
/// person and deletes older ones; and that marks are in a summary.
#[test]
fn the_newest_safe_checkpoint_stays() {
    let world = World::new();
    let mut root = world.open_as(Arc::new(RealDisk), 1, world.attempt(), Some(2)).unwrap();
    let mut house = world.house();
    for step in [10, 20, 30, 40, 50, 60, 70] {
        let commit = save(&mut root, step).unwrap();
        if step > 30 {
            house.mark_unsafe(commit.number, &lost("NaN")).unwrap();
        }
    }
    save(&mut root, 80).unwrap();
    house.mark_unsafe(root.list().unwrap().last().unwrap().number, &lost("NaN")).unwrap();
    house.collect(&Retention { last: 2, ..Retention::default() }, 0.0, false).unwrap();
    assert_eq!(world.on_disk(), [30, 70, 80]);
    assert_eq!(world.view().resume_target().unwrap().unwrap().step, 30);
    let summary = Summary::of(world.view().history());
    assert_eq!(summary.history().unsafe_commits().len(), 2);
}
