use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use trackway_core::Step;
use trackway_store::RealDisk;
use trackway_store::testing::{Fault, FaultDisk};

use crate::bulk::{CHUNK_BYTES, SHARE_BYTES_MIN};
use crate::tests::World;
use crate::{CheckpointError, CheckpointRoot, Commit, ErrorKind, ForeignFile, Kind};

fn adopt(
    root: &mut CheckpointRoot,
    step: Step,
    path: &Path,
    pace: &mut dyn FnMut(u64) -> Result<(), CheckpointError>,
) -> Result<Commit, CheckpointError> {
    let file = File::open(path).unwrap();
    let source = ForeignFile { name: "model.pt", kind: Kind::Weights, path, file: &file };
    root.save(step, &[], |writer| writer.copy_of(&source, pace))
}

/// Proves that a copied file of several chunks has the bytes of its source, verifies, and stays as it was when the script writes its file
/// again in place.
#[test]
fn a_copy_does_not_follow_its_source() {
    let world = World::new();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("ckpt.pt");
    for size in [0, 5, CHUNK_BYTES, 2 * CHUNK_BYTES + 7] {
        let bytes: Vec<u8> = (0..size).map(|index| (index * 7 / 3) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mut root = world.open_as(Arc::new(RealDisk), 1 + size as u64, world.attempt(), None).unwrap();
        let mut paced = 0;
        let commit = adopt(&mut root, 40, &path, &mut |bytes| {
            paced += bytes;
            Ok(())
        })
        .unwrap();
        assert_eq!(paced, size as u64, "every byte is reported");
        File::options().write(true).open(&path).unwrap().write_all(b"written again").unwrap();
        let loaded = world.view().load(commit.number).unwrap();
        assert!(loaded.read("model.pt").unwrap() == bytes, "{size}");
        world.view().verify(commit.number).unwrap();
    }
}

/// Proves that a source which is written to, cut or made longer while it is copied commits nothing, and that the next try succeeds.
#[test]
fn a_source_that_changes_is_not_committed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("ckpt.pt");
    let changes: [fn(&Path); 3] = [
        |path| File::options().write(true).open(path).unwrap().write_all(b"other").unwrap(),
        |path| File::options().write(true).open(path).unwrap().set_len(CHUNK_BYTES as u64 + 1).unwrap(),
        |path| File::options().append(true).open(path).unwrap().write_all(b"more").unwrap(),
    ];
    for change in changes {
        let world = World::new();
        // A disk that cannot share blocks: a clone would not see the change.
        let mut root = world.open(1).unwrap();
        std::fs::write(&path, vec![1; 2 * CHUNK_BYTES]).unwrap();
        let mut change = Some(change);
        let error = adopt(&mut root, 10, &path, &mut |_| {
            // Later than the clock of the file system ticks.
            std::thread::sleep(std::time::Duration::from_millis(20));
            change.take().into_iter().for_each(|change| change(&path));
            Ok(())
        })
        .unwrap_err();
        assert!(matches!(error, CheckpointError::SourceChanged { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Retry);
        assert!(world.view().resume_target().unwrap().is_none());
        adopt(&mut root, 10, &path, &mut |_| Ok(())).unwrap();
        assert_eq!(world.view().resume_target().unwrap().unwrap().step, 10);
    }
}

/// Proves that a large file that did not change takes no room a second time, and one that changed does.
#[test]
fn an_unchanged_file_is_shared() {
    let world = World::new();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("frozen.pt");
    std::fs::write(&path, vec![3; SHARE_BYTES_MIN as usize]).unwrap();
    let mut root = world.open(1).unwrap();
    let mut written = |step| adopt(&mut root, step, &path, &mut |_| Ok(())).unwrap().written_bytes;
    assert_eq!((written(1), written(2), written(3)), (SHARE_BYTES_MIN, 0, 0));
    std::fs::write(&path, vec![4; SHARE_BYTES_MIN as usize]).unwrap();
    assert_eq!(written(4), SHARE_BYTES_MIN);
    for info in world.view().list() {
        world.view().verify(info.number).unwrap();
    }
}

/// Proves that a crash, a power cut or a full disk at any operation of a copy never yields a commit that does not verify, and keeps the
/// checkpoint before.
#[test]
fn a_fault_at_any_operation_keeps_the_one_before() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("ckpt.pt");
    std::fs::write(&path, [5; 9]).unwrap();
    for fault in Fault::DEADLY.into_iter().chain([Fault::Full]) {
        for operation in 0.. {
            let world = World::new();
            adopt(&mut world.open(1).unwrap(), 10, &path, &mut |_| Ok(())).unwrap();
            let disk = FaultDisk::new(fault, operation);
            let saved =
                world.open_as(Arc::new(disk.clone()), 2, world.attempt(), None).and_then(|mut root| {
                    root.resume_target()?;
                    adopt(&mut root, 20, &path, &mut |_| Ok(()))
                });
            if !disk.struck() {
                saved.unwrap();
                assert!(operation > 15, "only {operation} operations");
                break;
            }
            disk.after_crash();
            let target = world.view().resume_target().unwrap().unwrap();
            let expected = if saved.is_ok() { 20..=20 } else { 10..=20 };
            assert!(expected.contains(&target.step), "{fault:?} at {operation}: {}", target.step);
            assert!(target.fallbacks.is_empty(), "{fault:?} at {operation}: {:?}", target.fallbacks);
        }
    }
}
