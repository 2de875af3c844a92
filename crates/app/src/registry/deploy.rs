//! Copies of versions in a folder, and `current`, which points to the one in production.
//!
//! ```text
//! DIR/v3/…        the files of the model, its manifest, card and signature
//! DIR/current     → v3, replaced in one step
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use trackway_core::Clock as _;
use trackway_formats::checkpoint_manifest::ManifestFile;
use trackway_ledger::ModelVersionRow;

use super::artifact::{bring, files_of_model, sync_folder, write_whole};
use super::{Model, card};
use crate::App;
use crate::checkpoints::Watch;
use crate::error::AppError;

const CURRENT: &str = "current";

/// Where a version's files were copied to.
#[derive(Debug, Clone, Serialize)]
pub struct Deployed {
    /// The folder of this version.
    pub folder: PathBuf,
    /// Bytes that were copied; 0: a copy that verifies was there.
    pub copied_bytes: u64,
    /// Seconds of copying, or of verifying the copy.
    pub copy_seconds: f64,
    /// Whether `current` points to it.
    pub is_current: bool,
}

impl App {
    /// Copies the files of a version below `folder`, unless a copy that verifies is there.
    pub(super) fn deploy(
        &self,
        model: &Model,
        version: &ModelVersionRow,
        folder: &Path,
        watch: &Watch,
    ) -> Result<Deployed, AppError> {
        let began = self.clock.now();
        let target = folder.join(format!("v{}", version.version));
        fs::create_dir_all(folder).map_err(|error| AppError::file("make", folder, &error))?;
        let checkpoints = self.checkpoints_of(version)?;
        let opened = checkpoints.open_manifest(&version.checkpoint_manifest_sha256)?;
        let files: Vec<ManifestFile> = files_of_model(&opened.manifest);
        let copied_bytes = if verifies(&target, &files) {
            0
        } else {
            let aside = folder.join(format!(".v{}.part-{}", version.version, std::process::id()));
            let bytes = bring(&checkpoints, &opened, &files, &aside, watch)?;
            replace(&aside, &target)?;
            bytes
        };
        self.describe(model, version, &opened.manifest, &target)?;
        sync_folder(folder)?;
        let copy_seconds = self.clock.now().seconds_since(began);
        Ok(Deployed { folder: target, copied_bytes, copy_seconds, is_current: false })
    }

    /// Copies the files of a version into a folder that has none yet, with manifest, card and signature.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`]; [`crate::error::ErrorKind::Usage`] when the folder is not empty;
    /// [`crate::error::ErrorKind::Integrity`] when a byte is wrong: the folder is not there then.
    pub fn export_model(
        &self,
        name: &str,
        version: &str,
        folder: &Path,
        watch: &Watch,
    ) -> Result<Deployed, AppError> {
        use crate::error::ErrorKind;
        let model = self.model(name)?;
        let version = model.named(version)?;
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            let message = format!("`{}` is not empty", folder.display());
            return Err(AppError::new(ErrorKind::Usage, message).hint("name a folder that is not there yet"));
        }
        let began = self.clock.now();
        let checkpoints = self.checkpoints_of(version)?;
        let opened = checkpoints.open_manifest(&version.checkpoint_manifest_sha256)?;
        let mut aside = folder.to_owned();
        aside.as_mut_os_string().push(format!(".part-{}", std::process::id()));
        let files = files_of_model(&opened.manifest);
        let copied_bytes = bring(&checkpoints, &opened, &files, &aside, watch).inspect_err(|_| {
            let _ = fs::remove_dir_all(&aside);
        })?;
        self.describe(&model, version, &opened.manifest, &aside)?;
        replace(&aside, folder)?;
        let copy_seconds = self.clock.now().seconds_since(began);
        Ok(Deployed { folder: folder.to_owned(), copied_bytes, copy_seconds, is_current: false })
    }

    /// Writes manifest, card and signature beside the files.
    fn describe(
        &self,
        model: &Model,
        version: &ModelVersionRow,
        manifest: &trackway_formats::checkpoint_manifest::Manifest,
        folder: &Path,
    ) -> Result<(), AppError> {
        let text = serde_json::to_string_pretty(manifest).unwrap_or_default();
        write_whole(&folder.join("manifest.json"), &text)?;
        write_whole(&folder.join("README.md"), &card::card(&self.facts_of_card(model, version)?))?;
        if let Some(signature) = &version.signature_json {
            write_whole(
                &folder.join("signature.json"),
                &serde_json::to_string_pretty(signature).unwrap_or_default(),
            )?;
        }
        sync_folder(folder)
    }
}

impl Deployed {
    /// Lets `current` point to it, in one step.
    pub(super) fn point_to(&mut self) -> Result<(), AppError> {
        let (Some(folder), Some(name)) = (self.folder.parent(), self.folder.file_name()) else {
            return Ok(());
        };
        let (link, aside) = (folder.join(CURRENT), folder.join(format!(".{CURRENT}-{}", std::process::id())));
        let failed = |error| AppError::file("point", &link, &error);
        let _ = fs::remove_file(&aside);
        std::os::unix::fs::symlink(name, &aside).map_err(failed)?;
        fs::rename(&aside, &link).map_err(failed)?;
        sync_folder(folder)?;
        self.is_current = true;
        Ok(())
    }
}

fn verifies(folder: &Path, files: &[ManifestFile]) -> bool {
    use rayon::prelude::*;
    files.par_iter().all(|file| {
        let hashed = || -> std::io::Result<blake3::Hash> {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(fs::File::open(folder.join(&file.name))?)?;
            Ok(hasher.finalize())
        };
        hashed().is_ok_and(|hash| hash.to_hex().as_str() == file.blake3)
    })
}

/// Puts a finished folder into place; what stands there, damaged, goes.
fn replace(aside: &Path, target: &Path) -> Result<(), AppError> {
    if target.exists() {
        fs::remove_dir_all(target).map_err(|error| AppError::file("remove", target, &error))?;
    }
    fs::rename(aside, target).map_err(|error| AppError::file("put into place", target, &error))
}
