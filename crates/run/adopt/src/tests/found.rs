//! What is found, and what of it is a checkpoint of the attempt.

use super::*;

/// Proves that neither the home nor a folder that holds it is found by a pattern.
#[test]
fn the_home_is_out_of_reach() {
    let world = World::new();
    write(&world.work("home/attempts/x/ckpt.pt"), STATE);
    write(&world.work("ckpt.pt"), STATE);
    for pattern in ["*", "**/ckpt.pt", "home", "home/attempts/*/ckpt.pt"] {
        let found = world.patterns(&[pattern]).paths();
        assert!(found.iter().all(|path| *path == world.work("ckpt.pt")), "{pattern}: {found:?}");
    }
    let above = Patterns::new(&world.work(""), &["../*".into()], &world.work("home")).unwrap();
    assert!(above.paths().iter().all(|path| !world.work("home").starts_with(path.canonicalize().unwrap())));
}

/// Proves that what another process wrote, or no process is known to have written, is named once with why, and is
/// committed when the script reports it.
#[test]
fn what_is_not_shown_to_be_own_is_not_committed() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let other = || Writers { other: Some("process 7 (`python`)".into()), ..Writers::default() };
    let none = Writers::default;
    let company = Company::With("process 7 (`python`)".into());
    for (step, seen, says) in [
        (10, WriterEvidence { kernel: other(), ..own() }, "process 7 (`python`) wrote it"),
        (
            20,
            WriterEvidence { kernel: none(), open: none(), company, less: None },
            "may have written it at the same time",
        ),
    ] {
        world.seen = seen;
        write(&world.work(&format!("out/step-{step}.safetensors")), &tensors(100, step));
        let mut not_own = Vec::new();
        for _ in 0..9 {
            let look = world.look(&mut adopter);
            assert!(look.adopted.is_empty(), "{look:?}");
            not_own.extend(look.not_own);
        }
        assert!(not_own.len() == 1 && not_own[0].why.contains(says), "{not_own:?}");
        assert!(adopter.own_if_changed().is_none_or(|own| own.is_empty()));
    }
    let reported = world.work("out").canonicalize().unwrap().join("step-20.safetensors");
    world.saves.report(reported, i64::MAX / 2, Some(20));
    let look = world.look(&mut adopter);
    assert_eq!(look.adopted[0].shown_by, trackway_formats::writers::ShownBy::Report);
}

/// Proves that the state of an optimizer alone is refused with why, and that of an optimizer with its step is committed.
#[test]
fn an_optimizer_alone_is_no_checkpoint() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*.pkl"]);
    world.ended = true;
    // `{"param_groups": 1}` and `{"optimizer": 1, "step": 20}`.
    write(&world.work("out/optim-10.pkl"), b"\x80\x02}X\x0c\x00\x00\x00param_groupsK\x01s.");
    let refused = world.follow(&mut adopter, 9).not_adopted;
    assert!(refused.len() == 1 && refused[0].why.contains("no model"), "{refused:?}");
    let state = b"\x80\x02}(X\x09\x00\x00\x00optimizerK\x01X\x04\x00\x00\x00stepK\x14u.";
    write(&world.work("out/state-20.pkl"), state);
    assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 20);
}

/// Proves that without patterns the state of a trainer is found, wherever it is, and a booster whose name has its
/// rounds, and neither another model nor what is in hidden folders or the home; and that nothing is committed for a
/// script that saves through Trackway.
#[test]
fn without_patterns_only_states_of_trainings_are_found() {
    let mut world = World::new();
    let mut adopter = world.adopter_of(1, Patterns::detecting(&world.work(""), &world.work("home")));
    for folder in ["runs/a/checkpoint-10", ".cache/checkpoint-10", "home/checkpoints/b/checkpoint-10"] {
        write(&world.work(&format!("{folder}/model.safetensors")), &tensors(100, 1));
        write(&world.work(&format!("{folder}/trainer_state.json")), br#"{"global_step": 10}"#);
    }
    write(&world.work("model.safetensors"), &tensors(100, 1));
    // Boosters of 10 rounds: XGBoost names them from 0.
    for name in ["xgb/model_9.json", "xgb/model_10.json", "xgb/fold_3.json", "xgb/final.json"] {
        let indices: Vec<String> = (0..=10).map(|round| round.to_string()).collect();
        let model =
            format!(r#"{{"learner":{{"iteration_indptr":[{}]}},"version":[3,2,0]}}"#, indices.join(","));
        write(&world.work(name), model.as_bytes());
    }
    world.ended = true;
    let looks = [world.follow(&mut adopter, 5), world.follow(&mut adopter, 5)];
    let mut paths: Vec<&str> =
        looks.iter().flat_map(|look| &look.adopted).map(|one| one.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["runs/a/checkpoint-10", "xgb/model_10.json", "xgb/model_9.json"]);

    let mut root = world.own_root(2);
    root.save(5, &[], |writer| writer.file("model", Kind::Optimizer, b"x")).unwrap();
    let attempt_id = root.list().unwrap().last().unwrap().attempt_id;
    let mut adopter =
        world.adopter_for(2, attempt_id, Patterns::detecting(&world.work(""), &world.work("home")));
    write(&world.work("runs/a/checkpoint-20/model.safetensors"), &tensors(100, 1));
    write(&world.work("runs/a/checkpoint-20/trainer_state.json"), br#"{"global_step": 20}"#);
    let look = world.follow(&mut adopter, 5);
    assert!(
        look.adopted.is_empty() && look.not_adopted[0].why.contains("saves through Trackway"),
        "{look:?}"
    );
}

/// Proves that what is left alone is what was there at the look before the start, and that a checkpoint which came
/// since is one of the attempt.
#[test]
fn only_what_was_there_at_the_look_is_left_alone() {
    let mut world = World::new();
    let patterns = world.patterns(&["out/*"]);
    write(&world.work("out/step-10.safetensors"), &tensors(100, 10));
    let (places, since_ns) = (patterns.places(), world.clock.now().as_nanos());
    write(&world.work("out/step-20.safetensors"), &tensors(100, 20));
    let spec = world.spec(1, AttemptId::new(world.ids.as_ref()), patterns);
    let mut adopter = Adopter::new(spec, (&places, since_ns), world.clock.clone(), world.ids.clone());
    let look = world.follow(&mut adopter, 9);
    let paths: Vec<&str> = look.adopted.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["out/step-20.safetensors"]);
}
