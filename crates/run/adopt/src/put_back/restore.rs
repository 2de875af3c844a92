//! Before a resume: what the script will find is a checkpoint that was committed, whole, and the newest one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use trackway_checkpoint::{CheckpointError, LoadedCheckpoint};
use trackway_core::Step;
use trackway_files::{TempFile, TempFolder, make_folders};
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME, OriginFile};
use trackway_formats::path_text::{path_of, text_of};
use trackway_layouts::{DEEPSPEED_TRACKER, Entry, Layout, LayoutConfidence, MEGATRON_TRACKER, Wholeness};

use super::history::History;
use crate::find::candidate::Candidate;
use crate::find::patterns::Patterns;
use crate::find::places::Place;

/// Why a checkpoint was not put back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("it was not written by the script itself")]
    NotAdopted,
    #[error("its `{ORIGIN_FILE_NAME}` cannot be read: {0}")]
    Origin(String),
    /// Its files cannot be read.
    #[error(transparent)]
    Checkpoint(CheckpointError),
    /// What is there is not shown to be the run's own.
    #[error("`{path}` is not what was committed from there, and it is left as it is: {why}")]
    Occupied { path: String, why: String },
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
pub struct RestoredCheckpoint {
    /// Where the checkpoint is.
    pub path: PathBuf,
    /// Whether its files had to be written again; else they were there.
    pub written: bool,
    /// What was moved, and what could not be read.
    pub cleared: Cleared,
}

/// What became of what could mislead a script.
#[derive(Debug, Default)]
pub struct Cleared {
    pub moved: Vec<MovedAside>,
    /// Paths that could not be read, and were left as they are, each with why.
    pub unread: Vec<(String, String)>,
}

/// What is wrong with a folder that was made and not written to.
const EMPTY: &str = "it has no files";
/// What is wrong with a link whose target was moved.
const DANGLING: &str = "it is a symbolic link to what was moved";

/// What may be moved out of the way of a script, and where to.
#[derive(Debug, Clone, Copy)]
pub struct Clearing<'c> {
    /// Where the script has its checkpoints.
    pub patterns: &'c Patterns,
    /// The folder that gets what is moved.
    pub quarantine: &'c Path,
    /// What is shown to be the run's own: nothing else is moved.
    pub history: &'c History,
}

impl Clearing<'_> {
    /// Moves what is not whole: nothing was committed, and a script that looks for its newest checkpoint must not find it.
    ///
    /// # Errors
    /// [`RestoreError::Disk`]; what was moved by then stays moved.
    pub fn clear_torn(&self) -> Result<Cleared, RestoreError> {
        self.clear(None, |found| self.fault_of(found))
    }

    /// Moves every checkpoint of the run, for this reason.
    ///
    /// # Errors
    /// [`RestoreError::Disk`]; what was moved by then stays moved.
    pub fn clear_all(&self, why: &str) -> Result<Cleared, RestoreError> {
        self.clear(None, |_| Ok(Some(why.to_owned())))
    }

    /// Makes `target`, which was adopted, what the script will find: what is of a later step, not whole, or at its place and not what was
    /// committed is moved, what is missing is written again, and the file in which its framework looks for the newest
    /// one names it. Nothing is deleted.
    ///
    /// # Errors
    /// [`RestoreError`]; what was moved by then stays moved.
    pub fn put_back(&self, target: &LoadedCheckpoint) -> Result<RestoredCheckpoint, RestoreError> {
        let origin = origin_of(target)?;
        let path = self.patterns.absolute(&origin.path);
        let place = Place::with(&path, origin.beside());
        let mut cleared = self.clear(Some(&path), |found| {
            let fault = self.fault_of(found)?;
            Ok(fault.or_else(|| later_than(target.step, found)))
        })?;
        if place.paths().any(|path| path.symlink_metadata().is_ok())
            && let Some(why) = differs(target, &origin, &place)?
        {
            self.must_be_own(&place)?;
            cleared.moved.extend(self.move_all_aside(&place, &why)?);
        }
        let written = !path.exists();
        if written {
            write(target, &origin, &place)?;
        }
        cleared.moved.extend(self.point_at(target.step, &origin, &path)?);
        Ok(RestoredCheckpoint { path, written, cleared })
    }

    /// What is written over is moved, and only what is the run's own is.
    fn must_be_own(&self, place: &Place) -> Result<(), RestoreError> {
        let path = place.path.as_path();
        let occupied = |why: String| Err(RestoreError::Occupied { path: self.patterns.shown(path), why });
        match Candidate::of(place) {
            Ok(Some(found)) => {
                let owner = self.history.owner_of(&found, self.patterns);
                if owner.is_seen() { Ok(()) } else { occupied(owner.reason().unwrap_or_default()) }
            }
            Ok(None) if self.history.made_folder(path, self.patterns) => Ok(()),
            Ok(None) => occupied("nothing shows that this run made it".into()),
            Err(error) => occupied(error.to_string()),
        }
    }

    /// Lets the tracker of DeepSpeed or Megatron name the checkpoint. One that names another is moved.
    fn point_at(
        &self,
        step: Step,
        origin: &CheckpointOrigin,
        path: &Path,
    ) -> Result<Option<MovedAside>, RestoreError> {
        let Some((tracker, names)) = tracker_of(step, origin, path) else { return Ok(None) };
        let named = fs::read(&tracker).ok().map(|name| text_of(OsString::from_vec(name)).trim().to_owned());
        if named.as_ref() == Some(&names) {
            return Ok(None);
        }
        let is_there = tracker.symlink_metadata().is_ok();
        let beside = |name: &String| path.with_file_name(path_of(&checkpoint_named(origin, name)));
        if let Some(other) = named.as_ref().map(beside).filter(|other| other.exists()) {
            self.must_be_own(&Place::of(&other))?;
        }
        let why = format!("it names `{}`, and the script is to find `{names}`", named.unwrap_or_default());
        let moved = is_there.then(|| self.move_aside(&tracker, why)).transpose()?;
        TempFile::write(&tracker, path_of(&names).as_os_str().as_bytes())
            .map_err(RestoreError::disk("write", &tracker))?;
        Ok(moved)
    }

    /// Moves every checkpoint of the run but one that has a fault.
    fn clear(
        &self,
        except: Option<&Path>,
        fault: impl Fn(&Candidate) -> Result<Option<String>, String>,
    ) -> Result<Cleared, RestoreError> {
        let mut cleared = Cleared::default();
        let mut gone: Vec<PathBuf> = Vec::new();
        for place in self.patterns.places() {
            let together = Candidate::of(&place).ok().flatten().filter(|_| !place.beside.is_empty());
            let is_apart =
                together.is_some_and(|found| self.is_own(&found) && !found.content().is_one_state());
            let places = if is_apart { place.apart() } else { vec![place] };
            for place in places.into_iter().filter(|place| Some(place.path.as_path()) != except) {
                if let Some(why) = self.fault_at(&place, &gone, &mut cleared, &fault) {
                    cleared.moved.extend(self.move_all_aside(&place, &why)?);
                    gone.extend(place.paths());
                }
            }
        }
        Ok(cleared)
    }

    /// Why what is at a place is moved, if it is. `gone`: what was moved already.
    fn fault_at(
        &self,
        place: &Place,
        gone: &[PathBuf],
        cleared: &mut Cleared,
        fault: impl Fn(&Candidate) -> Result<Option<String>, String>,
    ) -> Option<String> {
        let path = place.path.as_path();
        let unread = match Candidate::of(place) {
            // What is not a checkpoint, such as results beside them, is not looked into any further.
            Ok(Some(found)) if self.is_own(&found) && self.is_checkpoint(&found) => match fault(&found) {
                Ok(why) => return why,
                Err(why) => why,
            },
            // A trainer makes the folder before it writes to it.
            Ok(None) if path.is_dir() => {
                return self.history.made_folder(path, self.patterns).then(|| EMPTY.to_owned());
            }
            _ if points_to(path).is_some_and(|target| gone.contains(&target)) => {
                return Some(DANGLING.to_owned());
            }
            Err(error) => error.to_string(),
            _ => return None,
        };
        cleared.unread.push((self.patterns.shown(path), unread));
        None
    }

    /// Whether its files show that it is a checkpoint, and not only a pattern; or, as of a save that had only begun,
    /// its name beside the others of the run.
    fn is_checkpoint(&self, candidate: &Candidate) -> bool {
        let found = candidate.content().recognised;
        let is_clear = found.confidence != LayoutConfidence::Guess || found.step.is_some();
        found.layout != Layout::Unknown && is_clear
            || self.history.has_others_like(&self.patterns.shown(&candidate.path))
    }

    fn is_own(&self, found: &Candidate) -> bool {
        self.history.owner_of(found, self.patterns).is_seen()
    }

    /// Why a candidate would mislead a script that looks for its newest checkpoint; none for one that is whole or cannot be judged.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn fault_of(&self, candidate: &Candidate) -> Result<Option<String>, String> {
        let missing = || self.history.missing_of(&self.patterns.shown(&candidate.path), &candidate.beside);
        Ok(match candidate.content().wholeness(candidate)? {
            Wholeness::Torn { file, what } => Some(format!("`{file}`: {what}")),
            Wholeness::Unfinished { what } => Some(what),
            Wholeness::Whole { .. } | Wholeness::CannotTell { .. } => missing(),
        })
    }

    fn move_all_aside(&self, place: &Place, why: &str) -> Result<Vec<MovedAside>, RestoreError> {
        let there = place.paths().filter(|path| path.symlink_metadata().is_ok());
        there.map(|path| self.move_aside(&path, why.to_owned())).collect()
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
    let name = text_of(path.file_name()?);
    let (tracker, names) = if origin.layout == Layout::Deepspeed.as_str() {
        (DEEPSPEED_TRACKER, name)
    } else if origin.layout == Layout::Megatron.as_str() {
        (MEGATRON_TRACKER, step.to_string())
    } else {
        return None;
    };
    Some((path.with_file_name(tracker), names))
}

/// The name of the checkpoint that a tracker names.
fn checkpoint_named(origin: &CheckpointOrigin, named: &str) -> String {
    let step = named.parse::<Step>().ok().filter(|_| origin.layout == Layout::Megatron.as_str());
    step.map_or_else(|| named.to_owned(), |step| format!("iter_{step:07}"))
}

/// The path that a symbolic link points to.
fn points_to(path: &Path) -> Option<PathBuf> {
    let target = fs::read_link(path).ok()?;
    Some(path.parent()?.join(target))
}

/// A script that looks for its newest checkpoint would find this one.
fn later_than(step: Step, candidate: &Candidate) -> Option<String> {
    let found = candidate.content().recognised.step?;
    (found > step).then(|| format!("it is of step {found}, and the run continues from step {step}"))
}

/// What differs between the files at a path and those that were committed from there.
fn differs(
    target: &LoadedCheckpoint,
    origin: &CheckpointOrigin,
    place: &Place,
) -> Result<Option<String>, RestoreError> {
    let path = place.path.as_path();
    let unreadable = |error: trackway_layouts::ListError| {
        RestoreError::disk("read", path)(io::Error::other(error.to_string()))
    };
    let Some(candidate) = Candidate::of(place).map_err(unreadable)? else { return Ok(Some(EMPTY.into())) };
    let there: Vec<&str> = candidate.files().iter().map(|file| candidate.below(file)).collect();
    let missing = origin.files.iter().find(|file| !there.contains(&file.path.as_str()));
    if let Some(file) = missing {
        return Ok(Some(format!("`{}` is missing in it", origin.name_of(&file.name).unwrap_or(&file.path))));
    }
    for file in candidate.files() {
        if let Some(why) = file_differs(target, origin, &candidate, file)? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

fn file_differs(
    target: &LoadedCheckpoint,
    origin: &CheckpointOrigin,
    candidate: &Candidate,
    file: &Entry,
) -> Result<Option<String>, RestoreError> {
    let below = candidate.below(file);
    let named = origin.files.iter().find(|known| known.path == below);
    let committed = named.and_then(|known| target.files().iter().find(|file| file.name == known.name));
    let Some(committed) = committed else {
        return Ok(Some(format!("`{below}` was not in it when it was committed")));
    };
    let at = candidate.place(file);
    let is_same = file.size == committed.size_bytes
        && blake3_of(&at).map_err(RestoreError::disk("read", &at))? == committed.blake3;
    let shown = if below.is_empty() { &file.path } else { below };
    Ok((!is_same).then(|| format!("`{shown}` is not what was committed")))
}

fn blake3_of(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn move_aside(path: &Path, quarantine: &Path) -> Result<PathBuf, RestoreError> {
    make_folders(quarantine).map_err(RestoreError::disk("make", quarantine))?;
    let name = path.file_name().unwrap_or_default();
    let with = |before: &str, after: &str| {
        let mut other = OsString::from(before);
        other.push(name);
        other.push(after);
        other
    };
    let free = |number: u32| match number {
        1 => quarantine.join(name),
        _ => quarantine.join(with("", &format!(".{number}"))),
    };
    let to = (1..).map(free).find(|to| to.symlink_metadata().is_err()).expect("some number is free");
    match fs::rename(path, &to) {
        Ok(()) => Ok(to),
        // Another file system: under another name beside it the script's patterns may still match, but its own search for
        // the newest one by number or suffix does not.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let beside = (1..)
                .map(|number: u32| path.with_file_name(with(".", &format!(".quarantined-{number}"))))
                .find(|to| to.symlink_metadata().is_err())
                .expect("some number is free");
            fs::rename(path, &beside).map_err(RestoreError::disk("move", path))?;
            Ok(beside)
        }
        Err(error) => Err(RestoreError::disk("move", path)(error)),
    }
}

/// Writes the files under temporary names and renames them into place: a script never finds a part of them. Of several
/// files that of the model comes last.
fn write(target: &LoadedCheckpoint, origin: &CheckpointOrigin, place: &Place) -> Result<(), RestoreError> {
    let path = place.path.as_path();
    let failed = |path: &Path| RestoreError::disk("write", path);
    let parent = path.parent().filter(|_| is_plain(path)).unwrap_or(path);
    make_folders(parent).map_err(failed(parent))?;
    if !origin.is_folder {
        let mut files: Vec<&OriginFile> = origin.files.iter().collect();
        files.sort_by_key(|file| file.path.is_empty());
        if files.last().is_none_or(|file| !file.path.is_empty()) {
            return Err(RestoreError::Origin("it does not name the file at its path".into()));
        }
        let mut written = Vec::new();
        for file in files {
            let at =
                if file.path.is_empty() { path.to_owned() } else { path.with_file_name(path_of(&file.path)) };
            let (temporary, to) = TempFile::beside(&at).map_err(failed(&at))?;
            copy(target, file, &to).map_err(failed(&at))?;
            written.push((temporary, at));
        }
        return written
            .into_iter()
            .try_for_each(|(temporary, at)| temporary.persist(&at).map_err(failed(&at)));
    }
    let folder = TempFolder::beside(path).map_err(failed(path))?;
    for file in &origin.files {
        let at = folder.path().join(path_of(&file.path));
        let below = at.parent().unwrap_or(folder.path());
        make_folders(below).map_err(failed(below))?;
        let to = File::create_new(&at).map_err(failed(&at))?;
        copy(target, file, &to).map_err(failed(&at))?;
    }
    folder.persist(path).map_err(failed(path))
}

/// A copy that shares blocks where the file system can, and never the name: the script may write to it. It has the time
/// of the file that was committed, by which it is known again.
fn copy(target: &LoadedCheckpoint, file: &OriginFile, to: &File) -> io::Result<()> {
    let mut from = File::open(target.folder.join(&file.name))?;
    if !trackway_files::clone_file(&from, to)? {
        io::copy(&mut from, &mut &*to)?;
    }
    let written = Duration::from_nanos(u64::try_from(file.modified_ns).unwrap_or(0));
    to.set_modified(SystemTime::UNIX_EPOCH + written)?;
    to.sync_all()
}

fn is_plain(path: &Path) -> bool {
    path.components().all(|part| !matches!(part, Component::ParentDir))
}
