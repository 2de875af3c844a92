//! What is known of saves beside their files: which ones the script reported as finished, and which names were renamed into place.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trackway_core::Step;

use super::patterns::CANDIDATES_MAX;
use crate::writers::steps::TICK_NS;

/// A save that the script reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Report {
    at_ns: i64,
    step: Option<Step>,
}

/// Reports and renames by path, the newest of each. Times are in nanoseconds since 1970.
#[derive(Debug, Clone, Default)]
pub struct Saves {
    reported: BTreeMap<PathBuf, Report>,
    renamed: BTreeMap<PathBuf, i64>,
}

impl Saves {
    /// The script reported at this time that what is at the path is complete.
    pub fn report(&mut self, path: PathBuf, at_ns: i64, step: Option<Step>) {
        put(&mut self.reported, path, Report { at_ns, step });
    }

    /// The path got its name by a rename that was seen at this time.
    pub fn rename(&mut self, path: PathBuf, at_ns: i64) {
        put(&mut self.renamed, path, at_ns);
    }

    /// The step that was reported, if there is a report, and nothing was written since.
    pub(crate) fn reported(&self, path: &Path, modified_ns: i64) -> Option<Option<Step>> {
        let report = self.reported.get(path)?;
        (modified_ns <= report.at_ns.saturating_add(TICK_NS)).then_some(report.step)
    }

    /// Whether it was renamed into place, and nothing was written since.
    pub(crate) fn is_renamed(&self, path: &Path, modified_ns: i64) -> bool {
        self.renamed.get(path).is_some_and(|at_ns| modified_ns <= at_ns.saturating_add(TICK_NS))
    }
}

/// Of more paths than are ever looked at, the first ones are forgotten.
fn put<T>(found: &mut BTreeMap<PathBuf, T>, path: PathBuf, value: T) {
    if found.len() >= CANDIDATES_MAX && !found.contains_key(&path) {
        found.pop_first();
    }
    found.insert(path, value);
}
