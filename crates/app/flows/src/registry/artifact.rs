//! The files of a version: where they are, whether they verify, and copies of them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use trackway_core::Rung;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::checkpoint_manifest::{Kind, Manifest, ManifestFile};
use trackway_ledger::ModelVersionRow;

use crate::checkpoints::{self, BytesProgress, CheckedCheckpoint, Checkpoints, OpenedCheckpoint};

const COPY_BYTES: usize = 1 << 20;

pub(super) fn checkpoints_of(context: &Context, version: &ModelVersionRow) -> Result<Checkpoints, AppError> {
    let run = context.run_by_id(version.run_id)?;
    let rung = Rung::from_str(&version.rung).unwrap_or(Rung::FULL);
    checkpoints::checkpoints_at(context, run, rung)
}

/// Reads and checks every byte of a version.
///
/// # Errors
/// [`ErrorKind::Integrity`] when a byte does not match the manifest, or the manifest is not the one that was
/// registered.
pub(super) fn verified(
    context: &Context,
    version: &ModelVersionRow,
    watch: &BytesProgress,
) -> Result<CheckedCheckpoint, AppError> {
    checkpoints_of(context, version)?.load_manifest(context, &version.checkpoint_manifest_sha256, watch)
}

/// The files of the model: its weights, and what is not state of the training.
pub(super) fn files_of_model(manifest: &Manifest) -> Vec<ManifestFile> {
    let of_model = |file: &&ManifestFile| matches!(file.kind, Kind::Weights | Kind::Other);
    manifest.files.iter().filter(of_model).cloned().collect()
}

/// Copies files of a checkpoint into a folder, from this disk or from the remote: every byte checked on the way,
/// durable.
///
/// # Errors
/// [`ErrorKind::Integrity`] when a file does not match the manifest; when the disk refuses, or the remote does not
/// answer. What was fetched stays.
pub(super) fn bring(
    checkpoints: &Checkpoints,
    opened: &OpenedCheckpoint,
    files: &[ManifestFile],
    to: &Path,
    watch: &BytesProgress,
) -> Result<u64, AppError> {
    let Some(folder) = &opened.folder else {
        let there = (opened.info.step, opened.info.object_prefix.as_str());
        checkpoints.fetch_files(there, files, to, watch.as_ref())?;
        return Ok(files.iter().map(|file| file.size_bytes).sum());
    };
    copy(folder, to, files, watch)
}

fn copy(from: &Path, to: &Path, files: &[ManifestFile], watch: &BytesProgress) -> Result<u64, AppError> {
    let total_bytes = files.iter().map(|file| file.size_bytes).sum();
    let done_bytes = AtomicU64::new(0);
    let on_bytes = |bytes: u64| watch(done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes, total_bytes);
    fs::create_dir_all(to).map_err(|error| AppError::file("make", to, &error))?;
    files.par_iter().try_for_each(|file| copy_file(from, to, file, &on_bytes))?;
    sync_folder(to)?;
    Ok(total_bytes)
}

fn copy_file(
    from: &Path,
    to: &Path,
    file: &ManifestFile,
    on_bytes: &(dyn Fn(u64) + Sync),
) -> Result<(), AppError> {
    let (source, target) = (from.join(&file.name), to.join(&file.name));
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(|error| AppError::file("make", folder, &error))?;
    }
    let hash = copy_bytes(&source, &target, on_bytes)?;
    if hash.to_hex().as_str() == file.blake3 {
        return Ok(());
    }
    let message = format!("`{}` does not match its manifest", source.display());
    Err(AppError::new(ErrorKind::Integrity, message).hint("find out more with: trackway checkpoint doctor"))
}

fn copy_bytes(
    source: &Path,
    target: &Path,
    on_bytes: &(dyn Fn(u64) + Sync),
) -> Result<blake3::Hash, AppError> {
    let reading = |error| AppError::file("read", source, &error);
    let writing = |error| AppError::file("write", target, &error);
    let mut reader = File::open(source).map_err(reading)?;
    let mut writer = File::create(target).map_err(writing)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let count = reader.read(&mut buffer).map_err(reading)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        writer.write_all(&buffer[..count]).map_err(writing)?;
        on_bytes(count as u64);
    }
    writer.sync_all().map_err(writing)?;
    Ok(hasher.finalize())
}

/// Makes names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), AppError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| AppError::file("sync", folder, &error))
}
