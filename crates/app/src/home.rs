//! Where Trackway keeps its state (DESIGN §3.13).

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use trackway_core::{AttemptId, LaunchKind, RunId, Timestamp};

use crate::error::{AppError, ErrorKind};

/// The folder that holds a ledger, attempts, records and checkpoints.
#[derive(Debug, Clone)]
pub struct Home {
    folder: PathBuf,
    ledger_url: Option<String>,
}

impl Home {
    /// A home at `folder`, with the ledger at `ledger_url` instead of `folder/ledger.db` when given.
    #[must_use]
    pub fn new(folder: PathBuf, ledger_url: Option<String>) -> Self {
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        Self { folder, ledger_url }
    }

    /// The folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path of a SQLite file, or a `postgres://` URL.
    #[must_use]
    pub fn ledger_location(&self) -> String {
        self.ledger_url
            .clone()
            .unwrap_or_else(|| self.folder.join("ledger.db").to_string_lossy().into_owned())
    }

    /// Whether the ledger was named by itself: it can then be read without the home's folder.
    #[must_use]
    pub fn has_ledger_elsewhere(&self) -> bool {
        self.ledger_url.is_some()
    }

    /// Refuses a URL of a kind of ledger that does not exist, before it is taken for a path.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`].
    pub fn check_ledger_scheme(&self) -> Result<(), AppError> {
        let location = self.ledger_location();
        match location.split_once("://") {
            None | Some(("postgres" | "postgresql" | "sqlite", _)) => Ok(()),
            Some((scheme, _)) => {
                let message = format!("`{scheme}://` is no kind of ledger");
                Err(AppError::new(ErrorKind::Usage, message)
                    .hint("use a path of a SQLite file or a `postgres://` URL"))
            }
        }
    }

    /// Everything one attempt leaves behind.
    #[must_use]
    pub fn attempt_folder(&self, attempt_id: AttemptId) -> PathBuf {
        self.folder.join("attempts").join(attempt_id.to_string())
    }

    /// The plan and the supervisor's lock of a run.
    #[must_use]
    pub fn run_folder(&self, run_id: RunId) -> PathBuf {
        self.folder.join("runs").join(run_id.to_string())
    }

    /// One root per run × kind × stage, so that a rehearsal never becomes a resume target (DESIGN §3.1).
    #[must_use]
    pub fn checkpoint_root(&self, run_id: RunId, kind: LaunchKind, stage: &str) -> PathBuf {
        self.folder.join("checkpoints").join(run_id.to_string()).join(root_name(kind, stage))
    }

    /// Hashes of data files that did not change since they were last read.
    #[must_use]
    pub fn data_cache(&self) -> PathBuf {
        self.data_folder().join("manifest-cache.json")
    }

    /// A path below the home as it is written down, so that a home may be moved.
    #[must_use]
    pub fn below(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Raw outputs of evaluations, under their hashes.
    #[must_use]
    pub fn evaluation_outputs(&self) -> PathBuf {
        self.folder.join("evaluations").join("outputs")
    }

    /// What one evaluator leaves, a folder for each of its launches.
    #[must_use]
    pub fn evaluation_folder(&self, evaluation_id: &str) -> PathBuf {
        self.folder.join("evaluations").join(evaluation_id)
    }

    /// What its launch of this number leaves, counted from 1.
    #[must_use]
    pub fn evaluator_outputs(&self, evaluation_id: &str, launch_number: u32) -> PathBuf {
        self.evaluation_folder(evaluation_id).join(format!("launch-{launch_number}"))
    }

    /// The checkpoint that an evaluation judges, where it had to be brought from a remote.
    #[must_use]
    pub fn brought_checkpoint(&self, evaluation_id: &str) -> PathBuf {
        self.evaluation_folder(evaluation_id).join("checkpoint")
    }

    /// Snapshots of data, and what is known of files that were read.
    #[must_use]
    pub fn data_folder(&self) -> PathBuf {
        self.folder.join("data")
    }
}

/// When a file, or the list of a folder's entries, last changed; none where it cannot be told.
pub(crate) fn changed_at(path: &Path) -> Option<Timestamp> {
    let since_1970 = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)))
}

/// The name of a checkpoint root within its run.
pub(crate) fn root_name(kind: LaunchKind, stage: &str) -> String {
    format!("{}-{stage}", kind.as_str())
}

/// Names of the files in a run's folder.
pub mod run_file {
    /// Its presence asks the supervisor not to launch the next attempt.
    pub const STOP: &str = "stop";
}

/// Names of the files in an attempt's folder.
pub mod attempt_file {
    /// What Trackway itself did to the attempt, one JSON object a line.
    pub const ACTIONS: &str = "actions.jsonl";
    /// What the attempt started from: code, packages, machine, and the part of the environment that may be stored.
    pub const CAPTURE: &str = "capture.json";
    /// The control file the training process reads.
    pub const CONTROL: &str = "control.jsonl";
    /// That the attempt was ended to go back to an earlier checkpoint, and why.
    pub const ROLL_BACK: &str = "roll-back.json";
    /// What processes did when the attempt stood still.
    pub const STACKS: &str = "stacks";
    /// The flight record's segments.
    pub const RECORDS: &str = "records";
}
