use std::path::{Path, PathBuf};

use trackway_formats::checkpoint_manifest::{Kind, ManifestError, ManifestFile, check_file_name};
use trackway_store::Disk;

use super::foreign::{self, ForeignFile, Pace};
use super::parent::ParentFiles;
use crate::bulk::{DraftFile, DraftSave, Figures, FileWriter, SourceFile, WrittenFile};
use crate::error::{CheckpointError, Result};
use crate::group::RankGroup;
use crate::reading::load::LoadedCheckpoint;

/// Takes the files of one checkpoint. Each is durable when [`CheckpointWriter::file`] returns; none is part of a
/// checkpoint before the commit.
pub struct CheckpointWriter<'a> {
    writer: &'a FileWriter,
    folder: PathBuf,
    parent: Option<&'a ParentFiles>,
    /// Which rank writes, where several do.
    group: Option<RankGroup>,
    files: Vec<ManifestFile>,
    figures: Figures,
}

impl<'a> CheckpointWriter<'a> {
    pub(crate) fn new(
        writer: &'a FileWriter,
        folder: PathBuf,
        parent: Option<&'a ParentFiles>,
        group: Option<RankGroup>,
    ) -> Self {
        Self { writer, folder, parent, group, files: Vec::new(), figures: Figures::default() }
    }

    /// Writes a file of the checkpoint, unless it is large and the checkpoint before has it with the same bytes: then
    /// it is shared.
    ///
    /// # Errors
    /// [`CheckpointError::Manifest`] for a name that is not allowed or was used already, [`CheckpointError::Ranks`] for
    /// one that another rank writes, [`CheckpointError::Storage`] when the disk refuses.
    pub fn file(&mut self, name: &str, kind: Kind, bytes: &[u8]) -> Result<()> {
        self.files(&[DraftFile::new(name, kind, bytes)])
    }

    /// Writes several files at a time, hashed while they are written; large ones that the checkpoint before has with
    /// the same bytes are shared.
    ///
    /// # Errors
    /// As [`CheckpointWriter::file`].
    pub fn files(&mut self, files: &[DraftFile<'_>]) -> Result<()> {
        let owners = files.iter().map(|file| self.check_name(file.name())).collect::<Result<Vec<_>, _>>()?;
        let written = self.writer.write(&self.folder, files, self.parent.map(ParentFiles::borrow))?;
        self.figures.add(&written.figures);
        let owned = |(written, rank): (WrittenFile, Option<u32>)| ManifestFile { rank, ..written.file };
        self.files.extend(written.files.into_iter().zip(owners).map(owned));
        Ok(())
    }

    /// Copies a file that another program wrote, and makes it durable. The copy is immutable: it shares blocks with its
    /// source where the file system can, and never its name. A large file that the checkpoint before has with the same
    /// bytes is shared with that.
    ///
    /// # Errors
    /// [`CheckpointError::SourceChanged`] when it was written to or cut meanwhile; what `pace` returned; else as
    /// [`CheckpointWriter::file`].
    pub fn copy_of(&mut self, source: &ForeignFile<'_>, pace: &mut Pace<'_>) -> Result<()> {
        let rank = self.check_name(source.name)?;
        let (disk, share_bytes_min) = (self.writer.disk(), self.writer.share_bytes_min());
        let copied = foreign::copy(disk, &self.folder, source, self.parent, share_bytes_min, pace)?;
        self.figures.bytes_written += copied.written_bytes;
        self.files.push(ManifestFile { rank, ..copied.file });
        Ok(())
    }

    /// The files of a draft: those in memory, then copies of those on disks.
    ///
    /// # Errors
    /// As [`CheckpointWriter::files`] and [`CheckpointWriter::copy_of`].
    pub(crate) fn draft(&mut self, save: &DraftSave) -> Result<()> {
        self.files(&save.files())?;
        save.sources().iter().try_for_each(|SourceFile { name, kind, path, file }| {
            self.copy_of(&ForeignFile { name, kind: *kind, path, file }, &mut |_| Ok(()))
        })
    }

    /// The files of another checkpoint, as it has them.
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`] when one is not what was committed, [`CheckpointError::Storage`] when the disk refuses.
    pub(crate) fn copy(&mut self, source: &LoadedCheckpoint) -> Result<()> {
        let disk = source.disk.as_ref();
        for file in source.files() {
            self.check_name(&file.name)?;
            let to = self.folder.join(&file.name);
            // No link goes from one file system to another: there the bytes are copied.
            if disk.link(&source.folder.join(&file.name), &to).is_err() {
                write_durably(disk, &to, &source.read(&file.name)?)?;
            }
            self.files.push(ManifestFile { stored_in: None, ..file.clone() });
        }
        Ok(())
    }

    /// What writing took so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Refuses a name that is not allowed; the rank whose file it is, where several write.
    fn check_name(&self, name: &str) -> Result<Option<u32>> {
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
pub(crate) fn write_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = disk.create(path, false).map_err(CheckpointError::storage("create", path))?;
    file.write_at(0, bytes).map_err(CheckpointError::storage("write", path))?;
    file.sync().map_err(CheckpointError::storage("sync", path))
}
