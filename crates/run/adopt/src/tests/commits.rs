//! What is committed of what a script writes, and when.

use trackway_layouts::Because;

use super::*;

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

/// Proves that what is torn is given up once, that a script which dies in the middle of a save commits nothing of it,
/// and that the one before stays.
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

/// Proves that a copy which is interrupted before it begins or in its middle commits nothing, and that the next look
/// commits the same state.
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

/// Proves that a file that cannot be read for a while is not called torn, and is committed when it can be. Skipped for
/// root, who can read every file.
#[test]
fn what_cannot_be_read_is_not_damaged() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let path = world.work("out/step-10.safetensors");
    write(&path, &tensors(100, 1));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        trackway_skip::skip!("every file can be read by this user");
        return;
    }
    let refused = world.follow(&mut adopter, 9).not_adopted;
    assert!(refused[0].why.contains("cannot read"), "{refused:?}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
}

/// Proves that what an attempt wrote before its shim was lost is committed once, by the one look before the next
/// attempt, and what was there before it never.
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

/// Proves that a checkpoint which the script's own retention deletes between the look and the copy, in part or as a
/// whole, is not committed, that the one before stays, and that the next one is committed.
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

/// Proves that a file which is written over in place has its state since the last look at the one before that was whole and closed.
#[test]
fn a_state_in_place_is_later_than_the_last_finished_one() {
    let world = World::new();
    let mut adopter = world.adopter(1, &["a.safetensors"]);
    let mut seconds = 0;
    let mut look = |bytes: &[u8], is_open: bool| {
        write(&world.work("a.safetensors"), bytes);
        seconds += 1;
        world.clock.advance_micros(1_000_000);
        let since_ns = Cell::new(-1);
        adopter.look(&Facts {
            at_ns: seconds * SECOND_NS,
            saves: &world.saves,
            step_when_written: &|_| None,
            step_slack: 0,
            writers: &|files, _| {
                since_ns.set(files[0].since_ns);
                own()
            },
            writers_ended: false,
            is_open_for_writing: &|_| Some(is_open),
            is_interrupted: &|| false,
        });
        (since_ns.get(), world.clock.now().as_nanos())
    };
    let (since, first) = look(&tensors(100, 1), false);
    assert_eq!(since, 0);
    let (since, _) = look(&tensors(101, 2), true);
    assert_eq!(since, first);
    let (since, _) = look(&tensors(102, 3)[..50], false);
    assert_eq!(since, first, "the one before was open");
    let (since, last) = look(&tensors(103, 4), false);
    assert_eq!(since, first, "the one before was not whole");
    assert_eq!(look(&tensors(104, 5), false).0, last);
}
