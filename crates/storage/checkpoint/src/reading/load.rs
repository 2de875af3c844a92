use std::path::PathBuf;
use std::sync::Arc;

use trackway_core::Step;
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};
use trackway_store::Disk;

use super::verify::read_verified;
use crate::bulk::{LoadError, Tensors, Want, read_tensors};
use crate::error::{CheckpointError, Fallback, Result};
use crate::group::without_rank;
use crate::history::CheckpointInfo;

/// A committed checkpoint that verified, ready to be read.
#[derive(Clone)]
pub struct LoadedCheckpoint {
    /// The step whose end it holds: training continues with the next one.
    pub step: Step,
    /// The commit.
    pub info: CheckpointInfo,
    /// What it consists of, with the metrics of that step.
    pub manifest: Manifest,
    /// Newer checkpoints that were skipped, newest first, and why.
    pub fallbacks: Vec<Fallback>,
    /// Committed steps that are trained again because newer checkpoints were skipped.
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
    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        let file = self.file(name)?;
        read_verified(self.disk.as_ref(), &self.folder, file)
            .map_err(|defect| CheckpointError::Damaged { step: self.step, defect })
    }

    /// Tensors, or parts of them, assembled from all files `STEM.safetensors` and `STEM-00001-of-00003.safetensors`, of
    /// whichever ranks: for a run that continues with another number of ranks than saved it. Each file with some of
    /// them is verified while it is read.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`]; [`CheckpointError::Tensors`] when a tensor is missing, incomplete, or its parts
    /// contradict each other.
    pub fn tensors(&self, stem: &str, wants: &[Want]) -> Result<Tensors> {
        let files: Vec<_> = self.files().iter().filter(|file| has_stem(&file.name, stem)).cloned().collect();
        read_tensors(self.disk.as_ref(), &self.folder, &files, wants).map_err(|error| match error {
            LoadError::Defect(defect) => CheckpointError::Damaged { step: self.step, defect },
            LoadError::Tensors(error) => error.into(),
        })
    }

    /// Its files.
    #[must_use]
    pub fn files(&self) -> &[ManifestFile] {
        &self.manifest.files
    }

    fn file(&self, name: &str) -> Result<&ManifestFile> {
        self.files().iter().find(|file| file.name == name).ok_or_else(|| CheckpointError::NoSuchFile {
            step: self.step,
            name: name.into(),
            available: self.files().iter().map(|file| file.name.clone()).collect(),
        })
    }
}

/// Whether a file is one of those that tensors were split into under that stem, by any rank.
fn has_stem(name: &str, stem: &str) -> bool {
    let rest = without_rank(name).strip_prefix(stem).and_then(|rest| rest.strip_suffix(".safetensors"));
    let is_part = |rest: &str| {
        let numbers = rest.strip_prefix('-').and_then(|rest| rest.split_once("-of-"));
        let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        numbers.is_some_and(|(index, count)| digits(index) && digits(count))
    };
    rest.is_some_and(|rest| rest.is_empty() || is_part(rest))
}
