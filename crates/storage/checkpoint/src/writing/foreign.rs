//! Files that another program wrote and may write again, copied into a checkpoint.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use trackway_files::read_full;
use trackway_formats::checkpoint_manifest::{Kind, ManifestFile};
use trackway_store::{Disk, DiskFile};

use super::parent::ParentFiles;
use crate::bulk::{CHUNK_BYTES, ChunkHash, ChunkHasher, chunk_count, chunk_texts, file_hash, link};
use crate::error::{CheckpointError, Result};

/// Is called for every chunk that was copied, with its bytes; an error ends the copy. It may wait, so that a copy
/// leaves the disk to others.
pub type Pace<'p> = dyn FnMut(u64) -> Result<()> + 'p;

/// A file to be copied.
#[derive(Debug, Clone, Copy)]
pub struct ForeignFile<'f> {
    /// Its name in the checkpoint.
    pub name: &'f str,
    /// What it holds.
    pub kind: Kind,
    /// Where it is.
    pub path: &'f Path,
    /// The file, open for reading.
    pub file: &'f File,
}

/// What was copied, and how many bytes of it went to the disk.
pub(crate) struct CopiedFile {
    pub file: ManifestFile,
    pub written_bytes: u64,
}

/// Copies one file into `folder` and makes its bytes durable. It shares the blocks of the source where the file system can, and is the
/// parent's file where that has the same bytes and at least `share_bytes_min` of them.
pub(crate) fn copy(
    disk: &dyn Disk,
    folder: &Path,
    source: &ForeignFile<'_>,
    parent: Option<&ParentFiles>,
    share_bytes_min: u64,
    pace: &mut Pace<'_>,
) -> Result<CopiedFile> {
    let before = source.file.metadata().map_err(CheckpointError::storage("look at", source.path))?;
    let size_bytes = before.len();
    let previous = parent.and_then(|parent| {
        let alike = |file: &&ManifestFile| {
            (&*file.name, file.kind, file.size_bytes) == (source.name, source.kind, size_bytes)
        };
        let found = parent.files.iter().find(alike).filter(|_| size_bytes >= share_bytes_min)?;
        Some((parent, found))
    });
    let target = folder.join(source.name);
    if let Some((parent, previous)) = previous {
        let hashes = read(source, &before, None, pace)?;
        if file_hash(&hashes).to_hex().as_str() == previous.blake3
            && link(disk, &parent.folder.join(&previous.name), &target, size_bytes)
        {
            let stored_in = previous.stored_in.clone().or_else(|| Some(parent.object_prefix.clone()));
            return Ok(CopiedFile { file: ManifestFile { stored_in, ..previous.clone() }, written_bytes: 0 });
        }
    }
    let file = disk.create(&target, false).map_err(CheckpointError::storage("create", &target))?;
    let is_clone = file.share_blocks(source.file).map_err(CheckpointError::storage("write", &target))?;
    let hashes = match is_clone {
        // The clone no longer changes, whatever becomes of the source.
        true => {
            let clone = disk.open(&target, false).map_err(CheckpointError::storage("read", &target))?;
            let size_bytes = clone.size_bytes().map_err(CheckpointError::storage("read", &target))?;
            // It may have been cut or have grown before it was cloned.
            check(source, size_bytes == before.len())?;
            hash(&|offset, bytes| clone.read_at(offset, bytes), &target, size_bytes, None, pace)?
        }
        false => read(source, &before, Some(file.as_ref()), pace)?,
    };
    file.sync().map_err(CheckpointError::storage("sync", &target))?;
    let mut copied = ManifestFile::new(source.name, source.kind, size_bytes, &file_hash(&hashes));
    copied.chunks = chunk_texts(&hashes);
    Ok(CopiedFile { file: copied, written_bytes: if is_clone { 0 } else { size_bytes } })
}

/// The hashes of the source, which is written to `to` on the way, and must not change meanwhile.
fn read(
    source: &ForeignFile<'_>,
    before: &Metadata,
    to: Option<&dyn DiskFile>,
    pace: &mut Pace<'_>,
) -> Result<Vec<ChunkHash>> {
    let at = |offset: u64, bytes: &mut [u8]| read_full(source.file, offset, bytes, 1);
    let hashes = hash(&at, source.path, before.len(), to, pace)?;
    let after = source.file.metadata().map_err(CheckpointError::storage("look at", source.path))?;
    // A write in between would make the copy a mix of two states.
    check(source, same(before, &after))?;
    Ok(hashes)
}

/// Whether nothing was written to a file between two looks at it.
fn same(before: &Metadata, after: &Metadata) -> bool {
    let times = |found: &Metadata| (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
    (before.len(), times(before)) == (after.len(), times(after))
}

fn check(source: &ForeignFile<'_>, is_same: bool) -> Result<()> {
    if is_same { Ok(()) } else { Err(CheckpointError::SourceChanged { path: source.path.to_owned() }) }
}

/// A file that ends early has become shorter.
fn hash(
    read_at: &dyn Fn(u64, &mut [u8]) -> io::Result<usize>,
    path: &Path,
    size_bytes: u64,
    to: Option<&dyn DiskFile>,
    pace: &mut Pace<'_>,
) -> Result<Vec<ChunkHash>> {
    let count = chunk_count(size_bytes);
    let mut block = vec![0; usize::try_from(size_bytes).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES)];
    let mut hashes = Vec::with_capacity(count);
    let mut has_hole = false;
    for index in 0..count {
        let offset = index as u64 * CHUNK_BYTES as u64;
        let length = (size_bytes - offset).min(CHUNK_BYTES as u64) as usize;
        let block = &mut block[..length];
        let done = read_at(offset, block).map_err(CheckpointError::storage("read", path))?;
        if done != length {
            return Err(CheckpointError::SourceChanged { path: path.to_owned() });
        }
        let mut hasher = ChunkHasher::new(index, count);
        hasher.update(block);
        hashes.push(hasher.finish());
        match to {
            // Zeros are left out: a file with holes takes no more room than its source.
            Some(to) if block.iter().any(|byte| *byte != 0) => {
                to.write_at(offset, block).map_err(CheckpointError::storage("copy", path))?;
            }
            to => has_hole |= to.is_some(),
        }
        pace(length as u64)?;
    }
    if let Some(to) = to.filter(|_| has_hole) {
        to.set_size(size_bytes).map_err(CheckpointError::storage("copy", path))?;
    }
    Ok(hashes)
}
