//! Which state of a path was committed already, without reading it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use trackway_checkpoint::{
    CheckpointInfo, CheckpointState, CheckpointView, LoadedCheckpoint, Manifest, Retention,
};
use trackway_core::Step;
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};
use trackway_formats::path_text::without_escapes;
use trackway_layouts::{Part, PartName};

use super::families::Families;
use crate::find::candidate::Candidate;
use crate::find::patterns::Patterns;

/// So many of the newest copies are kept where nothing is configured, once an attempt is sealed: the script keeps its own checkpoints.
const KEPT_BY_DEFAULT: usize = 2;
/// At most so many of the newest commits are compared.
const COMMITS_MAX: usize = 64;
/// With the bytes of so many of them a copy under another name is compared.
const COPIES_MAX: usize = 4;
/// So many bytes are compared at a time.
const COMPARED_BYTES: usize = 1 << 20;

/// A commit, and the files that were copied for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub step: Step,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: String,
    origin: CheckpointOrigin,
    /// Where its files are.
    folder: PathBuf,
}

/// The newest commits of a root that still have their files.
#[derive(Debug, Clone, Default)]
pub struct Commits(Vec<Committed>);

impl Commits {
    /// Those of a root. One that cannot be read has none.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        let Ok(view) = CheckpointView::open(root) else { return Self::default() };
        let newest = view.list().into_iter().rev().take(COMMITS_MAX);
        Self(newest.filter_map(|info| Committed::read(root, info)).collect())
    }

    /// Those of several roots.
    #[must_use]
    pub fn of_all<'r>(roots: impl IntoIterator<Item = &'r Path>) -> Self {
        Self(roots.into_iter().flat_map(|root| Self::of(root).0).collect())
    }

    /// Their steps.
    pub(crate) fn steps(&self) -> BTreeSet<Step> {
        self.0.iter().map(|commit| commit.step).collect()
    }

    /// Where they were.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|commit| commit.origin.path.clone())
    }

    /// Which parts their states in several files have.
    pub(crate) fn families(&self) -> Families {
        let mut families = Families::default();
        for Committed { origin, .. } in self.0.iter().filter(|commit| !commit.origin.is_folder) {
            families.put(&origin.path, &origin.beside());
        }
        families
    }

    /// The commit for which these files were copied: the same paths, last written to at the same time.
    #[must_use]
    pub fn of_candidate(&self, candidate: &Candidate, patterns: &Patterns) -> Option<&Committed> {
        self.0.iter().find(|commit| commit.is_of(candidate, patterns))
    }

    /// One of the newest commits of which this is a copy under another name, such as `latest.pt` of `ckpt-30.pt`: the
    /// files have the same bytes. Names with different numbers are those of two checkpoints. `may_continue`: asked
    /// before each part is compared.
    pub fn with_same_bytes(
        &self,
        candidate: &Candidate,
        patterns: &Patterns,
        may_continue: &dyn Fn() -> bool,
    ) -> Option<&Committed> {
        let shown = patterns.shown(&candidate.path);
        let may_be = |commit: &&Committed| may_be_copies(&commit.origin.path, &shown);
        let is_same =
            |commit: &&Committed| commit.has_bytes_of(candidate, may_continue).is_ok_and(|is_same| is_same);
        self.0.iter().take(COPIES_MAX).filter(may_be).find(is_same)
    }
}

impl Committed {
    fn read(root: &Path, info: CheckpointInfo) -> Option<Self> {
        let folder = root.join(&info.folder);
        let bytes = fs::read(folder.join(ORIGIN_FILE_NAME)).ok()?;
        let origin = CheckpointOrigin::from_bytes(&bytes).ok()?;
        Some(Self { step: info.step, manifest_sha256: info.manifest_sha256?, origin, folder })
    }

    /// How it is laid out, such as `transformers_trainer`.
    #[must_use]
    pub fn layout(&self) -> &str {
        &self.origin.layout
    }

    /// Whether its files have the bytes of these, each that of the same path or part.
    fn has_bytes_of(&self, candidate: &Candidate, may_continue: &dyn Fn() -> bool) -> io::Result<bool> {
        let (origin, files) = (&self.origin, candidate.files());
        if origin.is_folder != candidate.is_folder || origin.files.len() != files.len() {
            return Ok(false);
        }
        let mut pairs = Vec::new();
        for file in files {
            let role = role_of(candidate.below(file), origin.is_folder);
            let known = origin.files.iter().find(|known| role_of(&known.path, origin.is_folder) == role);
            let Some(known) = known else { return Ok(false) };
            let copy = self.folder.join(&known.name);
            if fs::metadata(&copy)?.len() != file.size {
                return Ok(false);
            }
            pairs.push((copy, candidate.place(file)));
        }
        for (copy, there) in pairs {
            if !have_same_bytes(File::open(copy)?, File::open(there)?, may_continue)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_of(&self, candidate: &Candidate, patterns: &Patterns) -> bool {
        let (origin, files) = (&self.origin, candidate.files());
        let has = |file: &trackway_layouts::Entry| {
            let below = candidate.below(file);
            origin.files.iter().any(|known| known.path == below && known.modified_ns == file.modified_ns)
        };
        patterns.shown(&candidate.path) == origin.path
            && files.len() == origin.files.len()
            && files.iter().all(has)
    }
}

/// What distinguishes a file from the others of its checkpoint.
#[derive(PartialEq, Eq)]
enum Role<'p> {
    Path(&'p str),
    Part(Option<Part>),
}

fn role_of(below: &str, is_folder: bool) -> Role<'_> {
    match is_folder || below.is_empty() {
        true => Role::Path(below),
        false => Role::Part(PartName::of(below).map(|name| name.part)),
    }
}

/// Whether two paths may be those of one checkpoint: one of them has no number in its name, or both have the same ones.
fn may_be_copies(one: &str, other: &str) -> bool {
    let numbers = |path: &str| {
        let name = without_escapes(path.rsplit('/').next().unwrap_or(path));
        let words = name.split(|char: char| !char.is_ascii_digit()).map(str::to_owned);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>()
    };
    let (first, second) = (numbers(one), numbers(other));
    one != other && (first.is_empty() || second.is_empty() || first == second)
}

/// Two checkpoints differ early, so that little is read of most.
fn have_same_bytes(mut one: File, mut other: File, may_continue: &dyn Fn() -> bool) -> io::Result<bool> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    while may_continue() {
        first.clear();
        second.clear();
        let length = (&mut one).take(COMPARED_BYTES as u64).read_to_end(&mut first)?;
        (&mut other).take(COMPARED_BYTES as u64).read_to_end(&mut second)?;
        if first != second {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// The commits of a root that can be read and were not adopted. A root that cannot be read has none.
pub(crate) fn not_adopted(root: &Path) -> Vec<Manifest> {
    CheckpointView::open(root).map(|view| not_adopted_of(&view)).unwrap_or_default()
}

fn not_adopted_of(view: &CheckpointView) -> Vec<Manifest> {
    let own = readable(view).filter(|info| !is_adopted(view, info));
    own.filter_map(|info| view.manifest(info.number).ok()).collect()
}

/// The commits that still have their files, in the order of the log.
fn readable(view: &CheckpointView) -> impl DoubleEndedIterator<Item = CheckpointInfo> {
    let has_files = |info: &CheckpointInfo| {
        matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded)
    };
    view.list().into_iter().filter(has_files)
}

fn is_adopted(view: &CheckpointView, info: &CheckpointInfo) -> bool {
    view.root().join(&info.folder).join(ORIGIN_FILE_NAME).exists()
}

/// The models that were committed beside checkpoints which the script wrote itself, by their folders: it cannot
/// continue from them. A log without such checkpoints has none.
#[must_use]
pub fn models_beside(view: &CheckpointView) -> BTreeSet<String> {
    if !readable(view).any(|info| is_adopted(view, &info)) {
        return BTreeSet::new();
    }
    let models = not_adopted_of(view).into_iter().filter(Manifest::is_model_alone);
    models.map(|manifest| manifest.object_prefix).collect()
}

/// What the script continues from where the log leads to `found`: if that is a model beside its own checkpoints, the newest of these.
#[must_use]
pub fn resumed_from(view: &CheckpointView, found: LoadedCheckpoint) -> LoadedCheckpoint {
    let is_beside = models_beside(view).contains(&found.info.object_prefix);
    is_beside.then(|| newest_adopted(view)).flatten().unwrap_or(found)
}

/// What is kept of the copies where nothing is configured; none: everything, as what the script committed itself is not deleted for
/// copies of what it has anyway. A log without copies has no such default.
#[must_use]
pub fn kept_by_default(view: &CheckpointView) -> Option<Retention> {
    let is_copy = |info: &CheckpointInfo| info.state.is_whole() && is_adopted(view, info);
    let has_copies = view.list().iter().any(is_copy);
    has_copies.then(|| default_beside(&not_adopted_of(view))).flatten()
}

/// The same for a log that has these checkpoints which were not adopted.
pub(crate) fn default_beside(not_adopted: &[Manifest]) -> Option<Retention> {
    not_adopted.is_empty().then(|| Retention { last: KEPT_BY_DEFAULT, ..Retention::default() })
}

/// The newest checkpoint of a root that was adopted and verifies.
fn newest_adopted(view: &CheckpointView) -> Option<LoadedCheckpoint> {
    readable(view).rev().filter(|info| is_adopted(view, info)).find_map(|info| view.load(info.number).ok())
}
