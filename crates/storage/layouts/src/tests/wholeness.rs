//! Checkpoints of several files: the last file, parts that are missing, and saves over older ones.

use super::{build, recognised};
use crate::{By, Layout, LayoutConfidence, Recognised, Root, Source, Tree, Wholeness, wholeness};

fn of(tree: &Tree, path: &str) -> Wholeness {
    wholeness(&tree.listing(), tree, &recognised(tree, path))
}

fn unfinished(tree: &Tree, path: &str) -> String {
    match of(tree, path) {
        Wholeness::Unfinished { what } => what,
        other => panic!("{path} is not unfinished: {other:?}"),
    }
}

fn marked(path: &str) -> Wholeness {
    Wholeness::Whole { by: By::Marker(path.to_owned()) }
}

const BY_STRUCTURE: Wholeness = Wholeness::Whole { by: By::Structure };

/// Proves that the Trainer's state completes its checkpoint only if it is there, is the newest, and says the folder's step.
#[test]
fn the_trainers_state_is_last() {
    let path = "out/checkpoint-20";
    let mut tree = build::trainer();
    assert_eq!(of(&tree, path), marked("out/checkpoint-20/trainer_state.json"));
    let found = recognised(&tree, path);
    assert_eq!(
        (found.layout, found.step, found.data_epoch, found.ranks),
        (Layout::TransformersTrainer, Some(20), Some(1), Some(1))
    );
    assert_eq!(found.components.len(), 5);

    // Saved again over the older one: the weights are new, the state is not.
    tree.add("out/checkpoint-20/model.safetensors", build::safetensors(""));
    assert!(unfinished(&tree, path).contains("is older than `model.safetensors`"));
    // A callback's file may come later.
    let mut tree = build::trainer();
    tree.add("out/checkpoint-20/notes.md", "mine");
    assert!(matches!(of(&tree, path), Wholeness::Whole { .. }));
    tree.add("out/checkpoint-20/trainer_state.json", r#"{"global_step": 19}"#);
    assert!(unfinished(&tree, path).contains("is of step 19, the folder of step 20"));
    tree.remove("out/checkpoint-20/trainer_state.json");
    assert!(unfinished(&tree, path).contains("`trainer_state.json` is missing"));
}

/// Proves that a Trainer's save which ended before the weights is unfinished, and so is any folder whose newest file is a temporary one.
#[test]
fn a_save_that_was_only_begun_is_unfinished() {
    let mut tree = Tree::default();
    tree.add("out/checkpoint-40/config.json", "{}");
    assert!(unfinished(&tree, "out/checkpoint-40").contains("`trainer_state.json` is missing"));
    tree.add("out/checkpoint-40/generation_config.json", "{}");
    tree.add("out/checkpoint-40/.tmpt99FP1", build::safetensors(""));
    assert!(unfinished(&tree, "out/checkpoint-40").contains("`trainer_state.json` is missing"));

    let unknown = Recognised::new("out/step-3", Root::Folder, Layout::Unknown, LayoutConfidence::Guess);
    let mut tree = Tree::default();
    tree.add("out/step-3/model.safetensors", build::safetensors(""));
    tree.add("out/step-3/.tmpt99FP1", build::safetensors(""));
    let found = wholeness(&tree.listing(), &tree, &unknown);
    assert!(matches!(found, Wholeness::Unfinished { what } if what.contains("is its newest file")));
    // Left by an earlier save, and saved again since.
    tree.add("out/step-3/model.safetensors", build::safetensors(""));
    assert!(matches!(wholeness(&tree.listing(), &tree, &unknown), Wholeness::Whole { .. }));
}

/// Proves that a rotation that stopped half way is noticed, though the last file is still there: by parts that belong together,
/// and by the time at which the folder changed.
#[test]
fn a_half_deleted_checkpoint_is_unfinished() {
    for (names, known_without_times) in [
        (["optimizer.pt"].as_slice(), true),
        (&["model.safetensors"], true),
        (&["config.json"], false),
        (&["optimizer.pt", "scheduler.pt", "rng_state.pth"], false),
    ] {
        let mut tree = build::trainer();
        for name in names {
            tree.remove(&format!("out/checkpoint-20/{name}"));
        }
        assert!(
            unfinished(&tree, "out/checkpoint-20").contains("removed after `trainer_state.json`"),
            "{names:?}"
        );
        // Without the times of folders, what belongs together is still known.
        let untimed = tree.listing().with_folders(std::collections::BTreeMap::new());
        let found = wholeness(&untimed, &tree, &recognised(&tree, "out/checkpoint-20"));
        assert_eq!(
            matches!(found, Wholeness::Unfinished { .. }),
            known_without_times,
            "{names:?}: {found:?}"
        );
    }
}

/// Proves the same on a disk: a folder with whole files is not whole once one of them was removed.
#[test]
fn a_file_that_was_removed_on_a_disk_is_noticed() {
    let disk = tempfile::tempdir().unwrap();
    let folder = disk.path().join("checkpoint-20");
    std::fs::create_dir(&folder).unwrap();
    let at = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    let tree = build::trainer();
    for file in tree.listing().files() {
        let path = folder.join(file.path.rsplit('/').next().unwrap());
        std::fs::write(&path, tree.read_at(&file.path, 0, 1 << 16).unwrap()).unwrap();
        let seconds = 1_000_000 + file.modified_ns.cast_unsigned() / 1_000_000_000;
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(at(seconds)).unwrap();
    }
    std::fs::File::open(&folder).unwrap().set_modified(at(1_000_000)).unwrap();
    let look = || {
        let (listing, source) = (crate::list(disk.path()).unwrap(), crate::Folder::new(disk.path()));
        let checkpoint = crate::recognise(&listing, &source, "checkpoint-20").unwrap();
        wholeness(&listing, &source, &checkpoint)
    };
    assert_eq!(look(), marked("checkpoint-20/trainer_state.json"));
    std::fs::rename(folder.join("config.json"), disk.path().join("config.json")).unwrap();
    assert!(matches!(look(), Wholeness::Unfinished { what } if what.contains("were removed")));
}

/// Proves that with several processes the Trainer's state is not enough, since the others write after it, and that a gap among
/// them is noticed.
#[test]
fn other_processes_of_a_trainer_may_be_late() {
    let path = "out/checkpoint-20";
    let mut tree = build::trainer();
    let state = || build::torch(vec![("cpu", build::P::Int(1))]);
    tree.remove("out/checkpoint-20/rng_state.pth").add("out/checkpoint-20/rng_state_0.pth", state());
    assert_eq!(of(&tree, path), BY_STRUCTURE);
    tree.add("out/checkpoint-20/rng_state_2.pth", state());
    assert_eq!(recognised(&tree, path).ranks, Some(3));
    assert_eq!(unfinished(&tree, path), "`rng_state_1.pth` is missing");
}

/// Proves that missing shards of weights are noticed by the index and by the numbers in their names.
#[test]
fn missing_shards_are_noticed() {
    let path = "out/checkpoint-20";
    let mut tree = build::trainer();
    tree.remove("out/checkpoint-20/model.safetensors")
        .add("out/checkpoint-20/model-00001-of-00002.safetensors", build::safetensors(""))
        .add("out/checkpoint-20/trainer_state.json", r#"{"global_step": 20}"#);
    assert_eq!(unfinished(&tree, path), "`model-00002-of-00002.safetensors` is missing");
    tree.add("out/checkpoint-20/model-00002-of-00002.safetensors", build::safetensors(""))
        .add(
            "out/checkpoint-20/model.safetensors.index.json",
            r#"{"weight_map": {"w": "model-00003.safetensors"}}"#,
        )
        .add("out/checkpoint-20/trainer_state.json", r#"{"global_step": 20}"#);
    assert!(unfinished(&tree, path).starts_with("`model-00003.safetensors` is missing, which"));
}

/// Proves that DCP's metadata completes it only if every file that it names is there, long enough and not newer.
#[test]
fn dcp_metadata_is_compared_with_its_files() {
    let tree = build::dcp();
    assert_eq!(of(&tree, "step-30"), marked("step-30/.metadata"));
    let found = recognised(&tree, "step-30");
    assert_eq!((found.step, found.ranks), (Some(30), Some(2)));
    let mut short = tree.clone();
    short.shorten("step-30/__0_0.distcp", 39);
    assert_eq!(unfinished(&short, "step-30"), "`__0_0.distcp` has 39 bytes of the 40 that `.metadata` names");
    let mut missing = tree.clone();
    missing.remove("step-30/__1_0.distcp");
    assert!(unfinished(&missing, "step-30").contains("`__1_0.distcp` is missing"));
    let mut again = tree.clone();
    again.add("step-30/__1_0.distcp", vec![3; 24]);
    assert!(unfinished(&again, "step-30").contains("is older than `__1_0.distcp`"));
    let mut before = tree;
    before.remove("step-30/.metadata");
    assert!(unfinished(&before, "step-30").contains("`.metadata` is missing"));
}

/// Proves that a tracker completes the folder that it names, that older ones were completed, and newer ones are not yet.
#[test]
fn trackers_name_what_is_finished() {
    for (tracker, folder, text) in [
        (
            "latest",
            (|step| format!("global_step{step}")) as fn(u32) -> String,
            (|step| format!("global_step{step}")) as fn(u32) -> String,
        ),
        ("latest_checkpointed_iteration.txt", |step| format!("iter_{step:07}"), |step| step.to_string()),
    ] {
        let mut tree = Tree::default();
        let save = |tree: &mut Tree, step| {
            let name = if tracker == "latest" {
                "mp_rank_00_model_states.pt"
            } else {
                "mp_rank_00/model_optim_rng.pt"
            };
            tree.add(&format!("{}/{name}", folder(step)), build::torch(build::state(step)));
        };
        save(&mut tree, 10);
        assert!(unfinished(&tree, &folder(10)).contains("is beside it"));
        tree.add(tracker, text(10));
        assert_eq!(of(&tree, &folder(10)), marked(tracker));
        save(&mut tree, 20);
        assert!(unfinished(&tree, &folder(20)).contains("is older than its files"), "{tracker}");
        tree.add(tracker, text(20));
        assert_eq!((of(&tree, &folder(10)), of(&tree, &folder(20))), (BY_STRUCTURE, marked(tracker)));
        // Trained again from 10 on: the older tracker says nothing of the new files.
        save(&mut tree, 10);
        assert!(unfinished(&tree, &folder(10)).contains("is older than its files"));
        // An empty tracker is one that is being written.
        tree.add(tracker, "\n");
        assert!(unfinished(&tree, &folder(20)).contains("names ``"));
    }
}

/// Proves that Orbax's commit is its file, else the time of the commit in its metadata.
#[test]
fn orbax_says_its_commit() {
    let mut tree = Tree::default();
    tree.add("run/5/_CHECKPOINT_METADATA", r#"{"commit_timestamp_nsecs": null}"#)
        .add("run/5/default/_METADATA", "{}");
    assert!(unfinished(&tree, "run/5").contains("no time of its commit"));
    tree.add("run/5/_CHECKPOINT_METADATA", r#"{"commit_timestamp_nsecs": 1795706830933372614}"#);
    assert_eq!(of(&tree, "run/5"), marked("run/5/_CHECKPOINT_METADATA"));
    tree.add("run/5/commit_success.txt", "Checkpoint commit was successful");
    assert_eq!(of(&tree, "run/5"), marked("run/5/commit_success.txt"));
    assert_eq!(recognised(&tree, "run/5").step, Some(5));
    // A deletion that began with the commit leaves items.
    tree.remove("run/5/commit_success.txt")
        .remove("run/5/_CHECKPOINT_METADATA")
        .add("run/5/default/_sharding", "{}");
    assert!(unfinished(&tree, "run/5/default").starts_with("neither"));
}

/// Proves that Accelerate's states of random numbers are needed, that each process has one, and that its folder's number is not
/// taken for a step.
#[test]
fn accelerate_needs_every_process() {
    let mut tree = Tree::default();
    let file = || build::torch(build::state(1));
    tree.add("checkpoint_3/model.safetensors", build::safetensors(""))
        .add("checkpoint_3/optimizer.bin", file());
    assert!(unfinished(&tree, "checkpoint_3").contains("`random_states_0.pkl` is missing"));
    tree.add("checkpoint_3/random_states_0.pkl", file());
    assert_eq!(of(&tree, "checkpoint_3"), BY_STRUCTURE);
    tree.add("checkpoint_3/random_states_2.pkl", file());
    assert!(unfinished(&tree, "checkpoint_3").contains("`random_states_1.pkl` is missing"));
    let found = recognised(&tree, "checkpoint_3");
    assert_eq!((found.layout, found.step, found.ranks), (Layout::Accelerate, None, Some(3)));
    // Scripts of Diffusers name their folders by the step, and have the weights in a folder.
    tree.add("checkpoint-500/unet/diffusion_pytorch_model.safetensors", build::safetensors(""))
        .add("checkpoint-500/optimizer.bin", file())
        .add("checkpoint-500/random_states_0.pkl", file());
    let found = recognised(&tree, "checkpoint-500");
    assert_eq!((found.layout, found.step, found.components.len()), (Layout::Accelerate, Some(500), 3));
    assert_eq!(of(&tree, "checkpoint-500"), BY_STRUCTURE);
}

/// Proves that Lightning's folder of shards and Keras' backup are complete with the file that is written after the weights.
#[test]
fn metadata_files_come_after_weights() {
    let mut tree = Tree::default();
    tree.add("last.ckpt/__0_0.distcp", vec![1; 40])
        .add("last.ckpt/__1_0.distcp", vec![2; 24])
        .add("last.ckpt/.metadata", build::dcp_metadata());
    assert!(unfinished(&tree, "last.ckpt").contains("`meta.pt` is missing"));
    tree.add("last.ckpt/meta.pt", build::torch(vec![("global_step", build::P::Int(9))]));
    assert_eq!(of(&tree, "last.ckpt"), marked("last.ckpt/meta.pt"));
    let found = recognised(&tree, "last.ckpt");
    assert_eq!((found.layout, found.step), (Layout::Lightning, Some(9)));

    tree.add("backup/latest.weights.h5", build::hdf5(0));
    assert!(unfinished(&tree, "backup").contains("`training_metadata.json` is missing"));
    tree.add("backup/training_metadata.json", r#"{"epoch": 2, "batch": 0}"#);
    assert_eq!(of(&tree, "backup"), marked("backup/training_metadata.json"));
    assert_eq!(recognised(&tree, "backup").data_epoch, Some(2));
}
