use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Timestamp};

use crate::value::record;

record!(
    /// The content of a data set, identified by its hash. Append-only.
    DataSnapshotRow, "data_snapshots", key ["data_sha256"], {
        /// SHA-256 over the manifest of its files.
        data_sha256: String,
        /// The name it was first seen under.
        name: String,
        /// The path as the run file gave it then.
        path: String,
        /// train, test, validation …; null when the name does not contain it.
        split: Option<String>,
        /// Number of files.
        file_count: u64,
        /// Total size of the files.
        size_bytes: u64,
        /// Number of rows of the tabular files.
        rows: Option<u64>,
        /// When it was first seen.
        first_seen_at: Timestamp,
        /// Columns and types over all files.
        schema_json: Option<Json>,
        /// Notes, such as a check that could not run.
        notes_json: Option<Json>,
        /// The project it was first seen in; null: not known. May be filled in once.
        project: Option<String>,
    }
);

record!(
    /// One file of a data snapshot. Append-only.
    DataSnapshotFileRow, "data_snapshot_files", key ["data_sha256", "path"], {
        /// The snapshot.
        data_sha256: String,
        /// The file's path.
        path: String,
        /// Its size.
        size_bytes: u64,
        /// BLAKE3 of its bytes, 64 hexadecimal digits.
        blake3: String,
        /// The format it was read as.
        format: String,
        /// Number of rows, without the header.
        rows: Option<u64>,
        /// Its columns and types.
        schema_json: Option<Json>,
    }
);

record!(
    /// Which data sets a run reads, as they were when it was planned. An attempt may be resumed on other data: what each was launched on is
    /// in `attempt_data`. Append-only.
    RunDataRow, "run_data", key ["run_id", "name"], {
        /// The run.
        run_id: RunId,
        /// The data set's name in the run file.
        name: String,
        /// Its path in the run file.
        path: String,
        /// Its content when the run was planned.
        data_sha256: String,
        /// What it was used for: train, validation or test.
        role: Option<String>,
    }
);

record!(
    /// Which data sets an attempt was launched on, as they were then. Append-only. Attempts of schema version 23 have
    /// none: their run's sets are in `run_data`, and `training_attempts.data_sha256` shows whether they were still the
    /// same.
    AttemptDataRow, "attempt_data", key ["attempt_id", "name"], {
        /// The attempt, or another launch.
        attempt_id: AttemptId,
        /// Its run.
        run_id: RunId,
        /// The data set's name in the run file.
        name: String,
        /// Its path in the run file.
        path: String,
        /// Its content: rows, files and bytes are in `data_snapshots`.
        data_sha256: String,
        /// What it was used for: train, validation or test.
        role: Option<String>,
    }
);

record!(
    /// How many runs each validation set decided about: the more, the weaker its evidence. A view over `run_data`.
    ValidationSetRow, "validation_sets", key ["data_sha256"], {
        /// Its content.
        data_sha256: String,
        /// Its path in a run file; of several, the alphabetically first one.
        path: String,
        /// Number of training runs with it.
        run_count: u64,
        /// Number of distinct configurations among them.
        config_count: u64,
        /// When the first of them was created.
        first_used_at: Timestamp,
        /// When the last of them was created.
        last_used_at: Timestamp,
    }
);
