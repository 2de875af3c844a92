use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_core::{Clock, Ids, Step, Timestamp};
use trackway_store::{Disk, LocalBackend, Log, RealDisk};

use crate::error::{CheckpointError, Fallback};
use crate::history::{Candidate, CheckpointInfo, History, PinInfo};
use crate::load::LoadedCheckpoint;
use crate::verify::{Defect, verify};

/// A checkpoint root as a reader sees it. Changes nothing.
pub struct CheckpointView {
    root: PathBuf,
    disk: Arc<dyn Disk>,
    pub(crate) log: Log<History>,
}

/// A commit that was found not to verify while a resume target was sought.
pub(crate) struct Damage {
    pub number: u64,
    pub why: String,
}

/// What the way from the newest commit led to.
pub(crate) struct Search {
    pub target: Option<LoadedCheckpoint>,
    pub fallbacks: Vec<Fallback>,
    pub damage: Vec<Damage>,
    newest_step: Option<Step>,
}

impl CheckpointView {
    /// Reads the whole log of a root. A root that does not exist is one without checkpoints.
    ///
    /// # Errors
    /// [`CheckpointError::Store`].
    pub fn open(root: &Path) -> Result<Self, CheckpointError> {
        let nobody = Arc::new(Nobody);
        let mut view = Self::unread(root, Arc::new(RealDisk), nobody.clone(), nobody);
        view.refresh()?;
        Ok(view)
    }

    /// A view that was not read yet; the clock and the ids are those of the entries its owner may add.
    pub(crate) fn unread(root: &Path, disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let backend = LocalBackend::on_disk(root, Arc::clone(&disk), Arc::clone(&ids));
        Self { root: root.to_owned(), disk, log: Log::new(Arc::new(backend), clock, ids) }
    }

    /// A view that begins at the newest summary of the log.
    pub(crate) fn at_summary(
        root: &Path,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, CheckpointError> {
        let backend = LocalBackend::on_disk(root, Arc::clone(&disk), Arc::clone(&ids));
        Ok(Self { root: root.to_owned(), disk, log: Log::open(Arc::new(backend), clock, ids)? })
    }

    /// Reads what was added to the log since.
    ///
    /// # Errors
    /// [`CheckpointError::Store`].
    pub fn refresh(&mut self) -> Result<(), CheckpointError> {
        Ok(self.log.refresh()?)
    }

    /// The folder of the root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Every checkpoint, in the order of the log.
    #[must_use]
    pub fn list(&self) -> Vec<CheckpointInfo> {
        self.history().checkpoints()
    }

    /// Every pin, by name.
    #[must_use]
    pub fn pins(&self) -> Vec<PinInfo> {
        self.history().pin_list()
    }

    /// The epoch that may commit, once somebody claimed one.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.history().claimed().map(|claim| claim.epoch)
    }

    /// Numbers of the log under which no entry can be read, and why.
    #[must_use]
    pub fn damaged_entries(&self) -> Vec<(u64, String)> {
        self.history().damaged().iter().map(|(number, why)| (*number, why.clone())).collect()
    }

    /// Checks every byte of a committed checkpoint, by the number of its commit.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`], or [`CheckpointError::NoSuchCommit`].
    pub fn verify(&self, number: u64) -> Result<CheckpointInfo, CheckpointError> {
        self.load(number).map(|loaded| loaded.info)
    }

    /// Verifies a committed checkpoint and opens it for reading, by the number of its commit.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`], or [`CheckpointError::NoSuchCommit`].
    pub fn load(&self, number: u64) -> Result<LoadedCheckpoint, CheckpointError> {
        let step = self.commit_step(number)?;
        self.try_load(number).map_err(|defect| CheckpointError::Damaged { step, defect })
    }

    pub(crate) fn commit_step(&self, number: u64) -> Result<Step, CheckpointError> {
        let record = self.history().commit(number);
        let missing = || CheckpointError::NoSuchCommit { root: self.root.clone(), number };
        record.map(|record| record.body.step).ok_or_else(missing)
    }

    /// The checkpoint a resume would take: the newest committed one that verifies, along the parents of the newest
    /// epoch. `None`: nothing was ever committed.
    ///
    /// # Errors
    /// [`CheckpointError::NothingVerifies`] when checkpoints were committed and none can be used: an explicit end,
    /// never step 0 in silence.
    pub fn resume_target(&self) -> Result<Option<LoadedCheckpoint>, CheckpointError> {
        self.search().outcome()
    }

    pub(crate) fn search(&self) -> Search {
        let newest_step = self.history().newest_step();
        let mut search = Search { target: None, fallbacks: Vec::new(), damage: Vec::new(), newest_step };
        for candidate in self.history().candidates() {
            let (number, body) = match candidate {
                Candidate::Passed(fallback) => {
                    search.fallbacks.push(fallback);
                    continue;
                }
                Candidate::Commit { number, body } => (number, body),
            };
            match self.try_load(number) {
                Ok(loaded) => {
                    search.target = Some(loaded);
                    break;
                }
                Err(defect) => {
                    let why = defect.to_string();
                    search.fallbacks.push(Fallback { step: Some(body.step), why: why.clone() });
                    if defect.is_damage() {
                        search.damage.push(Damage { number, why });
                    }
                }
            }
        }
        search
    }

    pub(crate) fn try_load(&self, number: u64) -> Result<LoadedCheckpoint, Defect> {
        let missing = || Defect::Missing { name: format!("commit {number}") };
        let info = self.list().into_iter().find(|info| info.number == number).ok_or_else(missing)?;
        let record = self.history().commit(number).ok_or_else(missing)?;
        let body = &record.body;
        let folder = self.root.join(record.folder());
        let manifest = verify(self.disk.as_ref(), &folder, body)?;
        let disk = Arc::clone(&self.disk);
        Ok(LoadedCheckpoint {
            step: body.step,
            info,
            manifest,
            fallbacks: Vec::new(),
            lost_steps: 0,
            folder,
            disk,
        })
    }

    pub(crate) fn history(&self) -> &History {
        self.log.state()
    }
}

impl Search {
    pub fn outcome(self) -> Result<Option<LoadedCheckpoint>, CheckpointError> {
        match (self.target, self.fallbacks) {
            (Some(target), fallbacks) => {
                let lost_steps = self.newest_step.unwrap_or(target.step).saturating_sub(target.step);
                Ok(Some(LoadedCheckpoint { fallbacks, lost_steps, ..target }))
            }
            (None, fallbacks) if fallbacks.is_empty() => Ok(None),
            (None, fallbacks) => Err(CheckpointError::NothingVerifies { fallbacks }),
        }
    }
}

/// The clock and ids of a reader: it adds no entry, so nobody looks at them.
struct Nobody;

impl Clock for Nobody {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }

    fn monotonic_micros(&self) -> i64 {
        0
    }
}

impl Ids for Nobody {
    fn next_ulid(&self) -> u128 {
        0
    }
}
