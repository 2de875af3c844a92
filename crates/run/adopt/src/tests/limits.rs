//! Full disks and too many files.

use super::*;

/// Names the test that runs on a small disk.
const SMALL_DISK: &str = "TRACKWAY_TEST_SMALL_DISK";

/// Proves that a disk that fills while a checkpoint is copied loses nothing: what was committed stays whole, the
/// message says what happened, the room is given back, and the next checkpoint is committed. Skipped with a printed
/// line where no disk can be mounted in a namespace.
#[test]
fn a_disk_that_fills_keeps_what_was_committed() {
    if std::env::var_os(SMALL_DISK).is_some() {
        return on_a_small_disk();
    }
    let folder = tempfile::tempdir().unwrap();
    let unshare = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]).arg(std::env::current_exe().unwrap());
        command.env("TMPDIR", folder.path()).env(SMALL_DISK, "1").output()
    };
    let mount = "mount -t tmpfs -o size=1m none \"$TMPDIR\"";
    if !unshare(mount).is_ok_and(|output| output.status.success()) {
        trackway_skip::skip!("no mount namespace for a test of a full disk");
        return;
    }
    let this = "tests::limits::a_disk_that_fills_keeps_what_was_committed";
    let output = unshare(&format!("{mount} && exec \"$1\" --exact {this} --nocapture")).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{output:?}");
}

fn on_a_small_disk() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["*.safetensors"]);
    write(&world.work("step-10.safetensors"), &tensors(50_000, 1));
    assert_eq!(world.follow(&mut adopter, 9).adopted.len(), 1);
    write(&world.work("step-20.safetensors"), &tensors(600_000, 2));
    let look = world.follow(&mut adopter, 9);
    assert!(look.adopted.is_empty() && look.not_adopted[0].why.contains("the disk only"), "{look:?}");
    assert!(world.follow(&mut adopter, 9).not_adopted.is_empty(), "it is said once");
    fs::write(world.work("filler"), vec![0; 200_000]).expect("what was copied is deleted again");
    fs::remove_file(world.work("step-20.safetensors")).unwrap();
    write(&world.work("step-30.safetensors"), &tensors(50_000, 3));
    assert_eq!(world.follow(&mut adopter, 9).adopted[0].commit.step, 30);
    let view = world.view();
    let committed: Vec<_> = view.list().into_iter().filter(|one| one.manifest_sha256.is_some()).collect();
    assert_eq!(committed.iter().map(|one| one.step).collect::<Vec<_>>(), [10, 30]);
    committed.iter().for_each(|one| view.verify(one.number).map(|_| ()).unwrap());
}

/// Files with these numbers as names. A further name of a file is made faster than a file; one has at most 65,000.
fn fill(folder: &Path, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let (first, at) =
            (folder.join((number - number % 50_000).to_string()), folder.join(number.to_string()));
        match number % 50_000 {
            0 => fs::write(at, "x").unwrap(),
            _ => fs::hard_link(first, at).unwrap(),
        }
    }
}

/// Proves that a folder with more files than a checkpoint may have, or than are listed, is refused once though it
/// grows, and that the message says what the limit is and what to do.
#[test]
fn a_checkpoint_of_too_many_files_is_refused_once() {
    let mut world = World::new();
    let mut adopter = world.adopter(1, &["out/*"]);
    let folder = world.work("out/checkpoint-10");
    write(&folder.join("trainer_state.json"), br#"{"global_step": 10}"#);
    fill(&folder, 0..100_000);
    let refused = world.look(&mut adopter).not_adopted;
    assert!(refused.len() == 1 && refused[0].why.contains("fewer than 100000 files"), "{refused:?}");
    fill(&folder, 100_000..100_010);
    assert!(world.look(&mut adopter).not_adopted.is_empty(), "it is said once");
    fill(&folder, 100_010..200_000);
    let refused: Vec<_> = (0..2).flat_map(|_| world.look(&mut adopter).not_adopted).collect();
    let says = "more than 200000 files and folders: name the checkpoints below it";
    assert!(refused.len() == 1 && refused[0].why.contains(says), "{refused:?}");
    assert!(!world.root().exists());
}
