//! Which state of a path was committed already, without reading it.

use std::fs;
use std::path::Path;

use trackway_checkpoint::CheckpointView;
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};

use crate::candidates::{Candidate, Patterns};

/// At most so many of the newest commits are compared.
const COMMITS_MAX: usize = 64;

/// The origins of the commits of a root, newest first. A root that cannot be read has none.
pub(crate) fn origins(root: &Path) -> Vec<CheckpointOrigin> {
    let Ok(view) = CheckpointView::open(root) else { return Vec::new() };
    let read = |folder: String| {
        CheckpointOrigin::from_bytes(&fs::read(root.join(folder).join(ORIGIN_FILE_NAME)).ok()?).ok()
    };
    view.list().into_iter().rev().take(COMMITS_MAX).filter_map(|info| read(info.folder)).collect()
}

/// Whether the files of a candidate are those that were copied: the same paths, last written to at the same time.
pub(crate) fn is_of(candidate: &Candidate, patterns: &Patterns, origin: &CheckpointOrigin) -> bool {
    let files = candidate.files();
    let has = |file: &trackway_layouts::Entry| {
        let below = candidate.below(file);
        origin.files.iter().any(|known| known.path == below && known.modified_ns == file.modified_ns)
    };
    patterns.shown(&candidate.path) == origin.path
        && files.len() == origin.files.len()
        && files.iter().all(has)
}
