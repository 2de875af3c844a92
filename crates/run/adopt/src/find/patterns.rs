//! The paths that the patterns name now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trackway_formats::path_text::{self, path_of, text_of, without_escapes};
use trackway_layouts::{Component, Layout, Part, PartName, Recognised, find, list_to_search};

use super::matching::{PathPattern, entries_max, real_path};
use super::places::{Place, places_of};
use super::reads::{Reads, Remembering};

/// Most paths that the patterns of a run may name at a time.
pub const CANDIDATES_MAX: usize = 1000;
/// A pattern that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
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

    /// The folder in which the script runs, and every one beyond it where checkpoints may appear: a process that works
    /// there may write there.
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

    /// The same, with the files that hold one state together.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        places_of(self.paths(), entries_max())
    }

    /// The pattern that may name a path which the other one names, too; none if either finds checkpoints by what they are.
    #[must_use]
    pub fn names_with(&self, other: &Self) -> Option<&str> {
        let others = other.named.as_ref()?;
        let shared = self.named.as_ref()?.iter().find(|own| others.iter().any(|one| own.meets(one)))?;
        Some(&shared.text)
    }

    /// Whether both look for checkpoints below the same folder, by whatever paths.
    #[must_use]
    pub fn shares_folder_with(&self, other: &Self) -> bool {
        let folders = |patterns: &Self| -> Vec<PathBuf> {
            match &patterns.named {
                None => vec![real_path(&patterns.working_directory)],
                Some(named) => named.iter().map(|pattern| real_path(&pattern.folder())).collect(),
            }
        };
        let others = folders(other);
        folders(self).iter().any(|own| others.iter().any(|one| own.starts_with(one) || one.starts_with(own)))
    }

    /// The checkpoints below the working directory from which a training can continue. A folder that cannot be listed, or has too many
    /// files, has none.
    fn detected(&self) -> BTreeSet<PathBuf> {
        let folder = &self.working_directory;
        let Ok(listing) = list_to_search(folder, &self.home) else { return BTreeSet::new() };
        let found = find(&listing, &Remembering::new(folder, &listing, &self.reads)).checkpoints;
        let states = found.iter().filter(|found| !found.path.is_empty() && holds_a_training(found));
        let states: Vec<&Recognised> = states.take(CANDIDATES_MAX).collect();
        // Of a state in several files that was cut off a part may be all that there is, and torn.
        let families: BTreeSet<(&str, String)> =
            states.iter().filter_map(|found| family_of(&found.path, true)).collect();
        let files = listing.files().iter().map(|file| file.path.as_str()).filter(|_| !families.is_empty());
        let parts = files.filter(|path| family_of(path, false).is_some_and(|it| families.contains(&it)));
        let all = states.iter().map(|found| found.path.as_str()).chain(parts.take(CANDIDATES_MAX));
        all.map(|path| path_text::join(folder, path)).collect()
    }

    /// A path as a receipt shows it: relative to the working directory, else absolute, as [`path_text`] has it.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        text_of(path.strip_prefix(&self.working_directory).unwrap_or(path))
    }

    /// The path that was shown so.
    #[must_use]
    pub fn absolute(&self, shown: &str) -> PathBuf {
        self.working_directory.join(path_of(shown))
    }
}

/// The folder of a file and the names of the states that it belongs to, without numbers; none if its name says no part.
/// `beside`: nor if it is that of the model.
fn family_of(path: &str, beside: bool) -> Option<(&str, String)> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = PartName::of(name).filter(|name| !beside || name.part != Part::Model)?;
    Some((folder, name.family()))
}

/// Whether it is the state of a training, and not only a model: by the framework that writes only such, else by what
/// was seen in it, and of a booster, from which a training always continues, by a name that shows it was saved on the
/// way.
pub(crate) fn holds_a_training(found: &Recognised) -> bool {
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

/// Whether the last number in the name of a booster is that of its rounds: `model_40.txt`,
/// `model.txt.snapshot_iter_40`. XGBoost counts from 0 in names.
fn names_its_rounds(found: &Recognised) -> bool {
    let name = without_escapes(found.path.rsplit('/').next().unwrap_or_default());
    let mut numbers = name.split(|char: char| !char.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let Some(named) = numbers.next_back().and_then(|digits| digits.parse().ok()) else { return false };
    let counts_from_zero = found.layout == Layout::Xgboost;
    found
        .step
        .is_some_and(|rounds| rounds == named || counts_from_zero && rounds.checked_sub(1) == Some(named))
}
