//! Several machines with one remote: where each continues from.

use trackway_core::UnsafeEvidence;

use super::*;
use crate::remote::FetchSource;

/// Proves the normal case: what one machine commits and uploads, another with an empty disk continues from, byte for
/// byte, in the next epoch; and that doing it all again adds nothing.
#[test]
fn another_machine_continues_from_the_remote() {
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

/// Proves that a dead branch is left: machine A reached step 500 and could not hand it over, machine B continued from 300 and
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
    crate::housekeeping::keeper::append(root.view_mut(), Writer::Housekeeper, |_| {
        Some(Body::suspect(bad.number, "loading it crashed twice"))
    })
    .unwrap();
    assert_eq!(world.fetch_target(&remote).unwrap().1.target.unwrap().step, 10);
    assert_eq!(world.other_machine().fetch_target(&remote).unwrap().1.target.unwrap().step, 10);
}

/// Proves that what one machine marks unsafe is skipped on every machine, before and after it was handed over, that the
/// newest safe one is kept at the remote while unsafe ones are newer, that nothing unsafe is sent, and that clearing it
/// counts everywhere.
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
