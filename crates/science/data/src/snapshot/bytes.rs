//! The bytes of the files of snapshots, each content once, under its hash.
//!
//! A kept file shares its blocks with the original where the file system can do so (reflink), and is a copy elsewhere. It is
//! never a hard link: writing to the original must not change what is kept.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use trackway_files::{FolderLock, OwnedFolder, TempFile, TempFolder, clone_file};
use trackway_results::snapshot::{BytesFault, BytesProblem, KeptBytes};
use trackway_tables::ReadContext;
use trackway_tables::files::url_of;
use trackway_tables::pass::PassObserver;
use trackway_tables::read::{ByteSource, open, read_full};

use super::store::{SnapshotError, SnapshotId, SnapshotStore, disk, entries, sync_folder, write_synced};
use super::{SNAPSHOT_VERSION, Snapshot, SnapshotFile};
use crate::manifest::DataManifest;

/// In the folder of a snapshot whose bytes are kept.
const MARK: &str = "bytes.json";
/// In the folder of kept bytes: only Trackway writes it.
const SIGN: &str = ".trackway-objects";
/// Held by a process that adds or deletes bytes, so that none are deleted that a snapshot is about to need.
const LOCK: &str = "lock";
/// Tries of 20 ms to get the lock: ten seconds.
const LOCK_TRIES: u32 = 500;
/// Bytes copied, hashed and compared at a time.
const PIECE_BYTES: usize = 1 << 20;

/// What was restored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoredBytes {
    pub files: u64,
    pub size_bytes: u64,
}

/// What verifying found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifiedBytes {
    /// Files looked at.
    pub files: u64,
    /// Bytes hashed.
    pub bytes_read: u64,
    /// What is wrong, in the order of the files.
    pub faults: Vec<BytesFault>,
}

/// What no snapshot needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Kept files that no snapshot needs.
    pub files: u64,
    pub size_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    version: u32,
}

impl SnapshotStore {
    /// Whether the bytes of a snapshot's files are kept.
    #[must_use]
    pub fn has_bytes(&self, id: &SnapshotId) -> bool {
        self.mark_of(id.as_str()).is_file()
    }

    /// Keeps the bytes of every file of a snapshot that is stored: `manifest` is what it was made of. A file whose bytes
    /// are kept already is not read.
    ///
    /// # Errors
    /// [`SnapshotError::Changed`] for a file that is not what was hashed; [`SnapshotError::Cancelled`], `Busy`, `Disk`. The
    /// snapshot is not marked then, and what was copied is there for the next time.
    pub fn keep_bytes(
        &self,
        snapshot: &Snapshot,
        manifest: &DataManifest,
        (base, context): (&Path, &ReadContext),
        watch: &PassObserver<'_>,
    ) -> Result<KeptBytes, SnapshotError> {
        self.keep_each(snapshot, watch, &mut |index, draft, progress| {
            let original = &manifest.files[index].path;
            let path = match url_of(Path::new(original)) {
                Some(_) => PathBuf::from(original),
                None => base.join(original),
            };
            keep(&path, context, &snapshot.files[index], draft, progress)
        })
    }

    /// Keeps the bytes of a snapshot that is stored, from elsewhere: `fetch` writes those of one file to an empty file. They are
    /// compared with their hash; what is kept already is not fetched.
    ///
    /// # Errors
    /// That of `fetch`; [`SnapshotError::Lost`] for other bytes; `Cancelled`, `Busy`, `Disk`. The snapshot is not marked then, and what
    /// was fetched is there for the next time.
    pub fn take_bytes(
        &self,
        snapshot: &Snapshot,
        fetch: &mut dyn FnMut(&SnapshotFile, &File) -> Result<(), SnapshotError>,
        watch: &PassObserver<'_>,
    ) -> Result<KeptBytes, SnapshotError> {
        self.keep_each(snapshot, watch, &mut |index, (path, written), progress| {
            let file = &snapshot.files[index];
            fetch(file, written)?;
            let mut fetched = File::open(path).map_err(disk("open", path))?;
            match hash(&mut fetched, path, progress)?.0 == file.blake3 {
                true => Ok(false),
                false => {
                    Err(SnapshotError::Lost { path: file.path.clone(), problem: BytesProblem::Different })
                }
            }
        })
    }

    /// Keeps each file whose bytes are not kept yet, durably, and marks the snapshot. `keep` gets the file's index and
    /// writes its bytes; whether as a clone.
    fn keep_each(
        &self,
        snapshot: &Snapshot,
        watch: &PassObserver<'_>,
        keep: &mut dyn FnMut(usize, Draft<'_>, &mut Progress<'_>) -> Result<bool, SnapshotError>,
    ) -> Result<KeptBytes, SnapshotError> {
        let _lock = self.lock_objects()?;
        let mut progress = Progress::new(watch, snapshot.size_bytes);
        let mut kept = KeptBytes::default();
        for (index, file) in snapshot.files.iter().enumerate() {
            let object = self.object(file);
            if fs::metadata(&object).is_ok_and(|found| found.len() == file.size_bytes) {
                progress.advance(file.size_bytes)?;
                continue;
            }
            let shard = object.parent().expect("an object is in a folder");
            fs::create_dir_all(shard).map_err(disk("make", shard))?;
            let (draft, written) = TempFile::beside(&object).map_err(disk("create", &object))?;
            let is_cloned = keep(index, (draft.path(), &written), &mut progress)?;
            written.sync_all().map_err(disk("sync", draft.path()))?;
            draft.persist(&object).map_err(disk("name", &object))?;
            kept.files_added += 1;
            kept.bytes_added += file.size_bytes;
            kept.files_cloned += u64::from(is_cloned);
        }
        self.mark(snapshot)?;
        Ok(kept)
    }

    fn mark(&self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let mark = self.mark_of(&snapshot.data_sha256);
        let bytes = serde_json::to_vec(&Mark { version: SNAPSHOT_VERSION }).expect("a number is JSON");
        TempFile::write(&mark, &bytes).map_err(disk("write", &mark))
    }

    /// Writes the files of a snapshot into a folder that does not exist or is empty, each compared with its hash. The folder
    /// is there whole or not at all.
    ///
    /// # Errors
    /// [`SnapshotError::NoBytes`], `Occupied`, `Lost`, `Outside`, `Cancelled`, `Disk`.
    pub fn restore(
        &self,
        id: &SnapshotId,
        target: &Path,
        watch: &PassObserver<'_>,
    ) -> Result<RestoredBytes, SnapshotError> {
        let snapshot = self.with_bytes(id)?;
        if target.exists() && !is_empty_folder(target) {
            return Err(SnapshotError::Occupied { path: target.to_owned() });
        }
        if let Some(file) = snapshot.files.iter().find(|file| !is_below(Path::new(&file.path))) {
            return Err(SnapshotError::Outside { path: file.path.clone() });
        }
        let mut progress = Progress::new(watch, snapshot.size_bytes);
        let draft = TempFolder::beside(target).map_err(disk("make", target))?;
        for file in &snapshot.files {
            let path = draft.path().join(&file.path);
            let folder = path.parent().expect("it is below the draft");
            fs::create_dir_all(folder).map_err(disk("make", folder))?;
            self.restore_file(file, &path, &mut progress)?;
        }
        sync_folder(draft.path())?;
        draft.persist(target).map_err(disk("name", target))?;
        trackway_files::give_tree_to_user(target).map_err(disk("set the rights of", target))?;
        Ok(RestoredBytes { files: snapshot.files.len() as u64, size_bytes: snapshot.size_bytes })
    }

    /// Hashes the kept bytes of a snapshot again, and reports what is not what was kept.
    ///
    /// # Errors
    /// [`SnapshotError::NoBytes`], `Cancelled`, `Disk`.
    pub fn verify_bytes(
        &self,
        id: &SnapshotId,
        watch: &PassObserver<'_>,
    ) -> Result<VerifiedBytes, SnapshotError> {
        let snapshot = self.with_bytes(id)?;
        let mut progress = Progress::new(watch, snapshot.size_bytes);
        let mut verified = VerifiedBytes::default();
        for file in &snapshot.files {
            let object = self.object(file);
            let problem = match File::open(&object) {
                Ok(mut kept) => {
                    let (blake3, bytes) = hash(&mut kept, &object, &mut progress)?;
                    verified.bytes_read += bytes;
                    (blake3 != file.blake3).then_some(BytesProblem::Different)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Some(BytesProblem::Missing),
                Err(error) => return Err(disk("open", &object)(error)),
            };
            verified.files += 1;
            verified.faults.extend(problem.map(|problem| BytesFault {
                path: file.path.clone(),
                blake3: file.blake3.clone(),
                problem,
            }));
        }
        Ok(verified)
    }

    /// Lets these snapshots keep no bytes any more, and deletes the bytes that no snapshot needs. What a snapshot consisted
    /// of, its profile and its names stay. A dry run changes nothing and answers what would be deleted.
    ///
    /// # Errors
    /// [`SnapshotError::Damaged`] for a snapshot that may need bytes and cannot be read: then nothing is deleted;
    /// [`SnapshotError::Busy`], `Disk`.
    pub fn expire_bytes(&self, expired: &[SnapshotId], dry_run: bool) -> Result<Collected, SnapshotError> {
        let objects = self.objects();
        if !objects.is_dir() {
            return Ok(Collected::default());
        }
        let _lock = self.lock_objects()?;
        let mut needed = BTreeSet::new();
        for id in self.ids().into_iter().filter(|id| !expired.contains(id) && self.has_bytes(id)) {
            needed.extend(self.snapshot(&id)?.files.into_iter().map(|file| file.blake3));
        }
        if !dry_run {
            expired.iter().try_for_each(|id| self.unmark(id))?;
        }
        let owned = OwnedFolder::holding(&objects, &[SIGN]).map_err(disk("open", &objects))?;
        let mut collected = Collected::default();
        for shard in entries(&objects).into_iter().filter(|path| path.is_dir()) {
            for path in entries(&shard) {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let is_object = name.len() == 64 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
                if !is_object || needed.contains(name) {
                    continue;
                }
                collected.files += 1;
                collected.size_bytes += fs::metadata(&path).map_or(0, |found| found.len());
                if !dry_run {
                    owned.remove(&path).map_err(disk("delete", &path))?;
                }
            }
            if !dry_run {
                let shard_name = shard.file_name().unwrap_or_default();
                let shard = owned.folder(shard_name).map_err(disk("open", &shard))?;
                shard.clear_abandoned().map_err(disk("clear", shard.path()))?;
            }
        }
        Ok(collected)
    }

    fn unmark(&self, id: &SnapshotId) -> Result<(), SnapshotError> {
        let (folder, mark) = (self.folder_of(id.as_str()), self.mark_of(id.as_str()));
        let owned = OwnedFolder::holding(&folder, &["manifest.json"]).map_err(disk("open", &folder))?;
        owned.remove(&mark).map_err(disk("delete", &mark))?;
        sync_folder(&folder)
    }

    fn restore_file(
        &self,
        file: &SnapshotFile,
        path: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<(), SnapshotError> {
        let lost = |problem| SnapshotError::Lost { path: file.path.clone(), problem };
        let object = self.object(file);
        let mut kept = File::open(&object).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => lost(BytesProblem::Missing),
            _ => disk("open", &object)(error),
        })?;
        let mut written = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(disk("create", path))?;
        let blake3 = match clone_file(&kept, &written).map_err(disk("clone into", path))? {
            true => hash(&mut written, path, progress)?.0,
            false => copy(&mut |_, buffer| kept.read(buffer), &object, (&mut written, path), progress)?.0,
        };
        if blake3 != file.blake3 {
            return Err(lost(BytesProblem::Different));
        }
        written.sync_all().map_err(disk("sync", path))
    }

    /// A snapshot whose bytes are kept.
    ///
    /// # Errors
    /// [`SnapshotError::NoBytes`] for one without; [`SnapshotStore::snapshot`]'s.
    pub fn with_bytes(&self, id: &SnapshotId) -> Result<Snapshot, SnapshotError> {
        let snapshot = self.snapshot(id)?;
        match self.has_bytes(id) {
            true => Ok(snapshot),
            false => Err(SnapshotError::NoBytes { id: id.as_str().to_owned() }),
        }
    }

    fn lock_objects(&self) -> Result<FolderLock, SnapshotError> {
        let objects = self.objects();
        fs::create_dir_all(&objects).map_err(disk("make", &objects))?;
        let sign = objects.join(SIGN);
        if !sign.exists() {
            write_synced(&sign, b"")?;
        }
        FolderLock::take(&objects, LOCK, LOCK_TRIES).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SnapshotError::Busy { path: objects.clone() },
            _ => disk("lock", &objects)(error),
        })
    }

    fn objects(&self) -> PathBuf {
        self.layout().objects()
    }

    /// Where the bytes of a file are, if they are kept.
    #[must_use]
    pub fn object(&self, file: &SnapshotFile) -> PathBuf {
        self.objects().join(file.blake3.get(..2).unwrap_or("_")).join(&file.blake3)
    }

    fn mark_of(&self, data_sha256: &str) -> PathBuf {
        self.folder_of(data_sha256).join(MARK)
    }
}

/// Where the bytes of a file are written before they have their name.
type Draft<'d> = (&'d Path, &'d File);

/// Writes the bytes of one file; whether as a clone.
fn keep(
    path: &Path,
    context: &ReadContext,
    file: &SnapshotFile,
    (draft, mut written): Draft<'_>,
    progress: &mut Progress<'_>,
) -> Result<bool, SnapshotError> {
    let is_cloned = url_of(path).is_none()
        && File::open(path)
            .and_then(|original| clone_file(&original, written))
            .map_err(disk("clone", path))?;
    let blake3 = match is_cloned {
        true => {
            let mut cloned = File::open(draft).map_err(disk("open", draft))?;
            hash(&mut cloned, draft, progress)?.0
        }
        false => {
            let source = open(path, context).map_err(disk("open", path))?;
            let source: &dyn ByteSource = source.as_ref();
            let mut read = |offset: u64, buffer: &mut [u8]| read_full(source, offset, buffer);
            copy(&mut read, path, (&mut written, draft), progress)?.0
        }
    };
    if blake3 != file.blake3 {
        return Err(SnapshotError::Changed { path: file.path.clone() });
    }
    Ok(is_cloned)
}

/// Copies bytes; the hash of what was copied, and how many bytes that were. `read` gets the offset.
fn copy(
    read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<usize>,
    from: &Path,
    (written, to): (&mut dyn io::Write, &Path),
    progress: &mut Progress<'_>,
) -> Result<(String, u64), SnapshotError> {
    let mut hasher = blake3::Hasher::new();
    let (mut piece, mut offset) = (vec![0; PIECE_BYTES], 0);
    loop {
        let length = read(offset, &mut piece).map_err(disk("read", from))?;
        if length == 0 {
            return Ok((hasher.finalize().to_hex().to_string(), offset));
        }
        hasher.update(&piece[..length]);
        written.write_all(&piece[..length]).map_err(disk("write", to))?;
        offset += length as u64;
        progress.advance(length as u64)?;
    }
}

/// The hash of a file from where it is on, and how many bytes that were.
fn hash(file: &mut File, path: &Path, progress: &mut Progress<'_>) -> Result<(String, u64), SnapshotError> {
    copy(&mut |_, buffer| file.read(buffer), path, (&mut io::sink(), path), progress)
}

/// Bytes done, and the wish to end.
struct Progress<'w> {
    watch: &'w PassObserver<'w>,
    done: u64,
    total: u64,
}

impl<'w> Progress<'w> {
    fn new(watch: &'w PassObserver<'w>, total: u64) -> Self {
        Self { watch, done: 0, total }
    }

    fn advance(&mut self, bytes: u64) -> Result<(), SnapshotError> {
        self.done += bytes;
        (self.watch.progress)(self.done.min(self.total), self.total);
        if self.watch.cancelled.load(Ordering::Relaxed) { Err(SnapshotError::Cancelled) } else { Ok(()) }
    }
}

fn is_empty_folder(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a path stays below the folder that it is joined to.
fn is_below(path: &Path) -> bool {
    path.components().next().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}
