use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use trackway_core::{AttemptId, Step, UnsafeEvidence};
use trackway_store::testing::{BackendFault, Fault, FaultBackend, FaultDisk};
use trackway_store::{Backend, Created, Disk, MemoryBackend, RealDisk, StoreError, Writer};

use super::{FetchSource, Fetched, Foreseen, RemoteFiles, Replica, Uploaded};
use crate::history::History;
use crate::history::entry::Body;
use crate::retention::{MAX_ONLY_COPIES, Retention};
use crate::tests::{World, save};
use crate::{CheckpointError, CheckpointRoot, CheckpointState, ErrorKind, Housekeeper, Kind};

/// Large objects through the same calls as small ones, so that one injected fault after the other meets all of them.
pub(crate) struct BackendFiles(pub Arc<dyn Backend>);

impl RemoteFiles for BackendFiles {
    fn send(&self, name: &str, from: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let bytes = std::fs::read(from).map_err(StoreError::io("read", from))?;
        self.0.replace(name, &bytes)?;
        progress(bytes.len() as u64);
        Ok(())
    }

    fn size_bytes(&self, name: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.0.read(name, 1 << 20)?.map(|bytes| bytes.len() as u64))
    }

    fn fetch(
        &self,
        name: &str,
        size_bytes: u64,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Option<u64>, StoreError> {
        let Some(bytes) = self.0.read(name, 1 << 20)? else { return Ok(None) };
        let parts = bytes.chunks(7).take(if bytes.len() as u64 == size_bytes { usize::MAX } else { 0 });
        for part in parts {
            take(part).map_err(StoreError::io("take", Path::new(name)))?;
        }
        Ok(Some(bytes.len() as u64))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.0.remove(name)
    }
}

impl World {
    pub(crate) fn replica(&self, backend: &Arc<dyn Backend>) -> Result<Replica, CheckpointError> {
        self.replica_on(Arc::new(RealDisk), backend)
    }

    fn replica_on(
        &self,
        disk: Arc<dyn Disk>,
        backend: &Arc<dyn Backend>,
    ) -> Result<Replica, CheckpointError> {
        let files = Arc::new(BackendFiles(Arc::clone(backend)));
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        Replica::open_on(disk, &self.path(), Arc::clone(backend), files, clock, ids)
    }

    /// Fetches, and proves on the way that what was foreseen is what happens.
    pub(super) fn fetch_target(
        &self,
        backend: &Arc<dyn Backend>,
    ) -> Result<(AttemptId, Fetched), CheckpointError> {
        let attempt = self.attempt();
        let mut replica = self.replica(backend)?;
        let lost = replica.truth(None).lost;
        let foreseen = replica.foresee(None);
        let fetched = self.replica(backend)?.fetch_target(self.run_id(), attempt, 1, None);
        match (&foreseen, &fetched) {
            (Ok(foreseen), Ok(fetched)) => {
                check_foreseen(foreseen.as_ref(), fetched);
                let found: BTreeSet<String> =
                    fetched.fenced.iter().map(|info| info.object_prefix.clone()).collect();
                assert_eq!(lost, found);
            }
            (Err(foreseen), Err(fetched)) => assert_eq!(foreseen.to_string(), fetched.to_string()),
            // Another run's claim does not change what would be found.
            (_, Err(CheckpointError::WrongRun { .. })) => {}
            (foreseen, fetched) => panic!("foreseen {foreseen:?}, and then {fetched:?}"),
        }
        Ok((attempt, fetched?))
    }

    /// What the training process does: it uses only this disk.
    pub(super) fn train(&self, attempt: AttemptId, epoch: u64) -> CheckpointRoot {
        let mut root = self.open_as(Arc::new(RealDisk), epoch, attempt, None).unwrap();
        root.resume_target().unwrap();
        root
    }

    fn damage_every_copy(&self, step: Step) {
        for info in self.view().list().iter().filter(|info| info.step == step) {
            std::fs::write(self.path().join(&info.folder).join("weights.bin"), b"bad").unwrap();
        }
    }

    /// Hands over and uploads until nothing is left.
    pub(super) fn settle(
        &self,
        backend: &Arc<dyn Backend>,
        policy: Option<&Retention>,
    ) -> Result<u64, CheckpointError> {
        let mut replica = self.replica(backend)?;
        replica.hand_over()?;
        let mut sent_bytes = 0;
        while let Some(uploaded) = replica.upload_next(policy, &|_, _| {})? {
            if let Uploaded::Done { sent_bytes: bytes, .. } = uploaded {
                sent_bytes += bytes;
            }
            replica.collect(policy, None, false)?;
        }
        replica.collect(policy, None, false)?;
        Ok(sent_bytes)
    }
}

fn memory() -> Arc<dyn Backend> {
    Arc::new(MemoryBackend::default())
}

fn keep_last(last: usize) -> Retention {
    Retention { last, only_uploaded: true, ..Retention::default() }
}

fn check_foreseen(foreseen: Option<&Foreseen>, fetched: &Fetched) {
    let mine = foreseen.map(|it| (it.info.step, it.info.manifest_sha256.clone(), it.source, it.fetch_bytes));
    let theirs = fetched.target.as_ref();
    let theirs = theirs.map(|it| (it.step, Some(it.manifest_sha256.clone()), it.source, it.fetched_bytes));
    assert_eq!(mine, theirs);
    let Some(foreseen) = foreseen else { return };
    assert_eq!((&foreseen.fallbacks, foreseen.lost_steps), (&fetched.fallbacks, fetched.lost_steps));
}

/// Every uploaded commit of the remote can be fetched to an empty disk and verifies. Returns their steps.
pub(crate) fn check_remote(world: &World, backend: &Arc<dyn Backend>, situation: &str) -> Vec<Step> {
    let empty = world.other_machine();
    let replica = empty.replica(backend).unwrap();
    let held = |record: &crate::history::CommitRecord| {
        record.uploaded_to.is_some() && !record.retired && record.suspect.is_none()
    };
    let bodies: Vec<_> =
        replica.remote().commits().filter(|(_, it)| held(it)).map(|(_, it)| it.body.clone()).collect();
    for body in &bodies {
        let fetched = replica.gather(body, true).unwrap();
        fetched.unwrap_or_else(|missing| panic!("{situation}: step {}: {}", body.step, missing.defect));
    }
    bodies.iter().map(|body| body.step).collect()
}

fn save_shared(root: &mut CheckpointRoot, step: Step) {
    // Numbers that are not written again as they were read: a manifest must be passed on byte for byte.
    let metrics =
        [("loss", (step as f64).sin()), ("norm", (step as f64).exp()), ("rate", 1e-9 / step as f64)];
    root.save(step, &metrics, |writer| {
        writer.file("backbone.bin", Kind::Weights, b"frozen frozen frozen frozen frozen frozen frozen")?;
        writer.file("head.bin", Kind::Weights, &step.to_le_bytes())
    })
    .unwrap();
}

/// Proves the normal case: what one machine commits and uploads, another with an empty disk continues from, byte for
/// byte, in the next epoch; and that doing it all again adds nothing.
#[test]
fn another_machine_goes_on_from_the_remote() {
    let (one, remote) = (World::new(), memory());
    let (attempt, fetched) = one.fetch_target(&remote).unwrap();
    assert_eq!((fetched.epoch, fetched.target, fetched.fallbacks.len()), (1, None, 0));
    let mut root = one.train(attempt, 1);
    for step in [10, 20] {
        save(&mut root, step).unwrap();
    }
    assert!(one.settle(&remote, None).unwrap() > 0);
    let tail = one.replica(&remote).unwrap().log.position();
    assert_eq!(one.settle(&remote, None).unwrap(), 0);
    assert_eq!(one.replica(&remote).unwrap().log.position(), tail, "doing it again adds nothing");
    assert!(one.view().list().iter().all(|info| info.uploaded_to.is_some()));
    assert_eq!(check_remote(&one, &remote, "settled"), [10, 20]);

    let two = one.other_machine();
    let (attempt, fetched) = two.fetch_target(&remote).unwrap();
    let target = fetched.target.unwrap();
    assert_eq!((fetched.epoch, target.step, target.source), (2, 20, FetchSource::Remote));
    let mut root = two.train(attempt, 2);
    let theirs = one.view().resume_target().unwrap().unwrap();
    let mine = root.resume_target().unwrap().unwrap();
    assert_eq!(mine.manifest, theirs.manifest);
    assert_eq!(mine.read("weights.bin").unwrap(), theirs.read("weights.bin").unwrap());
    save(&mut root, 30).unwrap();
    two.settle(&remote, None).unwrap();
    let there = two.replica(&remote).unwrap().remote_list();
    let parents: Vec<_> = there.iter().map(|info| (info.step, info.parent)).collect();
    assert_eq!(parents, [(10, None), (20, Some(there[0].number)), (30, Some(there[1].number))]);
}

/// Proves DESIGN §3.5: machine A reached step 500 and could not hand it over, machine B continued from 300 and
/// committed; when A is back its waiting commits are fenced and reported as lost work, and its next attempt continues
/// from B's, not from its newer and intact ones.
#[test]
fn a_dead_branch_is_never_chosen() {
    let (a, remote) = (World::new(), memory());
    let (attempt_a, _) = a.fetch_target(&remote).unwrap();
    let mut root_a = a.train(attempt_a, 1);
    save(&mut root_a, 300).unwrap();
    a.settle(&remote, None).unwrap();
    save(&mut root_a, 400).unwrap();
    save(&mut root_a, 500).unwrap();

    let b = a.other_machine();
    let (attempt_b, fetched) = b.fetch_target(&remote).unwrap();
    assert_eq!(fetched.target.unwrap().step, 300);
    let mut root_b = b.train(attempt_b, fetched.epoch);
    save(&mut root_b, 350).unwrap();
    b.settle(&remote, None).unwrap();

    let mut replica = a.replica(&remote).unwrap();
    assert_eq!(replica.fenced_by(1, attempt_a).unwrap(), Some((2, attempt_b)));
    let error = replica.hand_over().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Fenced, "{error}");
    assert_eq!(replica.standing(None).waiting_commits, 2);
    let (attempt, fetched) = a.fetch_target(&remote).unwrap();
    assert_eq!(fetched.fenced.iter().map(|info| info.step).collect::<Vec<_>>(), [400, 500]);
    assert_eq!((fetched.epoch, fetched.fenced_steps), (3, 200));
    let target = fetched.target.unwrap();
    assert_eq!((target.step, target.source, target.attempt_id), (350, FetchSource::Remote, attempt_b));
    let mut root_a = a.train(attempt, 3);
    assert_eq!(root_a.resume_target().unwrap().unwrap().step, 350);
    assert_eq!(a.replica(&remote).unwrap().standing(None).waiting_commits, 0, "what is lost does not wait");
    save(&mut root_a, 360).unwrap();
    a.settle(&remote, None).unwrap();
    assert_eq!(check_remote(&a, &remote, "A is back"), [300, 350, 360]);
    assert_eq!(a.fetch_target(&remote).unwrap().1.fenced, [], "lost work is reported once");
}

/// Proves that commits which wait when the supervisor ends are handed over by the next one before it claims, so that it
/// does not fence its own, and that bytes which never reached the remote are found on this disk.
#[test]
fn waiting_commits_are_not_lost_to_an_own_claim() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    save(&mut world.train(attempt, 1), 10).unwrap();
    let (_, fetched) = world.fetch_target(&remote).unwrap();
    let target = fetched.target.unwrap();
    assert_eq!((fetched.epoch, target.step, target.source), (2, 10, FetchSource::Local));
    assert_eq!(fetched.fenced, []);
    let elsewhere = world.other_machine().fetch_target(&remote).unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::Integrity);
    assert!(elsewhere.to_string().contains("never reached the remote"), "{elsewhere}");
    world.settle(&remote, None).unwrap();
    let (_, fetched) = world.other_machine().fetch_target(&remote).unwrap();
    assert_eq!(fetched.target.unwrap().step, 10);
}

/// Proves that the nearest copy is taken: none of a whole local one is fetched, of a damaged one only what is damaged;
/// what is damaged at the remote is marked there, and the one before is taken and its cost reported.
#[test]
fn the_nearest_whole_copy_is_taken() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let mut root = world.train(attempt, 1);
    let commits: Vec<_> = [10, 20, 30].map(|step| save(&mut root, step).unwrap()).into();
    world.settle(&remote, None).unwrap();
    let target = world.fetch_target(&remote).unwrap().1.target.unwrap();
    assert_eq!((target.step, target.source, target.fetched_bytes), (30, FetchSource::Local, 0));

    world.damage_every_copy(30);
    let (attempt, fetched) = world.fetch_target(&remote).unwrap();
    let target = fetched.target.unwrap();
    assert_eq!((target.step, target.source, target.fetched_bytes), (30, FetchSource::Remote, 128));
    assert_eq!(world.train(attempt, fetched.epoch).resume_target().unwrap().unwrap().step, 30);

    world.damage_every_copy(30);
    remote.replace(&format!("{}/weights.bin", commits[2].object_prefix), b"rot").unwrap();
    let (attempt, fetched) = world.fetch_target(&remote).unwrap();
    assert_eq!((fetched.target.unwrap().step, fetched.lost_steps), (20, 10));
    assert_eq!(
        fetched.fallbacks[0].why,
        "at the remote, `weights.bin` has 3 bytes and was committed with 128"
    );
    let there = world.replica(&remote).unwrap().remote_list();
    assert_eq!(there[2].state, CheckpointState::Suspect);
    assert_eq!(world.train(attempt, fetched.epoch).resume_target().unwrap().unwrap().step, 20);
}

/// Proves that a checkpoint which an attempt marked suspect although its bytes are whole (it could not be loaded) is
/// suspect for every machine.
#[test]
fn a_state_that_cannot_be_loaded_is_suspect_everywhere() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let mut root = world.train(attempt, 1);
    save(&mut root, 10).unwrap();
    let bad = save(&mut root, 20).unwrap();
    world.settle(&remote, None).unwrap();
    crate::keeper::append(root.view_mut(), Writer::Housekeeper, |_| {
        Some(Body::suspect(bad.number, "loading it crashed twice"))
    })
    .unwrap();
    assert_eq!(world.fetch_target(&remote).unwrap().1.target.unwrap().step, 10);
    assert_eq!(world.other_machine().fetch_target(&remote).unwrap().1.target.unwrap().step, 10);
}

/// Proves that what one machine marks unsafe is skipped on every machine, before and after it was handed over, that the newest safe one is kept at the
/// remote while unsafe ones are newer, that nothing unsafe is sent, and that clearing it counts everywhere.
#[test]
fn what_is_unsafe_is_so_everywhere() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let mut root = world.train(attempt, 1);
    let mut house = Housekeeper::open(&world.path(), world.clock.clone(), world.ids.clone()).unwrap();
    let evidence = UnsafeEvidence { why: "`loss` is NaN".into(), ..UnsafeEvidence::default() };
    for step in [10, 20, 30] {
        save(&mut root, step).unwrap();
    }
    world.settle(&remote, Some(&keep_last(2))).unwrap();
    let lost = root.list().unwrap().last().unwrap().number;
    house.mark_unsafe(lost, &evidence).unwrap();
    let foreseen = world.replica(&remote).unwrap().foresee(None).unwrap().unwrap();
    assert_eq!(foreseen.info.step, 20, "the mark is not at the remote yet");
    for step in [40, 50] {
        let number = save(&mut root, step).unwrap().number;
        house.mark_unsafe(number, &evidence).unwrap();
    }
    world.settle(&remote, Some(&keep_last(2))).unwrap();
    let states = |world: &World| -> Vec<(Step, CheckpointState)> {
        let list = world.replica(&remote).unwrap().remote_list();
        list.iter().map(|info| (info.step, info.state)).collect()
    };
    assert_eq!(
        states(&world)[1..3],
        [(20, CheckpointState::Committed), (30, CheckpointState::Unsafe)],
        "{:?}",
        states(&world)
    );
    let sent =
        world.replica(&remote).unwrap().remote_list().into_iter().filter(|info| info.uploaded_to.is_some());
    assert!(sent.map(|info| info.step).all(|step| step <= 30));
    let other = world.other_machine();
    let (_, fetched) = other.fetch_target(&remote).unwrap();
    assert_eq!(fetched.target.unwrap().step, 20);
    assert!(fetched.fallbacks[0].why.contains("unsafe: `loss` is NaN"), "{:?}", fetched.fallbacks);

    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let only = save(&mut world.train(attempt, 1), 10).unwrap();
    world.settle(&remote, None).unwrap();
    let mut house = Housekeeper::open(&world.path(), world.clock.clone(), world.ids.clone()).unwrap();
    house.mark_unsafe(only.number, &evidence).unwrap();
    let (_, fetched) = world.fetch_target(&remote).unwrap();
    assert_eq!((fetched.target, fetched.fallbacks.len()), (None, 1), "it begins again");
    assert!(world.replica(&remote).unwrap().clear_unsafe(&only.object_prefix, "a test").unwrap());
    assert_eq!(world.other_machine().fetch_target(&remote).unwrap().1.target.unwrap().step, 10);
}

/// Proves that a remote that is out of reach grants nothing: no claim is written on this disk, and that a remote which
/// was emptied is not taken for a fresh start.
#[test]
fn without_the_remote_nothing_is_granted() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    save(&mut world.train(attempt, 1), 10).unwrap();
    let cut_off = FaultBackend::sound(Arc::clone(&remote));
    let behind: Arc<dyn Backend> = Arc::new(cut_off.clone());
    let mut replica = world.replica(&behind).unwrap();
    cut_off.cut_off(true);
    let error = replica.fetch_target(world.run_id(), world.attempt(), 2, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
    assert_eq!(world.view().epoch(), Some(1));
    assert_eq!(replica.standing(None).waiting_commits, 1);
    cut_off.cut_off(false);
    assert_eq!(replica.fetch_target(world.run_id(), world.attempt(), 2, None).unwrap().epoch, 2);
    let error = world.fetch_target(&memory()).unwrap_err();
    assert!(matches!(error, CheckpointError::RemoteEmpty { .. }), "{error}");
    let stranger = world.other_machine();
    let other_run = trackway_core::RunId::new(world.ids.as_ref());
    let error =
        stranger.replica(&remote).unwrap().fetch_target(other_run, world.attempt(), 1, None).unwrap_err();
    assert!(matches!(error, CheckpointError::WrongRun { .. }), "{error}");
}

/// Proves that what did not change is sent once, that retention at the remote deletes nothing that is still relied on,
/// that pins hold there, and that in the end only what is kept is left.
#[test]
fn shared_files_are_sent_once_and_kept_as_long_as_needed() {
    let (world, remote) = (World::new(), Arc::new(Listing::default()));
    let backend: Arc<dyn Backend> = remote.clone();
    let (attempt, _) = world.fetch_target(&backend).unwrap();
    let mut root = world.train(attempt, 1);
    for step in [10, 20, 30, 40] {
        save_shared(&mut root, step);
        let sent_bytes = world.settle(&backend, Some(&keep_last(2))).unwrap();
        assert_eq!(sent_bytes, if step == 10 { 56 } else { 8 }, "step {step}");
    }
    assert_eq!(check_remote(&world, &backend, "after retention"), [30, 40]);
    let names = |part: &str| remote.names().into_iter().filter(|name| name.contains(part)).count();
    assert_eq!((names("backbone.bin"), names("head.bin"), names("manifest.json")), (1, 2, 2));
    assert!(
        remote.names().iter().any(|name| name.starts_with("step-00000010/")),
        "the first one's file stays"
    );
    root.save(50, &[], |writer| writer.file("head.bin", Kind::Weights, b"all new")).unwrap();
    root.save(60, &[], |writer| writer.file("head.bin", Kind::Weights, b"all newer")).unwrap();
    world.settle(&backend, Some(&keep_last(2))).unwrap();
    assert_eq!(names("backbone.bin"), 0, "nobody needs it any more");
    assert_eq!(check_remote(&world, &backend, "at the end"), [50, 60]);
}

/// Proves that a pin at the remote holds there, and that what the policy would delete at once is not sent at all while
/// its commit is in the log.
#[test]
fn superseded_ones_are_overtaken_and_pins_hold() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let mut root = world.train(attempt, 1);
    save(&mut root, 10).unwrap();
    world.settle(&remote, Some(&keep_last(2))).unwrap();
    let mut replica = world.replica(&remote).unwrap();
    let pin = crate::history::entry::PinBody { name: "p".into(), commit: 2, why: String::new(), until: None };
    replica
        .log
        .append(Writer::Housekeeper, |_: &History| Ok::<_, CheckpointError>(Some(Body::Pin(pin.clone()))))
        .unwrap();
    for step in [20, 30, 40, 50] {
        save(&mut root, step).unwrap();
    }
    world.settle(&remote, Some(&keep_last(2))).unwrap();
    assert_eq!(check_remote(&world, &remote, "overtaken"), [10, 40, 50]);
    let there = world.replica(&remote).unwrap().remote_list();
    let states: Vec<_> = there.iter().map(|info| (info.step, info.state)).collect();
    assert_eq!(states[1..3], [(20, CheckpointState::Retired), (30, CheckpointState::Retired)]);
    assert_eq!(states.len(), 5, "every commit stands in the log");
}

/// Proves that a pin which a person sets holds at the remote and on this disk alike, also of a commit that waits; that
/// it moves and goes at both; and that nothing is held when the remote does not answer.
#[test]
fn a_pin_holds_at_both_places() {
    let (world, remote) = (World::new(), memory());
    let (attempt, fetched) = world.fetch_target(&remote).unwrap();
    let keep = Some(keep_last(2));
    let mut root = world.open_keeping(Arc::new(RealDisk), fetched.epoch, attempt, keep).unwrap();
    let first = save(&mut root, 10).unwrap();
    let cut_off = FaultBackend::sound(Arc::clone(&remote));
    let mut replica = world.replica(&(Arc::new(cut_off.clone()) as Arc<dyn Backend>)).unwrap();
    cut_off.cut_off(true);
    assert!(replica.pin("kept", &first.object_prefix, "", None).is_err());
    assert_eq!(world.view().pins(), []);
    cut_off.cut_off(false);
    replica.pin("kept", &first.object_prefix, "a test", None).unwrap();
    for step in [20, 30, 40, 50] {
        save(&mut root, step).unwrap();
        world.settle(&remote, Some(&keep_last(2))).unwrap();
    }
    assert_eq!(check_remote(&world, &remote, "pinned"), [10, 40, 50]);
    world.view().verify(first.number).unwrap();
    let second = world.view().list().into_iter().find(|info| info.step == 40).unwrap().object_prefix;
    let mut replica = world.replica(&remote).unwrap();
    replica.pin("kept", &second, "", None).unwrap();
    let error = replica.pin("", &second, "", None).unwrap_err();
    assert!(matches!(error, CheckpointError::PinName { .. }), "{error}");
    let held = |world: &World| {
        let there = world.replica(&remote).unwrap().remote_list();
        [there, world.view().list()].map(|list| {
            let pinned = list.into_iter().filter(|info| !info.pins.is_empty());
            pinned.map(|info| info.step).collect::<Vec<_>>()
        })
    };
    assert_eq!(held(&world), [vec![40], vec![40]]);
    replica.unpin("kept").unwrap();
    assert!(held(&world).iter().all(Vec::is_empty));
    let error = replica.unpin("kept").unwrap_err();
    assert!(matches!(error, CheckpointError::NoSuchPin { .. }), "{error}");
    let error = world.other_machine().replica(&remote).unwrap().pin("k", &first.object_prefix, "", None);
    let retired_or_there = error.map(|_| ());
    assert!(retired_or_there.is_ok(), "another machine may hold what is there: {retired_or_there:?}");
}

/// Proves what happens on this disk while the remote takes nothing: the newest stay although no rule keeps them, up to
/// a bound, every one of them whole; how many older ones went is counted; a rule and a pin keep beyond the bound; and
/// when the remote is back nothing is missing that a resume could need.
#[test]
fn a_long_outage_fills_no_disk_and_loses_no_resume() {
    let (world, remote) = (World::new(), memory());
    let (attempt, fetched) = world.fetch_target(&remote).unwrap();
    let policy = Retention { every_steps: Some(30), ..keep_last(2) };
    let keep = Some(policy.clone());
    let mut root = world.open_keeping(Arc::new(RealDisk), fetched.epoch, attempt, keep).unwrap();
    save(&mut root, 10).unwrap();
    world.settle(&remote, Some(&policy)).unwrap();
    let dropped_uploads =
        |world: &World| world.replica(&remote).unwrap().standing(Some(&policy)).dropped_uploads;
    let newest = 10 * (MAX_ONLY_COPIES as Step + 7);
    for step in (20..=newest).step_by(10) {
        save(&mut root, step).unwrap();
        assert!(step > 90 || dropped_uploads(&world) == 0, "the first ones all stay");
    }
    let here: Vec<Step> = world.view().list().iter().filter(|it| it.on_branch).map(|it| it.step).collect();
    assert_eq!(here, [30, 60, 80, 90, 100, 110, 120, 130, 140, 150]);
    assert_eq!(dropped_uploads(&world), 4, "20, 40, 50 and 70");
    assert_eq!(check_remote(&world, &remote, "during the outage"), [10]);
    world.settle(&remote, Some(&policy)).unwrap();
    assert_eq!(
        (dropped_uploads(&world), world.replica(&remote).unwrap().standing(Some(&policy)).waiting_uploads),
        (0, 0)
    );
    assert_eq!(check_remote(&world, &remote, "afterwards"), [30, 60, 90, 120, 140, 150]);
    assert_eq!(world.other_machine().fetch_target(&remote).unwrap().1.target.unwrap().step, newest);
}

/// Proves that reading at the remote finds what sizes do not show, and that the log has the duration of an upload.
#[test]
fn bytes_at_the_remote_can_be_read_where_they_are() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let commit = save(&mut world.train(attempt, 1), 10).unwrap();
    world.clock.advance_micros(90_000_000);
    world.settle(&remote, None).unwrap();
    let uploaded = world.view().list().pop().unwrap();
    let moment = |text: &str| text.parse::<trackway_core::Timestamp>().unwrap();
    let lag_seconds = moment(&uploaded.uploaded_at.unwrap()).seconds_since(moment(&uploaded.at));
    assert_eq!(lag_seconds, 90.0);
    let replica = world.other_machine().replica(&remote).unwrap();
    let read_bytes = AtomicU64::new(0);
    replica
        .verify_there(&commit.object_prefix, &|done, _| {
            read_bytes.fetch_max(done, Ordering::SeqCst);
        })
        .unwrap();
    assert_eq!(read_bytes.into_inner(), commit.size_bytes);
    remote.replace(&format!("{}/weights.bin", commit.object_prefix), &[7; 128]).unwrap();
    let error = replica.verify_there(&commit.object_prefix, &|_, _| {}).unwrap_err();
    assert!(matches!(error, CheckpointError::Damaged { step: 10, .. }), "{error}");
}

/// Proves that attempts which follow each other on one disk leave no copies behind: what is elsewhere too is deleted,
/// what is pinned or the only copy stays, and every attempt continues from the newest.
#[test]
fn attempts_leave_no_copies_behind() {
    let (world, remote) = (World::new(), memory());
    let policy = keep_last(2);
    let mut pinned = None;
    for attempt_number in 0..6 {
        let attempt = world.attempt();
        let mut replica = world.replica(&remote).unwrap();
        let fetched = replica.fetch_target(world.run_id(), attempt, 1, Some(&policy)).unwrap();
        let step = fetched.target.map_or(0, |target| target.step);
        assert_eq!(step, attempt_number * 30);
        let keep = Some(policy.clone());
        let mut root = world.open_keeping(Arc::new(RealDisk), fetched.epoch, attempt, keep).unwrap();
        root.resume_target().unwrap();
        for step in [step + 10, step + 20, step + 30] {
            save_shared(&mut root, step);
            world.settle(&remote, Some(&policy)).unwrap();
        }
        if attempt_number == 1 {
            let mut house =
                crate::Housekeeper::open(&world.path(), world.clock.clone(), world.ids.clone()).unwrap();
            let number = house.view().list().iter().rev().find(|info| info.step == 60).unwrap().number;
            house.pin("kept", number, "", None).unwrap();
            pinned = Some(number);
        }
    }
    let here = |info: &crate::CheckpointInfo| world.path().join(&info.folder).exists();
    let list = world.view().list();
    let steps: Vec<_> = list.iter().filter(|info| here(info)).map(|info| info.step).collect();
    assert_eq!(steps, [60, 170, 180], "{list:#?}");
    world.view().verify(pinned.unwrap()).unwrap();
    assert_eq!(check_remote(&world, &remote, "after six attempts"), [170, 180]);
}

/// What a supervisor does from one launch to the next, with everything in it that calls the remote.
fn scenario(world: &World, backend: &Arc<dyn Backend>, saved: &mut Vec<Step>) -> Result<(), CheckpointError> {
    let policy = keep_last(2);
    let attempt = world.attempt();
    let fetched = world.replica(backend)?.fetch_target(world.run_id(), attempt, 1, None)?;
    let mut root = world.train(attempt, fetched.epoch);
    let from = fetched.target.map_or(0, |target| target.step);
    for step in [1, 2, 3] {
        save_shared(&mut root, from + step);
        saved.push(from + step);
        world.settle(backend, Some(&policy))?;
    }
    let attempt = world.attempt();
    world.replica(backend)?.fetch_target(world.run_id(), attempt, 1, None)?;
    Ok(())
}

/// Proves that one call to the remote that fails, whose answer is lost, that happens late or conflicts, and a kill or a
/// partition from there on, at any call of claiming, handing over, uploading, collecting and fetching, loses no commit:
/// what is uploaded according to the remote verifies, nothing that was saved is missing on this disk, and the next
/// supervisor completes everything.
#[test]
fn a_fault_at_any_call_loses_nothing() {
    let faults = [
        BackendFault::ErrorBefore,
        BackendFault::ErrorAfter,
        BackendFault::Late(3),
        BackendFault::Conflict,
        BackendFault::Refused,
    ];
    // One that lasts is what a kill or a partition looks like.
    let lasting = (BackendFault::ErrorBefore, true);
    let cases = faults.map(|fault| (fault, false)).into_iter().chain([lasting]);
    // They wait for the disk most of the time.
    std::thread::scope(|scope| {
        cases.for_each(|(fault, lasting)| drop(scope.spawn(move || fault_at_each_call(fault, lasting))))
    });
}

fn fault_at_each_call(fault: BackendFault, lasting: bool) {
    let mut call = 0;
    loop {
        let (world, memory) = (World::new(), memory());
        let mut saved = Vec::new();
        scenario(&world, &memory, &mut saved).unwrap();
        let calls = call..if lasting { u64::MAX } else { call + 1 };
        let faulty = FaultBackend::storm(Arc::clone(&memory), calls, fault);
        let outcome = scenario(&world, &(Arc::new(faulty.clone()) as Arc<dyn Backend>), &mut saved);
        if faulty.calls() <= call {
            outcome.unwrap();
            break;
        }
        let situation = format!("{fault:?} at call {call}, lasting: {lasting}");
        check_remote(&world, &memory, &situation);
        check_completion(&world, &memory, &saved, &situation);
        call += 1;
    }
    println!("{fault:?}, lasting: {lasting}: {call} calls");
    assert!(call > 100, "only {call} calls: the scenario does not do what it should");
}

fn check_completion(world: &World, remote: &Arc<dyn Backend>, saved: &[Step], situation: &str) {
    let newest = *saved.last().unwrap();
    let (attempt, fetched) =
        world.fetch_target(remote).unwrap_or_else(|error| panic!("{situation}: {error}"));
    assert_eq!(fetched.fenced, [], "{situation}");
    assert_eq!(fetched.fallbacks, [], "{situation}");
    let target = fetched.target.unwrap_or_else(|| panic!("{situation}: nothing to resume from"));
    assert_eq!(target.step, newest, "{situation}");
    save_shared(&mut world.train(attempt, fetched.epoch), newest + 1);
    world.settle(remote, Some(&keep_last(2))).unwrap();
    assert_eq!(check_remote(world, remote, situation), [newest, newest + 1], "{situation}");
    let (_, fetched) = world.other_machine().fetch_target(remote).unwrap();
    assert_eq!(fetched.target.unwrap().step, newest + 1, "{situation}");
}

/// A storage that can be listed, for looking at what is left.
#[derive(Default)]
struct Listing {
    inner: MemoryBackend,
    names: Mutex<BTreeSet<String>>,
}

impl Listing {
    fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().iter().filter(|name| !name.starts_with("log/")).cloned().collect()
    }
}

impl Backend for Listing {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        self.names.lock().unwrap().insert(name.into());
        self.inner.create(name, bytes)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.read(name, max_bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.names.lock().unwrap().insert(name.into());
        self.inner.replace(name, bytes)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.names.lock().unwrap().remove(name);
        self.inner.remove(name)
    }
}

/// A storage that lets something else happen, once, just before its n-th call.
struct Interrupted {
    inner: Arc<dyn Backend>,
    calls: AtomicU64,
    at: u64,
    happen: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Interrupted {
    fn new(inner: &Arc<dyn Backend>, at: u64, happen: impl FnOnce() + Send + 'static) -> Arc<Self> {
        let happen = Mutex::new(Some(Box::new(happen) as Box<dyn FnOnce() + Send>));
        Arc::new(Self { inner: Arc::clone(inner), calls: AtomicU64::new(0), at, happen })
    }

    fn happened(&self) -> bool {
        self.happen.lock().unwrap().is_none()
    }

    fn call(&self) -> &dyn Backend {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.at
            && let Some(happen) = self.happen.lock().unwrap().take()
        {
            happen();
        }
        self.inner.as_ref()
    }
}

impl Backend for Interrupted {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        self.call().create(name, bytes)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.call().read(name, max_bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.call().replace(name, bytes)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.call().remove(name)
    }
}

/// Three commits with a common file, two of them uploaded; the last one waits for its upload.
fn prepared() -> (Arc<World>, Arc<dyn Backend>) {
    let (world, remote) = (Arc::new(World::new()), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let mut root = world.train(attempt, 1);
    for step in [10, 20, 30, 40] {
        save_shared(&mut root, step);
        world.settle(&remote, None).unwrap();
    }
    save_shared(&mut root, 50);
    world.replica(&remote).unwrap().hand_over().unwrap();
    (world, remote)
}

/// Marks the parent of what is being sent suspect, so that it and the first commit, whose file all share, are deleted.
fn collect_the_parent(world: &World, remote: &Arc<dyn Backend>) {
    let mut replica = world.other_machine().replica(remote).unwrap();
    let parent = replica.remote_list().iter().find(|info| info.step == 40).unwrap().number;
    replica
        .log
        .append(Writer::Housekeeper, |_: &History| {
            Ok::<_, CheckpointError>(Some(Body::suspect(parent, "a test says so")))
        })
        .unwrap();
    let collected = replica.collect(Some(&keep_last(2)), Some(0.0), false).unwrap();
    let retired = collected.plan.retire.contains_key(&parent);
    assert!(retired || collected.refused.is_some(), "{collected:?}");
}

/// Proves that a collection by another machine at any call of an upload, one that deletes the very checkpoints it
/// shares its file with, leaves nothing that is recorded as complete and is not.
#[test]
fn collecting_during_an_upload_breaks_nothing() {
    for at in 0.. {
        let (world, remote) = prepared();
        let (their_world, their_remote) = (Arc::clone(&world), Arc::clone(&remote));
        let interrupted =
            Interrupted::new(&remote, at, move || collect_the_parent(&their_world, &their_remote));
        let backend: Arc<dyn Backend> = interrupted.clone();
        let mut replica = world.replica(&backend).unwrap();
        replica.upload_next(None, &|_, _| {}).unwrap();
        if !interrupted.happened() {
            assert!(at > 20, "only {at} calls");
            return;
        }
        let steps = check_remote(&world, &remote, &format!("collected at call {at}"));
        assert!(steps.contains(&50), "at call {at}: {steps:?}");
    }
}

/// Proves the same the other way round: an upload at any call of a collection.
#[test]
fn uploading_during_a_collection_breaks_nothing() {
    for at in 0.. {
        let (world, remote) = prepared();
        let (their_world, their_remote) = (Arc::clone(&world), Arc::clone(&remote));
        let interrupted = Interrupted::new(&remote, at, move || {
            let mut replica = their_world.replica(&their_remote).unwrap();
            let uploaded = replica.upload_next(None, &|_, _| {}).unwrap();
            assert!(matches!(uploaded, Some(Uploaded::Done { .. })), "{uploaded:?}");
        });
        collect_the_parent(&world, &(interrupted.clone() as Arc<dyn Backend>));
        if !interrupted.happened() {
            assert!(at > 20, "only {at} calls");
            return;
        }
        let steps = check_remote(&world, &remote, &format!("uploaded at call {at}"));
        assert!(steps.contains(&50), "at call {at}: {steps:?}");
    }
}

/// Proves that a kill, a torn write, a power cut, a full or a failing disk at any operation while a checkpoint is
/// fetched leaves nothing that is taken for whole: the next try completes, and every adopted checkpoint verifies.
#[test]
fn a_fault_of_the_disk_while_fetching_is_made_good() {
    let (one, remote) = (World::new(), memory());
    let (attempt, _) = one.fetch_target(&remote).unwrap();
    let mut root = one.train(attempt, 1);
    save_shared(&mut root, 10);
    save_shared(&mut root, 20);
    one.settle(&remote, None).unwrap();
    for fault in Fault::DEADLY.into_iter().chain(Fault::RETURNED) {
        for operation in 0.. {
            let two = one.other_machine();
            let disk = FaultDisk::new(fault, operation);
            let attempt = two.attempt();
            let fetched = two
                .replica_on(Arc::new(disk.clone()), &remote)
                .and_then(|mut replica| replica.fetch_target(two.run_id(), attempt, 1, Some(&keep_last(2))));
            if !disk.struck() {
                fetched.unwrap();
                assert!(operation > 15, "only {operation} operations");
                break;
            }
            if fault.is_deadly() {
                disk.after_crash();
            }
            let situation = format!("{fault:?} at operation {operation}");
            let (attempt, fetched) = two.fetch_target(&remote).unwrap();
            assert_eq!(fetched.target.unwrap().step, 20, "{situation}");
            let mut root = two.train(attempt, fetched.epoch);
            assert_eq!(root.resume_target().unwrap().unwrap().step, 20, "{situation}");
            for info in two.view().list().iter().filter(|info| info.on_branch) {
                two.view().verify(info.number).unwrap_or_else(|error| panic!("{situation}: {error}"));
            }
        }
    }
}

/// Proves that a checkpoint is fetched completely into a folder of the caller, shared files too, without an entry in
/// either log; that what is whole there is not fetched again, and what is not is; and that bytes which are not those of
/// the manifest are refused.
#[test]
fn a_checkpoint_is_brought_to_be_read() {
    let (one, remote) = (World::new(), Arc::new(Listing::default()));
    let backend: Arc<dyn Backend> = remote.clone();
    let (attempt, _) = one.fetch_target(&backend).unwrap();
    let mut root = one.train(attempt, 1);
    save_shared(&mut root, 10);
    save_shared(&mut root, 20);
    one.settle(&backend, None).unwrap();
    let two = one.other_machine();
    let replica = two.replica(&backend).unwrap();
    let prefix = replica.remote_list()[1].object_prefix.clone();
    let tail = replica.log.position();
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let arrived = AtomicU64::new(0);
    let reported = |done: u64, total: u64| {
        assert!(done <= total);
        arrived.fetch_max(done, Ordering::Relaxed);
    };
    let manifest = replica.fetch(&prefix, folder.path(), &reported).unwrap();
    let here = one.view().resume_target().unwrap().unwrap();
    assert_eq!(
        (manifest, read("manifest.json")),
        (here.manifest.clone(), std::fs::read(here.folder.join("manifest.json")).unwrap())
    );
    assert_eq!(
        (read("head.bin"), read("backbone.bin")),
        (20_u64.to_le_bytes().to_vec(), here.read("backbone.bin").unwrap())
    );
    assert_eq!(arrived.load(Ordering::Relaxed), 56);
    assert_eq!(two.replica(&backend).unwrap().log.position(), tail);
    assert!(two.view().list().is_empty());

    std::fs::write(folder.path().join("head.bin"), b"bad").unwrap();
    for name in remote.names().iter().filter(|name| name.contains("backbone.bin")) {
        backend.replace(name, b"gone bad").unwrap();
    }
    replica.fetch(&prefix, folder.path(), &reported).expect("the backbone is whole here");
    assert_eq!(read("head.bin"), 20_u64.to_le_bytes());
    std::fs::remove_file(folder.path().join("backbone.bin")).unwrap();
    let error = replica.fetch(&prefix, folder.path(), &reported).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    let error = replica.fetch("step-00000099/epoch-1-x", folder.path(), &reported).unwrap_err();
    assert!(matches!(error, CheckpointError::NoSuchCommit { .. }), "{error}");
}

/// Proves that a kill, a torn write, a power cut, a full or a failing disk at any operation while a checkpoint is
/// fetched into a folder leaves nothing that the next try takes for whole.
#[test]
fn a_fault_of_the_disk_while_bringing_is_made_good() {
    let (one, remote) = (World::new(), memory());
    let (attempt, _) = one.fetch_target(&remote).unwrap();
    save_shared(&mut one.train(attempt, 1), 10);
    one.settle(&remote, None).unwrap();
    for fault in Fault::DEADLY.into_iter().chain(Fault::RETURNED) {
        for operation in 0.. {
            let two = one.other_machine();
            let prefix = two.replica(&remote).unwrap().remote_list()[0].object_prefix.clone();
            let folder = two.path().join("brought");
            std::fs::create_dir_all(&folder).unwrap();
            let disk = FaultDisk::new(fault, operation);
            let replica = two.replica_on(Arc::new(disk.clone()), &remote);
            let brought = replica.and_then(|replica| replica.fetch(&prefix, &folder, &|_, _| {}));
            if !disk.struck() {
                brought.unwrap();
                assert!(operation > 5, "only {operation} operations");
                break;
            }
            if fault.is_deadly() {
                disk.after_crash();
            }
            let situation = format!("{fault:?} at operation {operation}");
            two.replica(&remote).unwrap().fetch(&prefix, &folder, &|_, _| {}).expect(&situation);
            assert_eq!(std::fs::read(folder.join("head.bin")).unwrap(), 10_u64.to_le_bytes(), "{situation}");
        }
    }
}
