//! A path that may be a checkpoint, with its files.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use trackway_formats::path_text::{path_of, text_of};
use trackway_layouts::{
    DEEPSPEED_TRACKER, Entry, Fingerprint, Folder, Layout, LayoutConfidence, Link, ListError, Listing,
    MEGATRON_TRACKER, Recognised, Root, Wholeness, find, list, recognise, wholeness,
};

use super::noting::Noting;
use super::parts;
use super::places::Place;
use crate::writers::sightings::WrittenFile;

/// Of a checkpoint with more files than this the writers of the first ones count.
const WRITTEN_MAX: usize = 1000;
/// Files that name the newest checkpoint, beside it: steps and completeness may depend on them.
const TRACKERS: [&str; 3] = [DEEPSPEED_TRACKER, MEGATRON_TRACKER, "last_checkpoint"];

/// A path that a pattern names, with its files. Nothing of them was read.
#[derive(Debug)]
pub struct Candidate {
    pub path: PathBuf,
    /// Its name, with which the paths of the listing begin, as [`trackway_formats::path_text`] has it.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// The names of the files beside it that hold the rest of its state.
    pub beside: Vec<String>,
    /// Its files and the trackers beside it.
    pub listing: Listing,
}

/// What its content says.
#[derive(Debug)]
pub struct Content {
    /// Reads the files of the listing.
    pub source: Folder,
    pub recognised: Recognised,
    /// Why it is under a temporary name, if it is.
    pub unfinished: Option<String>,
    /// What each file is of a state in several files, that of the model first; none of another checkpoint.
    pub parts: Vec<Recognised>,
}

impl Candidate {
    /// Lists its files. `None`: it is gone, or has no file yet.
    ///
    /// # Errors
    /// When it cannot be listed, or has too many files.
    pub fn at(path: &Path) -> Result<Option<Self>, ListError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().map(text_of)) else {
            return Ok(None);
        };
        let listed = match list(path) {
            Err(ListError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            listed => listed?,
        };
        let is_folder = path.is_dir();
        let below = |path: &str| if is_folder { format!("{name}/{path}") } else { name.clone() };
        let mut files: Vec<Entry> =
            listed.files().iter().map(|file| Entry { path: below(&file.path), ..file.clone() }).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let links =
            listed.links().iter().map(|link| Link { path: below(&link.path), ..link.clone() }).collect();
        for tracker in TRACKERS.iter().filter(|tracker| **tracker != name) {
            let beside = parent.join(tracker);
            if beside.is_file()
                && let Ok(found) = list(&beside)
            {
                files.extend(found.files().iter().cloned());
            }
        }
        let (listing, beside) = (Listing::new(files, links), Vec::new());
        Ok(Some(Self { path: path.to_owned(), name, is_folder, beside, listing }))
    }

    /// The same for a place: with those of the files beside it that there are.
    ///
    /// # Errors
    /// As [`Candidate::at`].
    pub fn of(place: &Place) -> Result<Option<Self>, ListError> {
        if place.beside.is_empty() {
            return Self::at(&place.path);
        }
        let Some(name) = place.path.file_name().map(text_of) else { return Ok(None) };
        let mut files = Vec::new();
        for path in place.paths().filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_file())) {
            match list(&path) {
                Err(ListError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
                listed => files.extend(listed?.files().iter().cloned()),
            }
        }
        let (path, beside) = (place.path.clone(), place.beside.clone());
        let listing = Listing::new(files, Vec::new());
        let found = Self { path, name, is_folder: false, beside, listing };
        Ok((!found.files().is_empty()).then_some(found))
    }

    /// Where it is.
    #[must_use]
    pub fn at_place(&self) -> Place {
        Place::with(&self.path, self.beside.clone())
    }

    /// Reads what it is.
    #[must_use]
    pub fn content(&self) -> Content {
        if !self.beside.is_empty() {
            return self.content_of_parts();
        }
        let source = Folder::new(self.path.parent().unwrap_or(Path::new("/")));
        let found = find(&self.listing, &source);
        let unfinished = found.unfinished.into_iter().find(|one| one.path == self.name).map(|one| one.why);
        let recognised = found.checkpoints.into_iter().find(|one| one.path == self.name);
        let recognised =
            recognised.or_else(|| recognise(&self.listing, &source, &self.name)).unwrap_or_else(|| {
                let root = if self.is_folder { Root::Folder } else { Root::File };
                Recognised::new(&self.name, root, Layout::Unknown, LayoutConfidence::Guess)
            });
        Content { source, recognised, unfinished, parts: Vec::new() }
    }

    fn content_of_parts(&self) -> Content {
        let source = Folder::new(self.path.parent().unwrap_or(Path::new("/")));
        let names = [&self.name].into_iter().chain(&self.beside);
        let names = names.filter(|name| self.listing.file(name).is_some());
        let unknown =
            |name: &String| Recognised::new(name, Root::File, Layout::Unknown, LayoutConfidence::Guess);
        let parts: Vec<Recognised> = names
            .map(|name| recognise(&self.listing, &source, name).unwrap_or_else(|| unknown(name)))
            .collect();
        Content { source, recognised: parts::as_one(&self.name, &parts), unfinished: None, parts }
    }

    /// Its own files, without the trackers beside it.
    #[must_use]
    pub fn files(&self) -> &[Entry] {
        if self.beside.is_empty() { self.listing.below(&self.name) } else { self.listing.files() }
    }

    /// The folders that hold its files; for a checkpoint that is one file or several, these.
    #[must_use]
    pub fn folders_or_files(&self) -> BTreeSet<PathBuf> {
        let parent = |file: &Entry| self.path.join(path_of(self.below(file))).parent().map(Path::to_owned);
        match self.is_folder {
            true => self.files().iter().filter_map(parent).collect(),
            false => self.files().iter().map(|file| self.place(file)).collect(),
        }
    }

    /// When one of its files was last written to, in nanoseconds since 1970.
    #[must_use]
    pub fn modified_ns(&self) -> i64 {
        self.files().iter().map(|file| file.modified_ns).max().unwrap_or(0)
    }

    /// The state of its files, without the trackers beside it.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.listing.fingerprint(if self.beside.is_empty() { &self.name } else { "" })
    }

    /// Its files, as far as their writers count: the first ones of very many.
    #[must_use]
    pub fn written(&self) -> Vec<WrittenFile> {
        let files = self.files().iter().take(WRITTEN_MAX);
        files.filter_map(|file| WrittenFile::at(&self.place(file))).collect()
    }

    /// What its files take on the disk: of one with holes less than its size.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        let on_disk =
            |file: &Entry| fs::metadata(self.place(file)).map_or(file.size, |found| found.blocks() * 512);
        self.files().iter().map(|file| on_disk(file).min(file.size)).sum()
    }

    /// The absolute path of one of its files.
    #[must_use]
    pub fn place(&self, file: &Entry) -> PathBuf {
        match self.below(file) {
            "" => self.path.clone(),
            below if self.is_folder => self.path.join(path_of(below)),
            beside => self.path.with_file_name(path_of(beside)),
        }
    }

    /// The path of one of its files below it, with `/`; empty for a checkpoint that is one file, and of a file beside it the name.
    #[must_use]
    pub fn below<'f>(&self, file: &'f Entry) -> &'f str {
        if !self.is_folder {
            return if file.path == self.name { "" } else { &file.path };
        }
        file.path.strip_prefix(&self.name).unwrap_or("").trim_start_matches('/')
    }
}

/// When a file was made, in nanoseconds since 1970.
pub(crate) fn born_ns(path: &Path) -> Option<i64> {
    let born = path.metadata().ok()?.created().ok()?;
    i64::try_from(born.duration_since(std::time::SystemTime::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

impl WrittenFile {
    /// What shows who wrote a file; none: it is gone.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Some(Self {
            id: (found.dev(), found.ino()),
            born_ns: born_ns(path),
            modified_ns: nanos(found.mtime(), found.mtime_nsec()),
            changed_ns: nanos(found.ctime(), found.ctime_nsec()),
            user: found.uid(),
            bytes: found.len().min(found.blocks().saturating_mul(512)),
            since_ns: 0,
        })
    }
}

impl Content {
    /// Whether the files hold one state; always, of what is one file or folder.
    #[must_use]
    pub fn is_one_state(&self) -> bool {
        parts::are_of_one_state(&self.parts)
    }

    /// Whether the files are whole. What cannot be read is not known to be damaged.
    ///
    /// # Errors
    /// Which file could not be read, and why.
    pub fn wholeness(&self, candidate: &Candidate) -> Result<Wholeness, String> {
        if let Some(what) = &self.unfinished {
            return Ok(Wholeness::Unfinished { what: what.clone() });
        }
        let source = Noting::new(&self.source);
        let whole = |of: &Recognised| wholeness(&candidate.listing, &source, of);
        let found = match self.parts.as_slice() {
            [] => whole(&self.recognised),
            parts => parts::wholeness(parts, candidate.files(), parts.iter().map(whole)),
        };
        source.fault().map_or(Ok(found), Err)
    }
}
