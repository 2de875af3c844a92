use std::path::{Path, PathBuf};

use trackway_core::Step;
use trackway_formats::checkpoint_manifest::{Kind, ManifestError, ManifestFile, check_file_name};

use crate::disk::Disk;
use crate::error::CheckpointError;

/// Takes the files of one checkpoint. Each is durable when [`CheckpointWriter::file`] returns; none is part of a
/// checkpoint before the commit.
pub struct CheckpointWriter<'a> {
    disk: &'a dyn Disk,
    folder: PathBuf,
    files: Vec<ManifestFile>,
}

impl<'a> CheckpointWriter<'a> {
    pub(crate) fn new(disk: &'a dyn Disk, folder: PathBuf) -> Self {
        Self { disk, folder, files: Vec::new() }
    }

    /// Writes a file of the checkpoint.
    ///
    /// # Errors
    /// [`CheckpointError::Manifest`] for a name that is not allowed or was used already,
    /// [`CheckpointError::Storage`] when the disk refuses.
    pub fn file(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> Result<(), CheckpointError> {
        check_file_name(name).map_err(|rule| ManifestError::Rule { rule })?;
        if self.files.iter().any(|file| file.name == name) {
            return Err(ManifestError::Rule { rule: format!("`{name}` was written already") }.into());
        }
        write_durably(self.disk, &self.folder.join(name), bytes)?;
        self.files.push(ManifestFile::new(name, kind, bytes.len() as u64, &blake3::hash(bytes)));
        Ok(())
    }

    pub(crate) fn into_files(self, step: Step) -> Result<Vec<ManifestFile>, CheckpointError> {
        if self.files.is_empty() {
            return Err(CheckpointError::Empty { step });
        }
        let mut files = self.files;
        files.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(files)
    }
}

/// Writes a new file and makes its bytes durable; its name becomes durable with its folder.
pub(crate) fn write_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let mut file = disk.create(path).map_err(CheckpointError::storage("create", path))?;
    file.write(bytes).map_err(CheckpointError::storage("write", path))?;
    file.sync().map_err(CheckpointError::storage("sync", path))
}
