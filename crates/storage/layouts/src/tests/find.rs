//! Folders with several things in them.

use super::build;
use crate::{Layout, Root, Tree, find};

fn paths(tree: &Tree) -> Vec<(String, Layout)> {
    find(&tree.listing(), tree).checkpoints.into_iter().map(|found| (found.path, found.layout)).collect()
}

/// Proves that the checkpoints of a folder are found, each once, with its files, and that a tracker is not one.
#[test]
fn checkpoints_are_found_once() {
    let mut tree = build::trainer();
    tree.add("out/checkpoint-20/global_step20/mp_rank_00_model_states.pt", build::torch(build::state(20)))
        .add("out/checkpoint-20/latest", "global_step20")
        .add("out/model.safetensors", build::safetensors(""))
        .add("mega/iter_0000100/mp_rank_00/model_optim_rng.pt", build::torch(build::state(100)))
        .add("mega/latest_checkpointed_iteration.txt", "100")
        .add("ckpt.pt", build::torch(build::state(3)))
        .add(
            "best/model.keras",
            build::zip(&[("config.json", b"{}".to_vec()), ("metadata.json", b"{}".to_vec())], false),
        );
    assert_eq!(
        paths(&tree),
        [
            ("mega/iter_0000100".to_owned(), Layout::Megatron),
            ("out/checkpoint-20".to_owned(), Layout::TransformersTrainer),
            ("best/model.keras".to_owned(), Layout::Keras),
            ("ckpt.pt".to_owned(), Layout::TorchFile),
            ("out/model.safetensors".to_owned(), Layout::Safetensors),
        ]
    );
    let found = find(&tree.listing(), &tree);
    assert_eq!(found.trackers.len(), 1);
    assert_eq!(
        (found.trackers[0].path.as_str(), found.trackers[0].step),
        ("mega/latest_checkpointed_iteration.txt", Some(100))
    );
    assert!(found.checkpoints.iter().all(|found| (found.root == Root::File) == found.path.contains('.')));
}

/// Proves that data, tokenizers, logs of other tools and texts are not called checkpoints.
#[test]
fn other_files_are_none() {
    let mut tree = Tree::default();
    tree.add("train.npz", build::zip(&[("x.npy", vec![1])], false))
        .add("vocab.pkl", build::pickle(&build::P::Dict(vec![("a", build::P::Int(1))]), 4))
        .add("tokenizer.json", r#"{"version":"1.0","model":{"vocab":{}}}"#)
        .add("config.json", "{}")
        .add("training_args.bin", build::torch(build::state(1)))
        .add("data/images.h5", build::hdf5(0))
        .add("notes.txt", "tree\n")
        .add("latest", "run 3 is the latest")
        .add("wandb/run-1/files/model.pt", build::torch(build::state(1)))
        .add("mlruns/0/checkpoint-20/optimizer.pt", build::torch(build::state(1)));
    assert_eq!(paths(&tree), []);
    assert_eq!(find(&tree.listing(), &tree).trackers, []);
}

/// Proves that what is under a temporary name is named as unfinished, and not as a checkpoint.
#[test]
fn temporaries_are_unfinished() {
    let mut tree = Tree::default();
    tree.add("5.orbax-checkpoint-tmp-123/_CHECKPOINT_METADATA", r#"{"commit_timestamp_nsecs": null}"#)
        .add("tmp-checkpoint-40/model.safetensors", build::safetensors(""))
        .add("checkpoint_tmp", build::msgpack(3))
        .add(".tmp7B6nTM", build::safetensors(""))
        .add("ckpt.pt.tmp", build::torch(build::state(3)));
    let found = find(&tree.listing(), &tree);
    assert_eq!(found.checkpoints, []);
    let unfinished: Vec<_> = found.unfinished.iter().map(|item| item.path.as_str()).collect();
    assert_eq!(
        unfinished,
        ["5.orbax-checkpoint-tmp-123", "tmp-checkpoint-40", ".tmp7B6nTM", "checkpoint_tmp", "ckpt.pt.tmp"]
    );
}

/// Proves that steps and epochs are read from names as people and frameworks write them, and not from other numbers.
#[test]
fn names_say_steps_and_epochs() {
    use crate::names::{epoch, step};
    for (name, wanted) in [
        ("step_400", Some(400)),
        ("step-400", Some(400)),
        ("step=400", Some(400)),
        ("epoch=3-step=400.ckpt", Some(400)),
        ("global_step10", Some(10)),
        ("iter_0000100", Some(100)),
        ("model_step_40.pth", Some(40)),
        ("ckpt-iter5.pt", Some(5)),
        ("orbit3.pt", None),
        ("checkpoint_5.pt", None),
        ("model_2.ubj", None),
        ("step.pt", None),
        ("gpt2", None),
        ("step99999999999999999999", None),
        ("\\xe9-step-40.pt", Some(40)),
        ("step-\\x89.pt", None),
        ("\\xfcstep-40.pt", Some(40)),
    ] {
        assert_eq!(step(name), wanted, "{name}");
    }
    assert_eq!(
        (epoch("epoch=3-step=400.ckpt"), epoch("epoch-01.keras"), epoch("model_ep7.pt")),
        (Some(3), Some(1), Some(7))
    );
    assert_eq!(epoch("deep4.pt"), None);
}
