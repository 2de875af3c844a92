//! What was found in files that did not change since.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;
use trackway_files::TempFile;
use trackway_formats::runfile::{DataFormat, DataSpec};
use trackway_tables::files::{Identity, url_of};

use crate::manifest::DataFile;

/// Changes when a parser finds something else in the same bytes.
const CACHE_VERSION: u32 = 4;

/// The most files remembered; beyond it the cache starts over.
const MAX_ENTRIES: usize = 200_000;

/// How a file is read: the same bytes read otherwise have another schema.
pub(crate) fn read_as(format: DataFormat, is_table: bool, spec: &DataSpec) -> String {
    let lines = (spec.comment, spec.skip_lines, spec.trailing_separator, spec.decimal);
    let how =
        (CACHE_VERSION, format, is_table, &spec.columns, spec.header, spec.delimiter, lines, &spec.missing);
    serde_json::to_string(&how).expect("strings and numbers are JSON")
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    identity: Identity,
    read_as: String,
    file: DataFile,
    /// What [`Entry::hash`] was when it was written.
    blake3: String,
}

impl Entry {
    /// BLAKE3 of the path and of what the entry says about its file.
    fn hash(&self, path: &Path) -> String {
        let said = serde_json::to_vec(&(&self.identity, &self.read_as, &self.file));
        let mut hasher = blake3::Hasher::new();
        hasher.update(path.as_os_str().as_encoded_bytes()).update(b"\0");
        hasher.update(&said.expect("strings and numbers are JSON"));
        hasher.finalize().to_hex().to_string()
    }
}

/// Results of earlier reads, kept in a JSON file. Losing it costs time, nothing else: an entry that does not have the hash which it
/// was written with is not believed, since what it says goes into receipts.
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
        TempFile::write_cache(&self.path, &bytes)?;
        entries.changed = false;
        Ok(())
    }

    /// How many files were not read because the cache had them.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub(crate) fn get(&self, path: &Path, identity: &Identity, read_as: &str) -> Option<DataFile> {
        let path = absolute(path);
        let entry = self.lock().by_path.get(&path).cloned()?;
        let is_known = entry.identity == *identity && entry.read_as == read_as;
        (is_known && entry.blake3 == entry.hash(&path)).then_some(entry.file)
    }

    /// Counts a file that was not read.
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
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
        let path = absolute(path);
        let mut entry = Entry { identity, read_as, file: file.clone(), blake3: String::new() };
        entry.blake3 = entry.hash(&path);
        let mut entries = self.lock();
        if entries.by_path.len() >= MAX_ENTRIES {
            entries.by_path.clear();
        }
        entries.by_path.insert(path, entry);
        entries.changed = true;
    }

    /// A thread that panicked while holding the lock left whole entries, so the lock is taken anyway.
    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn absolute(path: &Path) -> PathBuf {
    if url_of(path).is_some() {
        return path.to_owned();
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
