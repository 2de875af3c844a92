//! What is kept of the copies, and models beside them.

use trackway_checkpoint::Housekeeper;

use super::*;
use crate::{kept_by_default, models_beside, resumed_from};

/// Proves what is kept where nothing is configured: a log without copies has no default, of copies alone the two newest are kept, once
/// what was committed at the end is judged, and beside a model everything is kept.
#[test]
fn the_default_keeps_two_copies_and_every_model() {
    let mut world = World::new();
    assert_eq!(kept_by_default(&world.view()), None);
    let mut adopter = world.adopter(1, &["out/checkpoint-*"]);
    world.ended = true;
    for step in [10, 20, 30] {
        let folder = format!("out/checkpoint-{step}");
        write(&world.work(&format!("{folder}/model.safetensors")), &tensors(100, step));
        let state = format!("{{\"global_step\": {step}}}");
        write(&world.work(&format!("{folder}/trainer_state.json")), state.as_bytes());
        assert_eq!(world.follow(&mut adopter, 5).adopted.len(), 1);
    }
    let kept = kept_by_default(&world.view()).unwrap();
    let readable =
        |view: &CheckpointView| view.list().iter().filter(|info| view.load(info.number).is_ok()).count();
    assert_eq!((kept.last, readable(&world.view())), (2, 3), "what is committed at the end is judged first");
    let mut house = Housekeeper::open(&world.root(), world.clock.clone(), world.ids.clone()).unwrap();
    house.collect(&kept, f64::INFINITY, false).unwrap();
    assert_eq!(readable(&world.view()), 2);
    let mut root = world.own_root(2);
    root.save(31, &[], |writer| writer.file("model.ubj", Kind::Weights, b"x")).unwrap();
    assert_eq!(kept_by_default(&world.view()), None);
}

/// Proves that the oldest copy and some whose distance doubles stay while an attempt runs, and that all stay once
/// values are lost that were finite before.
#[test]
fn good_copies_stay_while_an_attempt_runs() {
    let steps = |lost_from: u64| {
        let mut world = World::new();
        let mut adopter = world.adopter(1, &["out/model-*.safetensors"]);
        for step in 1..=20_u64 {
            let value: f32 = if step >= lost_from { f32::NAN } else { step as f32 };
            let header = r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
            let mut file = (header.len() as u64).to_le_bytes().to_vec();
            file.extend(header.as_bytes());
            file.extend([step as f32, value].iter().flat_map(|value| value.to_le_bytes()));
            write(&world.work(&format!("out/model-{step}.safetensors")), &file);
            world.last_step = Some(step);
            assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1, "{step}");
        }
        let view = world.view();
        let there = view.list().into_iter().filter(|info| info.state.is_whole());
        there.map(|info| info.step).collect::<Vec<_>>()
    };
    assert_eq!(steps(99), [1, 8, 16, 18, 19, 20]);
    let kept = steps(12);
    assert!(kept.ends_with(&(11..=20).collect::<Vec<_>>()), "{kept:?}");
}

/// Proves that a model which the script commits with `run.save_model` does not keep its framework's checkpoints from
/// being adopted, that the default retention of these does not delete the model, and that a retry continues from the
/// newest of them.
#[test]
fn a_model_that_was_committed_is_no_save_through_trackway() {
    let mut world = World::new();
    let mut root = world.own_root(1);
    root.save(5, &[], |writer| writer.file("model.ubj", Kind::Weights, b"x")).unwrap();
    assert!(models_beside(&world.view()).is_empty(), "it is the only checkpoint there is");
    let attempt_id = root.list().unwrap().last().unwrap().attempt_id;
    let mut adopter = world.adopter_for(1, attempt_id, world.patterns(&["out/checkpoint-*"]));
    world.ended = true;
    for step in [10, 20, 30] {
        let folder = format!("out/checkpoint-{step}");
        write(&world.work(&format!("{folder}/model.safetensors")), &tensors(100, step));
        write(
            &world.work(&format!("{folder}/trainer_state.json")),
            format!("{{\"global_step\": {step}}}").as_bytes(),
        );
        let look = world.follow(&mut adopter, 5);
        assert_eq!(look.adopted.len(), 1, "{look:?}");
    }
    root.save(31, &[], |writer| writer.file("model.ubj", Kind::Weights, b"y")).unwrap();
    let view = world.view();
    let readable = view.list().iter().filter(|info| view.load(info.number).is_ok()).count();
    assert_eq!((readable, view.list().last().unwrap().step), (5, 31));
    let found = view.resume_target().unwrap().unwrap();
    assert_eq!((found.step, resumed_from(&view, found).step), (31, 30));
    let beside = models_beside(&view);
    let models: Vec<u64> =
        view.list().iter().filter(|one| beside.contains(&one.object_prefix)).map(|one| one.step).collect();
    assert_eq!(models, [5, 31]);
    root.save(32, &[], |writer| {
        writer.file("model.ubj", Kind::Weights, b"z")?;
        writer.file("optimizer.json", Kind::Optimizer, b"{}")
    })
    .unwrap();
    write(&world.work("out/checkpoint-40/model.safetensors"), &tensors(100, 40));
    write(&world.work("out/checkpoint-40/trainer_state.json"), br#"{"global_step": 40}"#);
    assert!(world.follow(&mut adopter, 5).not_adopted[0].why.contains("saves through Trackway"));
}
