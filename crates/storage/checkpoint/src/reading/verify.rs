//! Whether a checkpoint's bytes are still those that were committed.

use std::path::Path;

use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, MAX_MANIFEST_BYTES, Manifest, ManifestFile};
use trackway_formats::sha256_hex;
use trackway_store::{Disk, RealDisk};

use crate::bulk::read::{open, open_named};
use crate::bulk::{LoadedFile, read_files, verify_files};
use crate::error::{Defect, check_hash, check_size};
use crate::history::entry::CommitBody;

/// Checks a checkpoint against its commit: the manifest's hash, then every size, then every hash; the cheap checks
/// come first so that a truncated file is found before gigabytes are read.
pub(crate) fn verify(disk: &dyn Disk, folder: &Path, commit: &CommitBody) -> Result<Manifest, Defect> {
    let manifest = verify_manifest(disk, folder, commit)?;
    verify_files(disk, folder, &manifest.files)?;
    Ok(manifest)
}

/// The same, keeping what is read.
pub(crate) fn read_all(
    disk: &dyn Disk,
    folder: &Path,
    commit: &CommitBody,
) -> Result<(Manifest, Vec<LoadedFile>), Defect> {
    let manifest = verify_manifest(disk, folder, commit)?;
    let files = read_files(disk, folder, &manifest.files)?;
    Ok((manifest, files))
}

/// Checks a copy of a checkpoint, in a folder without the log: the manifest by the SHA-256 that its commit names, then every file
/// by the manifest.
///
/// # Errors
/// The first [`Defect`] found.
pub fn verify_copy(folder: &Path, manifest_sha256: &str) -> Result<(), Defect> {
    let manifest = named_manifest(&read_manifest(&RealDisk, folder)?, manifest_sha256)?;
    verify_files(&RealDisk, folder, &manifest.files)
}

/// The same, with all its files in memory: every byte is read once, and checked while it is read.
///
/// # Errors
/// The first [`Defect`] found.
pub fn read_copy(folder: &Path, manifest_sha256: &str) -> Result<Vec<LoadedFile>, Defect> {
    let manifest = named_manifest(&read_manifest(&RealDisk, folder)?, manifest_sha256)?;
    read_files(&RealDisk, folder, &manifest.files)
}

/// Reads the manifest of a commit and checks that it is the committed one.
pub(crate) fn verify_manifest(
    disk: &dyn Disk,
    folder: &Path,
    commit: &CommitBody,
) -> Result<Manifest, Defect> {
    check_manifest(&read_manifest(disk, folder)?, commit)
}

/// The bytes of the manifest in a folder, whatever they are.
pub(crate) fn read_manifest(disk: &dyn Disk, folder: &Path) -> Result<Vec<u8>, Defect> {
    let reader = open_named(disk, folder, MANIFEST_FILE_NAME, false)?;
    let size = reader.size_bytes().map_err(Defect::unreadable(MANIFEST_FILE_NAME))?;
    // A damaged size must not make a reader allocate; the byte beyond shows that it is too long.
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(MAX_MANIFEST_BYTES + 1)];
    let count = reader.read_at(0, &mut bytes).map_err(Defect::unreadable(MANIFEST_FILE_NAME))?;
    bytes.truncate(count);
    Ok(bytes)
}

pub(crate) fn check_manifest(bytes: &[u8], commit: &CommitBody) -> Result<Manifest, Defect> {
    let manifest = named_manifest(bytes, &commit.manifest_sha256)?;
    agree("step", &commit.step, &manifest.step)?;
    agree("epoch", &commit.epoch, &manifest.epoch)?;
    agree("run", &commit.run_id, &manifest.run_id)?;
    agree("prefix", &commit.object_prefix, &manifest.object_prefix)?;
    agree("state digest", &commit.state_digest, &manifest.state_digest)?;
    Ok(manifest)
}

fn named_manifest(bytes: &[u8], expected: &str) -> Result<Manifest, Defect> {
    let found = sha256_hex(bytes);
    if found != expected {
        return Err(Defect::Hash { name: MANIFEST_FILE_NAME.into(), expected: expected.into(), found });
    }
    Ok(Manifest::from_bytes(bytes)?)
}

fn agree<T: PartialEq + ToString>(field: &'static str, expected: &T, found: &T) -> Result<(), Defect> {
    if expected == found {
        return Ok(());
    }
    Err(Defect::Disagreement { field, expected: expected.to_string(), found: found.to_string() })
}

/// Reads a file of a checkpoint and checks that it is still the committed one.
pub(crate) fn read_verified(disk: &dyn Disk, folder: &Path, file: &ManifestFile) -> Result<Vec<u8>, Defect> {
    // The size first: a false manifest must not make a reader allocate.
    let reader = open(disk, folder, file, false)?.reader;
    let mut bytes = vec![0; file.size_bytes as usize];
    let count = reader.read_at(0, &mut bytes).map_err(Defect::unreadable(&file.name))?;
    check_size(file, count as u64)?;
    check_hash(file, &blake3::hash(&bytes))?;
    Ok(bytes)
}
