//! Holes that the models and the simulations found, over the real code.

use trackway_store::testing::Fault;

use super::deeds::{collect, four, number_of};
use super::scene::Scene;
use crate::history::CheckpointState;
use crate::retention::Retention;

/// Proves that no process deletes because of a `retire` that was merely read: its writer was killed before it had
/// synced it, another one finishes the deletion, and a power cut comes at any point of that.
#[test]
fn a_retire_is_durable_before_anything_is_deleted() {
    let mut unsynced = 0;
    for killed in 0.. {
        for cut in 0.. {
            let scene = Scene::local();
            four(&scene);
            let act = collect(&scene, &scene.disk);
            scene.disk.arm(Fault::Kill, killed);
            let _ = act();
            if !scene.reader().list().iter().any(|info| info.state == CheckpointState::Retired) {
                break;
            }
            let disk = scene.disk.another_process();
            let act = collect(&scene, &disk);
            disk.arm(Fault::PowerLosesNames, cut);
            let _ = act();
            disk.after_crash();
            scene.go_on(&format!("killed at {killed}, power cut at {cut}"));
            if !disk.struck() {
                unsynced += 1;
                break;
            }
        }
        // From the link of the entry to the sync of its folder, and a little further.
        if unsynced == 4 {
            return;
        }
    }
}

/// Proves that no process deletes what an attempt continues from before the log contains it: the two newest could not
/// be read while it resumed, so it took an older one that no rule keeps.
#[test]
fn what_an_attempt_resumed_from_stays() {
    let scene = Scene::local();
    four(&scene);
    let unreadable: Vec<_> = [30, 40]
        .map(|step| {
            let number = number_of(&scene, step);
            let folder = scene.reader().history().commit(number).unwrap().folder().to_owned();
            scene.world.path().join(folder).join("manifest.json")
        })
        .into();
    for manifest in &unreadable {
        std::fs::rename(manifest, manifest.with_extension("away")).unwrap();
        std::os::unix::fs::symlink(manifest, manifest).unwrap();
    }
    let mut root = scene.open(&scene.disk, 2).unwrap();
    let target = root.resume_target().unwrap().unwrap();
    assert_eq!((target.step, target.fallbacks.len()), (20, 2));
    for manifest in &unreadable {
        std::fs::remove_file(manifest).unwrap();
        std::fs::rename(manifest.with_extension("away"), manifest).unwrap();
    }
    let mut house = scene.house(&scene.disk.another_process()).unwrap();
    house.collect(&Retention::default(), 0.0, false).unwrap();
    assert_eq!(target.read("weights.bin").unwrap().len(), 128, "it is still being loaded");
    scene.promises().forked = true;
    let commit = scene.save(&mut root, 25).unwrap();
    assert_eq!(commit.parent, Some(target.info.number));
    house.collect(&Retention::default(), 0.0, false).unwrap();
    assert_eq!(scene.reader().load(target.info.number).unwrap().step, 20);
    scene.go_on("behind a resume that passed two");
}

/// Proves that a new root is durable before anything in it counts: the process that made its folder was killed, or its
/// sync failed, before the name was durable; another one continues in it, and then a power cut comes.
#[test]
fn the_name_of_a_root_is_durable_before_what_is_in_it_counts() {
    for fault in [Fault::Kill, Fault::InputOutput] {
        for operation in 0.. {
            let scene = Scene::local();
            scene.disk.arm(fault, operation);
            let opened = scene.open(&scene.disk, 1);
            let struck = scene.disk.struck();
            drop(opened);
            let disk = scene.disk.another_process();
            let mut root = scene.resumed(&disk, 2, None);
            scene.save(&mut root, 10).unwrap();
            disk.arm(Fault::PowerLosesAll, 0);
            let _ = scene.save(&mut root, 20);
            disk.after_crash();
            scene.go_on(&format!("{fault:?} at {operation}"));
            if !struck {
                break;
            }
        }
    }
}
