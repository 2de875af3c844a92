//! The backends of this crate under the conformance suite, and under every fault.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use trackway_core::SequentialIds;

use crate::testing::{
    Answers, BackendFault, Fault, FaultBackend, FaultDisk, Notebook, Odds, conformance, still_clock,
    writer_ids,
};
use crate::{
    Backend, Created, Disk as _, Entry, ErrorKind, LocalBackend, Log, MemoryBackend, Outcome, Primitive,
    SelfTest, StoreError, Writer, selftest,
};

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

/// A folder in memory where there is one: for what is not about syncs of a real disk.
fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A real disk does what the log needs, and so does tmpfs.
#[test]
fn local_disk_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conformance(&mut folders(folder.path()), Answers::Reliable);
    match tempfile::tempdir_in("/dev/shm") {
        Ok(folder) => conformance(&mut folders(folder.path()), Answers::Reliable),
        Err(error) => trackway_skip::skip!("no tmpfs at /dev/shm: {error}"),
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

/// Notes that exist, and notes that do not, according to the answers to their writers.
#[derive(Default)]
struct ReportedNotes {
    stand: Vec<(u64, u64)>,
    refused: Vec<(u64, u64)>,
}

/// Two writers on one disk take turns until it fails.
fn take_turns(root: &Path, disk: &FaultDisk) -> ReportedNotes {
    let mut logs: Vec<_> = (0..2)
        .map(|writer| {
            let ids = writer_ids(writer);
            let backend = LocalBackend::on_disk(root, Arc::new(disk.clone()), Arc::clone(&ids));
            Log::<Notebook>::new(Arc::new(backend), still_clock(), ids)
        })
        .collect();
    let mut reported = ReportedNotes::default();
    for sequence in 0..3 {
        for (writer, log) in (0..).zip(&mut logs) {
            let said = log.append(Writer::Housekeeper, |notebook: &Notebook| {
                Ok::<_, StoreError>(notebook.note(writer, sequence, None))
            });
            match said {
                Ok(_) => reported.stand.push((writer, sequence)),
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                Err(_) => reported.refused.push((writer, sequence)),
            }
        }
    }
    reported
}

/// What is on a real disk after a crash; checks that the log can be continued from there.
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

/// Proves for a kill, a power cut (with anything that was not synced lost or re-ordered), a full disk or a failing one
/// at every operation of two writers on a local disk: no acknowledged note is lost, none is there partly or after a
/// gap, and the log can be continued.
#[test]
fn every_operation_on_a_local_disk_may_fail() {
    let folder = quick_folder();
    let sound = FaultDisk::sound();
    assert_eq!(take_turns(&folder.path().join("sound"), &sound).stand.len(), 6);
    let seeds = (10..40).map(|seed| Fault::PowerReorders { seed });
    let faults: Vec<_> = Fault::DEADLY.into_iter().chain(Fault::RETURNED).chain(seeds).collect();
    for fault in faults {
        for fail_at in 0..sound.operations() {
            let context = format!("{fault:?} at {fail_at}");
            let root = folder.path().join(&context);
            let disk = FaultDisk::new(fault, fail_at);
            let reported = take_turns(&root, &disk);
            assert!(disk.struck() || !fault.is_deadly(), "{context}");
            if fault.is_deadly() {
                disk.after_crash();
            }
            let stand = after_crash(&root, &context);
            for note in reported.stand {
                assert!(stand.contains(&note), "{context}: {note:?} is lost");
            }
            for note in reported.refused {
                assert!(!stand.contains(&note), "{context}: {note:?} was refused and stands");
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

/// Proves that an entry that was read before its writer synced it is not lost while an entry that was decided on it is
/// kept.
#[test]
fn what_an_entry_was_decided_on_is_durable_before_it() {
    let folder = quick_folder();
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

/// A storage that breaks one of its promises.
struct BrokenBackend {
    inner: MemoryBackend,
    promise: &'static str,
}

impl Backend for BrokenBackend {
    fn location(&self) -> String {
        "broken".into()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        match self.promise {
            "create_if_absent" => self.inner.replace(name, bytes).map(|()| Created::New),
            "racing_creates" => {
                let absent = self.inner.read(name, 0)?.is_none();
                std::thread::yield_now();
                std::thread::sleep(std::time::Duration::from_millis(5));
                if !absent {
                    return Ok(Created::Exists);
                }
                self.inner.replace(name, bytes).map(|()| Created::New)
            }
            "large_objects" => self.inner.create(name, &bytes[..bytes.len().min(65_536)]),
            _ => self.inner.create(name, bytes),
        }
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.inner.read(name, max_bytes)?;
        Ok(found.filter(|_| self.promise != "read_after_create"))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        if self.promise == "replace" { Ok(()) } else { self.inner.replace(name, bytes) }
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        if self.promise == "remove" { Ok(()) } else { self.inner.remove(name) }
    }
}

fn test_of(backend: &dyn Backend) -> SelfTest {
    selftest(backend, still_clock().as_ref(), &SequentialIds::default())
}

/// Proves that the self-test passes correct storages, cleans up, and names the promise that a broken one does not keep;
/// a storage is refused for what the log needs, the rest is only reported.
#[test]
fn selftest_finds_each_broken_promise() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalBackend::new(folder.path(), Arc::new(SequentialIds::default()));
    for sound in [&MemoryBackend::default() as &dyn Backend, &local] {
        let test = test_of(sound);
        assert!(test.primitives.iter().all(|primitive| primitive.outcome == Outcome::Holds), "{test:?}");
        test.verdict().unwrap();
    }
    let promises = test_of(&MemoryBackend::default()).primitives;
    for Primitive { name, required, .. } in promises {
        let broken = test_of(&BrokenBackend { inner: MemoryBackend::default(), promise: name });
        let found = broken.primitives.iter().find(|primitive| primitive.name == name).unwrap();
        assert!(matches!(found.outcome, Outcome::Fails { .. }), "{name}: {broken:?}");
        let verdict = broken.verdict().map_err(|error| error.kind());
        assert_eq!(verdict, if required { Err(ErrorKind::Unsupported) } else { Ok(()) }, "{name}");
    }
}

/// A storage that does not answer, or refuses, is neither passed nor called unfit.
#[test]
fn selftest_without_answers_is_no_verdict() {
    for (fault, kind) in
        [(BackendFault::ErrorBefore, ErrorKind::Unavailable), (BackendFault::Refused, ErrorKind::Refused)]
    {
        let backend = FaultBackend::storm(Arc::new(MemoryBackend::default()), 0..u64::MAX, fault);
        let test = test_of(&backend);
        assert!(
            test.primitives.iter().all(|tried| matches!(tried.outcome, Outcome::NotTested { .. })),
            "{test:?}"
        );
        assert_eq!(test.verdict().unwrap_err().kind(), kind);
    }
}
