//! Copies of versions in a folder, and `current`, which points to the one in production: see `place.rs` for what is whose.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use trackway_api::models::registry::Deployed;
use trackway_core::Clock as _;
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_files::{OwnedFolder, TempFile, TempFolder, open_regular};
use trackway_formats::checkpoint_manifest::{Manifest, ManifestFile};
use trackway_formats::path_text::path_of;
use trackway_formats::shell::quoted;
use trackway_ledger::ModelVersionRow;
use trackway_rules::registry::Version;

use super::artifact::{ModelFiles, own_name, sync_folder};
use super::card::CardFacts;
use super::place::{CopyMarker, Current, MARKER, Place, clear_parts, in_the_way, refuse_unknown};
use super::{Model, card};
use crate::checkpoints::{BytesProgress, Checkpoints, OpenedCheckpoint};
use crate::registry::{self, artifact};

const MANIFEST: &str = "manifest.json";
const CARD: &str = "README.md";
const SIGNATURE: &str = "signature.json";

/// Copies the files of a version below `folder`, unless a copy that verifies is there.
pub(super) fn deploy(
    context: &Context,
    model: &Model,
    version: &ModelVersionRow,
    folder: &Path,
    watch: &BytesProgress,
) -> Result<Deployed, AppError> {
    let began = context.clock.now();
    let copy = CopyMarker::new(&model.name, version.version, &version.checkpoint_manifest_sha256);
    // Before a byte changes, and again once no other process changes anything.
    Place::check(folder, &copy)?;
    let place = Place::open(folder, &model.name)?;
    let (target, is_there) = place.target(&copy)?;
    let checkpoints = artifact::checkpoints_of(context, version)?;
    let opened = checkpoints.open_manifest(&version.checkpoint_manifest_sha256)?;
    let files = files_to_copy(&checkpoints, &opened, (&copy, &target))?;
    let facts = card::facts_of_card(context, model, version)?;
    if is_there {
        let own = [MANIFEST, CARD, SIGNATURE].map(|name| own_name(name, &files.placed));
        clear_parts(&target, &own.each_ref().map(String::as_str))?;
    }
    let copied_bytes = if is_there && verify(&target, &files.placed).is_ok() {
        describe(&facts, version, (&opened.manifest, files.placed.as_slice()), &target)?;
        // What a colleague copied is theirs to give.
        let _ = trackway_files::give_tree_to_user(&target);
        0
    } else {
        if is_there {
            refuse_unknown(&target, &expected(&files))?;
        }
        place.mark()?;
        let part = place.part()?;
        copy.write(part.path())?;
        let bytes = files.bring(&checkpoints, &opened, part.path(), watch)?;
        describe(&facts, version, (&opened.manifest, files.placed.as_slice()), part.path())?;
        verify(part.path(), &files.placed)?;
        put(part, &target, is_there)?;
        bytes
    };
    sync_folder(folder)?;
    let copy_seconds = context.clock.now().seconds_since(began);
    Ok(copied(target, copied_bytes, copy_seconds, facts))
}

/// Copies the files of a version into a folder that has none yet, with manifest, card and signature. A whole copy of the
/// version is left as it is, so that the same command completes one that was killed.
///
/// # Errors
/// [`ErrorKind::NotFound`]; [`ErrorKind::Usage`] when the folder holds anything else; [`ErrorKind::Integrity`] when a byte is wrong:
/// the folder is as it was then.
pub fn export_model(
    context: &Context,
    name: &str,
    version: &str,
    folder: &Path,
    watch: &BytesProgress,
) -> Result<Deployed, AppError> {
    let model = registry::model(context, name)?;
    let version = model.named(version)?;
    let began = context.clock.now();
    let copy = CopyMarker::new(&model.name, version.version, &version.checkpoint_manifest_sha256);
    let checkpoints = artifact::checkpoints_of(context, version)?;
    let opened = checkpoints.open_manifest(&version.checkpoint_manifest_sha256)?;
    let files = files_to_copy(&checkpoints, &opened, (&copy, folder))?;
    let facts = card::facts_of_card(context, &model, version)?;
    let target = match empty_target(folder) {
        Err(_) if copy.is_of(folder) && verify(folder, &files.placed).is_ok() => {
            return Ok(copied(folder.to_owned(), 0, context.clock.now().seconds_since(began), facts));
        }
        target => target?,
    };
    let parent = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(|error| AppError::file("make", parent, error))?;
    let part = TempFolder::clear_abandoned(&target, &[MARKER])
        .and_then(|()| TempFolder::beside(&target))
        .map_err(|error| AppError::file("make", &target, error))?;
    copy.write(part.path())?;
    let copied_bytes = files.bring(&checkpoints, &opened, part.path(), watch)?;
    describe(&facts, version, (&opened.manifest, files.placed.as_slice()), part.path())?;
    verify(part.path(), &files.placed)?;
    put(part, &target, false)?;
    Ok(copied(folder.to_owned(), copied_bytes, context.clock.now().seconds_since(began), facts))
}

/// Writes manifest, card and signature beside the files.
fn describe(
    facts: &CardFacts,
    version: &ModelVersionRow,
    (manifest, files): (&Manifest, &[ManifestFile]),
    folder: &Path,
) -> Result<(), AppError> {
    let mut own = vec![(MANIFEST, pretty(manifest)), (CARD, card::card(facts))];
    own.extend(version.signature_json.as_ref().map(|signature| (SIGNATURE, pretty(signature))));
    for (name, text) in own {
        let path = folder.join(own_name(name, files));
        TempFile::write(&path, text.as_bytes()).map_err(|error| AppError::file("write", &path, error))?;
    }
    sync_folder(folder)
}

/// A copy to which `current` does not point.
fn copied(folder: PathBuf, copied_bytes: u64, copy_seconds: f64, facts: CardFacts) -> Deployed {
    let (is_current, current_version) = (false, None);
    Deployed { folder, copied_bytes, copy_seconds, is_current, current_version, warnings: facts.warnings }
}

/// Makes `current` follow the change of the registry that put this version into production, unless it follows a newer one.
pub(super) fn point_to(
    deployed: &mut Deployed,
    model: &str,
    version: Version,
    change_number: u64,
) -> Result<(), AppError> {
    let Some(folder) = deployed.folder.parent() else { return Ok(()) };
    let current = Place::open(folder, model)?.follow(Current { version, change_number })?;
    deployed.is_current = current.version == version;
    deployed.current_version = Some(current.version);
    Ok(())
}

/// Remembers where a model is deployed, for [`still_served`]. What cannot be remembered is not.
pub(super) fn remember(context: &Context, model: &str, deployed: &Deployed) {
    let folder = deployed.folder.parent().and_then(|folder| std::path::absolute(folder).ok());
    let Some(place) = folder.as_deref().and_then(Path::to_str).filter(|place| !place.contains('\n')) else {
        return;
    };
    let path = context.home.layout.deployed_folders(model);
    let known = fs::read_to_string(&path).unwrap_or_default();
    if !known.lines().any(|line| line == place) {
        let _ = TempFile::write(&path, format!("{known}{place}\n").as_bytes());
    }
}

/// Where another version than the one in production is served still, with the command that deploys that one.
pub(super) fn still_served(context: &Context, model: &str, in_production: Version) -> Vec<String> {
    let known = fs::read_to_string(context.home.layout.deployed_folders(model)).unwrap_or_default();
    let served = known.lines().filter_map(|place| Some((place, Place::current_of(Path::new(place), model)?)));
    served.filter_map(|at| still_serves(at, model, in_production)).collect()
}

fn still_serves((place, served): (&str, Version), model: &str, in_production: Version) -> Option<String> {
    let (named, folder) = (quoted(model), quoted(place));
    (served != in_production).then(|| {
        format!(
            "`current` in {folder} still points to version {served}: to deploy version {in_production}: trackway registry promote {named} {in_production} --to production --deploy {folder}"
        )
    })
}

/// The files of a model that differ from Trackway's marker.
fn files_to_copy(
    checkpoints: &Checkpoints,
    opened: &OpenedCheckpoint,
    at: (&CopyMarker, &Path),
) -> Result<ModelFiles, AppError> {
    let files = ModelFiles::of(checkpoints, opened, at)?;
    if files.placed.iter().all(|file| file.name.split('/').next() != Some(MARKER)) {
        return Ok(files);
    }
    let message = format!("the checkpoint has a file `{MARKER}`, which is the name of Trackway's marker");
    Err(AppError::new(ErrorKind::Integrity, message).hint("save the checkpoint with another name for it"))
}

/// Everything that a copy holds.
fn expected(files: &ModelFiles) -> BTreeSet<PathBuf> {
    let own = [MANIFEST, CARD, SIGNATURE].map(|name| own_name(name, &files.placed).into());
    files.paths().chain(own).chain([MARKER.into()]).collect()
}

/// Where an export goes: nothing is there, or an empty folder.
fn empty_target(folder: &Path) -> Result<PathBuf, AppError> {
    let named = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let refused = |why: &str| {
        AppError::new(ErrorKind::Usage, format!("`{}` {why}", folder.display()))
            .hint("name a folder that does not exist, or an empty one")
    };
    match fs::symlink_metadata(&named) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(named.components().collect()),
        Err(error) => Err(AppError::file("look at", folder, error)),
        Ok(_) => {
            let target =
                fs::canonicalize(&named).map_err(|error| AppError::file("look at", folder, error))?;
            let mut entries = fs::read_dir(&target).map_err(|_| refused("exists, and is not a folder"))?;
            if entries.next().is_some() { Err(refused("is not empty")) } else { Ok(target) }
        }
    }
}

/// Gives a finished copy its name. What is there, damaged, goes only where it is a copy of the same version.
fn put(part: TempFolder, target: &Path, is_there: bool) -> Result<(), AppError> {
    trackway_files::give_tree_to_user(part.path())
        .map_err(|error| AppError::file("give the rights of an output to", part.path(), error))?;
    let put = match is_there {
        true => OwnedFolder::holding(target, &[MARKER]).and_then(|damaged| part.replace(&damaged)),
        false => part.persist(target),
    };
    put.map_err(|error| match error.kind() {
        std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::NotADirectory => {
            in_the_way(target, "appeared meanwhile")
        }
        _ => AppError::file("put into place", target, error),
    })
}

/// Reads and checks every byte of the model in a folder.
fn verify(folder: &Path, files: &[ManifestFile]) -> Result<(), AppError> {
    use rayon::prelude::*;
    files.par_iter().try_for_each(|file| {
        let path = folder.join(path_of(&file.name));
        let mut hasher = blake3::Hasher::new();
        open_regular(&path)
            .and_then(|found| hasher.update_reader(found).map(|_| ()))
            .map_err(|error| AppError::file("read", &path, error))?;
        if hasher.finalize().to_hex().as_str() == file.blake3 {
            return Ok(());
        }
        let message = format!("`{}` does not match the manifest", path.display());
        Err(AppError::new(ErrorKind::Integrity, message))
    })
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use trackway_formats::checkpoint_manifest::Kind;

    use super::*;

    /// Proves that a folder that serves another version is named with the command that deploys, and that one that serves it is not.
    #[test]
    fn what_is_served_still_is_named() {
        let said = still_serves(("/srv/m", 2), "m", 1).unwrap();
        assert_eq!(
            said,
            "`current` in /srv/m still points to version 2: to deploy version 1: trackway registry promote m 1 --to production --deploy /srv/m"
        );
        assert_eq!(still_serves(("/srv/m", 1), "m", 1), None);
    }

    /// Proves that a file of the model keeps its name where Trackway has one of the same name beside it.
    #[test]
    fn the_models_own_names_come_first() {
        let file = |name: &str| ManifestFile {
            name: name.into(),
            kind: Kind::Other,
            size_bytes: 1,
            blake3: String::new(),
            stored_in: None,
            rank: None,
            chunks: Vec::new(),
        };
        let files = [file("signature.json"), file("trackway-signature.json"), file("README.md/part")];
        assert_eq!(own_name(SIGNATURE, &files), "trackway-trackway-signature.json");
        assert_eq!(own_name(CARD, &files), "trackway-README.md");
        assert_eq!(own_name(MANIFEST, &files), MANIFEST);
    }
}
