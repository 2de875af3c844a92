//! What a home keeps of its receipts beside the ledger: files in each run's folder, which `trackway gc` leaves alone and from
//! which `trackway_flows::rebuild` makes a ledger again.
//!
//! They are written after the ledger took the same rows. A kill in between loses nothing: what is not kept of a run is computed
//! again from the attempt's folder, and of a model with the next command that changes it.

use std::path::{Path, PathBuf};

use trackway_core::{AttemptId, RunId, Timestamp};
use trackway_files::{TempFile, make_folders};
use trackway_ledger::{
    AttemptRow, AttemptSeal, DetectionRow, EvaluationEnd, EvaluationRow, KeptRows, LedgerError, RetryRow,
};

use crate::Context;
use crate::error::AppError;
use crate::home::Home;

/// The folder of kept rows in a run's folder.
const FOLDER: &str = "ledger";
/// The folder of kept rows that belong to no run, in the home.
const REGISTRY_FOLDER: &str = "registry";

/// Which rows a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The run as it was planned, with its data.
    Run,
    /// The state of the run.
    State,
    /// What pre-flight found.
    Checks,
    /// An attempt that was launched.
    Attempt(AttemptId),
    /// An attempt that is sealed.
    Receipt(AttemptId),
    /// A roll back from an attempt.
    RollBack(AttemptId),
}

impl Kept {
    fn file_name(self) -> String {
        match self {
            Self::Run => "run.json".into(),
            Self::State => "state.json".into(),
            Self::Checks => "checks.json".into(),
            Self::Attempt(id) => format!("attempt-{id}.json"),
            Self::Receipt(id) => format!("receipt-{id}.json"),
            Self::RollBack(id) => format!("roll-back-{id}.json"),
        }
    }
}

impl Home {
    /// Kept rows of a run.
    pub fn kept_folder(&self, run_id: RunId) -> PathBuf {
        self.run_folder(run_id).join(FOLDER)
    }

    /// Kept rows of models, gates and approvals.
    pub fn kept_registry(&self) -> PathBuf {
        self.folder().join(REGISTRY_FOLDER)
    }
}

impl Context {
    /// Keeps rows of a run, as far as the disk allows: the ledger has them already.
    pub fn keep(&self, run_id: RunId, kept: Kept, rows: &KeptRows) {
        write(&self.home, &self.home.kept_folder(run_id).join(kept.file_name()), self.ledger.kept(rows));
    }

    /// Keeps a sealed receipt, with the decision that followed and what detectors found.
    pub(crate) fn keep_sealed(
        &self,
        seal: &AttemptSeal,
        sealed_at: Timestamp,
        retry: &RetryRow,
        detections: &[DetectionRow],
    ) {
        let AttemptRow { run_id, attempt_id, .. } = seal.attempt;
        let path = self.home.kept_folder(run_id).join(Kept::Receipt(attempt_id).file_name());
        write(&self.home, &path, self.ledger.kept_receipt(seal, sealed_at, retry, detections));
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
        let path = self.home.kept_folder(*run_id).join(format!("evaluation-{evaluation_id}.json"));
        write(&self.home, &path, self.ledger.kept_evaluation(end));
    }

    /// Keeps rows of the registry under a name without separators of paths.
    pub fn keep_in_registry(&self, name: &str, rows: &KeptRows) {
        write(&self.home, &self.registry_file(name), self.ledger.kept(rows));
    }

    /// Whether rows of the registry are kept under this name.
    pub fn is_kept_in_registry(&self, name: &str) -> bool {
        self.registry_file(name).exists()
    }

    fn registry_file(&self, name: &str) -> PathBuf {
        let plain: String = name
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' })
            .collect();
        // Two names may look the same without their separators.
        let digest = trackway_formats::sha256_hex(name.as_bytes());
        let short = digest.get(..12).unwrap_or_default();
        self.home.kept_registry().join(format!("{plain}-{short}.json"))
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
