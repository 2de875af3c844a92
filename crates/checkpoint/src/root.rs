use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_core::{AttemptId, Clock, Ids, RunId, Step};
use trackway_formats::checkpoint_manifest::{
    MANIFEST_FILE_NAME, MANIFEST_VERSION, Manifest, ManifestFile, sha256_hex, state_digest,
};

use crate::disk::{Disk, RealDisk};
use crate::entry::{Begin, Body, CommitBody, ENTRY_VERSION, Entry, object_prefix};
use crate::error::CheckpointError;
use crate::history::{CheckpointInfo, Claim};
use crate::load::LoadedCheckpoint;
use crate::log::{Created, LogItem};
use crate::settings::Settings;
use crate::view::CheckpointView;
use crate::writer::{CheckpointWriter, write_durably};

/// How often the next number is tried before giving up. Each try that fails means that another writer got on.
const MAX_APPEND_TRIES: u32 = 64;

/// A checkpoint that was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The number of the commit in the log.
    pub number: u64,
    /// The run.
    pub run_id: RunId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// The step whose end it holds.
    pub step: Step,
    /// The epoch of the writer.
    pub epoch: u64,
    /// Where its files are, below the root.
    pub object_prefix: String,
    /// The SHA-256 of its manifest, in lower-case hex.
    pub manifest_sha256: String,
    /// The digest of the training state it holds.
    pub state_digest: String,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// How long writing and committing took.
    pub seconds: f64,
    /// The number of the commit it was trained on from.
    pub parent: Option<u64>,
}

/// A checkpoint root as its writer sees it: one attempt, holding one epoch.
pub struct CheckpointRoot {
    view: CheckpointView,
    epoch: u64,
    run_id: RunId,
    attempt_id: AttemptId,
    settings: Settings,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    disk: Arc<dyn Disk>,
    /// The commit this attempt goes on from.
    parent: Option<u64>,
}

impl CheckpointRoot {
    /// Opens a root for writing and claims `epoch` in it, which fences every writer with a lower one. The same
    /// attempt may open its root again.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`] when the epoch, or a higher one, is another attempt's;
    /// [`CheckpointError::WrongRun`]; [`CheckpointError::Storage`].
    pub fn open(
        path: &Path,
        epoch: u64,
        run_id: RunId,
        attempt_id: AttemptId,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, CheckpointError> {
        let disk = Arc::new(RealDisk);
        Self::open_on(
            disk,
            path,
            Claim { epoch, run_id, attempt_id },
            Settings::from_environment(),
            clock,
            ids,
        )
    }

    pub(crate) fn open_on(
        disk: Arc<dyn Disk>,
        path: &Path,
        claim: Claim,
        settings: Settings,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, CheckpointError> {
        let Claim { epoch, run_id, attempt_id } = claim;
        make_root(disk.as_ref(), path)?;
        let view = CheckpointView::open(path)?;
        let mut root = Self { view, epoch, run_id, attempt_id, settings, clock, ids, disk, parent: None };
        root.claim()?;
        Ok(root)
    }

    fn claim(&mut self) -> Result<(), CheckpointError> {
        let body = Body::Claim { epoch: self.epoch, run_id: self.run_id, attempt_id: self.attempt_id };
        for _ in 0..MAX_APPEND_TRIES {
            self.view.refresh()?;
            self.check_run()?;
            self.check_fence()?;
            if self.view.epoch() == Some(self.epoch) {
                return Ok(());
            }
            if self.try_append(body.clone())?.is_some() {
                return Ok(());
            }
        }
        Err(self.contended())
    }

    /// The root as a reader sees it, as of the last call.
    #[must_use]
    pub fn view(&self) -> &CheckpointView {
        &self.view
    }

    /// Every checkpoint, in the order of the log.
    ///
    /// # Errors
    /// [`CheckpointError::Storage`].
    pub fn list(&mut self) -> Result<Vec<CheckpointInfo>, CheckpointError> {
        self.view.refresh()?;
        Ok(self.view.list())
    }

    /// The checkpoint to go on from: the newest committed one that verifies, along the parents of the newest epoch.
    /// Those that do not verify are marked suspect and explained in [`LoadedCheckpoint::fallbacks`]. `None`: nothing
    /// was ever committed. Later commits name the one returned here as their parent.
    ///
    /// # Errors
    /// [`CheckpointError::NothingVerifies`] when checkpoints were committed and none can be used;
    /// [`CheckpointError::Fenced`]; [`CheckpointError::Storage`].
    pub fn resume_target(&mut self) -> Result<Option<LoadedCheckpoint>, CheckpointError> {
        self.view.refresh()?;
        self.check_fence()?;
        let search = self.view.search();
        for damage in &search.damage {
            // A full disk must not keep a run from resuming: the answer tells of the damage, marked or not.
            if let Err(error @ CheckpointError::Fenced { .. }) =
                self.append(Body::suspect(damage.number, &damage.why))
            {
                return Err(error);
            }
        }
        let target = search.outcome()?;
        self.parent = target.as_ref().map(|target| target.info.number);
        Ok(target)
    }

    /// Writes a checkpoint and commits it. `fill` writes its files; when it returns an error nothing is committed.
    ///
    /// When this returns `Ok`, the checkpoint survives power loss. When it returns an error, every checkpoint
    /// committed earlier is untouched, and this one is either committed as a whole or not at all.
    ///
    /// # Errors
    /// [`CheckpointError::Fenced`]: stop. [`CheckpointError::Storage`]: nothing is committed, and saving may be
    /// tried again. What `fill` returned.
    pub fn save(
        &mut self,
        step: Step,
        metrics: &[(&str, f64)],
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), CheckpointError>,
    ) -> Result<Commit, CheckpointError> {
        let started_micros = self.clock.monotonic_micros();
        let prefix = object_prefix(step, self.epoch, &self.new_ulid());
        self.append(Body::Begin(Begin {
            epoch: self.epoch,
            run_id: self.run_id,
            attempt_id: self.attempt_id,
            step,
            object_prefix: prefix.clone(),
        }))?;
        let written = self.write_objects(step, &prefix, metrics, fill);
        if written.is_err() {
            // Gives the room back at once; what stays is never read, because it has no commit.
            let _ = self.disk.remove_folder(&self.view.root().join(&prefix));
        }
        let (manifest, manifest_sha256) = written.map_err(|error| error.at_step(step))?;
        let body = CommitBody {
            epoch: self.epoch,
            run_id: self.run_id,
            attempt_id: self.attempt_id,
            step,
            object_prefix: prefix,
            parent: self.parent,
            manifest_sha256,
            size_bytes: manifest.size_bytes(),
            state_digest: manifest.state_digest,
        };
        let number = self.append(Body::Commit(body.clone()))?;
        self.parent = Some(number);
        // The checkpoint is real whatever becomes of older ones. A fence met here is met again by the next save, and
        // files that could not be deleted are part of no live checkpoint.
        let _ = self.retire_old();
        let seconds = (self.clock.monotonic_micros() - started_micros) as f64 / 1e6;
        Ok(commit(number, body, seconds))
    }

    /// Writes the files and the manifest under a new prefix and makes them and all names on the way durable.
    fn write_objects(
        &self,
        step: Step,
        prefix: &str,
        metrics: &[(&str, f64)],
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), CheckpointError>,
    ) -> Result<(Manifest, String), CheckpointError> {
        let folder = self.view.root().join(prefix);
        let step_folder = folder.parent().unwrap_or(self.view.root()).to_owned();
        make_folder(self.disk.as_ref(), &step_folder)?;
        make_folder(self.disk.as_ref(), &folder)?;
        let mut writer = CheckpointWriter::new(self.disk.as_ref(), folder.clone());
        fill(&mut writer)?;
        let manifest = self.manifest(step, prefix, metrics, writer.into_files(step)?);
        let bytes = manifest.to_bytes()?;
        write_durably(self.disk.as_ref(), &folder.join(MANIFEST_FILE_NAME), &bytes)?;
        for folder in [folder.as_path(), &step_folder, self.view.root()] {
            sync_folder(self.disk.as_ref(), folder)?;
        }
        Ok((manifest, sha256_hex(&bytes)))
    }

    fn manifest(
        &self,
        step: Step,
        prefix: &str,
        metrics: &[(&str, f64)],
        files: Vec<ManifestFile>,
    ) -> Manifest {
        Manifest {
            version: MANIFEST_VERSION,
            run_id: self.run_id,
            attempt_id: self.attempt_id,
            step,
            epoch: self.epoch,
            created_at: self.clock.now(),
            object_prefix: prefix.to_owned(),
            world_size: self.settings.world_size,
            metrics: metrics
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect::<BTreeMap<_, _>>(),
            config_sha256: self.settings.config_sha256.clone(),
            data_sha256: self.settings.data_sha256.clone(),
            state_digest: state_digest(&files),
            files,
        }
    }

    /// Deletes what retention no longer keeps: first says so in the log, then removes the files. Does nothing unless
    /// the newest two of the chain verify.
    fn retire_old(&mut self) -> Result<(), CheckpointError> {
        let Some(keep) = self.settings.keep_last else {
            return Ok(());
        };
        let chain = self.view.history().live_chain();
        if chain.len() <= keep
            || chain.iter().take(keep.min(2)).any(|number| self.view.verify(*number).is_err())
        {
            return Ok(());
        }
        for number in &chain[keep..] {
            let Some(prefix) = self.view.history().commit(*number).map(|body| body.object_prefix.clone())
            else {
                continue;
            };
            self.append(Body::Retire { commit: *number })?;
            let folder = self.view.root().join(prefix);
            self.disk.remove_folder(&folder).map_err(CheckpointError::storage("delete", &folder))?;
        }
        Ok(())
    }

    /// Adds an entry under the next number that is free, unless a higher epoch is found on the way.
    fn append(&mut self, body: Body) -> Result<u64, CheckpointError> {
        for _ in 0..MAX_APPEND_TRIES {
            self.view.refresh()?;
            self.check_fence()?;
            if let Some(number) = self.try_append(body.clone())? {
                return Ok(number);
            }
        }
        Err(self.contended())
    }

    /// Tries to create the next number. `None`: it was taken meanwhile.
    fn try_append(&mut self, body: Body) -> Result<Option<u64>, CheckpointError> {
        let entry = Entry {
            version: ENTRY_VERSION,
            number: self.view.history().next_number(),
            ulid: self.new_ulid(),
            at: self.clock.now().to_rfc3339(),
            body,
        };
        match self.view.log().create(self.disk.as_ref(), &entry)? {
            Created::Taken => Ok(None),
            Created::Won => {
                let number = entry.number;
                self.view.take(LogItem::Entry(entry));
                Ok(Some(number))
            }
        }
    }

    fn check_fence(&self) -> Result<(), CheckpointError> {
        match self.view.history().claim() {
            Some(claim)
                if claim.epoch > self.epoch
                    || (claim.epoch == self.epoch && claim.attempt_id != self.attempt_id) =>
            {
                Err(CheckpointError::Fenced {
                    epoch: self.epoch,
                    found_epoch: claim.epoch,
                    found_attempt: claim.attempt_id,
                })
            }
            _ => Ok(()),
        }
    }

    fn check_run(&self) -> Result<(), CheckpointError> {
        match self.view.history().claim() {
            Some(claim) if claim.run_id != self.run_id => Err(CheckpointError::WrongRun {
                root: self.view.root().to_owned(),
                expected: self.run_id,
                found: claim.run_id,
            }),
            _ => Ok(()),
        }
    }

    fn contended(&self) -> CheckpointError {
        CheckpointError::Contended { log: self.view.log().folder().to_owned(), tries: MAX_APPEND_TRIES }
    }

    fn new_ulid(&self) -> String {
        ulid::Ulid(self.ids.next_ulid()).to_string().to_lowercase()
    }
}

fn commit(number: u64, body: CommitBody, seconds: f64) -> Commit {
    Commit {
        number,
        run_id: body.run_id,
        attempt_id: body.attempt_id,
        step: body.step,
        epoch: body.epoch,
        object_prefix: body.object_prefix,
        manifest_sha256: body.manifest_sha256,
        state_digest: body.state_digest,
        size_bytes: body.size_bytes,
        seconds,
        parent: body.parent,
    }
}

/// Makes the root, its log folder and every missing folder above, durably.
fn make_root(disk: &dyn Disk, root: &Path) -> Result<(), CheckpointError> {
    let missing: Vec<PathBuf> =
        root.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    for folder in missing.iter().rev() {
        make_folder(disk, folder)?;
        if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(disk, parent)?;
        }
    }
    make_folder(disk, crate::log::Log::below(root).folder())?;
    sync_folder(disk, root)
}

fn make_folder(disk: &dyn Disk, path: &Path) -> Result<(), CheckpointError> {
    disk.make_folder(path).map_err(CheckpointError::storage("make the folder", path))
}

fn sync_folder(disk: &dyn Disk, path: &Path) -> Result<(), CheckpointError> {
    disk.sync_folder(path).map_err(CheckpointError::storage("sync the folder", path))
}
