//! Snapshots and their names in a folder.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;

use super::{SNAPSHOT_VERSION, Snapshot};
use crate::profile::Profile;

/// So many digits of an id are shown, and that many tell two snapshots of one project apart.
pub const SHORT_ID_LENGTH: usize = 12;

/// The fewest digits that are taken for the beginning of an id.
const PREFIX_LENGTH_MIN: usize = 4;

/// The longest name.
const NAME_LENGTH_MAX: usize = 64;

/// Why snapshots cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The disk's answer.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Disk {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A stored file that this program cannot understand.
    #[error("`{}` is damaged or of another version: {message}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The beginning of several ids.
    #[error("`{word}` is the beginning of {count} snapshots; give more of it")]
    Ambiguous {
        /// What was given.
        word: String,
        /// How many there are.
        count: usize,
    },
    /// A word that is no name.
    #[error(
        "`{name}` is no name; a name has 1 to {NAME_LENGTH_MAX} letters, digits, `-`, `_` and `.`, and begins with a letter"
    )]
    Name {
        /// What was given.
        name: String,
    },
}

/// Where a name points from one moment on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameEntry {
    /// The snapshot.
    pub data_sha256: String,
    /// When it was named so.
    pub at: Timestamp,
    /// The paths the data was found under.
    pub paths: Vec<String>,
}

/// A name with its history, newest last; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedSnapshot {
    /// The name.
    pub name: String,
    /// Where it points and pointed.
    pub history: Vec<NameEntry>,
}

/// A folder of snapshots.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    folder: PathBuf,
}

impl SnapshotStore {
    /// In this folder, which is made when something is first kept.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Where profiles of single files are kept.
    #[must_use]
    pub fn profiles(&self) -> PathBuf {
        self.folder.join("profiles")
    }

    /// Keeps a snapshot, and its profile. Whether the snapshot is new: one that is there is not changed, but may get a
    /// profile with another label.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`]. Nothing half is left that would be read.
    pub fn put(&self, snapshot: &Snapshot, profile: Option<&Profile>) -> Result<bool, SnapshotError> {
        let folder = self.folder_of(&snapshot.data_sha256);
        let is_new = !folder.is_dir();
        if is_new {
            let staged =
                self.snapshots().join(format!(".new-{}-{}", snapshot.data_sha256, std::process::id()));
            fs::create_dir_all(&staged).map_err(disk("make", &staged))?;
            write_synced(&staged.join("manifest.json"), &to_json(snapshot))?;
            if let Some(profile) = profile {
                write_synced(&staged.join(profile_name(profile.label.as_deref())), &to_json(profile))?;
            }
            sync_folder(&staged)?;
            match fs::rename(&staged, &folder) {
                Ok(()) => {}
                // Another process was first; what it kept is the same.
                Err(_) if folder.is_dir() => drop(fs::remove_dir_all(&staged)),
                Err(error) => return Err(disk("name", &folder)(error)),
            }
            sync_folder(&self.snapshots())?;
        }
        if let Some(profile) = profile {
            let path = folder.join(profile_name(profile.label.as_deref()));
            if !path.is_file() {
                let staged = folder.join(format!(".new-{}", std::process::id()));
                write_synced(&staged, &to_json(profile))?;
                fs::rename(&staged, &path).map_err(disk("name", &path))?;
                sync_folder(&folder)?;
            }
        }
        Ok(is_new)
    }

    /// The snapshot of an id.
    ///
    /// # Errors
    /// [`SnapshotError`]: it is not there, or not understood.
    pub fn snapshot(&self, data_sha256: &str) -> Result<Snapshot, SnapshotError> {
        let path = self.folder_of(data_sha256).join("manifest.json");
        let bytes = fs::read(&path).map_err(disk("read", &path))?;
        let damaged = |message: String| SnapshotError::Damaged { path: path.clone(), message };
        let snapshot: Snapshot =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if snapshot.version != SNAPSHOT_VERSION || snapshot.data_sha256 != data_sha256 {
            return Err(damaged(format!("version {}, id {}", snapshot.version, snapshot.data_sha256)));
        }
        Ok(snapshot)
    }

    /// The profile of a snapshot: made with this label if there is one, else any. `None` if it holds no table.
    ///
    /// # Errors
    /// [`SnapshotError`]: it cannot be read, or was made by another version.
    pub fn profile(&self, data_sha256: &str, label: Option<&str>) -> Result<Option<Profile>, SnapshotError> {
        let folder = self.folder_of(data_sha256);
        let wanted = folder.join(profile_name(label));
        let is_profile = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("profile"))
        };
        let others = || {
            let mut others: Vec<PathBuf> = entries(&folder).into_iter().filter(is_profile).collect();
            others.sort();
            others.into_iter().next()
        };
        let Some(path) = Some(wanted).filter(|path| path.is_file()).or_else(others) else { return Ok(None) };
        let text = fs::read_to_string(&path).map_err(disk("read", &path))?;
        let damaged =
            |error: crate::profile::ProfileError| SnapshotError::Damaged { path, message: error.to_string() };
        Profile::from_json(&text).map(Some).map_err(damaged)
    }

    /// The id that a name, an id or the beginning of one (4 digits at least) stands for; a name goes first.
    ///
    /// # Errors
    /// [`SnapshotError::Ambiguous`]; a name's file that cannot be read.
    pub fn find(&self, word: &str) -> Result<Option<String>, SnapshotError> {
        if is_name(word)
            && let Some(entry) = self.history(word)?.pop()
        {
            return Ok(Some(entry.data_sha256));
        }
        if word.len() < PREFIX_LENGTH_MIN || !word.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(None);
        }
        let word = word.to_ascii_lowercase();
        let mut found: Vec<String> = self.ids().into_iter().filter(|id| id.starts_with(&word)).collect();
        match found.len() {
            0 | 1 => Ok(found.pop()),
            count => Err(SnapshotError::Ambiguous { word, count }),
        }
    }

    /// All snapshots, by id.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
        let mut ids: Vec<String> = entries(&self.snapshots()).into_iter().filter_map(name).collect();
        ids.retain(|id| id.len() == 64 && id.bytes().all(|digit| digit.is_ascii_hexdigit()));
        ids.sort();
        ids
    }

    /// All names with their history, sorted.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`].
    pub fn names(&self) -> Result<Vec<NamedSnapshot>, SnapshotError> {
        let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        let mut names: Vec<String> = entries(&self.names_folder()).into_iter().filter_map(stem).collect();
        names.sort();
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            let history = self.history(&name)?;
            if !history.is_empty() {
                all.push(NamedSnapshot { name, history });
            }
        }
        Ok(all)
    }

    /// Makes a name point to a snapshot from now on. Whether that is a change.
    ///
    /// # Errors
    /// [`SnapshotError::Name`] for a word that is no name; [`SnapshotError::Disk`].
    pub fn point(&self, name: &str, entry: &NameEntry) -> Result<bool, SnapshotError> {
        self.check_name(name)?;
        if self.history(name)?.last().is_some_and(|last| last.data_sha256 == entry.data_sha256) {
            return Ok(false);
        }
        let folder = self.names_folder();
        fs::create_dir_all(&folder).map_err(disk("make", &folder))?;
        let path = folder.join(format!("{name}.jsonl"));
        // A line feed goes first where a crash left half a line, which is then passed over.
        let torn = fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'));
        let mut line = if torn { vec![b'\n'] } else { Vec::new() };
        line.extend(serde_json::to_vec(entry).expect("an entry is plain data"));
        line.push(b'\n');
        let mut file = File::options().create(true).append(true).open(&path).map_err(disk("open", &path))?;
        file.write_all(&line).and_then(|()| file.sync_all()).map_err(disk("write", &path))?;
        sync_folder(&folder)?;
        Ok(true)
    }

    /// Refuses a word that is no name.
    ///
    /// # Errors
    /// [`SnapshotError::Name`].
    pub fn check_name(&self, name: &str) -> Result<(), SnapshotError> {
        if is_name(name) { Ok(()) } else { Err(SnapshotError::Name { name: name.to_owned() }) }
    }

    fn history(&self, name: &str) -> Result<Vec<NameEntry>, SnapshotError> {
        let path = self.names_folder().join(format!("{name}.jsonl"));
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(disk("read", &path)(error)),
        }
    }

    fn snapshots(&self) -> PathBuf {
        self.folder.join("snapshots")
    }

    fn names_folder(&self) -> PathBuf {
        self.folder.join("names")
    }

    fn folder_of(&self, data_sha256: &str) -> PathBuf {
        self.snapshots().join(data_sha256)
    }
}

fn is_name(word: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.');
    (1..=NAME_LENGTH_MAX).contains(&word.len())
        && word.as_bytes()[0].is_ascii_alphabetic()
        && word.bytes().all(is_letter)
}

fn profile_name(label: Option<&str>) -> String {
    label.map_or_else(
        || "profile.json".to_owned(),
        |label| format!("profile-{}.json", &blake3::hash(label.as_bytes()).to_hex()[..16]),
    )
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("snapshots and profiles are plain data")
}

fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), SnapshotError> {
    let mut file = File::create(path).map_err(disk("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(disk("write", path))
}

fn sync_folder(path: &Path) -> Result<(), SnapshotError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(disk("sync", path))
}

fn disk<'p>(action: &'static str, path: &'p Path) -> impl FnOnce(io::Error) -> SnapshotError + use<'p> {
    move |source| SnapshotError::Disk { action, path: path.to_owned(), source }
}
