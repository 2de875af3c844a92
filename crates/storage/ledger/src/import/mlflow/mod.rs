//! MLflow: its folder store (`mlruns`) and its SQLite store.

mod database;
mod folder;

use std::path::Path;

use super::{ForeignEnd, ForeignRun, ForeignStore};
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
