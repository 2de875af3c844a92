use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_core::{Clock, Ids, Step, Timestamp};
use trackway_files::OwnedFolder;
use trackway_formats::checkpoint_manifest::Manifest;
use trackway_store::{Disk, LocalBackend, Log, RealDisk};

use super::load::LoadedCheckpoint;
use super::verify::{read_all, verify, verify_manifest};
use crate::bulk::LoadedFile;
use crate::error::{CheckpointError, Defect, Fallback, Result};
use crate::history::entry::CommitBody;
use crate::history::{Candidate, CheckpointInfo, CommitRecord, History, PinInfo};
use crate::retention::{Age, Retention, RetentionPlan, plan};

/// What only a checkpoint root holds: its log, the votes of ranks, what is being downloaded.
const ROOT_SIGNS: [&str; 3] = ["log", "votes", "incoming"];
/// What the folder of a step begins with.
const STEP_PREFIX: &str = "step-";

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
    /// With what was read of its files on the way, if requested.
    pub target: Option<VerifiedCheckpoint>,
    pub fallbacks: Vec<Fallback>,
    pub damage: Vec<Damage>,
    newest_step: Option<Step>,
}

/// A checkpoint that verified, and its files if requested.
pub(crate) type VerifiedCheckpoint = (LoadedCheckpoint, Vec<LoadedFile>);

impl CheckpointView {
    /// Reads the whole log of a root. A root that does not exist is one without checkpoints.
    pub fn open(root: &Path) -> Result<Self> {
        Self::open_on(root, Arc::new(RealDisk))
    }

    /// The same through a given disk, so that its owner can watch what is read.
    pub fn open_on(root: &Path, disk: Arc<dyn Disk>) -> Result<Self> {
        let unused = Arc::new(Unused);
        let mut view = Self::unread(root, disk, unused.clone(), unused);
        view.refresh()?;
        Ok(view)
    }

    /// A view that was not read yet; the clock and the ids are those of the entries its owner may add.
    pub(crate) fn unread(root: &Path, disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let backend = LocalBackend::on_disk(root, Arc::clone(&disk), Arc::clone(&ids));
        Self::over(root, disk, Log::new(Arc::new(backend), clock, ids))
    }

    /// A view of a root whose log may be elsewhere.
    pub(crate) fn over(root: &Path, disk: Arc<dyn Disk>, log: Log<History>) -> Self {
        Self { root: root.to_owned(), disk, log }
    }

    /// A view that begins at the newest summary of the log.
    pub(crate) fn at_summary(
        root: &Path,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self> {
        let backend = LocalBackend::on_disk(root, Arc::clone(&disk), Arc::clone(&ids));
        Ok(Self::over(root, disk, Log::open(Arc::new(backend), clock, ids)?))
    }

    /// Reads what was added to the log since.
    pub fn refresh(&mut self) -> Result<()> {
        Ok(self.log.refresh()?)
    }

    /// The folder of the root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The root as a folder to delete `path` from: it holds what only a checkpoint root holds, or, with its log
    /// elsewhere, the folder of a step that `path` is in and that the log named.
    pub(crate) fn owned(&self, path: &Path) -> io::Result<OwnedFolder> {
        let first = path.strip_prefix(&self.root).ok().and_then(|below| below.iter().next());
        let step = first.and_then(|name| name.to_str()).filter(|name| name.starts_with(STEP_PREFIX));
        let signs: Vec<&str> = ROOT_SIGNS.into_iter().chain(step).collect();
        OwnedFolder::holding(&self.root, &signs)
    }

    /// Removes a folder below the root.
    pub(crate) fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.remove_folder(&self.owned(folder)?, folder)
    }

    pub(crate) fn make_folder(&self, folder: &Path) -> Result<()> {
        self.disk.make_folder(folder).map_err(CheckpointError::storage("make the folder", folder))
    }

    pub(crate) fn sync_folder(&self, folder: &Path) -> Result<()> {
        self.disk.sync_folder(folder).map_err(CheckpointError::storage("sync the folder", folder))
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

    /// The epoch that may commit, once one was claimed.
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
    pub fn verify(&self, number: u64) -> Result<CheckpointInfo> {
        self.load(number).map(|loaded| loaded.info)
    }

    /// Verifies a committed checkpoint and opens it for reading, by the number of its commit.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`], or [`CheckpointError::NoSuchCommit`].
    pub fn load(&self, number: u64) -> Result<LoadedCheckpoint> {
        let step = self.commit_step(number)?;
        self.try_load(number).map_err(|defect| CheckpointError::Damaged { step, defect })
    }

    /// What a committed checkpoint consists of. Its manifest is checked, its files are not read.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`], or [`CheckpointError::NoSuchCommit`].
    pub fn manifest(&self, number: u64) -> Result<Manifest> {
        let record = self.record(number)?;
        verify_manifest(self.disk.as_ref(), &self.root.join(record.folder()), &record.body)
            .map_err(|defect| CheckpointError::Damaged { step: record.body.step, defect })
    }

    /// What `policy` keeps and what it deletes as of `now`, decided from the log alone. Checkpoints that a resume never
    /// reaches are deleted when they are older than `older_than_seconds`; none: they stay.
    #[must_use]
    pub fn retention(
        &self,
        policy: &Retention,
        now: Timestamp,
        older_than_seconds: Option<f64>,
    ) -> RetentionPlan {
        let age = older_than_seconds.map(|older_than_seconds| Age { now, older_than_seconds });
        plan(self.history(), policy, now, age)
    }

    pub(crate) fn commit_step(&self, number: u64) -> Result<Step> {
        Ok(self.record(number)?.body.step)
    }

    fn record(&self, number: u64) -> Result<&CommitRecord> {
        let missing = || CheckpointError::NoSuchCommit { root: self.root.clone(), number };
        self.history().commit(number).ok_or_else(missing)
    }

    /// The checkpoint a resume would take: the newest committed one that verifies and is not unsafe, along the parents of the newest
    /// epoch. `None`: nothing was ever committed, or nothing that is not unsafe (see [`CheckpointView::skipped`]).
    ///
    /// # Errors
    /// [`CheckpointError::NothingVerifies`] when checkpoints were committed and none can be used: an explicit end,
    /// never a silent step 0. [`CheckpointError::HalfAdopted`].
    pub fn resume_target(&self) -> Result<Option<LoadedCheckpoint>> {
        self.check_adopted()?;
        Ok(self.search().outcome()?.map(|(target, _)| target))
    }

    /// What a resume skips without reading a byte: newer than what it tries first, or all of it where it begins again.
    #[must_use]
    pub fn skipped(&self) -> Vec<Fallback> {
        let passed = |candidate| match candidate {
            Candidate::Passed(fallback) => Some(fallback),
            Candidate::Commit { .. } => None,
        };
        self.history().candidates().into_iter().map_while(passed).collect()
    }

    /// The same, with all its files in memory: every byte is read once, and checked while it is read.
    ///
    /// # Errors
    /// As [`CheckpointView::resume_target`].
    pub fn resume_read(&self) -> Result<Option<(LoadedCheckpoint, Vec<LoadedFile>)>> {
        self.check_adopted()?;
        self.search_reading().outcome()
    }

    /// [`CheckpointView::load`], with all its files in memory.
    ///
    /// # Errors
    /// As [`CheckpointView::load`].
    pub fn read(&self, number: u64) -> Result<(LoadedCheckpoint, Vec<LoadedFile>)> {
        let step = self.commit_step(number)?;
        self.try_read(number).map_err(|defect| CheckpointError::Damaged { step, defect })
    }

    /// What was adopted only in part leads nowhere, for later epochs too: its first entry makes everything before it
    /// not count.
    pub(crate) fn check_adopted(&self) -> Result<()> {
        self.history().adopting().map_or(Ok(()), |epoch| Err(CheckpointError::HalfAdopted { epoch }))
    }

    pub(crate) fn search(&self) -> Search {
        self.search_with(|number| Ok((self.try_load(number)?, Vec::new())))
    }

    pub(crate) fn search_reading(&self) -> Search {
        self.search_with(|number| self.try_read(number))
    }

    fn search_with(&self, load: impl Fn(u64) -> Result<VerifiedCheckpoint, Defect>) -> Search {
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
            match load(number) {
                Ok(found) => {
                    search.target = Some(found);
                    break;
                }
                Err(defect) => {
                    let why = defect.to_string();
                    search.fallbacks.push(Fallback::new(Some(body.step), why.clone()));
                    if defect.is_damage() {
                        search.damage.push(Damage { number, why });
                    }
                }
            }
        }
        search
    }

    pub(crate) fn try_load(&self, number: u64) -> Result<LoadedCheckpoint, Defect> {
        let check = |folder: &Path, body: &CommitBody| Ok((verify(self.disk.as_ref(), folder, body)?, ()));
        Ok(self.try_open(number, check)?.0)
    }

    fn try_read(&self, number: u64) -> Result<VerifiedCheckpoint, Defect> {
        self.try_open(number, |folder, body| read_all(self.disk.as_ref(), folder, body))
    }

    fn try_open<T>(
        &self,
        number: u64,
        check: impl FnOnce(&Path, &CommitBody) -> Result<(Manifest, T), Defect>,
    ) -> Result<(LoadedCheckpoint, T), Defect> {
        let missing = || Defect::Missing { name: format!("commit {number}") };
        let record = self.history().commit(number).ok_or_else(missing)?;
        let (manifest, checked) = check(&self.root.join(record.folder()), &record.body)?;
        Ok((self.loaded(number, manifest)?, checked))
    }

    /// A commit as a checkpoint to read from; the caller has verified it.
    pub(crate) fn loaded(&self, number: u64, manifest: Manifest) -> Result<LoadedCheckpoint, Defect> {
        let missing = || Defect::Missing { name: format!("commit {number}") };
        let info = self.list().into_iter().find(|info| info.number == number).ok_or_else(missing)?;
        let record = self.history().commit(number).ok_or_else(missing)?;
        Ok(LoadedCheckpoint {
            step: record.body.step,
            info,
            manifest,
            fallbacks: Vec::new(),
            lost_steps: 0,
            folder: self.root.join(record.folder()),
            disk: Arc::clone(&self.disk),
        })
    }

    pub(crate) fn history(&self) -> &History {
        self.log.state()
    }
}

impl Search {
    pub fn outcome(self) -> Result<Option<VerifiedCheckpoint>> {
        match (self.target, self.fallbacks) {
            (Some((target, files)), fallbacks) => {
                let lost_steps = self.newest_step.unwrap_or(target.step).saturating_sub(target.step);
                Ok(Some((LoadedCheckpoint { fallbacks, lost_steps, ..target }, files)))
            }
            (None, fallbacks) if fallbacks.is_empty() || Fallback::only_unsafe(&fallbacks) => Ok(None),
            (None, fallbacks) => Err(CheckpointError::NothingVerifies { fallbacks }),
        }
    }
}

/// The clock and ids of a reader: it adds no entry, so they are never used.
#[derive(Debug)]
struct Unused;

impl Clock for Unused {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }

    fn monotonic_micros(&self) -> i64 {
        0
    }

    fn sleep(&self, _: std::time::Duration) {}
}

impl Ids for Unused {
    fn next_ulid(&self) -> u128 {
        0
    }
}
