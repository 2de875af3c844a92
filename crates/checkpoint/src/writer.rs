use std::path::{Path, PathBuf};

use trackway_formats::checkpoint_manifest::{Kind, ManifestError, ManifestFile, check_file_name};
use trackway_store::Disk;

use crate::error::CheckpointError;
use crate::ranks::RankGroup;

/// The files of the commit that training goes on from: those that did not change are shared with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParentFiles {
    pub folder: PathBuf,
    pub object_prefix: String,
    pub files: Vec<ManifestFile>,
}

impl ParentFiles {
    /// The parent's file of the same name and bytes, and the prefix it was first written below.
    fn same(&self, file: &ManifestFile) -> Option<(PathBuf, String)> {
        let found = self.files.iter().find(|found| found.same_content(file))?;
        let stored_in = found.stored_in.clone().unwrap_or_else(|| self.object_prefix.clone());
        Some((self.folder.join(&found.name), stored_in))
    }
}

/// Takes the files of one checkpoint. Each is durable when [`CheckpointWriter::file`] returns; none is part of a
/// checkpoint before the commit.
pub struct CheckpointWriter<'a> {
    disk: &'a dyn Disk,
    folder: PathBuf,
    parent: Option<&'a ParentFiles>,
    /// Which rank writes, where several do.
    group: Option<RankGroup>,
    files: Vec<ManifestFile>,
}

impl<'a> CheckpointWriter<'a> {
    pub(crate) fn new(
        disk: &'a dyn Disk,
        folder: PathBuf,
        parent: Option<&'a ParentFiles>,
        group: Option<RankGroup>,
    ) -> Self {
        Self { disk, folder, parent, group, files: Vec::new() }
    }

    /// Writes a file of the checkpoint, unless the checkpoint before has it with the same bytes: then it is shared.
    ///
    /// # Errors
    /// [`CheckpointError::Manifest`] for a name that is not allowed or was used already, [`CheckpointError::Ranks`] for one
    /// that another rank writes, [`CheckpointError::Storage`] when the disk refuses.
    pub fn file(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> Result<(), CheckpointError> {
        let mut file = ManifestFile::new(name, kind, bytes.len() as u64, &blake3::hash(bytes));
        file.rank = self.check_name(name)?;
        if !self.share(&mut file) {
            write_durably(self.disk, &self.folder.join(name), bytes)?;
        }
        self.files.push(file);
        Ok(())
    }

    /// Where the files go.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The disk they go to.
    #[must_use]
    pub fn disk(&self) -> &dyn Disk {
        self.disk
    }

    /// Whether the checkpoint before has a file of that name, kind and size, so that sharing it is worth a look.
    #[must_use]
    pub fn may_share(&self, name: &str, kind: Kind, size_bytes: u64) -> bool {
        self.parent.is_some_and(|parent| {
            let alike = |file: &&ManifestFile| file.name == name && file.kind == kind;
            parent.files.iter().find(alike).is_some_and(|file| file.size_bytes == size_bytes)
        })
    }

    /// Gives the file a second name in this checkpoint when the one before has it with the same bytes, and notes where
    /// they were first written. False: it must be written.
    pub fn share(&self, file: &mut ManifestFile) -> bool {
        let Some((from, stored_in)) = self.parent.and_then(|parent| parent.same(file)) else {
            return false;
        };
        let linked = self.disk.link(&from, &self.folder.join(&file.name)).is_ok();
        if linked {
            file.stored_in = Some(stored_in);
        }
        linked
    }

    /// Takes in a file that the caller wrote and synced in [`CheckpointWriter::folder`], or shared.
    ///
    /// # Errors
    /// [`CheckpointError::Manifest`] for a name that is not allowed or was used already, [`CheckpointError::Ranks`] for one
    /// that another rank writes.
    pub fn add(&mut self, mut file: ManifestFile) -> Result<(), CheckpointError> {
        file.rank = self.check_name(&file.name)?;
        self.files.push(file);
        Ok(())
    }

    /// Refuses a name that is not allowed; the rank whose file it is, where several write.
    fn check_name(&self, name: &str) -> Result<Option<u32>, CheckpointError> {
        check_file_name(name).map_err(|rule| ManifestError::Rule { rule })?;
        if self.files.iter().any(|file| file.name == name) {
            return Err(ManifestError::Rule { rule: format!("`{name}` was written already") }.into());
        }
        Ok(self.group.map_or(Ok(None), |group| group.owner_of(name))?)
    }

    pub(crate) fn into_files(self) -> Vec<ManifestFile> {
        let mut files = self.files;
        files.sort_by(|left, right| left.name.cmp(&right.name));
        files
    }
}

/// Writes a new file and makes its bytes durable; its name becomes durable with its folder.
pub(crate) fn write_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    let file = disk.create(path, false).map_err(CheckpointError::storage("create", path))?;
    file.write_at(0, bytes).map_err(CheckpointError::storage("write", path))?;
    file.sync().map_err(CheckpointError::storage("sync", path))
}
