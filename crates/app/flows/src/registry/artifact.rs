//! The files of a version: where they are, whether they verify, and copies of them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use trackway_core::{CheckpointUse, Rung, Unfit, Weights};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_files::{TempFolder, read_regular};
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};
use trackway_formats::path_text::path_of;
use trackway_ledger::ModelVersionRow;

use super::place::CopyMarker;
use crate::checkpoints::{self, BytesProgress, CheckedCheckpoint, Checkpoints, OpenedCheckpoint};

const COPY_BYTES: usize = 1 << 20;

pub(super) fn checkpoints_of(context: &Context, version: &ModelVersionRow) -> Result<Checkpoints, AppError> {
    let run = context.run_by_id(version.run_id)?;
    let rung = Rung::from_str(&version.rung).unwrap_or(Rung::FULL);
    checkpoints::checkpoints_at(context, run, rung)
}

/// Why a version must not be released because of what its checkpoint holds; none: it may, or its checkpoint is not here.
pub(super) fn unsafe_because(context: &Context, version: &ModelVersionRow) -> Option<String> {
    let opened =
        checkpoints_of(context, version).ok()?.open_manifest(&version.checkpoint_manifest_sha256).ok()?;
    let unfit = Weights::in_state(opened.info.state).unfit_for(CheckpointUse::Release);
    let found = opened.info.unsafe_evidence.filter(|_| unfit.contains(&Unfit::Unsafe))?;
    Some(found.why)
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

/// The files of a model, and what they are called in a copy: those of a checkpoint that the script wrote itself as the script called them.
pub(super) struct ModelFiles {
    stored: Vec<ManifestFile>,
    /// In the same order; names may have folders, and are as [`trackway_formats::path_text`] has them.
    pub placed: Vec<ManifestFile>,
}

/// Refuses a checkpoint without a file that can hold weights.
pub(super) fn check_holds_weights(manifest: &Manifest) -> Result<(), AppError> {
    if !manifest.model_files().is_empty() {
        return Ok(());
    }
    let kinds: BTreeSet<&str> = manifest.files.iter().map(|file| file.kind.as_str()).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    let message = format!(
        "the checkpoint of step {} holds no weights: its files are of kind {}; nothing was changed",
        manifest.step,
        kinds.join(", ")
    );
    Err(AppError::new(ErrorKind::Usage, message).hint("register a checkpoint that has the model in it"))
}

impl ModelFiles {
    /// Of a checkpoint; what the script called its files is read where it is, or brought into a temporary folder beside `target`.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when no file can hold weights; [`ErrorKind::Integrity`] when the names cannot be read.
    pub fn of(
        checkpoints: &Checkpoints,
        opened: &OpenedCheckpoint,
        (copy, target): (&CopyMarker, &Path),
    ) -> Result<Self, AppError> {
        check_holds_weights(&opened.manifest)?;
        let stored: Vec<ManifestFile> = opened.manifest.model_files().into_iter().cloned().collect();
        let origin = origin(checkpoints, opened, (copy, target))?;
        let placed = stored
            .iter()
            .map(|file| ManifestFile {
                name: origin
                    .as_ref()
                    .and_then(|origin| origin.name_of(&file.name))
                    .unwrap_or(&file.name)
                    .to_owned(),
                ..file.clone()
            })
            .collect();
        let mut files = Self { stored, placed };
        files.make_room_for_the_script();
        Ok(files)
    }

    /// Trackway's own description of the origin gets another name where the script has a file of that name.
    fn make_room_for_the_script(&mut self) {
        let Some(at) = self.stored.iter().position(|file| file.name == ORIGIN_FILE_NAME) else { return };
        let own = self.placed.remove(at);
        let name = own_name(ORIGIN_FILE_NAME, &self.placed);
        self.placed.insert(at, ManifestFile { name, ..own });
    }

    /// Copies them into a folder, from this disk or from the remote: every byte checked on the way, durable.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when a file does not match the manifest; when the disk refuses, or the remote does not
    /// answer. What was fetched stays.
    pub fn bring(
        &self,
        checkpoints: &Checkpoints,
        opened: &OpenedCheckpoint,
        to: &Path,
        watch: &BytesProgress,
    ) -> Result<u64, AppError> {
        let bytes = bring(checkpoints, opened, &self.stored, to, watch)?;
        let renamed: Vec<(usize, &ManifestFile, &ManifestFile)> =
            (self.stored.iter().zip(&self.placed).enumerate())
                .filter(|(_, (stored, placed))| stored.name != placed.name)
                .map(|(index, (stored, placed))| (index, stored, placed))
                .collect();
        // One file may be stored under the name that another has in the copy.
        let between = |index: usize| to.join(format!(".file-{index}"));
        for (index, stored, _) in &renamed {
            rename(&to.join(&stored.name), &between(*index))?;
        }
        for (index, _, placed) in &renamed {
            let target = to.join(path_of(&placed.name));
            let folder = target.parent().unwrap_or(to);
            fs::create_dir_all(folder).map_err(|error| AppError::file("make", folder, error))?;
            rename(&between(*index), &target)?;
            sync_folder(folder)?;
        }
        sync_folder(to)?;
        Ok(bytes)
    }

    /// Where they are in a copy, and where they are stored too: a copy of Trackway 0.1 has these names.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.stored.iter().chain(&self.placed).map(|file| path_of(&file.name))
    }
}

/// What the script called the files of a checkpoint that it wrote itself.
fn origin(
    checkpoints: &Checkpoints,
    opened: &OpenedCheckpoint,
    (copy, target): (&CopyMarker, &Path),
) -> Result<Option<CheckpointOrigin>, AppError> {
    let described: Vec<ManifestFile> =
        opened.manifest.files.iter().filter(|file| file.name == ORIGIN_FILE_NAME).cloned().collect();
    if described.is_empty() {
        return Ok(None);
    }
    let brought = match opened.folder {
        Some(_) => None,
        None => {
            let parent = target.parent().unwrap_or(target);
            let made = fs::create_dir_all(parent).and_then(|()| TempFolder::beside(target));
            let folder = made.map_err(|error| AppError::file("make a folder in", parent, error))?;
            copy.write(folder.path())?;
            let silent: BytesProgress = Arc::new(|_, _| {});
            bring(checkpoints, opened, &described, folder.path(), &silent)?;
            Some(folder)
        }
    };
    let folder = brought.as_ref().map_or(opened.folder.as_deref(), |folder| Some(folder.path()));
    let path = folder.unwrap_or(target).join(ORIGIN_FILE_NAME);
    let bytes = read_regular(&path).map_err(|error| AppError::file("read", &path, error))?;
    let read = CheckpointOrigin::from_bytes(&bytes);
    let unreadable = |why: String| {
        AppError::new(ErrorKind::Integrity, format!("`{}` cannot be used", path.display())).because(why)
    };
    read.map(Some).map_err(unreadable)
}

fn rename(from: &Path, to: &Path) -> Result<(), AppError> {
    fs::rename(from, to).map_err(|error| AppError::file("rename", from, error))
}

/// The name that one of Trackway's own files gets beside the files of a model, which keep theirs.
pub(super) fn own_name(name: &str, files: &[ManifestFile]) -> String {
    let is_taken = |name: &str| files.iter().any(|file| file.name.split('/').next() == Some(name));
    if is_taken(name) { own_name(&format!("trackway-{name}"), files) } else { name.to_owned() }
}

/// Copies files of a checkpoint into a folder, from this disk or from the remote: every byte checked on the way,
/// durable.
///
/// # Errors
/// [`ErrorKind::Integrity`] when a file does not match the manifest; when the disk refuses, or the remote does not
/// answer. What was fetched stays.
fn bring(
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
    fs::create_dir_all(to).map_err(|error| AppError::file("make", to, error))?;
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
        fs::create_dir_all(folder).map_err(|error| AppError::file("make", folder, error))?;
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
    let reading = |error| AppError::file("read", source, error);
    let writing = |error| AppError::file("write", target, error);
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
    synced.map_err(|error| AppError::file("sync", folder, error))
}
