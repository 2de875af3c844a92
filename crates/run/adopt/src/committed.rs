//! Which state of a path was committed already, without reading it.

use std::fs;
use std::path::Path;

use trackway_checkpoint::{CheckpointInfo, CheckpointView};
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
