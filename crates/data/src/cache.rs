//! What was found in files that did not change since.
//!
//! A file counts as unchanged when size, both times of change, inode and device are the same. A time of change that
//! was younger than [`SETTLE_SECONDS`] when reading began is not trusted: within one tick of the file system's clock
//! a second write leaves no trace, so such a file is read again the next time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_formats::runfile::{DataFormat, DataSpec};

use crate::manifest::DataFile;

/// Changes when a parser finds something else in the same bytes.
const CACHE_VERSION: u32 = 1;

/// A file must have been still for this long before it was read.
const SETTLE_SECONDS: f64 = 2.0;

/// The most files remembered; beyond it the cache starts anew.
const MAX_ENTRIES: usize = 200_000;

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    size_bytes: u64,
    modified_nanos: i128,
    changed_nanos: i128,
    inode: u64,
    device: u64,
}

impl Identity {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Ok(Self {
            size_bytes: metadata.len(),
            modified_nanos: nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed_nanos: nanos(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }

    pub(crate) fn has_size(&self, size_bytes: u64) -> bool {
        self.size_bytes == size_bytes
    }

    fn was_settled_at(&self, moment: Timestamp) -> bool {
        let latest_micros = self.modified_nanos.max(self.changed_nanos) / 1000;
        latest_micros < i128::from(moment.plus_seconds(-SETTLE_SECONDS).as_micros())
    }
}

/// How a file is read: the same bytes read otherwise have another schema.
pub(crate) fn read_as(format: DataFormat, spec: &DataSpec) -> String {
    let how = (CACHE_VERSION, format, &spec.columns, spec.delimiter, &spec.missing);
    serde_json::to_string(&how).expect("texts and numbers are JSON")
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    identity: Identity,
    read_as: String,
    file: DataFile,
}

/// Results of earlier reads, kept in a JSON file. Losing it costs time, nothing else.
#[derive(Debug)]
pub struct HashCache {
    path: PathBuf,
    entries: Mutex<Entries>,
    hits: AtomicU64,
}

#[derive(Debug, Default)]
struct Entries {
    by_path: BTreeMap<PathBuf, Entry>,
    changed: bool,
}

impl HashCache {
    /// Opens the cache kept in `path`. A missing or unreadable file is an empty cache.
    #[must_use]
    pub fn load(path: &Path) -> Self {
        let by_path =
            fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self {
            path: path.to_owned(),
            entries: Mutex::new(Entries { by_path, changed: false }),
            hits: AtomicU64::new(0),
        }
    }

    /// Writes the cache if it changed: to a file beside it, then renamed, so that readers see old or new.
    ///
    /// # Errors
    /// The system's, when the file cannot be written; worth a note, not a failure.
    pub fn save(&self) -> io::Result<()> {
        let mut entries = self.lock();
        if !entries.changed {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&entries.by_path)?;
        let temporary = self.path.with_extension(format!("{}.tmp", std::process::id()));
        fs::write(&temporary, bytes)?;
        fs::rename(&temporary, &self.path)?;
        entries.changed = false;
        Ok(())
    }

    /// How many files were not read because the cache knew them.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub(crate) fn get(&self, path: &Path, identity: &Identity, read_as: &str) -> Option<DataFile> {
        let entries = self.lock();
        let entry = entries.by_path.get(&absolute(path))?;
        let known = (entry.identity == *identity && entry.read_as == read_as).then(|| entry.file.clone());
        self.hits.fetch_add(u64::from(known.is_some()), Ordering::Relaxed);
        known
    }

    pub(crate) fn put(
        &self,
        path: &Path,
        identity: Identity,
        read_as: String,
        file: &DataFile,
        started: Timestamp,
    ) {
        if !identity.was_settled_at(started) {
            return;
        }
        let mut entries = self.lock();
        if entries.by_path.len() >= MAX_ENTRIES {
            entries.by_path.clear();
        }
        entries.by_path.insert(absolute(path), Entry { identity, read_as, file: file.clone() });
        entries.changed = true;
    }

    /// A thread that panicked while holding the lock left whole entries behind, so the lock is taken anyway.
    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
