//! Clearing away the logs and records of old runs. Their receipts stay in the ledger, with figures, parameters and events;
//! their artifacts stay in the attempts' folders.

use std::path::{Path, PathBuf};

use serde::Serialize;
use trackway_core::{Clock as _, RunId};
use trackway_launch::AttemptFiles;
use trackway_ledger::{AttemptState, EventRow, RunRow, RunSearch, closed_files};
use trackway_tower::retention::{Fate, RetentionRule, RunFacts, fates};

use crate::App;
use crate::checkpoints::view;
use crate::error::{AppError, ErrorKind};

/// Which runs to look at, and what lets them go.
#[derive(Debug, Clone, Default)]
pub struct GcRequest {
    /// A condition as in `trackway runs --where`; none: every run.
    pub condition: Option<String>,
    /// The rule.
    pub rule: RetentionRule,
    /// Only say what would go.
    pub dry_run: bool,
}

/// What went, or would go. Field names are the JSON contract of `trackway gc`.
#[derive(Debug, Clone, Serialize)]
pub struct Cleared {
    /// Nothing was deleted.
    pub dry_run: bool,
    /// Runs whose logs and records go.
    pub gone: Vec<ClearedRun>,
    /// Runs that stay though the condition names them, and why.
    pub kept: Vec<KeptRun>,
    /// Bytes that are free again.
    pub freed_bytes: u64,
}

/// A run whose logs and records go.
#[derive(Debug, Clone, Serialize)]
pub struct ClearedRun {
    /// The run.
    pub run_id: RunId,
    /// Its name.
    pub name: String,
    /// Bytes of its attempts' logs, records and Parquet files.
    pub size_bytes: u64,
}

/// A run that stays.
#[derive(Debug, Clone, Serialize)]
pub struct KeptRun {
    /// The run.
    pub run_id: RunId,
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

impl App {
    /// Deletes what the rule lets go: the folders of the attempts (logs, flight record) but for their artifacts, and their
    /// Parquet files. Runs that have nothing left are not named.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] without any rule, or with a wrong condition; when a file cannot be deleted, and then what went
    /// before is gone and the rest is whole.
    pub fn gc(&self, request: &GcRequest) -> Result<Cleared, AppError> {
        if request.rule == RetentionRule::default() {
            return Err(AppError::new(ErrorKind::Usage, "no rule says which runs may go")
                .hint("give --older-than, --keep-last, or both"));
        }
        let search = RunSearch { condition: request.condition.clone(), ..RunSearch::default() };
        let mut found: Vec<(RunRow, Vec<PathBuf>)> = Vec::new();
        for run in self.search_runs(&search)?.runs {
            let paths = self.bulk_of(&run)?;
            if !paths.is_empty() {
                found.push((run, paths));
            }
        }
        let facts: Vec<RunFacts> = found
            .iter()
            .map(|(run, _)| Ok(RunFacts { ended_at: self.rests_since(run)?, held_by: self.holder_of(run)? }))
            .collect::<Result<_, AppError>>()?;
        let mut cleared =
            Cleared { dry_run: request.dry_run, gone: Vec::new(), kept: Vec::new(), freed_bytes: 0 };
        for ((run, paths), fate) in found.into_iter().zip(fates(&facts, &request.rule, self.clock.now())) {
            match fate {
                Fate::Stays(why) => cleared.kept.push(KeptRun { run_id: run.run_id, name: run.name, why }),
                Fate::Goes => {
                    let size_bytes = paths.iter().map(|path| size_of(path)).sum();
                    if !request.dry_run {
                        self.clear(&run, &paths, size_bytes)?;
                    }
                    cleared.freed_bytes += size_bytes;
                    cleared.gone.push(ClearedRun { run_id: run.run_id, name: run.name, size_bytes });
                }
            }
        }
        Ok(cleared)
    }

    /// What a run has besides its receipts and artifacts: attempts' folders and Parquet files that are there.
    fn bulk_of(&self, run: &RunRow) -> Result<Vec<PathBuf>, AppError> {
        let mut attempts = self.attempts_of(run.run_id)?;
        attempts.extend(self.ledger_read(|ledger| ledger.launches_of_run(run.run_id))?);
        let mut paths = Vec::new();
        for attempt in &attempts {
            paths.extend(without_artifacts(&self.home.attempt_folder(attempt.attempt_id))?);
            paths.extend(closed_files(self.home.folder(), attempt.attempt_id));
        }
        paths.retain(|path| path.exists());
        Ok(paths)
    }

    /// Since when nothing of the run goes on; none while an attempt is not sealed.
    fn rests_since(&self, run: &RunRow) -> Result<Option<trackway_core::Timestamp>, AppError> {
        let attempts = self.attempts_of(run.run_id)?;
        let sealed = attempts.iter().all(|attempt| attempt.state == AttemptState::Sealed);
        Ok(run.ended_at.filter(|_| sealed && run.state.is_final()))
    }

    /// A pinned checkpoint holds its run.
    fn holder_of(&self, run: &RunRow) -> Result<Option<String>, AppError> {
        let folder = self.home.folder().join("checkpoints").join(run.run_id.to_string());
        for root in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if let Some(pin) = view(&root.path())?.pins().into_iter().next() {
                return Ok(Some(format!("a checkpoint is pinned as `{}`", pin.name)));
            }
        }
        Ok(None)
    }

    /// Told first, deleted then: a crash in between leaves files that the next call names again.
    fn clear(&self, run: &RunRow, paths: &[PathBuf], size_bytes: u64) -> Result<(), AppError> {
        let at = self.clock.now();
        let event = EventRow {
            event_id: format!("{}:records_cleared:{}", run.run_id, at.as_micros()),
            run_id: run.run_id,
            attempt_id: None,
            at,
            kind: "records_cleared".into(),
            step: None,
            message: format!("logs and records of {size_bytes} bytes were deleted with `trackway gc`"),
            fields_json: None,
            source: "operator".into(),
        };
        self.ledger_write(|ledger| ledger.append_event(&event))?;
        for path in paths {
            let gone = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            gone.map_err(|error| AppError::file("delete", path, &error))?;
        }
        Ok(())
    }
}

/// An attempt's folder, or what lies beside the artifacts in it.
fn without_artifacts(folder: &Path) -> Result<Vec<PathBuf>, AppError> {
    let artifacts = AttemptFiles::new(folder).artifacts();
    if !artifacts.exists() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<PathBuf>, _>>()
    });
    let mut paths = entries.map_err(|error| AppError::file("list", folder, &error))?;
    paths.retain(|path| *path != artifacts);
    Ok(paths)
}

/// Bytes of a file, or of all files below a folder; links are not followed.
fn size_of(path: &Path) -> u64 {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size_of(&entry.path())).sum()
}
