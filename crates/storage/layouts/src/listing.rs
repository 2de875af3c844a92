//! The files of a folder: the only place of this crate that reads one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component as Part, Path, PathBuf};

use trackway_formats::path_text::text_of;

use crate::limits::{MAX_FILES, MAX_FILES_SEARCHED, MAX_FOLDER_DEPTH};
use crate::names;

/// A file of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path below the root of the listing, with `/`, as [`trackway_formats::path_text`] has it.
    pub path: String,
    /// The size in bytes.
    pub size: u64,
    /// When its content changed last, in nanoseconds since 1970.
    pub modified_ns: i64,
    pub inode: u64,
    /// The device that the inode is of.
    pub device: u64,
    /// The number of hard links.
    pub links: u64,
}

impl Entry {
    /// A file of which the name and the size are known and nothing else is asked.
    #[must_use]
    pub fn named(path: &str, size: u64) -> Self {
        Self { path: path.to_owned(), size, modified_ns: 0, inode: 0, device: 0, links: 1 }
    }
}

/// A symbolic link. It is named and never followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The path below the root of the listing.
    pub path: String,
    /// What it points to, as written in it.
    pub target: String,
    /// Whether the target is outside of the listed folder.
    pub leaves: bool,
}

/// The files below a folder, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    files: Vec<Entry>,
    links: Vec<Link>,
    /// When an entry of each folder was last added, removed or renamed.
    folders: BTreeMap<String, i64>,
    skipped: Vec<String>,
}

/// Why a folder could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("`{}` has more than {} files and folders: name the checkpoints below it, not the whole folder", .0.display(), .1)]
    TooManyFiles(PathBuf, usize),
    #[error("cannot list `{}`: {}", .0.display(), .1)]
    Io(PathBuf, #[source] io::Error),
}

/// What identifies the state of the files below a path: it differs if a name, size, time or inode does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The number of files.
    pub files: u64,
    /// Their size together.
    pub bytes: u64,
    digest: u64,
}

impl Listing {
    /// A listing of these files and links.
    #[must_use]
    pub fn new(mut files: Vec<Entry>, mut links: Vec<Link>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        links.sort_by(|a, b| a.path.cmp(&b.path));
        Self { files, links, folders: BTreeMap::new(), skipped: Vec::new() }
    }

    /// The same listing, with the times at which an entry of each folder was last added, removed or renamed, by path (empty: the
    /// root). Folders without a time are not checked for files that were removed.
    #[must_use]
    pub fn with_folders(mut self, modified_ns: BTreeMap<String, i64>) -> Self {
        self.folders = modified_ns;
        self
    }

    /// All files, sorted by path.
    #[must_use]
    pub fn files(&self) -> &[Entry] {
        &self.files
    }

    /// All symbolic links, sorted by path.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// What is neither a file, a folder nor a link, or is nested too deep.
    #[must_use]
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// The file of this path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Entry> {
        self.files.binary_search_by(|entry| entry.path.as_str().cmp(path)).ok().map(|at| &self.files[at])
    }

    /// The file of this path, or the files below this folder; all of them for an empty path.
    #[must_use]
    pub fn below(&self, path: &str) -> &[Entry] {
        if path.is_empty() {
            return &self.files;
        }
        if let Ok(at) = self.files.binary_search_by(|entry| entry.path.as_str().cmp(path)) {
            return &self.files[at..=at];
        }
        let prefix = format!("{path}/");
        let from = self.files.partition_point(|entry| entry.path.as_str() < prefix.as_str());
        let length = self.files[from..].partition_point(|entry| entry.path.starts_with(&prefix));
        &self.files[from..from + length]
    }

    /// The links at or below a path.
    pub fn links_below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Link> {
        self.links.iter().filter(move |link| is_below(&link.path, path))
    }

    /// The folders at or below a path, with the times of their last changes.
    pub(crate) fn folders_below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, i64)> {
        let folders = self.folders.iter().filter(move |(folder, _)| is_below(folder, path));
        folders.map(|(folder, modified_ns)| (folder.as_str(), *modified_ns))
    }

    /// Takes in the state of a file, or what a link points to; not of what is gone or has become something else.
    fn look_at(&mut self, PendingEntry { at, path, is_link }: PendingEntry) {
        if is_link {
            let target = fs::read_link(at).unwrap_or_default();
            let prefix = path.rfind('/').map_or("", |slash| &path[..=slash]);
            let leaves = leaves(prefix, &target);
            self.links.push(Link { path, target: text_of(target), leaves });
        } else if let Ok(metadata) = fs::symlink_metadata(at)
            && metadata.is_file()
        {
            self.files.push(entry(path, &metadata));
        }
    }

    /// The state of the files at or below a path, or nothing if there is none.
    #[must_use]
    pub fn fingerprint(&self, path: &str) -> Option<Fingerprint> {
        let files = self.below(path);
        let mut digest = Fnv::default();
        let mut bytes = 0_u64;
        for file in files {
            bytes = bytes.saturating_add(file.size);
            digest.write(file.path.as_bytes());
            digest.write(&[0]);
            for number in [file.size, file.modified_ns.cast_unsigned(), file.inode, file.device] {
                digest.write(&number.to_le_bytes());
            }
        }
        (!files.is_empty()).then_some(Fingerprint { files: files.len() as u64, bytes, digest: digest.0 })
    }
}

/// Whether `path` is `folder` or below it.
pub(crate) fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// FNV-1a: fingerprints are compared within a process and never stored.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The files below a folder, or the one file if it is a file (its path is then its name). Files and folders that vanish
/// meanwhile, as a trainer that keeps only the newest ones deletes them, are left out.
///
/// # Errors
/// If the folder cannot be read, or has more than [`MAX_FILES`] files and folders.
pub fn list(root: &Path) -> Result<Listing, ListError> {
    list_at_most(root, MAX_FILES, |_, _| true, |_| true)
}

/// The files of a folder in which checkpoints are looked for, such as the working directory of a script: without the
/// hidden folders and those of other tools, which may hold more files than everything else, and without `left_out`. Of
/// a file that no layout reads, such as an image, only the name is known.
///
/// # Errors
/// As for [`list`], with [`MAX_FILES_SEARCHED`].
pub fn list_to_search(root: &Path, left_out: &[PathBuf]) -> Result<Listing, ListError> {
    let enters = |name: &str, at: &Path| {
        !name.starts_with('.') && !names::is_other_folder(name) && !left_out.iter().any(|folder| folder == at)
    };
    list_at_most(root, MAX_FILES_SEARCHED, enters, |name| !names::is_of_others(name))
}

/// A file or link whose state is not known yet.
struct PendingEntry {
    /// The path on the disk.
    at: PathBuf,
    /// The path below the root of the listing.
    path: String,
    is_link: bool,
}

/// The same with another bound for files, links and folders together, without the folders of which `enters` says no,
/// and without the state of files of which `is_asked` says no, by their names.
///
/// The state of a file takes a call of the kernel: none is asked before it is known that there are not too many.
pub(crate) fn list_at_most(
    root: &Path,
    most: usize,
    enters: impl Fn(&str, &Path) -> bool,
    is_asked: impl Fn(&str) -> bool,
) -> Result<Listing, ListError> {
    let mut listing = Listing::default();
    let failed = |path: &Path, error| ListError::Io(path.to_owned(), error);
    let metadata = fs::metadata(root).map_err(|error| failed(root, error))?;
    if metadata.is_file() {
        let name = root.file_name().map(text_of);
        listing.files.push(entry(name.unwrap_or_default(), &metadata));
        return Ok(listing);
    }
    let mut named: Vec<PendingEntry> = Vec::new();
    let mut folders = vec![(PathBuf::from(root), String::new(), 0_usize)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        // Read before its entries: what is removed meanwhile is noticed by the next listing.
        if let Ok(metadata) = fs::symlink_metadata(&folder) {
            listing.folders.insert(prefix.trim_end_matches('/').to_owned(), modified_ns(&metadata));
        }
        let items = match fs::read_dir(&folder) {
            Ok(items) => items,
            Err(error) if error.kind() == io::ErrorKind::NotFound && depth > 0 => continue,
            Err(error) => return Err(failed(&folder, error)),
        };
        for item in items {
            let item = item.map_err(|error| failed(&folder, error))?;
            // What most file systems have beside the name. Links are not followed.
            let Ok(kind) = item.file_type() else { continue };
            let name = text_of(item.file_name());
            let path = format!("{prefix}{name}");
            if kind.is_dir() && !enters(&name, &item.path()) {
                continue;
            }
            if kind.is_dir() && depth < MAX_FOLDER_DEPTH {
                folders.push((item.path(), format!("{path}/"), depth + 1));
            } else if kind.is_file() && !is_asked(&name) {
                listing.files.push(Entry::named(&path, 0));
            } else if kind.is_file() || kind.is_symlink() {
                named.push(PendingEntry { at: item.path(), path, is_link: kind.is_symlink() });
            } else {
                listing.skipped.push(path);
            }
            let found = listing.files.len() + named.len() + listing.skipped.len();
            if found + listing.folders.len() + folders.len() > most {
                return Err(ListError::TooManyFiles(root.to_owned(), most));
            }
        }
    }
    named.into_iter().for_each(|one| listing.look_at(one));
    let sorted = Listing::new(listing.files, listing.links).with_folders(listing.folders);
    Ok(Listing { skipped: listing.skipped, ..sorted })
}

fn entry(path: String, metadata: &fs::Metadata) -> Entry {
    Entry {
        path,
        size: metadata.len(),
        modified_ns: modified_ns(metadata),
        inode: metadata.ino(),
        device: metadata.dev(),
        links: metadata.nlink(),
    }
}

fn modified_ns(metadata: &fs::Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

/// Whether a link in the folder `prefix` points out of the root of the listing.
fn leaves(prefix: &str, target: &Path) -> bool {
    let mut depth = prefix.matches('/').count();
    for part in target.components() {
        match part {
            Part::Normal(_) => depth += 1,
            Part::CurDir => {}
            Part::ParentDir if depth > 0 => depth -= 1,
            Part::ParentDir | Part::RootDir | Part::Prefix(_) => return true,
        }
    }
    false
}
