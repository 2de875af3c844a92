//! Which state of a path was committed already, without reading it.

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
    let Ok(view) = CheckpointView::open(root) else { return Vec::new() };
    let is_there = |info: &CheckpointInfo| {
        matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded)
            && !root.join(&info.folder).join(ORIGIN_FILE_NAME).exists()
    };
    let with_files =
        |info: CheckpointInfo| view.manifest(info.number).ok().map(|manifest| (info, manifest.files));
    view.list().into_iter().filter(is_there).filter_map(with_files).collect()
}

/// Whether these are the files of a model and nothing else, which can be evaluated and not resumed: what `run.save_model` commits.
#[must_use]
pub fn is_model_alone(files: &[ManifestFile]) -> bool {
    files.iter().all(|file| file.kind == Kind::Weights)
}

/// The newest checkpoint of a root that was adopted and verifies.
#[must_use]
pub fn newest_adopted(view: &CheckpointView) -> Option<LoadedCheckpoint> {
    let is_adopted = |info: &CheckpointInfo| {
        matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded)
            && view.root().join(&info.folder).join(ORIGIN_FILE_NAME).exists()
    };
    view.list().into_iter().rev().filter(is_adopted).find_map(|info| view.load(info.number).ok())
}
