//! Snapshots and their names in a folder.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use trackway_core::BoxError;
use trackway_core::name::{Name, NameKind, RENAMED_SUFFIX, is_digest_prefix};
use trackway_files::{TempFile, TempFolder, make_folders};
use trackway_formats::layout::DataLayout;
use trackway_redact::Redactor;
use trackway_results::snapshot::{BytesProblem, NameEntry, NamedSnapshot};
use trackway_tables::profile::Profile;

use super::Snapshot;
use super::masking::{KEY_BYTES, Mask};

/// So many digits of an id are shown, and that many distinguish two snapshots of one project.
pub const SHORT_ID_LENGTH: usize = 12;

/// The largest profile that is kept because a run reads the data; a snapshot keeps any.
pub const RUN_PROFILE_BYTES_MAX: usize = 32 << 20;

/// Why snapshots cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Disk { action: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` is damaged or of another version: {source}", .path.display())]
    Damaged { path: PathBuf, source: BoxError },
    #[error("`{path}` was changed while its bytes were copied; take the snapshot again")]
    Changed { path: String },
    #[error("the snapshot {id} keeps no bytes: it was taken without --keep-bytes, or they expired")]
    NoBytes { id: String },
    #[error("the kept bytes of `{path}` are {problem}: nothing was restored")]
    Lost { path: String, problem: BytesProblem },
    #[error("the bytes of `{path}` were not fetched: {message}")]
    NotFetched { path: String, message: String },
    #[error("`{}` exists and is not an empty folder", .path.display())]
    Occupied { path: PathBuf },
    #[error("the snapshot names a file `{path}`, which is not a path below a folder: it is not restored")]
    Outside { path: String },
    #[error("another process keeps or deletes bytes in `{}`; try again when it has ended", .path.display())]
    Busy { path: PathBuf },
    #[error("cancelled before all bytes were read")]
    Cancelled,
    #[error("`{word}` matches {count} snapshots; use a longer prefix")]
    Ambiguous { word: String, count: usize },
}

/// The id of a snapshot: its digest. It is made by [`SnapshotStore::find`] and [`SnapshotStore::ids`] only, so that what a person
/// types is never taken for one unseen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotId(String);

impl SnapshotId {
    /// The 64 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A folder of snapshots.
#[derive(Debug, Clone)]
pub struct SnapshotStore {
    pub(super) folder: PathBuf,
}

impl SnapshotStore {
    /// In this folder, which is made when something is first kept.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Masks the profiles of this folder, with the key that is kept in it; it is made when it is first needed. Where there is no home, the
    /// key is not kept.
    ///
    /// # Errors
    /// [`SnapshotError`]: the key cannot be read or made.
    pub fn mask(&self) -> Result<Mask, SnapshotError> {
        let path = self.layout().mask_key();
        let key = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.keep_key(&path, random_key()?)?,
            read => read.map_err(disk("read", &path))?,
        };
        let why = || format!("a key has {KEY_BYTES} bytes, this file has {}", key.len());
        let key = key.as_slice().try_into();
        let key = key.map_err(|_| SnapshotError::Damaged { path: path.clone(), source: why().into() })?;
        Ok(Mask::new(key, Redactor::of_this_process()))
    }

    /// Of several processes that come first, the key of one is kept.
    fn keep_key(&self, path: &Path, key: Vec<u8>) -> Result<Vec<u8>, SnapshotError> {
        if !self.folder.is_dir() && !self.folder.parent().is_some_and(Path::is_dir) {
            return Ok(key);
        }
        make_folders(&self.folder).map_err(disk("make", &self.folder))?;
        let (draft, mut file) = TempFile::beside(path).map_err(disk("create", path))?;
        file.write_all(&key).and_then(|()| file.sync_all()).map_err(disk("write", path))?;
        match draft.persist_new(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(disk("name", path)(error)),
            _ => fs::read(path).map_err(disk("read", path)),
        }
    }

    /// Where profiles of single files are kept.
    #[must_use]
    pub fn profiles(&self) -> PathBuf {
        self.layout().profiles()
    }

    /// Keeps a snapshot, and its profile. Whether the snapshot is new: one that is there is not changed, but may get a
    /// profile with another label.
    ///
    /// # Errors
    /// [`SnapshotError::Disk`]. Nothing half is left that would be read.
    pub fn put(&self, snapshot: &Snapshot, profile: Option<&Profile>) -> Result<bool, SnapshotError> {
        let folder = self.folder_of(&snapshot.data_sha256);
        let profile = profile.map(|profile| Ok(self.mask()?.masked(profile.clone()))).transpose()?;
        let is_new = !folder.is_dir();
        if is_new {
            fs::create_dir_all(self.snapshots()).map_err(disk("make", &self.snapshots()))?;
            let draft = TempFolder::beside(&folder).map_err(disk("make", &folder))?;
            write_synced(&draft.path().join("manifest.json"), &to_json(snapshot))?;
            if let Some(profile) = &profile {
                write_synced(&draft.path().join(profile_name(profile.label.as_deref())), &to_json(profile))?;
            }
            sync_folder(draft.path())?;
            match draft.persist(&folder) {
                Err(error) if !folder.is_dir() => return Err(disk("name", &folder)(error)),
                // Where another process was first, what it kept is the same.
                _ => {}
            }
        }
        if let Some(profile) = &profile {
            let path = folder.join(profile_name(profile.label.as_deref()));
            if !path.is_file() {
                TempFile::write(&path, &to_json(profile)).map_err(disk("write", &path))?;
            }
        }
        Ok(is_new)
    }

    /// The snapshot of an id.
    ///
    /// # Errors
    /// [`SnapshotError`]: it is not there, or not understood.
    pub fn snapshot(&self, id: &SnapshotId) -> Result<Snapshot, SnapshotError> {
        let path = self.folder_of(&id.0).join("manifest.json");
        let bytes = fs::read(&path).map_err(disk("read", &path))?;
        let damaged = |why: String| SnapshotError::Damaged { path: path.clone(), source: why.into() };
        Snapshot::from_json(&bytes, &id.0).map_err(damaged)
    }

    /// The profile of a snapshot: made with this label if there is one, else any. `None` if it holds no table.
    ///
    /// # Errors
    /// [`SnapshotError`]: it cannot be read, or was made by another version.
    pub fn profile(&self, id: &SnapshotId, label: Option<&str>) -> Result<Option<Profile>, SnapshotError> {
        let folder = self.folder_of(&id.0);
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
        let damaged = |error: trackway_tables::profile::ProfileError| SnapshotError::Damaged {
            path,
            source: error.into(),
        };
        Profile::from_json(&text).map(Some).map_err(damaged)
    }

    /// The profile of the data with this hash: of its snapshot, or one that [`SnapshotStore::keep_profile_of_data`] kept.
    ///
    /// # Errors
    /// As [`SnapshotStore::profile`]. A profile of another version is as good as none.
    pub fn profile_of_data(
        &self,
        data_sha256: &str,
        label: Option<&str>,
    ) -> Result<Option<Profile>, SnapshotError> {
        let id = SnapshotId(data_sha256.to_owned());
        if let Ok(Some(profile)) = self.profile(&id, label) {
            return Ok(Some(profile));
        }
        let path = self.run_profile(data_sha256);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Profile::from_json(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(disk("read", &path)(error)),
        }
    }

    /// Keeps the profile of data that a run reads, unless one is kept already or it is larger than
    /// [`RUN_PROFILE_BYTES_MAX`].
    pub fn keep_profile_of_data(&self, data_sha256: &str, profile: &Profile) -> Result<(), SnapshotError> {
        let path = self.run_profile(data_sha256);
        if path.is_file() || self.folder_of(data_sha256).is_dir() {
            return Ok(());
        }
        let bytes = to_json(&self.mask()?.masked(profile.clone()));
        if bytes.len() > RUN_PROFILE_BYTES_MAX {
            return Ok(());
        }
        let folder = self.layout().run_profiles();
        fs::create_dir_all(&folder).map_err(disk("make", &folder))?;
        TempFile::write_cache(&path, &bytes).map_err(disk("write", &path))
    }

    fn run_profile(&self, data_sha256: &str) -> PathBuf {
        self.layout().run_profiles().join(format!("{data_sha256}.json"))
    }

    /// The profiles that [`SnapshotStore::keep_profile_of_data`] kept: the hash of the data and the file of each, sorted.
    #[must_use]
    pub fn run_profiles(&self) -> Vec<(String, PathBuf)> {
        let hash = |path: PathBuf| Some((path.file_stem()?.to_str()?.to_owned(), path));
        let mut found: Vec<(String, PathBuf)> =
            entries(&self.layout().run_profiles()).into_iter().filter_map(hash).collect();
        found.sort();
        found
    }

    pub(super) fn layout(&self) -> DataLayout {
        DataLayout::new(&self.folder)
    }

    /// The id of a reference: 4 hexadecimal digits or more are an id or the beginning of one, and never a name; else it
    /// is a name.
    ///
    /// # Errors
    /// [`SnapshotError::Ambiguous`]; a name's file that cannot be read.
    pub fn find(&self, word: &str) -> Result<Option<SnapshotId>, SnapshotError> {
        if !is_digest_prefix(word) {
            let Ok(name) = Name::new(NameKind::Snapshot, word) else { return Ok(None) };
            return Ok(self.history(&name)?.pop().map(|entry| SnapshotId(entry.data_sha256)));
        }
        let word = word.to_ascii_lowercase();
        let mut found: Vec<SnapshotId> =
            self.ids().into_iter().filter(|id| id.0.starts_with(&word)).collect();
        match found.len() {
            0 | 1 => Ok(found.pop()),
            count => Err(SnapshotError::Ambiguous { word, count }),
        }
    }

    /// All snapshots, by id.
    #[must_use]
    pub fn ids(&self) -> Vec<SnapshotId> {
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
        let mut ids: Vec<String> = entries(&self.snapshots()).into_iter().filter_map(name).collect();
        ids.retain(|id| id.len() == 64 && id.bytes().all(|digit| digit.is_ascii_hexdigit()));
        ids.sort();
        ids.into_iter().map(SnapshotId).collect()
    }

    /// All names with their history, sorted.
    pub fn names(&self) -> Result<Vec<NamedSnapshot>, SnapshotError> {
        let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        let stems = entries(&self.names_folder()).into_iter().filter_map(stem);
        let mut names: Vec<Name> = stems.map(|stem| Name::renamed(NameKind::Snapshot, &stem)).collect();
        names.sort();
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            let history = self.history(&name)?;
            if !history.is_empty() {
                all.push(NamedSnapshot { name: name.into(), history });
            }
        }
        Ok(all)
    }

    /// Makes a name point to a snapshot from now on. Whether that is a change.
    pub fn point(&self, name: &Name, entry: &NameEntry) -> Result<bool, SnapshotError> {
        if self.history(name)?.last().is_some_and(|last| last.data_sha256 == entry.data_sha256) {
            return Ok(false);
        }
        let folder = self.names_folder();
        fs::create_dir_all(&folder).map_err(disk("make", &folder))?;
        let path = self.file_of(name);
        // A line feed goes first if a crash left half a line, which is then skipped.
        let torn = fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'));
        let mut line = if torn { vec![b'\n'] } else { Vec::new() };
        line.extend(serde_json::to_vec(entry).expect("an entry is plain data"));
        line.push(b'\n');
        let mut file = File::options().create(true).append(true).open(&path).map_err(disk("open", &path))?;
        file.write_all(&line).and_then(|()| file.sync_all()).map_err(disk("write", &path))?;
        sync_folder(&folder)?;
        Ok(true)
    }

    /// Where the history of a name is. An older program may have given a name that reads as a digest: its file stays as it is, and
    /// the name is the renamed one.
    fn file_of(&self, name: &Name) -> PathBuf {
        let file = |name: &str| self.names_folder().join(format!("{name}.jsonl"));
        let before = name.as_str().strip_suffix(RENAMED_SUFFIX);
        let of_old = before.filter(|old| Name::new(NameKind::Snapshot, old).is_err()).map(file);
        of_old.filter(|path| path.exists()).unwrap_or_else(|| file(name.as_str()))
    }

    fn history(&self, name: &Name) -> Result<Vec<NameEntry>, SnapshotError> {
        let path = self.file_of(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(disk("read", &path)(error)),
        }
    }

    pub(super) fn snapshots(&self) -> PathBuf {
        self.layout().snapshots()
    }

    fn names_folder(&self) -> PathBuf {
        self.layout().names()
    }

    pub(super) fn folder_of(&self, data_sha256: &str) -> PathBuf {
        self.snapshots().join(data_sha256)
    }
}

fn random_key() -> Result<Vec<u8>, SnapshotError> {
    let (mut key, random) = (vec![0; KEY_BYTES], Path::new("/dev/urandom"));
    File::open(random).and_then(|mut source| source.read_exact(&mut key)).map_err(disk("read", random))?;
    Ok(key)
}

fn profile_name(label: Option<&str>) -> String {
    label.map_or_else(
        || "profile.json".to_owned(),
        |label| format!("profile-{}.json", &blake3::hash(label.as_bytes()).to_hex()[..16]),
    )
}

pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("snapshots and profiles are plain data")
}

pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), SnapshotError> {
    let mut file = File::create(path).map_err(disk("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(disk("write", path))
}

pub(super) fn sync_folder(path: &Path) -> Result<(), SnapshotError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(disk("sync", path))
}

pub(super) fn disk<'p>(
    action: &'static str,
    path: &'p Path,
) -> impl FnOnce(io::Error) -> SnapshotError + use<'p> {
    move |source| SnapshotError::Disk { action, path: path.to_owned(), source }
}
