mod faults;
mod machines;
mod races;
mod reading;
mod retention;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use trackway_core::{AttemptId, Step};
use trackway_store::testing::FaultBackend;
use trackway_store::{Backend, Created, Disk, MemoryBackend, RealDisk, StoreError, Writer};

use super::{Fetched, Foreseen, RemoteFiles, Replica, Uploaded};
use crate::history::History;
use crate::history::entry::Body;
use crate::retention::Retention;
use crate::tests::{World, save};
use crate::{CheckpointError, CheckpointRoot, CheckpointState, ErrorKind, Housekeeper, Kind};

/// Large objects through the same calls as small ones, so that one injected fault after the other meets all of them.
pub(crate) struct BackendFiles(pub Arc<dyn Backend>);

impl RemoteFiles for BackendFiles {
    fn send(&self, name: &str, from: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let bytes = std::fs::read(from).map_err(StoreError::io("read", from))?;
        self.0.replace(name, &bytes)?;
        progress(bytes.len() as u64);
        Ok(())
    }

    fn size_bytes(&self, name: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.0.read(name, 1 << 20)?.map(|bytes| bytes.len() as u64))
    }

    fn fetch(
        &self,
        name: &str,
        size_bytes: u64,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Option<u64>, StoreError> {
        let Some(bytes) = self.0.read(name, 1 << 20)? else { return Ok(None) };
        let parts = bytes.chunks(7).take(if bytes.len() as u64 == size_bytes { usize::MAX } else { 0 });
        for part in parts {
            take(part).map_err(StoreError::io("take", Path::new(name)))?;
        }
        Ok(Some(bytes.len() as u64))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.0.remove(name)
    }
}

impl World {
    pub(crate) fn replica(&self, backend: &Arc<dyn Backend>) -> Result<Replica, CheckpointError> {
        self.replica_on(Arc::new(RealDisk), backend)
    }

    fn replica_on(
        &self,
        disk: Arc<dyn Disk>,
        backend: &Arc<dyn Backend>,
    ) -> Result<Replica, CheckpointError> {
        let files = Arc::new(BackendFiles(Arc::clone(backend)));
        let (clock, ids) = (self.clock.clone(), self.ids.clone());
        Replica::open_on(disk, &self.path(), Arc::clone(backend), files, clock, ids)
    }

    /// Fetches, and proves on the way that what was foreseen is what happens.
    pub(super) fn fetch_target(
        &self,
        backend: &Arc<dyn Backend>,
    ) -> Result<(AttemptId, Fetched), CheckpointError> {
        let attempt = self.attempt();
        let mut replica = self.replica(backend)?;
        let lost = replica.truth(None).lost;
        let foreseen = replica.foresee(None);
        let fetched = self.replica(backend)?.fetch_target(self.run_id(), attempt, 1, None);
        match (&foreseen, &fetched) {
            (Ok(foreseen), Ok(fetched)) => {
                check_foreseen(foreseen.as_ref(), fetched);
                let found: BTreeSet<String> =
                    fetched.fenced.iter().map(|info| info.object_prefix.clone()).collect();
                assert_eq!(lost, found);
            }
            (Err(foreseen), Err(fetched)) => assert_eq!(foreseen.to_string(), fetched.to_string()),
            // Another run's claim does not change what would be found.
            (_, Err(CheckpointError::WrongRun { .. })) => {}
            (foreseen, fetched) => panic!("foreseen {foreseen:?}, and then {fetched:?}"),
        }
        Ok((attempt, fetched?))
    }

    /// What the training process does: it uses only this disk.
    pub(super) fn train(&self, attempt: AttemptId, epoch: u64) -> CheckpointRoot {
        let mut root = self.open_as(Arc::new(RealDisk), epoch, attempt, None).unwrap();
        root.resume_target().unwrap();
        root
    }

    fn damage_every_copy(&self, step: Step) {
        for info in self.view().list().iter().filter(|info| info.step == step) {
            std::fs::write(self.path().join(&info.folder).join("weights.bin"), b"bad").unwrap();
        }
    }

    /// Hands over and uploads until nothing is left.
    pub(super) fn settle(
        &self,
        backend: &Arc<dyn Backend>,
        policy: Option<&Retention>,
    ) -> Result<u64, CheckpointError> {
        let mut replica = self.replica(backend)?;
        replica.hand_over()?;
        let mut sent_bytes = 0;
        while let Some(uploaded) = replica.upload_next(policy, &|_, _| {})? {
            if let Uploaded::Done { sent_bytes: bytes, .. } = uploaded {
                sent_bytes += bytes;
            }
            replica.collect(policy, None, false)?;
        }
        replica.collect(policy, None, false)?;
        Ok(sent_bytes)
    }
}

fn memory() -> Arc<dyn Backend> {
    Arc::new(MemoryBackend::default())
}

fn keep_last(last: usize) -> Retention {
    Retention { last, only_uploaded: true, ..Retention::default() }
}

fn check_foreseen(foreseen: Option<&Foreseen>, fetched: &Fetched) {
    let mine = foreseen.map(|it| (it.info.step, it.info.manifest_sha256.clone(), it.source, it.fetch_bytes));
    let theirs = fetched.target.as_ref();
    let theirs = theirs.map(|it| (it.step, Some(it.manifest_sha256.clone()), it.source, it.fetched_bytes));
    assert_eq!(mine, theirs);
    let Some(foreseen) = foreseen else { return };
    assert_eq!((&foreseen.fallbacks, foreseen.lost_steps), (&fetched.fallbacks, fetched.lost_steps));
}

/// Every uploaded commit of the remote can be fetched to an empty disk and verifies. Returns their steps.
pub(crate) fn check_remote(world: &World, backend: &Arc<dyn Backend>, situation: &str) -> Vec<Step> {
    let empty = world.other_machine();
    let replica = empty.replica(backend).unwrap();
    let held = |record: &crate::history::CommitRecord| {
        record.uploaded_to.is_some() && !record.retired && record.suspect.is_none()
    };
    let bodies: Vec<_> =
        replica.remote().commits().filter(|(_, it)| held(it)).map(|(_, it)| it.body.clone()).collect();
    for body in &bodies {
        let fetched = replica.gather(body, true).unwrap();
        fetched.unwrap_or_else(|missing| panic!("{situation}: step {}: {}", body.step, missing.defect));
    }
    bodies.iter().map(|body| body.step).collect()
}

fn save_shared(root: &mut CheckpointRoot, step: Step) {
    // Numbers that are not written again as they were read: a manifest must be passed on byte for byte.
    let metrics =
        [("loss", (step as f64).sin()), ("norm", (step as f64).exp()), ("rate", 1e-9 / step as f64)];
    root.save(step, &metrics, |writer| {
        writer.file("backbone.bin", Kind::Weights, b"frozen frozen frozen frozen frozen frozen frozen")?;
        writer.file("head.bin", Kind::Weights, &step.to_le_bytes())
    })
    .unwrap();
}

/// A storage that can be listed, for looking at what is left.
#[derive(Default)]
struct Listing {
    inner: MemoryBackend,
    names: Mutex<BTreeSet<String>>,
}

impl Listing {
    fn names(&self) -> Vec<String> {
        self.names.lock().unwrap().iter().filter(|name| !name.starts_with("log/")).cloned().collect()
    }
}

impl Backend for Listing {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        self.names.lock().unwrap().insert(name.into());
        self.inner.create(name, bytes)
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.read(name, max_bytes)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.names.lock().unwrap().insert(name.into());
        self.inner.replace(name, bytes)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.names.lock().unwrap().remove(name);
        self.inner.remove(name)
    }
}
