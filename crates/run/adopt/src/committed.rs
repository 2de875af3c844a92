//! Which state of a path was committed already, without reading it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use trackway_checkpoint::{
    CheckpointInfo, CheckpointState, CheckpointView, Kind, LoadedCheckpoint, ManifestFile,
};
use trackway_core::Step;
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};

use crate::candidates::{Candidate, Patterns};

/// At most so many of the newest commits are compared.
const COMMITS_MAX: usize = 64;

/// A commit, and the files that were copied for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its step.
    pub step: Step,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: String,
    origin: CheckpointOrigin,
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

    /// The commit for which these files were copied: the same paths, last written to at the same time.
    #[must_use]
    pub fn of_candidate(&self, candidate: &Candidate, patterns: &Patterns) -> Option<&Committed> {
        self.0.iter().find(|commit| commit.is_of(candidate, patterns))
    }
}

impl Committed {
    fn read(root: &Path, info: CheckpointInfo) -> Option<Self> {
        let bytes = fs::read(root.join(&info.folder).join(ORIGIN_FILE_NAME)).ok()?;
        let origin = CheckpointOrigin::from_bytes(&bytes).ok()?;
        Some(Self { step: info.step, manifest_sha256: info.manifest_sha256?, origin })
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

/// The commits of a root that can be read and were not adopted, with their files. A root that cannot be read has none.
pub(crate) fn not_adopted(root: &Path) -> Vec<(CheckpointInfo, Vec<ManifestFile>)> {
    CheckpointView::open(root).map(|view| not_adopted_of(&view)).unwrap_or_default()
}

fn not_adopted_of(view: &CheckpointView) -> Vec<(CheckpointInfo, Vec<ManifestFile>)> {
    let with_files =
        |info: CheckpointInfo| view.manifest(info.number).ok().map(|manifest| (info, manifest.files));
    readable(view).filter(|info| !is_adopted(view, info)).filter_map(with_files).collect()
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

/// Whether these are the files of a model and nothing else, which can be evaluated and not resumed: what `run.save_model` commits.
pub(crate) fn is_model_alone(files: &[ManifestFile]) -> bool {
    files.iter().all(|file| file.kind == Kind::Weights)
}

/// The models that were committed beside checkpoints which the script wrote itself, by their folders: it cannot continue from them. A log without
/// such checkpoints has none.
#[must_use]
pub fn models_beside(view: &CheckpointView) -> BTreeSet<String> {
    if !readable(view).any(|info| is_adopted(view, &info)) {
        return BTreeSet::new();
    }
    let models = not_adopted_of(view).into_iter().filter(|(_, files)| is_model_alone(files));
    models.map(|(info, _)| info.object_prefix).collect()
}

/// The newest checkpoint of a root that was adopted and verifies.
#[must_use]
pub fn newest_adopted(view: &CheckpointView) -> Option<LoadedCheckpoint> {
    readable(view).rev().filter(|info| is_adopted(view, info)).find_map(|info| view.load(info.number).ok())
}
