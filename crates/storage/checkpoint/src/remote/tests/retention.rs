//! What is kept, here and at the remote.

use super::*;
use crate::retention::MAX_ONLY_COPIES;

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
    let refused = replica.pin("kept", &first.object_prefix, "", None).map(drop).unwrap_err();
    assert_eq!(refused.kind(), crate::ErrorKind::Storage, "{refused}");
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
