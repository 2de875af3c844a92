//! The files of a sealed attempt by their hashes: with its kept receipt they show later whether they are what was sealed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trackway_core::AttemptId;
use trackway_formats::layout::HomeLayout;
use trackway_formats::record::SEGMENT_EXTENSION;

use crate::capture::named_files::blake3_of_whole;

/// BLAKE3 of each file that does not change after an attempt is sealed, by its path below the home. One that cannot be read is left out.
pub(crate) fn hashes(home: &HomeLayout, attempt_id: AttemptId) -> BTreeMap<String, String> {
    let hashed = |path: PathBuf| Some((home.below(&path), blake3_of_whole(&path).ok()?));
    files(home, attempt_id).into_iter().filter_map(hashed).collect()
}

/// Of those files, the ones that `trackway gc` leaves alone.
pub(crate) fn kept_by_gc(home: &HomeLayout, path: &str) -> bool {
    home.folder().join(path).starts_with(home.sources())
}

/// Whether none is left of the files that `trackway gc` deletes.
pub fn are_gone(home: &HomeLayout, attempt_id: AttemptId) -> bool {
    let mut files = files(home, attempt_id).into_iter();
    files.all(|path| path.starts_with(home.sources()) || !path.exists())
}

fn files(home: &HomeLayout, attempt_id: AttemptId) -> Vec<PathBuf> {
    let attempt = home.attempt(attempt_id);
    let mut found = vec![
        attempt.launch_json(),
        attempt.capture_json(),
        attempt.shim_json(),
        attempt.exit_json(),
        attempt.stdout_log(),
        attempt.stderr_log(),
        attempt.stdout_times(),
        attempt.stderr_times(),
        home.metrics_parquet(attempt_id),
        home.telemetry_parquet(attempt_id),
        home.attempt_source(attempt_id),
    ];
    found.extend(segments(&attempt.records()));
    found
}

fn segments(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == SEGMENT_EXTENSION))
}
