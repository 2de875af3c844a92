//! What a script finds before a resume, and what is moved for it.

use super::*;

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

/// Proves that nothing of another training is moved or written over before a resume, whatever its step and however
/// torn, nor anything that is not a checkpoint, and that the committed one is not put where another's file is.
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

/// Proves that a folder of which a rank had written only its own state when all were killed is moved before a resume,
/// as the others of the run have such a name, and that another folder with such a file is not.
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
