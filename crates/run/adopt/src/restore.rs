//! Before a resume: what the script will find is a checkpoint that was committed, whole, and the newest one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use trackway_checkpoint::{CheckpointError, LoadedCheckpoint};
use trackway_core::Step;
use trackway_files::{TempFile, TempFolder, make_folders};
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};
use trackway_layouts::{DEEPSPEED_TRACKER, Layout, MEGATRON_TRACKER, Wholeness};

use crate::candidates::{Candidate, Patterns};

/// Why a checkpoint was not put back.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message names its variant and fields")]
pub enum RestoreError {
    #[error("it was not written by the script itself")]
    NotAdopted,
    #[error("its `{ORIGIN_FILE_NAME}` cannot be read: {0}")]
    Origin(String),
    /// Its files cannot be read.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    #[error("cannot {action} {}: {source}", path.display())]
    Disk { action: &'static str, path: PathBuf, source: io::Error },
}

impl RestoreError {
    /// Makes errors of the disk from what was done where.
    pub(crate) fn disk(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Disk { action, path: path.clone(), source }
    }
}

/// A file or folder that was in the way of a resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedAside {
    /// Where it was, as receipts show it.
    pub path: String,
    /// Where it is now.
    pub to: PathBuf,
    /// What was wrong with it.
    pub why: String,
}

/// What was done before a resume.
#[derive(Debug, Default)]
pub struct Restored {
    /// Where the checkpoint is.
    pub path: PathBuf,
    /// Whether its files had to be written again; else they were there.
    pub written: bool,
    /// What was moved.
    pub moved: Vec<MovedAside>,
}

/// What is wrong with a folder that was made and not written to.
const EMPTY: &str = "it has no files";
/// What is wrong with a link whose target is gone, or was moved.
const DANGLING: &str = "it is a symbolic link to what is not there";

/// What may be moved out of the way of a script, and where to.
#[derive(Debug, Clone, Copy)]
pub struct Clearing<'c> {
    /// Where the script has its checkpoints.
    pub patterns: &'c Patterns,
    /// The folder that gets what is moved.
    pub quarantine: &'c Path,
    /// Only what was written to since then, in nanoseconds since 1970; none: everything.
    pub since_ns: Option<i64>,
}

impl Clearing<'_> {
    /// Moves what is not whole: nothing was committed, and a script that looks for its newest checkpoint must not find it.
    ///
    /// # Errors
    /// [`RestoreError::Disk`]; what was moved by then stays moved.
    pub fn clear_torn(&self) -> Result<Vec<MovedAside>, RestoreError> {
        self.clear(None, fault_of)
    }

    /// Moves everything, for this reason.
    ///
    /// # Errors
    /// [`RestoreError::Disk`]; what was moved by then stays moved.
    pub fn clear_all(&self, why: &str) -> Result<Vec<MovedAside>, RestoreError> {
        self.clear(None, |_| Some(why.to_owned()))
    }

    /// Makes `target`, which was adopted, what the script will find: what is of a later step, not whole, or at its place and not what was
    /// committed is moved, what is missing is written again, and the file in which its framework looks for the newest one names it. Nothing is
    /// deleted.
    ///
    /// # Errors
    /// [`RestoreError`]; what was moved by then stays moved.
    pub fn put_back(&self, target: &LoadedCheckpoint) -> Result<Restored, RestoreError> {
        let origin = origin_of(target)?;
        let path = self.patterns.absolute(&origin.path);
        let mut moved =
            self.clear(Some(&path), |found| fault_of(found).or_else(|| later_than(target.step, found)))?;
        if let Some(why) = path.exists().then(|| differs(target, &origin, &path)).flatten() {
            moved.push(self.move_aside(&path, why)?);
        }
        let written = !path.exists();
        if written {
            write(target, &origin, &path)?;
        }
        moved.extend(self.point_at(target.step, &origin, &path)?);
        Ok(Restored { path, written, moved })
    }

    /// Lets the tracker of DeepSpeed or Megatron name the checkpoint. One that names another is moved.
    fn point_at(
        &self,
        step: Step,
        origin: &CheckpointOrigin,
        path: &Path,
    ) -> Result<Option<MovedAside>, RestoreError> {
        let Some((tracker, names)) = tracker_of(step, origin, path) else { return Ok(None) };
        let named = fs::read_to_string(&tracker).ok().map(|text| text.trim().to_owned());
        if named.as_ref() == Some(&names) {
            return Ok(None);
        }
        let is_there = tracker.symlink_metadata().is_ok();
        let why = format!("it names `{}`, and the script is to find `{names}`", named.unwrap_or_default());
        let moved = is_there.then(|| self.move_aside(&tracker, why)).transpose()?;
        TempFile::write(&tracker, names.as_bytes()).map_err(RestoreError::disk("write", &tracker))?;
        Ok(moved)
    }

    /// Moves every candidate but one that has a fault.
    fn clear(
        &self,
        except: Option<&Path>,
        fault: impl Fn(&Candidate) -> Option<String>,
    ) -> Result<Vec<MovedAside>, RestoreError> {
        let paths = self.patterns.paths().into_iter().filter(|path| Some(path.as_path()) != except);
        // One at a time: what was moved leaves links that point to nothing.
        let faulty = paths.filter_map(|path| {
            let why = match Candidate::at(&path).ok()? {
                Some(found) if self.is_of_run(found.modified_ns()) => fault(&found)?,
                // A trainer makes the folder before it writes to it.
                None if path.is_dir() && self.is_of_run(own_modified_ns(&path)?) => EMPTY.to_owned(),
                None if path.is_symlink() && self.is_of_run(own_modified_ns(&path)?) => DANGLING.to_owned(),
                _ => return None,
            };
            Some((path, why))
        });
        faulty.map(|(path, why)| self.move_aside(&path, why)).collect()
    }

    fn is_of_run(&self, modified_ns: i64) -> bool {
        self.since_ns.is_none_or(|since_ns| modified_ns >= since_ns)
    }

    fn move_aside(&self, path: &Path, why: String) -> Result<MovedAside, RestoreError> {
        let to = move_aside(path, self.quarantine)?;
        Ok(MovedAside { path: self.patterns.shown(path), to, why })
    }
}

/// Where an adopted checkpoint comes from.
///
/// # Errors
/// [`RestoreError::NotAdopted`] and others.
pub fn origin_of(target: &LoadedCheckpoint) -> Result<CheckpointOrigin, RestoreError> {
    if !target.files().iter().any(|file| file.name == ORIGIN_FILE_NAME) {
        return Err(RestoreError::NotAdopted);
    }
    let bytes = target.read(ORIGIN_FILE_NAME).map_err(RestoreError::Checkpoint)?;
    CheckpointOrigin::from_bytes(&bytes).map_err(RestoreError::Origin)
}

/// The file beside a checkpoint from which its framework learns which is the newest, and what it has to say.
fn tracker_of(step: Step, origin: &CheckpointOrigin, path: &Path) -> Option<(PathBuf, String)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let (tracker, names) = if origin.layout == Layout::Deepspeed.as_str() {
        (DEEPSPEED_TRACKER, name)
    } else if origin.layout == Layout::Megatron.as_str() {
        (MEGATRON_TRACKER, step.to_string())
    } else {
        return None;
    };
    Some((path.with_file_name(tracker), names))
}

/// Of the folder or link itself.
fn own_modified_ns(path: &Path) -> Option<i64> {
    let found = fs::symlink_metadata(path).ok()?;
    Some(found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec()))
}

/// Why a candidate would mislead a script that looks for its newest checkpoint; none for one that is whole or cannot be judged.
fn fault_of(candidate: &Candidate) -> Option<String> {
    match candidate.content().wholeness(candidate) {
        Wholeness::Torn { file, what } => Some(format!("`{file}`: {what}")),
        Wholeness::Unfinished { what } => Some(what),
        Wholeness::Whole { .. } | Wholeness::CannotTell { .. } => None,
    }
}

/// A script that looks for its newest checkpoint would find this one.
fn later_than(step: Step, candidate: &Candidate) -> Option<String> {
    let found = candidate.content().recognised.step?;
    (found > step).then(|| format!("it is of step {found}, and the run continues from step {step}"))
}

/// What differs between the files at a path and those that were committed from there.
fn differs(target: &LoadedCheckpoint, origin: &CheckpointOrigin, path: &Path) -> Option<String> {
    let Ok(Some(candidate)) = Candidate::at(path) else { return Some("it cannot be read".into()) };
    let there: Vec<&str> = candidate.files().iter().map(|file| candidate.below(file)).collect();
    let missing = origin.files.iter().find(|file| !there.contains(&file.path.as_str()));
    if let Some(file) = missing {
        return Some(format!("`{}` is missing in it", file.path));
    }
    let expected = |path: &str| {
        let name = &origin.files.iter().find(|file| file.path == path)?.name;
        target.files().iter().find(|file| file.name == *name)
    };
    candidate.files().iter().find_map(|file| {
        let below = candidate.below(file);
        let Some(committed) = expected(below) else {
            return Some(format!("`{below}` was not in it when it was committed"));
        };
        let at = if below.is_empty() { path.to_owned() } else { path.join(below) };
        let same =
            file.size == committed.size_bytes && blake3_of(&at).is_some_and(|hash| hash == committed.blake3);
        (!same).then(|| {
            format!("`{}` is not what was committed", if below.is_empty() { &file.path } else { below })
        })
    })
}

fn blake3_of(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path).ok()?).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

fn move_aside(path: &Path, quarantine: &Path) -> Result<PathBuf, RestoreError> {
    make_folders(quarantine).map_err(RestoreError::disk("make", quarantine))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let free = |number: u32| match number {
        1 => quarantine.join(&name),
        _ => quarantine.join(format!("{name}.{number}")),
    };
    let to = (1..).map(free).find(|to| to.symlink_metadata().is_err()).expect("some number is free");
    match fs::rename(path, &to) {
        Ok(()) => Ok(to),
        // Another file system: under another name beside it the script's patterns may still match, but its own search for
        // the newest one by number or suffix does not.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let beside = (1..)
                .map(|number: u32| path.with_file_name(format!(".{name}.quarantined-{number}")))
                .find(|to| to.symlink_metadata().is_err())
                .expect("some number is free");
            fs::rename(path, &beside).map_err(RestoreError::disk("move", path))?;
            Ok(beside)
        }
        Err(error) => Err(RestoreError::disk("move", path)(error)),
    }
}

/// Writes the files under temporary names and renames them into place: a script never finds a part of them.
fn write(target: &LoadedCheckpoint, origin: &CheckpointOrigin, path: &Path) -> Result<(), RestoreError> {
    let failed = |path: &Path| RestoreError::disk("write", path);
    let parent = path.parent().filter(|_| is_plain(path)).unwrap_or(path);
    make_folders(parent).map_err(failed(parent))?;
    if !origin.is_folder {
        let Some(file) = origin.files.first() else {
            return Err(RestoreError::Origin("it names no file".into()));
        };
        let (temporary, to) = TempFile::beside(path).map_err(failed(path))?;
        copy(target, &file.name, &to).map_err(failed(path))?;
        return temporary.persist(path).map_err(failed(path));
    }
    let folder = TempFolder::beside(path).map_err(failed(path))?;
    for file in &origin.files {
        let at = folder.path().join(&file.path);
        let below = at.parent().unwrap_or(folder.path());
        make_folders(below).map_err(failed(below))?;
        let to = File::create_new(&at).map_err(failed(&at))?;
        copy(target, &file.name, &to).map_err(failed(&at))?;
    }
    folder.persist(path).map_err(failed(path))
}

/// A copy that shares blocks where the file system can, and never the name: the script may write to it.
fn copy(target: &LoadedCheckpoint, name: &str, to: &File) -> io::Result<()> {
    let mut from = File::open(target.folder.join(name))?;
    if !trackway_files::clone_file(&from, to)? {
        io::copy(&mut from, &mut &*to)?;
    }
    to.sync_all()
}

fn is_plain(path: &Path) -> bool {
    path.components().all(|part| !matches!(part, Component::ParentDir))
}
