//! States in several files.

use super::*;
use trackway_formats::checkpoint_origin::CheckpointOrigin;

/// Pickles of `{"l.weight": 1}` and `{"param_groups": 1}`, with the byte of a step.
fn weights(step: u8) -> Vec<u8> {
    [&b"\x80\x02}X\x08\x00\x00\x00l.weightK"[..], &[step], b"s."].concat()
}

fn optimizer(step: u8) -> Vec<u8> {
    [&b"\x80\x02}X\x0c\x00\x00\x00param_groupsK"[..], &[step], b"s."].concat()
}

/// Saves model and optimizer in two files.
fn save(world: &World, step: u8) {
    write(&world.work(&format!("out/model-{step}.pkl")), &weights(step));
    write(&world.work(&format!("out/optim-{step}.pkl")), &optimizer(step));
}

/// The files of the newest commit: name, kind and bytes.
fn newest(world: &World) -> Vec<(String, Kind, Vec<u8>)> {
    let target = world.view().resume_target().unwrap().unwrap();
    let files = target.files().iter().filter(|file| file.name != "origin.json");
    files.map(|file| (file.name.clone(), file.kind, target.read(&file.name).unwrap())).collect()
}

fn commits(world: &World) -> usize {
    if world.root().exists() { world.view().list().len() } else { 0 }
}

/// Proves that model and optimizer in two files of one step are one checkpoint with both files, whether the patterns
/// name both, one of them or none.
#[test]
fn two_files_of_a_step_are_one_checkpoint() {
    for named in [Some("out/*.pkl"), Some("out/model-*.pkl"), Some("out/optim-*.pkl"), None] {
        let mut world = World::new();
        let patterns = match named {
            Some(named) => world.patterns(&[named]),
            None => Patterns::detecting(&world.work(""), &world.work("home")),
        };
        let mut adopter = world.adopter_of(1, patterns);
        for step in [10, 20] {
            world.last_step = Some(step.into());
            save(&world, step);
            let look = world.follow(&mut adopter, 9);
            let [adopted] = <[_; 1]>::try_from(look.adopted).unwrap();
            assert_eq!((adopted.path, adopted.commit.step), (format!("out/model-{step}.pkl"), step.into()));
            assert_eq!(adopted.beside, [format!("optim-{step}.pkl")]);
        }
        assert!(world.follow(&mut adopter, 9).adopted.is_empty());
        assert_eq!(commits(&world), 2, "{named:?}");
        let expected = [
            ("model-20.pkl".to_owned(), Kind::Weights, weights(20)),
            ("optim-20.pkl".to_owned(), Kind::Optimizer, optimizer(20)),
        ];
        assert_eq!(newest(&world), expected);
    }
}

/// Proves that a model whose parameters have names that say nothing is one by the name of its file, beside its optimizer.
#[test]
fn a_model_of_nameless_parameters_is_one() {
    let mut world = World::new();
    world.last_step = Some(10);
    let mut adopter = world.adopter(1, &["out/*.pkl"]);
    // A pickle of `{"w": 1}`.
    write(&world.work("out/model-10.pkl"), b"\x80\x02}X\x01\x00\x00\x00wK\x01s.");
    write(&world.work("out/optim-10.pkl"), &optimizer(10));
    let look = world.follow(&mut adopter, 9);
    assert_eq!(look.adopted.len(), 1, "{look:?}");
    let kinds: Vec<Kind> = newest(&world).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds, [Kind::Weights, Kind::Optimizer]);
}

/// Proves that within a tick of the kernel's clock the step is the one in the name, and that another number in it is none.
#[test]
fn a_name_decides_within_a_tick() {
    use crate::commit::complete::named_in_tick;
    assert_eq!(named_in_tick("model-20.pt", Some(20), Some(21)), Some(20));
    assert_eq!(named_in_tick("model-3.pt", Some(20), Some(21)), None, "an epoch");
    assert_eq!(named_in_tick("model.pt", Some(20), Some(21)), None);
    assert_eq!(named_in_tick("model-20.pt", None, None), None);
}

/// Proves that a save right before or right after the record of its step has the step that continues the saves before
/// it, and that those at other distances, and a window with several such steps or none, decide nothing.
#[test]
fn a_regular_save_has_the_step_of_its_distance() {
    use crate::commit::complete::regular_in_window;
    let regular = |window, saved: &[u64]| regular_in_window(&window, &saved.iter().copied().collect());
    assert_eq!(regular(59..=60, &[20, 40]), Some(60), "it is saved before it is recorded");
    assert_eq!(regular(60..=61, &[20, 40]), Some(60), "the next one is recorded right after it");
    assert_eq!(regular(79..=80, &[20, 40]), Some(80), "one was not saved");
    assert_eq!(regular(59..=60, &[19, 39]), Some(59), "each is one behind");
    assert_eq!(regular(39..=40, &[20]), Some(40));
    assert_eq!(regular(3..=4, &[2, 3]), Some(4));
    for (window, saved) in [
        (59..=60, &[][..]),
        (59..=60, &[40]),
        (0..=1, &[0]),
        (5..=6, &[1, 3]),
        (60..=61, &[19, 40]),
        (58..=59, &[20, 40]),
        (39..=40, &[20, 40]),
        (59..=80, &[20, 40]),
        (4..=5, &[2, 3]),
    ] {
        assert_eq!(regular(window.clone(), saved), None, "{window:?} {saved:?}");
    }
}

/// Proves that the step of a commit without one is by the saves before it, the same whether it was recorded a little
/// before or a little after.
#[test]
fn a_save_beside_its_record_has_the_step_of_its_distance() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["ckpt.safetensors"]);
    let path = world.work("ckpt.safetensors");
    for (step, fill) in [(20, 1), (40, 2)] {
        world.last_step = Some(step);
        write(&path, &tensors(100, fill));
        assert_eq!(world.follow(&mut adopter, 20).adopted[0].commit.step, step);
    }
    (world.last_step, world.next_step) = (Some(59), Some((path.clone(), 60)));
    write(&path, &tensors(100, 3));
    assert_eq!(world.follow(&mut adopter, 20).adopted[0].commit.step, 60);
}

/// Proves that a state of which a file is torn, or missing where those before had it, or is of the save before, is not
/// committed, and that the one before stays the newest.
#[test]
fn a_part_of_a_state_is_not_committed() {
    type Break = fn(&World);
    let breaks: [(Break, &str); 3] = [
        (|world| write(&world.work("out/model-20.pkl"), &weights(20)), "optimizer is missing"),
        (|world| write(&world.work("out/optim-20.pkl"), &optimizer(20)), "model is missing"),
        (
            |world| {
                write(&world.work("out/model-20.pkl"), &weights(20));
                write(&world.work("out/optim-20.pkl"), &optimizer(20)[..12]);
            },
            "`optim-20.pkl`",
        ),
    ];
    for (save_in_part, says) in breaks {
        let mut world = World::new();
        let mut adopter = world.adopter(1, &["out/*.pkl"]);
        save(&world, 10);
        assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
        save_in_part(&world);
        assert!(world.follow(&mut adopter, 20).adopted.is_empty(), "{says}");
        world.ended = true;
        let look = world.follow(&mut adopter, 20);
        let refused: Vec<String> = look.not_adopted.into_iter().map(|one| one.why).collect();
        assert_eq!((look.adopted.len(), commits(&world)), (0, 1), "{says}");
        assert!(refused.iter().all(|why| why.contains(says)), "{refused:?}");
    }
    // Both are written again in place: between the two they are of two saves.
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["*.pkl"]);
    write(&world.work("model.pkl"), &weights(10));
    write(&world.work("optimizer.pkl"), &optimizer(10));
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
    write(&world.work("model.pkl"), &weights(20));
    assert!(world.follow(&mut adopter, 20).adopted.is_empty());
    write(&world.work("optimizer.pkl"), &optimizer(20));
    assert_eq!(world.follow(&mut adopter, 20).adopted.len(), 1);
    assert_eq!(newest(&world)[1].2, optimizer(20));
}

/// Proves that without patterns what a kill left of a state is found by the names of those before, and moved, and that
/// a model without an optimizer is not committed before a whole state was.
#[test]
fn without_patterns_a_torn_part_is_found() {
    let mut world = World::new();
    let patterns = Patterns::detecting(&world.work(""), &world.work("home"));
    let mut adopter = world.adopter_of(1, patterns.clone());
    write(&world.work("out/model-5.pkl"), &weights(5));
    save(&world, 10);
    for _ in 0..9 {
        world.look(&mut adopter);
    }
    assert_eq!((commits(&world), newest(&world).len()), (1, 2));
    fs::remove_file(world.work("out/model-5.pkl")).unwrap();
    write(&world.work("out/model-25.pkl"), &weights(25));
    write(&world.work("out/optim-25.pkl"), &optimizer(25)[..12]);
    world.ended = true;
    world.follow(&mut adopter, 9);
    let history = world.history(&mut adopter);
    let quarantine = world.folder.path().join("quarantine");
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    let target = world.view().resume_target().unwrap().unwrap();
    let moved: Vec<String> =
        clearing.put_back(&target).unwrap().cleared.moved.into_iter().map(|one| one.path).collect();
    assert_eq!(moved, ["out/model-25.pkl", "out/optim-25.pkl"]);
}

/// Proves that what the script deletes of an older state is not taken for a new one, and that a file added to it later makes none.
#[test]
fn what_is_left_of_a_state_is_not_new() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.pkl"]);
    save(&world, 10);
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
    write(&world.work("out/scheduler-10.pkl"), STATE);
    assert!(world.follow(&mut adopter, 9).adopted.is_empty());
    fs::remove_file(world.work("out/scheduler-10.pkl")).unwrap();
    fs::remove_file(world.work("out/optim-10.pkl")).unwrap();
    world.ended = true;
    let look = world.follow(&mut adopter, 9);
    assert!(look.adopted.is_empty() && look.not_adopted.is_empty(), "{look:?}");
}

/// Proves that files which are one state by their names and not by their content are committed as they were before: the complete one alone.
#[test]
fn a_complete_file_beside_an_optimizer_is_one_for_itself() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.pkl"]);
    // `{"model": 1, "optimizer": 1}`.
    let state = b"\x80\x02}(X\x05\x00\x00\x00modelK\x01X\x09\x00\x00\x00optimizerK\x01u.";
    write(&world.work("out/ckpt-10.pkl"), state);
    write(&world.work("out/optim-10.pkl"), &optimizer(10));
    world.ended = true;
    let looks: Vec<Look> = (0..9).map(|_| world.look(&mut adopter)).collect();
    let adopted: Vec<&str> =
        looks.iter().flat_map(|look| &look.adopted).map(|one| one.path.as_str()).collect();
    assert_eq!(adopted, ["out/ckpt-10.pkl"]);
    assert_eq!(looks.iter().map(|look| look.not_adopted.len()).sum::<usize>(), 1, "the optimizer");
}

/// Proves that a state in several files is the attempt's only if each file is.
#[test]
fn one_file_of_another_makes_no_own_checkpoint() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.pkl"]);
    save(&world, 10);
    let inode = {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(world.work("out/optim-10.pkl")).unwrap().ino()
    };
    for _ in 0..9 {
        world.at_ns += SECOND_NS;
        let other = || Writers { other: Some("process 7 (`python`)".into()), ..Writers::default() };
        let look = adopter.look(&Facts {
            at_ns: world.at_ns,
            saves: &world.saves,
            step_when_written: &|_| None,
            step_slack: 0,
            writers: &|files, _| match files.iter().any(|file| file.id.1 == inode) {
                true => WriterEvidence { kernel: other(), ..own() },
                false => own(),
            },
            writers_ended: false,
            is_open_for_writing: &|_| Some(false),
            is_interrupted: &|| false,
        });
        assert!(look.adopted.is_empty(), "{look:?}");
    }
    assert!(adopter.own_if_changed().is_none_or(|own| own.is_empty()));
}

/// Proves that before a resume both files are there as they were committed, written again together where one is gone or
/// another, that a later state of which a file is missing is moved with all of its files, and that nothing is moved
/// twice.
#[test]
fn both_files_are_put_back() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.pkl"]);
    save(&world, 10);
    world.follow(&mut adopter, 9);
    let (patterns, quarantine) = (world.patterns(&["out/*.pkl"]), world.folder.path().join("quarantine"));
    let target = world.view().resume_target().unwrap().unwrap();
    let put_back = |world: &mut World, adopter: &mut Adopter| {
        world.look(adopter);
        let history = world.history(adopter);
        let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
        let restored = clearing.put_back(&target).unwrap();
        let moved: Vec<String> = restored.cleared.moved.into_iter().map(|one| one.path).collect();
        assert_eq!(restored.path, world.work("out/model-10.pkl"));
        assert_eq!(fs::read(world.work("out/model-10.pkl")).unwrap(), weights(10));
        assert_eq!(fs::read(world.work("out/optim-10.pkl")).unwrap(), optimizer(10));
        (restored.written, moved)
    };
    assert_eq!(put_back(&mut world, &mut adopter), (false, vec![]));
    fs::remove_file(world.work("out/optim-10.pkl")).unwrap();
    assert_eq!(put_back(&mut world, &mut adopter), (true, vec!["out/model-10.pkl".into()]));
    fs::remove_file(world.work("out/model-10.pkl")).unwrap();
    assert_eq!(put_back(&mut world, &mut adopter), (true, vec!["out/optim-10.pkl".into()]));
    fs::remove_dir_all(world.work("out")).unwrap();
    assert_eq!(put_back(&mut world, &mut adopter), (true, vec![]));
    write(&world.work("out/model-20.pkl"), &weights(20));
    assert_eq!(put_back(&mut world, &mut adopter), (false, vec!["out/model-20.pkl".into()]));
    write(&world.work("out/model-20.pkl"), &weights(20));
    write(&world.work("out/optim-20.pkl"), &optimizer(20)[..12]);
    let both = vec!["out/model-20.pkl".into(), "out/optim-20.pkl".into()];
    assert_eq!(put_back(&mut world, &mut adopter), (false, both));
    let origin = CheckpointOrigin::from_bytes(&target.read("origin.json").unwrap()).unwrap();
    assert_eq!((origin.version, origin.beside()), (2, vec!["optim-10.pkl".to_owned()]));
}
