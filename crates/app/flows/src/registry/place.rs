//! A folder that holds copies of one model: what is Trackway's in it, and what stops a command.
//!
//! ```text
//! DIR/.trackway-model.json      of which model, and what `current` points to since which change
//! DIR/.trackway-model.lock      held while anything changes
//! DIR/v3/.trackway-model.json   which version the copy is, by its manifest
//! DIR/.deploy.part-…            a copy that is being made
//! DIR/current                   → v3
//! ```
//!
//! The marker is written before the link, so that after a kill between the two the next process sets the link right.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_files::{
    FolderLock, OwnedFolder, TempFile, TempFolder, give_to_user, make_folders_of_user, open_own,
    open_regular, replace_link,
};
use trackway_rules::registry::Version;

/// Marks a folder as Trackway's, and of which model.
pub(super) const MARKER: &str = ".trackway-model.json";
const LOCK: &str = ".trackway-model.lock";
const CURRENT: &str = "current";
/// Becomes the name of a copy that is being made.
const PART: &str = "deploy";
/// Each waits 20 ms: ten minutes, as long as others copy.
const LOCK_TRIES: u32 = 30_000;
const FORMAT_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopyMarker {
    format_version: u32,
    model: String,
    version: Version,
    manifest_sha256: String,
}

/// Whose copies a folder holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlaceMarker {
    format_version: u32,
    model: String,
    current: Option<Current>,
}

/// What `current` points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Current {
    pub version: Version,
    /// The change of the registry that put it into production.
    pub change_number: u64,
}

/// A folder of copies, locked.
pub(super) struct Place {
    folder: PathBuf,
    marker: PlaceMarker,
    _lock: FolderLock,
}

impl CopyMarker {
    pub(super) fn new(model: &str, version: Version, manifest_sha256: &str) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            model: model.to_owned(),
            version,
            manifest_sha256: manifest_sha256.to_owned(),
        }
    }

    /// Writes it into a folder that is being made. First of all, and under its own name: whatever comes of it, the folder is
    /// Trackway's from then on.
    pub(super) fn write(&self, folder: &Path) -> Result<(), AppError> {
        let path = folder.join(MARKER);
        let written = open_own(OpenOptions::new().write(true).create_new(true), &path)
            .and_then(|mut file| file.write_all(&text_of(self)).and_then(|()| file.sync_all()))
            .and_then(|()| give_to_user(&path));
        written.map_err(|error| AppError::file("write", &path, error))
    }

    /// Whether a folder is a copy of exactly this version, whole or damaged.
    pub(super) fn is_of(&self, folder: &Path) -> bool {
        matches!(read_marker::<Self>(folder), Ok(Some(found)) if found == *self)
    }
}

impl Place {
    /// Whether a copy may come into `folder`; changes nothing.
    ///
    /// # Errors
    /// As [`Place::open`] and [`Place::target`].
    pub(super) fn check(folder: &Path, copy: &CopyMarker) -> Result<(), AppError> {
        marker_of(folder, &copy.model)?;
        copy_at(&folder.join(name_of(copy.version)), copy).map(drop)
    }

    /// The copies of a model in `folder`, which is made where it does not exist.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when it holds the copies of another model, or something else has a name that Trackway needs:
    /// nothing changed then.
    pub(super) fn open(folder: &Path, model: &str) -> Result<Self, AppError> {
        // Before a byte changes.
        marker_of(folder, model)?;
        make_folders_of_user(folder).map_err(|error| AppError::file("make", folder, error))?;
        let lock = FolderLock::take(folder, LOCK, LOCK_TRIES).map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::WouldBlock => ErrorKind::Locked,
                _ => ErrorKind::Fault,
            };
            AppError::new(kind, format!("cannot lock `{}`", folder.display())).because(error)
        })?;
        // Another user who deploys needs it too; its maker has given the rights.
        let _ = give_to_user(&folder.join(LOCK));
        let marker = marker_of(folder, model)?;
        let place = Self { folder: folder.to_owned(), marker, _lock: lock };
        place.clear()?;
        Ok(place)
    }

    /// The version that `current` points to; `None`: the folder has none, or is not one of this model.
    pub(super) fn current_of(folder: &Path, model: &str) -> Option<Version> {
        Some(marker_of(folder, model).ok()?.current?.version)
    }

    /// Where a version belongs. True: a copy of exactly this one is there, whole or damaged.
    ///
    /// # Errors
    /// [`ErrorKind::Integrity`] when something else is there.
    pub(super) fn target(&self, copy: &CopyMarker) -> Result<(PathBuf, bool), AppError> {
        let target = self.folder.join(name_of(copy.version));
        let is_there = copy_at(&target, copy)?;
        Ok((target, is_there))
    }

    /// A new copy, to be filled.
    pub(super) fn part(&self) -> Result<TempFolder, AppError> {
        let made = TempFolder::beside(&self.folder.join(PART));
        made.map_err(|error| AppError::file("make a folder in", &self.folder, error))
    }

    /// Remembers whose copies these are.
    pub(super) fn mark(&self) -> Result<(), AppError> {
        if self.folder.join(MARKER).exists() { Ok(()) } else { write_marker(&self.folder, &self.marker) }
    }

    /// Lets `current` follow a change of the registry, unless it follows a newer one. What it points to then.
    pub(super) fn follow(&mut self, current: Current) -> Result<Current, AppError> {
        let known = self.marker.current.as_ref();
        if known.is_none_or(|known| known.change_number < current.change_number) {
            self.marker.current = Some(current.clone());
            write_marker(&self.folder, &self.marker)?;
        }
        let current = self.marker.current.clone().unwrap_or(current);
        let link = self.folder.join(CURRENT);
        replace_link(&link, Path::new(&name_of(current.version)))
            .map_err(|error| AppError::file("point", &link, error))?;
        Ok(current)
    }

    /// Removes what a kill left half made: no other process makes anything here while this holds the lock.
    fn clear(&self) -> Result<(), AppError> {
        clear_parts(&self.folder, &[PART, MARKER, CURRENT])
    }
}

/// Removes what a kill left of writing `names` in a marked folder.
pub(super) fn clear_parts(folder: &Path, names: &[&str]) -> Result<(), AppError> {
    let Ok(owned) = OwnedFolder::holding(folder, &[MARKER]) else { return Ok(()) };
    let failed = |error| AppError::file("clear", folder, error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let found = entry.file_name();
        let is_part = |name: &&str| found.to_str().is_some_and(|found| TempFolder::is_name_of(found, name));
        if names.iter().any(is_part) {
            owned.remove(&entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// What is known of a folder: its marker, or a new one where it has none and nothing is in the way.
fn marker_of(folder: &Path, model: &str) -> Result<PlaceMarker, AppError> {
    let new = PlaceMarker { format_version: FORMAT_VERSION, model: model.to_owned(), current: None };
    let marker: Option<PlaceMarker> = read_marker(folder)?;
    let link = folder.join(CURRENT);
    match fs::symlink_metadata(&link) {
        Err(_) => {}
        Ok(found) if marker.is_some() && found.is_symlink() && points_to_a_copy(&link) => {}
        Ok(_) => return Err(in_the_way(&link, "is not a link that Trackway made")),
    }
    match marker {
        None => Ok(new),
        Some(marker) if marker.model == model => Ok(marker),
        Some(marker) => {
            let message = format!("`{}` holds the copies of model `{}`", folder.display(), marker.model);
            Err(AppError::new(ErrorKind::Integrity, message).hint(format!(
                "use a separate folder for each model, such as {}",
                folder.join(model).display()
            )))
        }
    }
}

fn points_to_a_copy(link: &Path) -> bool {
    let target = fs::read_link(link).unwrap_or_default();
    let number = target.to_str().and_then(|name| name.strip_prefix('v'));
    number.is_some_and(|number| number.parse::<Version>().is_ok())
}

/// Whether a copy of exactly this version is there.
fn copy_at(target: &Path, copy: &CopyMarker) -> Result<bool, AppError> {
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(AppError::file("look at", target, error)),
        Ok(found) if found.is_dir() => match read_marker::<CopyMarker>(target)? {
            Some(marker) if marker == *copy => Ok(true),
            Some(marker) => {
                let why = format!(
                    "is a copy of version {} of `{}` with other weights (manifest {:.12})",
                    marker.version, marker.model, marker.manifest_sha256
                );
                Err(in_the_way(target, &why))
            }
            None => Err(in_the_way(target, "is not a copy that Trackway made")),
        },
        Ok(_) => Err(in_the_way(target, "is not a folder")),
    }
}

/// Refuses to replace a damaged copy that contains files of others.
pub(super) fn refuse_unknown(folder: &Path, expected: &BTreeSet<PathBuf>) -> Result<(), AppError> {
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let failed = |error| AppError::file("list", &next, error);
        for entry in fs::read_dir(&next).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if entry.file_type().map_err(failed)?.is_dir() {
                folders.push(path);
            } else if !path.strip_prefix(folder).is_ok_and(|name| expected.contains(name)) {
                return Err(in_the_way(
                    &path,
                    "is not of the model, and its copy is damaged and would be replaced",
                ));
            }
        }
    }
    Ok(())
}

/// A file or folder is where Trackway would write.
pub(super) fn in_the_way(path: &Path, why: &str) -> AppError {
    AppError::new(ErrorKind::Integrity, format!("`{}` {why}; nothing was changed", path.display()))
        .hint("move it away, or name another folder")
}

fn name_of(version: Version) -> String {
    format!("v{version}")
}

fn read_marker<M: DeserializeOwned>(folder: &Path) -> Result<Option<M>, AppError> {
    let path = folder.join(MARKER);
    let text = match open_regular(&path).and_then(std::io::read_to_string) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AppError::file("read", &path, error)),
        Ok(text) => text,
    };
    let known = serde_json::from_str::<serde_json::Value>(&text).ok();
    let is_known = |value: &serde_json::Value| value["format_version"] == FORMAT_VERSION;
    match known.filter(is_known).and_then(|value| serde_json::from_value(value).ok()) {
        Some(marker) => Ok(Some(marker)),
        None => Err(in_the_way(&path, "is not a marker that this version of Trackway understands")),
    }
}

fn write_marker(folder: &Path, marker: &impl Serialize) -> Result<(), AppError> {
    let path = folder.join(MARKER);
    let written = TempFile::write(&path, &text_of(marker)).and_then(|()| give_to_user(&path));
    written.map_err(|error| AppError::file("write", &path, error))
}

fn text_of(marker: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(marker).unwrap_or_default();
    text.push(b'\n');
    text
}
