//! A checkpoint of which every byte was checked, by step or by the hash of its manifest, on this disk or at the remote.

use std::path::PathBuf;

use trackway_checkpoint::{CheckpointInfo, CheckpointState};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::checkpoint_manifest::Manifest;

use super::reading::ReadProgress;
use super::{BytesProgress, Checkpoints, Which};

/// A checkpoint of which every byte was checked.
#[derive(Debug, Clone)]
pub struct CheckedCheckpoint {
    /// The commit.
    pub info: CheckpointInfo,
    /// What it consists of.
    pub manifest: Manifest,
}

/// A checkpoint whose files were not read.
pub struct OpenedCheckpoint {
    /// The commit.
    pub info: CheckpointInfo,
    /// Where its files are; none: only at the remote.
    pub folder: Option<PathBuf>,
    /// What it consists of; this one was checked against the commit.
    pub manifest: Manifest,
}

impl Checkpoints {
    /// Verifies a committed checkpoint where it is: on this disk, else at the remote.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none; [`ErrorKind::Integrity`] when it does not verify; [`ErrorKind::Fault`] when it is only
    /// at the remote, and that does not answer.
    pub fn load(&self, which: Which, watch: &BytesProgress) -> Result<CheckedCheckpoint, AppError> {
        let (info, is_here) = self.found(|placed| self.choose(placed, which))?;
        self.checked(info, is_here, watch)
    }

    /// The same, of the checkpoint whose manifest has this SHA-256; what its bytes showed is in the ledger afterwards.
    ///
    /// # Errors
    /// As [`Checkpoints::load`]; when the ledger cannot be written.
    pub fn load_manifest(
        &self,
        context: &Context,
        manifest_sha256: &str,
        watch: &BytesProgress,
    ) -> Result<CheckedCheckpoint, AppError> {
        let (info, here) = self.with_manifest(manifest_sha256)?;
        let loaded = self.checked(info, here, watch);
        self.note_read(manifest_sha256, &loaded);
        self.mirror(context)?;
        loaded
    }

    /// What such a checkpoint consists of and where it is, its files not read.
    ///
    /// # Errors
    /// As [`Checkpoints::load`], for the manifest alone.
    pub fn open_manifest(&self, manifest_sha256: &str) -> Result<OpenedCheckpoint, AppError> {
        let (info, here) = self.with_manifest(manifest_sha256)?;
        let manifest = match here {
            true => self.view()?.manifest(info.number).map_err(|error| self.error(error))?,
            false => self.manifest_there(&info)?,
        };
        let folder = here.then(|| self.root.join(&info.folder));
        Ok(OpenedCheckpoint { info, folder, manifest })
    }

    /// The newest of these bytes, and whether they are on this disk.
    fn with_manifest(&self, manifest_sha256: &str) -> Result<(CheckpointInfo, bool), AppError> {
        let mut all = self.view()?.list();
        let meant = |info: &CheckpointInfo| {
            info.manifest_sha256.as_deref() == Some(manifest_sha256) && info.state != CheckpointState::Retired
        };
        if let Some(at) = all.iter().position(meant) {
            return Ok((all.swap_remove(at), true));
        }
        let gone = || {
            let message =
                format!("{} has no checkpoint with manifest {manifest_sha256} any more", self.title());
            AppError::new(ErrorKind::NotFound, message)
                .hint(format!("see which there are with: trackway checkpoint ls {}", self.subject))
        };
        Ok((self.held_there(manifest_sha256)?.ok_or_else(gone)?, false))
    }

    fn checked(
        &self,
        info: CheckpointInfo,
        here: bool,
        watch: &BytesProgress,
    ) -> Result<CheckedCheckpoint, AppError> {
        if !here {
            let manifest = self.check_there(&info, watch.as_ref())?;
            return Ok(CheckedCheckpoint { info, manifest });
        }
        let reading = ReadProgress::new(watch, info.size_bytes.unwrap_or(0));
        let loaded = reading.view(&self.root)?.load(info.number).map_err(|error| self.error(error))?;
        Ok(CheckedCheckpoint { info: loaded.info, manifest: loaded.manifest })
    }
}
