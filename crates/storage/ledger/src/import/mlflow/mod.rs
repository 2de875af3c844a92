//! MLflow: its folder store (`mlruns`) and its SQLite store.

mod database;
mod folder;

use std::collections::BTreeMap;
use std::path::Path;

use super::{ForeignEnd, ForeignRun, ForeignStore, files_below};
use crate::error::LedgerError;

pub(super) fn read(path: &Path) -> Result<ForeignStore, LedgerError> {
    if path.is_file() { database::read(path) } else { folder::read(path) }
}

/// `FINISHED`, or its number in the folder store.
fn end_of(status: &str) -> ForeignEnd {
    match status {
        "FINISHED" | "3" => ForeignEnd::Completed,
        "FAILED" | "4" => ForeignEnd::Failed,
        "KILLED" | "5" => ForeignEnd::Stopped,
        // RUNNING also stays when a script is killed.
        _ => ForeignEnd::Unknown,
    }
}

/// How many there are of what a store has and the ledger has no place for, by what it is.
#[derive(Debug, Default)]
struct OmittedCounts(BTreeMap<&'static str, u64>);

impl OmittedCounts {
    fn add(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            let known = self.0.entry(what).or_default();
            *known = known.saturating_add(count);
        }
    }

    /// Counts a tag of MLflow's own that means something to a person.
    fn see_tag(&mut self, name: &str, value: &str) {
        match name {
            "mlflow.note.content" => self.add("description", u64::from(!value.is_empty())),
            "mlflow.parentRunId" => self.add("parent run", 1),
            _ => {}
        }
    }

    /// Counts the files of artifacts in a folder, where it is here.
    fn see_artifacts(&mut self, folder: &Path) {
        let found = if folder.is_dir() { files_below(folder, &|_| true).ok() } else { None };
        self.add("artifact", found.map_or(0, |found| found.files.len() as u64));
    }
}

/// MLflow's tags hold the user, source and description; the others are the user's.
fn take_tag(run: &mut ForeignRun, name: String, value: String) {
    match name.as_str() {
        "mlflow.user" => run.owner = Some(value),
        "mlflow.source.name" => run.command = Some(value),
        "mlflow.source.git.commit" => run.git_commit = Some(value),
        "mlflow.runName" if run.name.is_empty() => run.name = value,
        _ if name.starts_with("mlflow.") => {}
        _ => run.tags.push((name, value)),
    }
}
