//! Links and copies: further names of one checkpoint.

use super::*;

/// Proves that a hard link to a checkpoint is the same one and committed once, and that another file of the same size and time is not.
#[test]
fn a_hard_link_is_the_same_checkpoint() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    world.finished("out/step-30.safetensors", &tensors(100, 1), 1);
    fs::hard_link(world.work("out/step-30.safetensors"), world.work("out/last.safetensors")).unwrap();
    world.finished("out/step-30-ema.safetensors", &tensors(100, 2), 1);
    world.ended = true;
    for _ in 0..5 {
        world.look(&mut adopter);
    }
    assert_eq!(world.view().list().len(), 2);
}

/// Proves that neither a checkpoint with a symbolic link in it nor a link is committed, that each is said once, with
/// the link's name, unless what it points to is looked at itself, and that a link which points to nothing after its
/// target was moved is moved too.
#[test]
fn links_are_not_committed() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let link = |target: &str, at: &str| std::os::unix::fs::symlink(target, world.work(at)).unwrap();
    write(&world.work("out/checkpoint-10/trainer_state.json"), br#"{"global_step": 10}"#);
    write(&world.work("out/step-20.safetensors"), &tensors(100, 1)[..50]);
    link("../../elsewhere.safetensors", "out/checkpoint-10/model.safetensors");
    link("step-20.safetensors", "out/step-last.safetensors");
    write(&world.work("elsewhere.safetensors"), &tensors(100, 1));
    link("../elsewhere.safetensors", "out/step-else.safetensors");
    world.ended = true;
    let mut refused = Vec::new();
    for _ in 0..20 {
        let look = world.look(&mut adopter);
        assert!(look.adopted.is_empty(), "{look:?}");
        refused.extend(look.not_adopted.into_iter().map(|one| (one.path, one.why)));
    }
    refused.sort();
    let [inside, torn, last] = refused.try_into().unwrap();
    assert_eq!(inside.0, "out/checkpoint-10");
    assert!(inside.1.contains("model.safetensors` in it is a symbolic link"), "{}", inside.1);
    assert_eq!(torn.0, "out/step-20.safetensors");
    assert_eq!(last.0, "out/step-else.safetensors");
    assert!(last.1.contains("it is a symbolic link: what it points to"), "{}", last.1);
    assert!(!world.root().exists());

    let (patterns, quarantine) = (world.patterns(&["out/step-*"]), world.folder.path().join("quarantine"));
    let history = world.history(&mut adopter);
    let clearing = Clearing { patterns: &patterns, quarantine: &quarantine, history: &history };
    let moved: Vec<String> = clearing.clear_torn().unwrap().moved.into_iter().map(|one| one.path).collect();
    assert_eq!(moved, ["out/step-20.safetensors", "out/step-last.safetensors"]);
    assert!(quarantine.join("step-last.safetensors").is_symlink());
}

/// Proves that a copy of a checkpoint, a symbolic link to it and a copy of its folder are the same one: committed once,
/// so that the copies that are kept are of as many steps; and that another file, and the same bytes under the name of
/// another step, are not.
#[test]
fn a_copy_is_the_same_checkpoint() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    for step in [10_u8, 20, 30] {
        write(&world.work(&format!("out/step-{step}.safetensors")), &tensors(3 << 20, step));
        fs::copy(world.work(&format!("out/step-{step}.safetensors")), world.work("out/latest.safetensors"))
            .unwrap();
        fs::remove_file(world.work("out/link.safetensors")).ok();
        std::os::unix::fs::symlink(format!("step-{step}.safetensors"), world.work("out/link.safetensors"))
            .unwrap();
        for _ in 0..9 {
            assert!(world.look(&mut adopter).not_adopted.is_empty());
        }
    }
    let view = world.view();
    let readable: Vec<u64> =
        view.list().iter().filter_map(|info| view.load(info.number).ok()).map(|it| it.step).collect();
    assert_eq!((view.list().len(), readable), (3, vec![10, 20, 30]));

    write(&world.work("out/latest.safetensors"), &tensors(3 << 20, 31));
    assert_eq!(world.follow(&mut adopter, 20).adopted.len(), 1, "other bytes");
    write(&world.work("out/step-40.safetensors"), &tensors(3 << 20, 30));
    assert_eq!(world.follow(&mut adopter, 20).adopted.len(), 1, "another step");
    for name in ["checkpoint-50", "checkpoint-best"] {
        write(&world.work(&format!("out/{name}/model.safetensors")), &tensors(100, 50));
        write(&world.work(&format!("out/{name}/trainer_state.json")), br#"{"global_step": 50}"#);
    }
    for _ in 0..9 {
        world.look(&mut adopter);
    }
    assert_eq!(world.view().list().len(), 6);
}
