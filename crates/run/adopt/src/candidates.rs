//! The paths that the patterns name now, each with its files.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use glob::MatchOptions;
use trackway_layouts::{
    Component, DEEPSPEED_TRACKER, Entry, Fingerprint, Folder, Layout, LayoutConfidence, Link, ListError,
    Listing, MEGATRON_TRACKER, Recognised, Root, Wholeness, find, list, list_to_search, recognise, wholeness,
};

use crate::reads::{Reads, Remembering};

/// Most paths that the patterns of a run may name at a time.
pub const CANDIDATES_MAX: usize = 1000;
/// Files that name the newest checkpoint, beside it: steps and completeness may depend on them.
const TRACKERS: [&str; 3] = [DEEPSPEED_TRACKER, MEGATRON_TRACKER, "last_checkpoint"];

/// `*` does not match a `/`, and a name that begins with a full stop only by one.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

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
    /// As glob reads them: absolute. None: what can be recognised below the working directory.
    absolute: Option<Vec<String>>,
    /// Where nothing is looked for by what it is.
    excluded: Option<PathBuf>,
    reads: Arc<Reads>,
}

impl Patterns {
    /// Patterns such as `out/checkpoint-*` and `ckpt.pt`.
    ///
    /// # Errors
    /// The first one that is not a pattern, or is not UTF-8 once it is absolute.
    pub fn new(working_directory: &Path, patterns: &[String]) -> Result<Self, PatternError> {
        let absolute = |pattern: &String| {
            let error = |why: String| PatternError { pattern: pattern.clone(), why };
            glob::Pattern::new(pattern).map_err(|fault| error(fault.msg.to_owned()))?;
            let folder = working_directory
                .to_str()
                .ok_or_else(|| error("the working directory is not UTF-8".into()))?;
            match Path::new(pattern).is_absolute() {
                true => Ok(pattern.clone()),
                false => Ok(format!("{}/{pattern}", glob::Pattern::escape(folder))),
            }
        };
        let absolute = Some(patterns.iter().map(absolute).collect::<Result<_, _>>()?);
        Ok(Self {
            working_directory: working_directory.to_owned(),
            absolute,
            excluded: None,
            reads: Arc::default(),
        })
    }

    /// No patterns: every path below the working directory from which a training can clearly continue, but not what Trackway itself
    /// keeps in its home.
    #[must_use]
    pub fn detecting(working_directory: &Path, home: &Path) -> Self {
        let excluded = (!working_directory.starts_with(home)).then(|| home.to_owned());
        Self {
            working_directory: working_directory.to_owned(),
            absolute: None,
            excluded,
            reads: Arc::default(),
        }
    }

    /// Whether nothing was named, and checkpoints are found by what they are.
    #[must_use]
    pub fn is_detecting(&self) -> bool {
        self.absolute.is_none()
    }

    /// The folders in which the next checkpoint may appear: of each pattern the part before its first wildcard.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let Some(absolute) = &self.absolute else { return vec![self.working_directory.clone()] };
        let folder = |pattern: &String| {
            let plain = pattern.split(['*', '?', '[']).next().unwrap_or_default();
            Path::new(plain.rsplit_once('/').map_or("/", |(folder, _)| folder)).to_owned()
        };
        let found = absolute.iter().map(folder);
        found.map(|folder| folder.canonicalize().unwrap_or(folder)).collect()
    }

    /// What they name now, in the order of the paths; at most `CANDIDATES_MAX` paths are looked at.
    #[must_use]
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        let Some(absolute) = &self.absolute else {
            let is_own = |path: &PathBuf| self.excluded.as_ref().is_some_and(|home| path.starts_with(home));
            return self.detected().into_iter().filter(|path| !is_own(path)).collect();
        };
        let found = absolute.iter().filter_map(|pattern| glob::glob_with(pattern, OPTIONS).ok()).flatten();
        // A folder that cannot be read, or is gone by now, has no checkpoints.
        found.filter_map(Result::ok).take(CANDIDATES_MAX).collect()
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

    /// The path of one of its files below it, with `/`; empty for a checkpoint that is one file.
    #[must_use]
    pub fn below<'f>(&self, file: &'f Entry) -> &'f str {
        file.path.strip_prefix(&self.name).unwrap_or("").trim_start_matches('/')
    }
}

impl Content {
    /// Whether the files are whole.
    #[must_use]
    pub fn wholeness(&self, candidate: &Candidate) -> Wholeness {
        match &self.unfinished {
            Some(what) => Wholeness::Unfinished { what: what.clone() },
            None => wholeness(&candidate.listing, &self.source, &self.recognised),
        }
    }
}
