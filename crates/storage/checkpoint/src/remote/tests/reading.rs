//! What is read at the remote, and fetched from there on a disk that fails.

use trackway_store::testing::{Fault, FaultDisk};

use super::*;

/// Proves that reading at the remote finds what sizes do not show, and that the log has the duration of an upload.
#[test]
fn bytes_at_the_remote_can_be_read_where_they_are() {
    let (world, remote) = (World::new(), memory());
    let (attempt, _) = world.fetch_target(&remote).unwrap();
    let commit = save(&mut world.train(attempt, 1), 10).unwrap();
    world.clock.advance_micros(90_000_000);
    world.settle(&remote, None).unwrap();
    let uploaded = world.view().list().pop().unwrap();
    let moment = |text: &str| text.parse::<trackway_core::Timestamp>().unwrap();
    let lag_seconds = moment(&uploaded.uploaded_at.unwrap()).seconds_since(moment(&uploaded.at));
    assert_eq!(lag_seconds, 90.0);
    let replica = world.other_machine().replica(&remote).unwrap();
    let read_bytes = AtomicU64::new(0);
    replica
        .verify_there(&commit.object_prefix, &|done, _| {
            read_bytes.fetch_max(done, Ordering::SeqCst);
        })
        .unwrap();
    assert_eq!(read_bytes.into_inner(), commit.size_bytes);
    remote.replace(&format!("{}/weights.bin", commit.object_prefix), &[7; 128]).unwrap();
    let error = replica.verify_there(&commit.object_prefix, &|_, _| {}).unwrap_err();
    assert!(matches!(error, CheckpointError::Damaged { step: 10, .. }), "{error}");
}

/// Proves that a kill, a torn write, a power cut, a full or a failing disk at any operation while a checkpoint is
/// fetched leaves nothing that is taken for whole: the next try completes, and every adopted checkpoint verifies.
#[test]
fn a_fault_of_the_disk_while_fetching_is_made_good() {
    let (one, remote) = (World::new(), memory());
    let (attempt, _) = one.fetch_target(&remote).unwrap();
    let mut root = one.train(attempt, 1);
    save_shared(&mut root, 10);
    save_shared(&mut root, 20);
    one.settle(&remote, None).unwrap();
    for fault in Fault::DEADLY.into_iter().chain(Fault::RETURNED) {
        for operation in 0.. {
            let two = one.other_machine();
            let disk = FaultDisk::new(fault, operation);
            let attempt = two.attempt();
            let fetched = two
                .replica_on(Arc::new(disk.clone()), &remote)
                .and_then(|mut replica| replica.fetch_target(two.run_id(), attempt, 1, Some(&keep_last(2))));
            if !disk.struck() {
                fetched.unwrap();
                assert!(operation > 15, "only {operation} operations");
                break;
            }
            if fault.is_deadly() {
                disk.after_crash();
            }
            let situation = format!("{fault:?} at operation {operation}");
            let (attempt, fetched) = two.fetch_target(&remote).unwrap();
            assert_eq!(fetched.target.unwrap().step, 20, "{situation}");
            let mut root = two.train(attempt, fetched.epoch);
            assert_eq!(root.resume_target().unwrap().unwrap().step, 20, "{situation}");
            for info in two.view().list().iter().filter(|info| info.on_branch) {
                two.view().verify(info.number).unwrap_or_else(|error| panic!("{situation}: {error}"));
            }
        }
    }
}

/// Proves that a checkpoint is fetched completely into a folder of the caller, shared files too, without an entry in
/// either log; that what is whole there is not fetched again, and what is not is; and that bytes which are not those of
/// the manifest are refused.
#[test]
fn a_checkpoint_is_brought_to_be_read() {
    let (one, remote) = (World::new(), Arc::new(Listing::default()));
    let backend: Arc<dyn Backend> = remote.clone();
    let (attempt, _) = one.fetch_target(&backend).unwrap();
    let mut root = one.train(attempt, 1);
    save_shared(&mut root, 10);
    save_shared(&mut root, 20);
    one.settle(&backend, None).unwrap();
    let two = one.other_machine();
    let replica = two.replica(&backend).unwrap();
    let prefix = replica.remote_list()[1].object_prefix.clone();
    let tail = replica.log.position();
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let arrived = AtomicU64::new(0);
    let reported = |done: u64, total: u64| {
        assert!(done <= total);
        arrived.fetch_max(done, Ordering::Relaxed);
    };
    let manifest = replica.fetch(&prefix, folder.path(), &reported).unwrap();
    let here = one.view().resume_target().unwrap().unwrap();
    assert_eq!(
        (manifest, read("manifest.json")),
        (here.manifest.clone(), std::fs::read(here.folder.join("manifest.json")).unwrap())
    );
    assert_eq!(
        (read("head.bin"), read("backbone.bin")),
        (20_u64.to_le_bytes().to_vec(), here.read("backbone.bin").unwrap())
    );
    assert_eq!(arrived.load(Ordering::Relaxed), 56);
    assert_eq!(two.replica(&backend).unwrap().log.position(), tail);
    assert!(two.view().list().is_empty());

    std::fs::write(folder.path().join("head.bin"), b"bad").unwrap();
    for name in remote.names().iter().filter(|name| name.contains("backbone.bin")) {
        backend.replace(name, b"gone bad").unwrap();
    }
    replica.fetch(&prefix, folder.path(), &reported).expect("the backbone is whole here");
    assert_eq!(read("head.bin"), 20_u64.to_le_bytes());
    std::fs::remove_file(folder.path().join("backbone.bin")).unwrap();
    let error = replica.fetch(&prefix, folder.path(), &reported).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    let error = replica.fetch("step-00000099/epoch-1-x", folder.path(), &reported).unwrap_err();
    assert!(matches!(error, CheckpointError::NoSuchCommit { .. }), "{error}");
}

/// Proves that a kill, a torn write, a power cut, a full or a failing disk at any operation while a checkpoint is
/// fetched into a folder leaves nothing that the next try takes for whole.
#[test]
fn a_fault_of_the_disk_while_bringing_is_made_good() {
    let (one, remote) = (World::new(), memory());
    let (attempt, _) = one.fetch_target(&remote).unwrap();
    save_shared(&mut one.train(attempt, 1), 10);
    one.settle(&remote, None).unwrap();
    for fault in Fault::DEADLY.into_iter().chain(Fault::RETURNED) {
        for operation in 0.. {
            let two = one.other_machine();
            let prefix = two.replica(&remote).unwrap().remote_list()[0].object_prefix.clone();
            let folder = two.path().join("brought");
            std::fs::create_dir_all(&folder).unwrap();
            let disk = FaultDisk::new(fault, operation);
            let replica = two.replica_on(Arc::new(disk.clone()), &remote);
            let brought = replica.and_then(|replica| replica.fetch(&prefix, &folder, &|_, _| {}));
            if !disk.struck() {
                brought.unwrap();
                assert!(operation > 5, "only {operation} operations");
                break;
            }
            if fault.is_deadly() {
                disk.after_crash();
            }
            let situation = format!("{fault:?} at operation {operation}");
            two.replica(&remote).unwrap().fetch(&prefix, &folder, &|_, _| {}).expect(&situation);
            assert_eq!(std::fs::read(folder.join("head.bin")).unwrap(), 10_u64.to_le_bytes(), "{situation}");
        }
    }
}
