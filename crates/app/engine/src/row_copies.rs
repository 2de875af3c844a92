//! What a home keeps of its receipts beside the ledger: files in each run's folder, which `trackway gc` leaves alone and from
//! which `trackway_flows::home::rebuild` makes a ledger again.
//!
//! They are written after the ledger took the same rows. A kill in between loses nothing: what is not kept of a run is computed
//! again from the attempt's folder, and of a model with the next command that changes it.

use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, RunId, Timestamp};
use trackway_files::{TempFile, make_folders};
use trackway_formats::layout::RowCopy;
use trackway_ledger::{
    AttemptRow, AttemptSeal, DeliveryEnd, DeliveryState, DetectionRow, EvaluationEnd, EvaluationRow,
    KeptRows, Ledger, LedgerError, NoticeRow, OutboxRow, RetryRow,
};

use crate::error::AppError;
use crate::home::Home;
use crate::{Context, attempt_files};

impl Context {
    /// Keeps rows of a run, as far as the disk allows: the ledger has them already.
    pub fn keep(&self, run_id: RunId, copy: RowCopy<'_>, rows: &KeptRows) {
        write(&self.home, &self.home.layout.run(run_id).row_copy(copy), self.ledger.kept(rows));
    }

    /// Keeps a sealed receipt, with the decision that followed, what detectors found, and the hashes of the attempt's files.
    pub(crate) fn keep_sealed(
        &self,
        seal: &AttemptSeal,
        sealed_at: Timestamp,
        retry: &RetryRow,
        detections: &[DetectionRow],
    ) {
        let AttemptRow { run_id, attempt_id, .. } = seal.attempt;
        let path = self.home.layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
        let rows = self.ledger.kept_receipt(seal, sealed_at, retry, detections);
        let files = attempt_files::hashes(&self.home.layout, attempt_id);
        write(&self.home, &path, rows.map(|rows| rows.with_files(files)));
    }

    /// Keeps a sealed receipt that is not kept, from the rows of the ledger, and marked so: the process that sealed it was killed before it kept
    /// it, or its copy was deleted. What the attempt's files were at the seal nothing shows any more. Whether it is kept now, and was not.
    ///
    /// # Errors
    /// When the ledger cannot be read, or its rows have another digest than was sealed.
    pub fn keep_sealed_later(&self, run_id: RunId, attempt_id: AttemptId) -> Result<bool, AppError> {
        let path = self.home.layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
        if path.exists() {
            return Ok(false);
        }
        let rows = self.ledger_read(|ledger| ledger.kept_later(attempt_id))?;
        rows.into_iter().for_each(|rows| write(&self.home, &path, Ok(rows)));
        Ok(path.exists())
    }

    /// Takes the hashes of files that are deleted on purpose out of the kept receipt of their attempt, as far as the disk allows.
    pub fn forget_files(&self, run_id: RunId, attempt_id: AttemptId) {
        let layout = &self.home.layout;
        let path = layout.run(run_id).row_copy(RowCopy::Receipt(attempt_id));
        let Ok(rows) = read(&path) else { return };
        let mut files = rows.files().clone();
        files.retain(|path, _| attempt_files::kept_by_gc(layout, path));
        if files != *rows.files() {
            write(&self.home, &path, Ok(rows.with_files(files)));
        }
    }

    /// Ends an evaluation in the ledger and keeps it with the run of its checkpoint. Returns the row as it was stored.
    pub fn end_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, AppError> {
        let stored = self.ledger_write(|ledger| ledger.end_evaluation(end))?;
        self.keep_evaluation(end);
        Ok(stored)
    }

    /// The same for one that ended elsewhere.
    pub fn take_ended_evaluation(&self, end: &EvaluationEnd) -> Result<EvaluationRow, AppError> {
        let stored = self.ledger_write(|ledger| ledger.insert_ended_evaluation(end))?;
        self.keep_evaluation(end);
        Ok(stored)
    }

    fn keep_evaluation(&self, end: &EvaluationEnd) {
        let EvaluationRow { run_id, evaluation_id, .. } = &end.evaluation;
        let path = self.home.layout.run(*run_id).row_copy(RowCopy::Evaluation(evaluation_id));
        write(&self.home, &path, self.ledger.kept_evaluation(end));
    }

    /// Keeps rows of the registry under a name without separators of paths.
    pub fn keep_in_registry(&self, name: &str, rows: &KeptRows) {
        write(&self.home, &self.home.layout.registry_file(name), self.ledger.kept(rows));
    }

    /// Whether rows of the registry are kept under this name.
    pub fn is_kept_in_registry(&self, name: &str) -> bool {
        self.home.layout.registry_file(name).exists()
    }
}

/// Where the copy of a notice is; none: it is about something else than a run.
pub fn notice_copy(home: &Home, notice: &NoticeRow) -> Option<PathBuf> {
    Some(home.layout.run(notice.run_id()?).row_copy(RowCopy::Notice(&notice.notice_id)))
}

/// Keeps a notice that waits, before the ledger gets it: so its copy is never older than one that says how its delivery ended. A copy that is
/// there stays.
pub(crate) fn keep_new_notice(home: &Home, ledger: &Ledger, notice: &NoticeRow) {
    let is_new = notice_copy(home, notice).is_some_and(|path| !path.exists());
    if is_new {
        keep_notice(home, ledger, notice, &OutboxRow::of(notice, DeliveryState::Waiting));
    }
}

/// Keeps how a delivery ended; one that is tried again is kept as waiting already.
pub(crate) fn keep_end(home: &Home, ledger: &Ledger, notice: &NoticeRow, end: &DeliveryEnd) {
    let Some(state) = end.final_state() else { return };
    let stored = ledger.delivery_of(&notice.notice_id).ok().flatten();
    let delivery = stored.filter(|row| row.state == state);
    keep_notice(home, ledger, notice, &delivery.unwrap_or_else(|| OutboxRow::of(notice, state)));
}

fn keep_notice(home: &Home, ledger: &Ledger, notice: &NoticeRow, delivery: &OutboxRow) {
    if let Some(path) = notice_copy(home, notice) {
        write(home, &path, ledger.kept(&KeptRows::of_notice(notice, delivery)));
    }
}

/// As the ledger holds them, or not at all. What a kill left of writing others beside them goes.
fn write(home: &Home, path: &Path, rows: Result<KeptRows, LedgerError>) {
    let text = rows.ok().and_then(|rows| serde_json::to_vec(&rows).ok());
    if let (Some(text), Some(folder)) = (text, path.parent()) {
        let written = make_folders(folder).and_then(|()| TempFile::write(path, &text));
        let _ = written.and_then(|()| home.clear_abandoned(folder));
    }
}

/// The rows of a file.
pub fn read(path: &Path) -> std::io::Result<KeptRows> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

/// The files of kept rows in a folder, by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    found.sort();
    found
}
