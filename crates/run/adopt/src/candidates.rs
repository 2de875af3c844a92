//! The paths that the patterns name now, each with its files.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use trackway_layouts::{
    Component, DEEPSPEED_TRACKER, Entry, Fingerprint, Folder, Layout, LayoutConfidence, Link, ListError,
    Listing, MEGATRON_TRACKER, Recognised, Root, Wholeness, find, list, list_to_search, recognise, wholeness,
};

use crate::matching::{PathPattern, entries_max};
use crate::noting::Noting;
use crate::reads::{Reads, Remembering};
use crate::sightings::WrittenFile;

/// Most paths that the patterns of a run may name at a time.
pub const CANDIDATES_MAX: usize = 1000;
/// Of a checkpoint with more files than this the writers of the first ones count.
const WRITTEN_MAX: usize = 1000;
/// Files that name the newest checkpoint, beside it: steps and completeness may depend on them.
const TRACKERS: [&str; 3] = [DEEPSPEED_TRACKER, MEGATRON_TRACKER, "last_checkpoint"];

/// A pattern that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

/// Where checkpoints are looked for: at paths below the working directory of the script, or absolute ones; or anywhere below that folder.
#[derive(Debug, Clone)]
pub struct Patterns {
    working_directory: PathBuf,
    /// None: what can be recognised below the working directory.
    named: Option<Vec<PathPattern>>,
    /// Trackway's home, by every path that it is known by: never looked into.
    home: Vec<PathBuf>,
    reads: Arc<Reads>,
}

impl Patterns {
    /// Patterns such as `out/checkpoint-*` and `ckpt.pt`. Neither Trackway's home nor a folder that holds it is found.
    ///
    /// # Errors
    /// The first one that is not a pattern.
    pub fn new(working_directory: &Path, patterns: &[String], home: &Path) -> Result<Self, PatternError> {
        let read = |pattern: &String| {
            let error = |why: String| PatternError { pattern: pattern.clone(), why };
            PathPattern::new(working_directory, pattern).map_err(error)
        };
        let named = patterns.iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { named: Some(named), ..Self::detecting(working_directory, home) })
    }

    /// No patterns: every path below the working directory from which a training can clearly continue, but not what Trackway itself
    /// keeps in its home.
    #[must_use]
    pub fn detecting(working_directory: &Path, home: &Path) -> Self {
        // A script that works in the home has nothing else to be looked for in.
        let is_outside = !working_directory.starts_with(home);
        let home = [Some(home.to_owned()), home.canonicalize().ok()];
        Self {
            working_directory: working_directory.to_owned(),
            named: None,
            home: home.into_iter().flatten().filter(|_| is_outside).collect(),
            reads: Arc::default(),
        }
    }

    /// Whether nothing was named, and checkpoints are found by what they are.
    #[must_use]
    pub fn is_detecting(&self) -> bool {
        self.named.is_none()
    }

    /// The folders in which the next checkpoint may appear: of each pattern the part before its first wildcard.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let Some(named) = &self.named else { return vec![self.working_directory.clone()] };
        let found = named.iter().map(PathPattern::folder);
        found.map(|folder| folder.canonicalize().unwrap_or(folder)).collect()
    }

    /// The folder in which the script runs, and every one beyond it where checkpoints may appear: a process that works there may write there.
    #[must_use]
    pub fn region(&self) -> Vec<PathBuf> {
        let own = self.working_directory.canonicalize().unwrap_or_else(|_| self.working_directory.clone());
        let beyond = self.folders().into_iter().filter(|folder| !folder.starts_with(&own));
        let beyond: Vec<PathBuf> = beyond.filter(|folder| folder.parent().is_some()).collect();
        [own].into_iter().chain(beyond).collect()
    }

    /// What they name now, in the order of the paths; at most `CANDIDATES_MAX` paths are looked at.
    #[must_use]
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        let is_in_reach = |path: &PathBuf| {
            let has_up = path.components().any(|part| part == std::path::Component::ParentDir);
            let path = if has_up { path.canonicalize().unwrap_or_default() } else { path.clone() };
            !self.home.iter().any(|home| path.starts_with(home) || home.starts_with(&path))
        };
        let Some(named) = &self.named else {
            return self.detected().into_iter().filter(is_in_reach).collect();
        };
        let mut left = entries_max();
        let found = named.iter().flat_map(|pattern| pattern.paths(&mut left));
        found.filter(is_in_reach).take(CANDIDATES_MAX).collect()
    }

    /// The pattern that may name a path which the other one names, too; none if either finds checkpoints by what they are.
    #[must_use]
    pub fn names_with(&self, other: &Self) -> Option<&str> {
        let others = other.named.as_ref()?;
        let shared = self.named.as_ref()?.iter().find(|own| others.iter().any(|one| own.meets(one)))?;
        Some(&shared.text)
    }

    /// Whether both look for checkpoints below the same folder.
    #[must_use]
    pub fn shares_folder_with(&self, other: &Self) -> bool {
        let folders = |patterns: &Self| match &patterns.named {
            None => vec![patterns.working_directory.clone()],
            Some(named) => named.iter().map(PathPattern::folder).collect(),
        };
        let others = folders(other);
        folders(self).iter().any(|own| others.iter().any(|one| own.starts_with(one) || one.starts_with(own)))
    }

    /// The checkpoints below the working directory from which a training can continue. A folder that cannot be listed, or has too many
    /// files, has none.
    fn detected(&self) -> BTreeSet<PathBuf> {
        let folder = &self.working_directory;
        let Ok(listing) = list_to_search(folder) else { return BTreeSet::new() };
        let found = find(&listing, &Remembering::new(folder, &listing, &self.reads)).checkpoints;
        let states = found.iter().filter(|found| !found.path.is_empty() && holds_a_training(found));
        states.take(CANDIDATES_MAX).map(|found| folder.join(&found.path)).collect()
    }

    /// A path as a receipt shows it: relative to the working directory, else absolute.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.working_directory).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The path that was shown so.
    #[must_use]
    pub fn absolute(&self, shown: &str) -> PathBuf {
        self.working_directory.join(shown)
    }
}

/// Whether it is the state of a training, and not only a model: by the framework that writes only such, else by what was seen in it, and of a
/// booster, from which a training always continues, by a name that shows it was saved on the way.
fn holds_a_training(found: &Recognised) -> bool {
    let of_trainer = matches!(
        found.layout,
        Layout::TransformersTrainer
            | Layout::Lightning
            | Layout::Accelerate
            | Layout::TorchDcp
            | Layout::Deepspeed
            | Layout::Megatron
            | Layout::Orbax
    );
    let of_own_state = match found.layout {
        Layout::Keras | Layout::Catboost => found.components.contains(&Component::TrainerState),
        Layout::Xgboost | Layout::Lightgbm => names_its_rounds(found),
        _ => false,
    };
    of_trainer || of_own_state || found.components.contains(&Component::Optimizer)
}

/// Whether the last number in the name of a booster is that of its rounds: `model_40.txt`, `model.txt.snapshot_iter_40`. XGBoost counts from 0 in names.
fn names_its_rounds(found: &Recognised) -> bool {
    let name = found.path.rsplit('/').next().unwrap_or_default();
    let mut numbers = name.split(|char: char| !char.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let Some(named) = numbers.next_back().and_then(|digits| digits.parse().ok()) else { return false };
    let counts_from_zero = found.layout == Layout::Xgboost;
    found
        .step
        .is_some_and(|rounds| rounds == named || counts_from_zero && rounds.checked_sub(1) == Some(named))
}

/// A path that a pattern names, with its files. Nothing of them was read.
#[derive(Debug)]
pub struct Candidate {
    /// The path.
    pub path: PathBuf,
    /// Its name, with which the paths of the listing begin.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Its files and the trackers beside it.
    pub listing: Listing,
}

/// What its content says.
#[derive(Debug)]
pub struct Content {
    /// Reads the files of the listing.
    pub source: Folder,
    /// What it is.
    pub recognised: Recognised,
    /// Why it is under a temporary name, if it is.
    pub unfinished: Option<String>,
}

impl Candidate {
    /// Lists its files. `None`: it is gone, has no file yet, or has a name that is not UTF-8.
    ///
    /// # Errors
    /// When it cannot be listed, or has too many files.
    pub fn at(path: &Path) -> Result<Option<Self>, ListError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Ok(None);
        };
        let listed = match list(path) {
            Err(ListError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            listed => listed?,
        };
        let is_folder = path.is_dir();
        let below = |path: &str| if is_folder { format!("{name}/{path}") } else { name.to_owned() };
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
        let listing = Listing::new(files, links);
        Ok(Some(Self { path: path.to_owned(), name: name.to_owned(), is_folder, listing }))
    }

    /// Reads what it is.
    #[must_use]
    pub fn content(&self) -> Content {
        let source = Folder::new(self.path.parent().unwrap_or(Path::new("/")));
        let found = find(&self.listing, &source);
        let unfinished = found.unfinished.into_iter().find(|one| one.path == self.name).map(|one| one.why);
        let recognised = found.checkpoints.into_iter().find(|one| one.path == self.name);
        let recognised =
            recognised.or_else(|| recognise(&self.listing, &source, &self.name)).unwrap_or_else(|| {
                let root = if self.is_folder { Root::Folder } else { Root::File };
                Recognised::new(&self.name, root, Layout::Unknown, LayoutConfidence::Guess)
            });
        Content { source, recognised, unfinished }
    }

    /// Its own files, without the trackers beside it.
    #[must_use]
    pub fn files(&self) -> &[Entry] {
        self.listing.below(&self.name)
    }

    /// The folders that hold its files; for a checkpoint that is one file, the file.
    #[must_use]
    pub fn places(&self) -> BTreeSet<PathBuf> {
        let parent = |file: &Entry| self.path.join(self.below(file)).parent().map(Path::to_owned);
        match self.is_folder {
            true => self.files().iter().filter_map(parent).collect(),
            false => [self.path.clone()].into(),
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
        self.listing.fingerprint(&self.name)
    }

    /// Its files, as far as their writers count: the first ones of very many.
    #[must_use]
    pub fn written(&self) -> Vec<WrittenFile> {
        let files = self.files().iter().take(WRITTEN_MAX);
        files.filter_map(|file| written(&self.place(file))).collect()
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
        let below = self.below(file);
        if below.is_empty() { self.path.clone() } else { self.path.join(below) }
    }

    /// The path of one of its files below it, with `/`; empty for a checkpoint that is one file.
    #[must_use]
    pub fn below<'f>(&self, file: &'f Entry) -> &'f str {
        file.path.strip_prefix(&self.name).unwrap_or("").trim_start_matches('/')
    }
}

/// When a file was made, in nanoseconds since 1970.
pub(crate) fn born_ns(path: &Path) -> Option<i64> {
    let born = path.metadata().ok()?.created().ok()?;
    i64::try_from(born.duration_since(std::time::SystemTime::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// What shows who wrote a file.
fn written(path: &Path) -> Option<WrittenFile> {
    let found = fs::metadata(path).ok()?;
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Some(WrittenFile {
        id: (found.dev(), found.ino()),
        born_ns: born_ns(path),
        modified_ns: nanos(found.mtime(), found.mtime_nsec()),
        changed_ns: nanos(found.ctime(), found.ctime_nsec()),
        user: found.uid(),
    })
}

impl Content {
    /// Whether the files are whole. What cannot be read is not known to be damaged.
    ///
    /// # Errors
    /// Which file could not be read, and why.
    pub fn wholeness(&self, candidate: &Candidate) -> Result<Wholeness, String> {
        if let Some(what) = &self.unfinished {
            return Ok(Wholeness::Unfinished { what: what.clone() });
        }
        let source = Noting::new(&self.source);
        let found = wholeness(&candidate.listing, &source, &self.recognised);
        source.fault().map_or(Ok(found), Err)
    }
}
