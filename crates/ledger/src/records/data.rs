use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Timestamp};

use crate::value::{record, words};

record!(
    /// The content of a data set, named by its hash. Append-only.
    DataSnapshotRow, "data_snapshots", key ["data_sha256"], {
        /// SHA-256 over the manifest of its files.
        data_sha256: String,
        /// The name it was first seen under.
        name: String,
        /// The path as the run file gave it then.
        path: String,
        /// train, test, validation …; null when the name tells nothing.
        split: Option<String>,
        /// Files in it.
        file_count: u64,
        /// Bytes of them.
        size_bytes: u64,
        /// Rows of the tabular files.
        rows: Option<u64>,
        /// When it was first seen.
        first_seen_at: Timestamp,
        /// Columns and types over all files.
        schema_json: Option<Json>,
        /// What a reader should know, such as a check that could not be made.
        notes_json: Option<Json>,
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
        /// What it was read as.
        format: String,
        /// Rows without a header.
        rows: Option<u64>,
        /// Its columns and types.
        schema_json: Option<Json>,
    }
);

record!(
    /// Which data sets a run reads. Append-only.
    RunDataRow, "run_data", key ["run_id", "name"], {
        /// The run.
        run_id: RunId,
        /// The data set's name in the run file.
        name: String,
        /// Its path in the run file.
        path: String,
        /// Its content.
        data_sha256: String,
    }
);

words!(
    /// Where an evaluation stands.
    EvaluationState, "evaluation state", {
        /// The evaluator runs.
        Running = "running",
        /// It gave a complete answer.
        Completed = "completed",
        /// It did not; the training attempt stays good.
        Failed = "failed",
    }
);

record!(
    /// An evaluation of one checkpoint. Can no longer change once it completed or failed.
    EvaluationRow, "evaluations", key ["evaluation_id"], {
        /// Chosen by the writer.
        evaluation_id: String,
        /// The run whose checkpoint it judges.
        run_id: RunId,
        /// The attempt that wrote the checkpoint.
        attempt_id: Option<AttemptId>,
        /// SHA-256 of the checkpoint's manifest.
        checkpoint_manifest_sha256: String,
        /// running, completed or failed.
        state: EvaluationState,
        /// The evaluator.
        evaluator_name: String,
        /// The digest of its image or code.
        evaluator_digest: Option<String>,
        /// The version of the prompts or tasks.
        task_set_version: Option<String>,
        /// SHA-256 of the prompts or tasks.
        task_set_sha256: Option<String>,
        /// The judge model.
        judge_model: Option<String>,
        /// The version of the judge's rubric.
        judge_rubric: Option<String>,
        /// Where the raw outputs are.
        raw_outputs_location: Option<String>,
        /// When it began.
        started_at: Timestamp,
        /// When it ended.
        ended_at: Option<Timestamp>,
        /// Decoding parameters.
        decoding_json: Option<Json>,
        /// Failures to look at.
        sampled_failures_json: Option<Json>,
        /// Aggregate metrics with their intervals.
        metrics_json: Option<Json>,
        /// Metrics by slice.
        slices_json: Option<Json>,
        /// Verdicts of the gates.
        gates_json: Option<Json>,
    }
);
