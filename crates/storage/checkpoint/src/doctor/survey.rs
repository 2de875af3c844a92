//! Reads all there is in a root: the log to its last number, over gaps, and every folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use trackway_formats::checkpoint_manifest::{MANIFEST_FILE_NAME, is_object_prefix};
use trackway_store::{Entry, Fold as _, Item, MAX_ENTRY_BYTES, MAX_SUMMARY_BYTES, NoEntry};

use super::bytes::{MAX_SEARCH_BYTES, appearance_of, changed_byte};
use super::finding::Remedy;
use crate::error::{CheckpointError, Result};
use crate::group::VOTES_FOLDER;
use crate::history::History;
use crate::history::entry::{Body, CommitBody};

const LOG_FOLDER: &str = "log";
/// What a create writes before it links.
const ASIDE_PREFIX: &str = ".new-";
/// The object that names the newest summary, perhaps.
pub(super) const HINT_PATH: &str = "log/hint.json";
/// Where checkpoints from a remote are assembled.
const INCOMING_FOLDER: &str = "incoming";

/// Everything in a root but the bytes of checkpoints.
#[derive(Default)]
pub(super) struct Survey {
    pub root: PathBuf,
    pub has_log: bool,
    /// The log file of every number, also after a gap.
    pub log: BTreeMap<u64, LogFile>,
    /// The number up to which readers read: after it one is missing.
    pub tail: u64,
    /// What readers conclude from it.
    pub history: History,
    pub hint: Option<Vec<u8>>,
    /// What `log/` has besides, below the root.
    pub strangers: Vec<Stranger>,
    /// Folders of checkpoints, by prefix.
    pub folders: BTreeMap<String, Folder>,
    /// What could not be listed, and why.
    pub unlisted: Vec<(String, io::Error)>,
}

/// A file of the log with a number.
pub(super) struct LogFile {
    pub path: String,
    pub read: Result<Entry<Body>, UnreadEntry>,
}

/// Why there is no entry in a file of the log.
pub(super) struct UnreadEntry {
    pub why: String,
    pub remedy: Remedy,
}

/// Something that no reader looks at.
pub(super) struct Stranger {
    /// Below the root.
    pub path: String,
    /// It was left over by a create that did not end.
    pub left_over: bool,
}

/// A folder that is, or might be, of a checkpoint.
#[derive(Default)]
pub(super) struct Folder {
    /// Names and sizes of its files.
    pub files: BTreeMap<String, u64>,
}

impl Survey {
    pub fn of(root: &Path) -> Result<Self> {
        let mut survey = Self { root: root.to_owned(), ..Self::default() };
        for name in list(root).map_err(CheckpointError::storage("list", root))? {
            match name.as_str() {
                LOG_FOLDER => survey.read_log(),
                VOTES_FOLDER | INCOMING_FOLDER => {}
                _ if name.starts_with("step-") && root.join(&name).is_dir() => survey.read_step(&name),
                _ => survey.stranger(name),
            }
        }
        survey.fold();
        Ok(survey)
    }

    fn stranger(&mut self, path: String) {
        let name = path.rsplit('/').next().unwrap_or(&path);
        let left_over = name.starts_with(ASIDE_PREFIX);
        self.strangers.push(Stranger { path, left_over });
    }

    fn list_below(&mut self, path: &str) -> Vec<String> {
        list(&self.root.join(path)).unwrap_or_else(|error| {
            self.unlisted.push((path.to_owned(), error));
            Vec::new()
        })
    }

    fn read_log(&mut self) {
        self.has_log = true;
        for name in self.list_below(LOG_FOLDER) {
            let path = format!("{LOG_FOLDER}/{name}");
            match number_of(&name) {
                Some(number) => {
                    let read = read_entry(&self.root.join(&path), &path, number);
                    self.log.insert(number, LogFile { path, read });
                }
                None if path == HINT_PATH => {
                    self.hint = trackway_files::read_regular(&self.root.join(&path)).ok()
                }
                None => self.stranger(path),
            }
        }
    }

    fn read_step(&mut self, step: &str) {
        for name in self.list_below(step) {
            let prefix = format!("{step}/{name}");
            if !self.root.join(&prefix).is_dir() {
                self.stranger(prefix);
                continue;
            }
            let mut folder = Folder::default();
            for file in self.list_below(&prefix).into_iter().filter(|file| file != VOTES_FOLDER) {
                let metadata = std::fs::symlink_metadata(self.root.join(&prefix).join(&file));
                folder.files.insert(file, metadata.map_or(0, |metadata| metadata.len()));
            }
            self.folders.insert(prefix, folder);
        }
    }

    /// Reads on as every reader does: to the first number that is missing.
    fn fold(&mut self) {
        while let Some(file) = self.log.get(&(self.tail + 1)) {
            self.tail += 1;
            self.history.take(match &file.read {
                Ok(entry) => Item::Entry(entry.clone()),
                Err(unread) => Item::Damaged { number: self.tail, why: unread.why.clone() },
            });
        }
    }

    /// The highest number there is.
    pub fn last_number(&self) -> u64 {
        self.log.keys().next_back().copied().unwrap_or(0)
    }

    /// Whether every entry before a number can be read.
    pub fn is_whole_before(&self, number: u64) -> bool {
        (1..number).all(|number| self.log.get(&number).is_some_and(|file| file.read.is_ok()))
    }

    /// Every commit that can be read, after gaps too.
    pub fn commits(&self) -> impl Iterator<Item = (u64, &CommitBody)> {
        self.entries().filter_map(|(number, entry)| match &entry.body {
            Body::Commit(body) => Some((number, body)),
            Body::Adopt(adopt) => adopt.commit.as_ref().map(|body| (number, body)),
            _ => None,
        })
    }

    /// Every entry that can be read, after gaps too.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &Entry<Body>)> {
        self.log.iter().filter_map(|(number, file)| file.read.as_ref().ok().map(|entry| (*number, entry)))
    }

    /// Whether an entry that can be read names a folder: begun, committed or adopted there.
    fn names(&self, folder: &str) -> bool {
        self.entries().any(|(_, entry)| match &entry.body {
            Body::Begin(begin) => begin.object_prefix == folder,
            Body::Commit(body) => body.object_prefix == folder,
            Body::Adopt(adopt) => {
                let prefix = adopt.commit.as_ref().map(|body| &body.object_prefix);
                adopt.folder.as_ref().or(prefix).is_some_and(|named| named == folder)
            }
            _ => false,
        })
    }

    /// Folders that nothing in the log ever named.
    pub fn orphans(&self) -> impl Iterator<Item = (&String, &Folder)> {
        self.folders.iter().filter(|(prefix, _)| !is_object_prefix(prefix) || !self.names(prefix))
    }

    /// Where a folder is that is not where it belongs: its epoch and ULID are unique.
    pub fn moved(&self, folder: &str) -> Option<&str> {
        let name = folder.rsplit('/').next();
        let mut orphans = self.orphans().map(|(prefix, _)| prefix.as_str());
        orphans.find(|prefix| prefix.rsplit('/').next() == name)
    }

    /// How many folders have a manifest.
    pub fn with_manifest(&self) -> usize {
        self.folders.values().filter(|folder| folder.files.contains_key(MANIFEST_FILE_NAME)).count()
    }
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The path of an entry, below the root.
pub(super) fn entry_path(number: u64) -> String {
    format!("{LOG_FOLDER}/{number:08}.json")
}

fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".json")?.parse().ok()?;
    (number > 0 && entry_path(number) == format!("{LOG_FOLDER}/{name}")).then_some(number)
}

fn read_entry(file: &Path, path: &str, number: u64) -> Result<Entry<Body>, UnreadEntry> {
    let size_bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    if size_bytes > MAX_SUMMARY_BYTES as u64 {
        let why = format!("it has {size_bytes} bytes (at most {MAX_SUMMARY_BYTES} are valid)");
        return Err(UnreadEntry { why, remedy: Remedy::RestoreFile { path: path.into() } });
    }
    let bytes = trackway_files::read_regular(file).map_err(|error| UnreadEntry {
        why: format!("it cannot be read: {error}"),
        remedy: Remedy::Allow { path: path.into() },
    })?;
    let entry: Entry<Body> =
        Entry::from_bytes(&bytes, number).map_err(|fault| explain(&bytes, number, path, fault))?;
    let too_large = bytes.len() > MAX_ENTRY_BYTES && !matches!(entry.body, Body::Summary(_));
    let broken_rule = too_large.then(|| format!("it has more than {MAX_ENTRY_BYTES} bytes"));
    match broken_rule.or_else(|| entry.body.broken_rule()) {
        None => Ok(entry),
        Some(why) => Err(UnreadEntry { why, remedy: Remedy::RestoreFile { path: path.into() } }),
    }
}

fn is_entry(bytes: &[u8], number: u64) -> bool {
    Entry::<Body>::from_bytes(bytes, number).is_ok()
}

/// Explains how a file of the log was damaged so that it is not an entry.
fn explain(bytes: &[u8], number: u64, path: &str, fault: NoEntry) -> UnreadEntry {
    let why = match fault {
        NoEntry::Damaged(why) => why,
        NoEntry::Newer(version) => {
            let why = format!(
                "it is intact, but was written by a newer Trackway (version {version}): upgrade before writing"
            );
            return UnreadEntry {
                why,
                remedy: Remedy::UseAnother { what: "Trackway version, a newer one".into() },
            };
        }
    };
    let restore = Remedy::RestoreFile { path: path.into() };
    if let Some(looks) = appearance_of(bytes) {
        return UnreadEntry { why: looks, remedy: restore };
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').map(|place| place + 1);
    if let Some(end) = end.filter(|end| *end < bytes.len() && is_entry(&bytes[..*end], number)) {
        let why = format!("{} bytes were added after its end at byte {end}", bytes.len() - end);
        return UnreadEntry { why, remedy: Remedy::CutTo { path: path.into(), size_bytes: end as u64 } };
    }
    if let Some(byte) = changed_byte(bytes, MAX_SEARCH_BYTES, |bytes| is_entry(bytes, number)) {
        let remedy = Remedy::SetByte { path: path.into(), offset: byte.offset, byte: byte.expected };
        return UnreadEntry { why: byte.sentence(), remedy };
    }
    let why = match end {
        None => format!("it is cut off after {} bytes", bytes.len()),
        Some(_) => why,
    };
    UnreadEntry { why, remedy: restore }
}
