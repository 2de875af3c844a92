//! A checkpoint of which every byte was checked, by step or by the hash of its manifest.

use std::path::PathBuf;

use trackway_checkpoint::{CheckpointInfo, LoadedCheckpoint, State};
use trackway_formats::checkpoint_manifest::Manifest;

use super::reading::Reading;
use super::there::{Placed, Remote};
use super::{Checkpoints, Watch, Which};
use crate::error::{AppError, ErrorKind};

/// A checkpoint whose files were not read.
pub struct OpenedCheckpoint {
    /// Where its files are.
    pub folder: PathBuf,
    /// What it consists of; this one was checked against the commit.
    pub manifest: Manifest,
}

impl Checkpoints {
    /// Verifies a committed checkpoint that is on this disk.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, or it is at the remote only; [`ErrorKind::Integrity`] when it does not verify.
    pub fn load(&self, which: Which, watch: &Watch) -> Result<LoadedCheckpoint, AppError> {
        let placed = self.placed(self.view()?.list(), &Remote::None, false);
        let Placed { info, .. } = self.choose(&placed, which)?;
        self.load_info(&info, watch)
    }

    /// The same, of the checkpoint whose manifest has this SHA-256.
    ///
    /// # Errors
    /// As [`Checkpoints::load`].
    pub fn load_manifest(&self, manifest_sha256: &str, watch: &Watch) -> Result<LoadedCheckpoint, AppError> {
        let info = self.with_manifest(manifest_sha256)?;
        self.load_info(&info, watch)
    }

    /// What such a checkpoint consists of and where it is, its files not read.
    ///
    /// # Errors
    /// As [`Checkpoints::load`], for the manifest alone.
    pub fn open_manifest(&self, manifest_sha256: &str) -> Result<OpenedCheckpoint, AppError> {
        let info = self.with_manifest(manifest_sha256)?;
        let manifest = self.view()?.manifest(info.number).map_err(|error| self.error(&error))?;
        Ok(OpenedCheckpoint { folder: self.root.join(&info.folder), manifest })
    }

    fn with_manifest(&self, manifest_sha256: &str) -> Result<CheckpointInfo, AppError> {
        let mut all = self.view()?.list();
        let meant = |info: &&CheckpointInfo| {
            info.manifest_sha256.as_deref() == Some(manifest_sha256) && info.state != State::Retired
        };
        let gone = || {
            let message =
                format!("{} has no checkpoint with manifest {manifest_sha256} on this disk", self.title());
            AppError::new(ErrorKind::NotFound, message)
                .hint(format!("see which there are with: trackway checkpoint ls {}", self.subject))
        };
        let at = all.iter().position(|info| meant(&info)).ok_or_else(gone)?;
        Ok(all.swap_remove(at))
    }

    fn load_info(&self, info: &CheckpointInfo, watch: &Watch) -> Result<LoadedCheckpoint, AppError> {
        let reading = Reading::new(watch, info.size_bytes.unwrap_or(0));
        reading.view(&self.root)?.load(info.number).map_err(|error| self.error(&error))
    }
}
