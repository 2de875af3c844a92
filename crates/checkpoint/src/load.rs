use std::path::PathBuf;
use std::sync::Arc;

use trackway_core::Step;
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};
use trackway_store::Disk;

use crate::error::{CheckpointError, Fallback};
use crate::history::CheckpointInfo;
use crate::verify::read_verified;

/// A committed checkpoint that verified, ready to be read.
#[derive(Clone)]
pub struct LoadedCheckpoint {
    /// The step whose end it holds: training goes on with the next one.
    pub step: Step,
    /// The commit.
    pub info: CheckpointInfo,
    /// What it consists of, with the metrics of that step.
    pub manifest: Manifest,
    /// Newer checkpoints that were passed over, newest first, and why.
    pub fallbacks: Vec<Fallback>,
    /// Committed steps that are trained again because newer checkpoints were passed over.
    pub lost_steps: Step,
    /// Where its files are.
    pub folder: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
}

impl std::fmt::Debug for LoadedCheckpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = formatter.debug_struct("LoadedCheckpoint");
        text.field("step", &self.step).field("info", &self.info).field("fallbacks", &self.fallbacks);
        text.finish_non_exhaustive()
    }
}

impl LoadedCheckpoint {
    /// The bytes of one of its files, checked again against the manifest while they are read.
    ///
    /// # Errors
    /// [`CheckpointError::NoSuchFile`], or [`CheckpointError::Damaged`] when the file changed since it was verified.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, CheckpointError> {
        let file = self.file(name)?;
        read_verified(self.disk.as_ref(), &self.folder, file)
            .map_err(|defect| CheckpointError::Damaged { step: self.step, defect })
    }

    /// Its files.
    #[must_use]
    pub fn files(&self) -> &[ManifestFile] {
        &self.manifest.files
    }

    fn file(&self, name: &str) -> Result<&ManifestFile, CheckpointError> {
        self.files().iter().find(|file| file.name == name).ok_or_else(|| CheckpointError::NoSuchFile {
            step: self.step,
            name: name.into(),
            available: self.files().iter().map(|file| file.name.clone()).collect(),
        })
    }
}
