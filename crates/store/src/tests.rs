//! The backends of this crate under the conformance suite, and under every fault.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trackway_core::SequentialIds;

use crate::testing::{
    Answers, Fault, FaultBackend, FaultDisk, Notebook, Odds, conformance, still_clock, writer_ids,
};
use crate::{Backend, Disk as _, Entry, LocalBackend, Log, MemoryBackend, StoreError, Writer};

fn memories() -> impl FnMut(&str) -> Arc<dyn Backend> {
    let mut storages = BTreeMap::<String, Arc<MemoryBackend>>::new();
    move |name| Arc::clone(storages.entry(name.into()).or_default()) as Arc<dyn Backend>
}

fn folders(root: &Path) -> impl FnMut(&str) -> Arc<dyn Backend> {
    let ids = Arc::new(SequentialIds::default());
    move |name| Arc::new(LocalBackend::new(&root.join(name), Arc::clone(&ids) as _))
}

/// Memory does what the log needs.
#[test]
fn memory_conforms() {
    conformance(&mut memories(), Answers::Reliable);
}

/// A real disk does what the log needs, and so does tmpfs.
#[test]
fn local_disk_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conformance(&mut folders(folder.path()), Answers::Reliable);
    match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => conformance(&mut folders(folder.path()), Answers::Reliable),
        Err(error) => println!("skipped: no tmpfs at /dev/shm: {error}"),
    }
}

/// The log keeps its promises over a storage that fails, loses answers, does things late and speaks of conflicts.
#[test]
fn faulty_storage_conforms() {
    for seed in 0..5 {
        let mut storages = memories();
        let mut handles = 0;
        let mut faulty = |name: &str| {
            handles += 1;
            let seed = seed * 1_000_000 + handles;
            Arc::new(FaultBackend::mixed(storages(name), seed, Odds::BAD_DAY)) as Arc<dyn Backend>
        };
        conformance(&mut faulty, Answers::Faulty);
    }
}

/// Two writers on one disk take turns until it fails. Gives what they were told stands.
fn take_turns(root: &Path, disk: &FaultDisk) -> Vec<(u64, u64)> {
    let mut logs: Vec<_> = (0..2)
        .map(|writer| {
            let ids = writer_ids(writer);
            let backend = LocalBackend::on_disk(root, Arc::new(disk.clone()), Arc::clone(&ids));
            Log::<Notebook>::new(Arc::new(backend), still_clock(), ids)
        })
        .collect();
    let mut stand = Vec::new();
    for sequence in 0..3 {
        for (writer, log) in (0..).zip(&mut logs) {
            let said = log.append(Writer::Housekeeper, |notebook: &Notebook| {
                Ok::<_, StoreError>(notebook.note(writer, sequence, None))
            });
            if said.is_ok() {
                stand.push((writer, sequence));
            }
        }
    }
    stand
}

/// What stands on a real disk after a crash, and that the log goes on from there.
fn after_crash(root: &Path, context: &str) -> Vec<(u64, u64)> {
    // The files are real; nothing waits for their syncs.
    let disk = Arc::new(FaultDisk::sound());
    let backend = Arc::new(LocalBackend::on_disk(root, disk, writer_ids(9)));
    let mut log = Log::<Notebook>::open(Arc::clone(&backend) as _, still_clock(), writer_ids(9)).unwrap();
    let notebook = log.state().clone();
    assert_eq!((notebook.faults, notebook.damaged), (vec![], vec![]), "{context}");
    for behind in 1..10 {
        let number = notebook.tail + behind;
        assert_eq!(log.read(number).unwrap(), None, "{context}: {number} stands behind a gap");
    }
    let note = |notebook: &Notebook| Ok::<_, StoreError>(notebook.note(9, 0, None));
    assert_eq!(log.append(Writer::Housekeeper, note).unwrap(), Some(notebook.tail + 1), "{context}");
    notebook.said.iter().map(|said| (said.writer, said.sequence)).collect()
}

/// A kill, a power cut (with anything that was not synced lost or re-ordered), a full disk or a failing one at every
/// operation of two writers on a local disk: no note is lost that its writer was told of, none stands half or behind
/// a gap, and the log goes on.
#[test]
fn every_operation_on_a_local_disk_may_fail() {
    let folder = tempfile::tempdir().unwrap();
    let sound = FaultDisk::sound();
    assert_eq!(take_turns(&folder.path().join("sound"), &sound).len(), 6);
    let seeds = (10..40).map(|seed| Fault::PowerReorders { seed });
    let faults: Vec<_> = Fault::DEADLY.into_iter().chain(Fault::TOLD).chain(seeds).collect();
    for fault in faults {
        for fail_at in 0..sound.operations() {
            let context = format!("{fault:?} at {fail_at}");
            let root = folder.path().join(&context);
            let disk = FaultDisk::new(fault, fail_at);
            let told = take_turns(&root, &disk);
            assert!(disk.struck() || !fault.is_deadly(), "{context}");
            if fault.is_deadly() {
                disk.after_crash();
            }
            let stand = after_crash(&root, &context);
            for note in told {
                assert!(stand.contains(&note), "{context}: {note:?} is lost");
            }
        }
    }
}

/// The first writer links its entry and goes away before it syncs the name; the second one reads it and appends.
fn build_on_unsynced(root: &Path, disk: &FaultDisk) -> std::io::Result<()> {
    let (log, aside) = (root.join("log"), root.join("log/.new-1"));
    for folder in [root, &log] {
        disk.make_folder(folder)?;
        disk.sync_folder(folder.parent().unwrap())?;
    }
    let file = disk.create(&aside, false)?;
    let note = Notebook::default().note(1, 0, None).unwrap();
    file.write_at(0, &Entry::new(1, "1".into(), String::new(), note).to_bytes())?;
    file.sync()?;
    disk.link(&aside, &log.join("00000001.json"))?;
    take_turn(root, disk);
    Ok(())
}

fn take_turn(root: &Path, disk: &FaultDisk) {
    let backend = LocalBackend::on_disk(root, Arc::new(disk.clone()), writer_ids(2));
    let mut log = Log::<Notebook>::new(Arc::new(backend), still_clock(), writer_ids(2));
    let note = |notebook: &Notebook| Ok::<_, StoreError>(notebook.note(2, 0, None));
    let _ = log.append(Writer::Housekeeper, note);
}

/// An entry that was read before its writer came to sync it is not lost while the one that was decided on it is kept.
#[test]
fn what_an_entry_was_decided_on_is_durable_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let sound = FaultDisk::sound();
    build_on_unsynced(&folder.path().join("sound"), &sound).unwrap();
    let mut kept = [0; 3];
    for seed in 0..100 {
        let root = folder.path().join(seed.to_string());
        // In the very last sync: the second entry is linked, and whether that is kept is open.
        let disk = FaultDisk::new(Fault::PowerReorders { seed }, sound.operations() - 1);
        build_on_unsynced(&root, &disk).unwrap();
        disk.after_crash();
        kept[after_crash(&root, &format!("seed {seed}")).len()] += 1;
    }
    assert!(kept[0] == 0 && kept[1] > 20 && kept[2] > 20, "{kept:?}");
}
