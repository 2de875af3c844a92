use std::path::{Path, PathBuf};

use crate::error::{CheckpointError, Fallback};
use crate::history::{Candidate, CheckpointInfo, History};
use crate::load::LoadedCheckpoint;
use crate::log::{Log, LogItem};
use crate::verify::{Defect, verify};

/// A checkpoint root as a reader sees it. It changes nothing on the disk and claims nothing.
#[derive(Debug, Clone)]
pub struct CheckpointView {
    root: PathBuf,
    log: Log,
    history: History,
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
}

impl CheckpointView {
    /// Reads the log of a root. A root that does not exist is one without checkpoints.
    ///
    /// # Errors
    /// [`CheckpointError::Storage`].
    pub fn open(root: &Path) -> Result<Self, CheckpointError> {
        let mut view = Self { root: root.to_owned(), log: Log::below(root), history: History::default() };
        view.refresh()?;
        Ok(view)
    }

    /// Reads what was added to the log since.
    ///
    /// # Errors
    /// [`CheckpointError::Storage`].
    pub fn refresh(&mut self) -> Result<(), CheckpointError> {
        while let Some(item) = self.log.read(self.history.next_number())? {
            self.history.take(item);
        }
        Ok(())
    }

    /// The folder of the root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every checkpoint, in the order of the log.
    #[must_use]
    pub fn list(&self) -> Vec<CheckpointInfo> {
        self.history.checkpoints()
    }

    /// The epoch that may commit, once somebody claimed one.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.history.claim().map(|claim| claim.epoch)
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
        let body = self
            .history
            .commit(number)
            .ok_or_else(|| CheckpointError::NoSuchCommit { root: self.root.clone(), number })?;
        self.try_load(number).map_err(|defect| CheckpointError::Damaged { step: body.step, defect })
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
        let mut search = Search { target: None, fallbacks: Vec::new(), damage: Vec::new() };
        for candidate in self.history.candidates() {
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

    fn try_load(&self, number: u64) -> Result<LoadedCheckpoint, Defect> {
        let missing = || Defect::Missing { name: format!("commit {number}") };
        let info = self.list().into_iter().find(|info| info.number == number).ok_or_else(missing)?;
        let body = self.history.commit(number).ok_or_else(missing)?;
        let manifest = verify(&self.root, body)?;
        let folder = self.root.join(&body.object_prefix);
        Ok(LoadedCheckpoint { step: body.step, info, manifest, fallbacks: Vec::new(), folder })
    }

    /// Takes in an entry that was just created under the next number.
    pub(crate) fn take(&mut self, item: LogItem) {
        self.history.take(item);
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }
}

impl Search {
    pub fn outcome(self) -> Result<Option<LoadedCheckpoint>, CheckpointError> {
        match (self.target, self.fallbacks) {
            (Some(target), fallbacks) => Ok(Some(LoadedCheckpoint { fallbacks, ..target })),
            (None, fallbacks) if fallbacks.is_empty() => Ok(None),
            (None, fallbacks) => Err(CheckpointError::NothingVerifies { fallbacks }),
        }
    }
}
