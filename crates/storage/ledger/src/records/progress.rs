use serde_json::Value as Json;
use trackway_core::{AttemptId, CheckpointState, MetricStep, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// One checkpoint, mirrored from the log of its root. Its identity never changes; its state does.
    CheckpointRow, "checkpoints", key ["run_id", "object_prefix"], {
        /// The run.
        run_id: RunId,
        /// The attempt that wrote it.
        attempt_id: AttemptId,
        /// The step it holds.
        step: Step,
        /// The writer epoch.
        epoch: u64,
        /// Its folder below the checkpoint root; never used twice.
        object_prefix: String,
        /// SHA-256 of its manifest; null while it is written.
        manifest_sha256: Option<String>,
        /// writing, committed, superseded, suspect, abandoned or retired.
        state: CheckpointState,
        /// The checkpoint root, as a path below the home.
        location: String,
        /// Bytes of all its files.
        size_bytes: Option<u64>,
        /// Whether its bytes were read back and matched: null when not checked.
        verified: Option<bool>,
        /// When it was committed.
        committed_at: Option<Timestamp>,
        /// What its writer logged at its step, and what was given to the save; until the attempt has ended only the latter.
        metrics_json: Option<Json>,
        /// Why it is suspect, unsafe or abandoned.
        why: Option<String>,
        /// Names of the pins that hold it, separated by commas.
        pins: Option<String>,
        /// Where else all of its bytes are.
        uploaded_to: Option<String>,
        /// When all of its bytes were there.
        uploaded_at: Option<Timestamp>,
        /// When its bytes were last read and compared.
        verified_at: Option<Timestamp>,
        /// Why what it holds is most likely lost, though its bytes are whole; null: it is not unsafe. Its state is then `superseded`.
        unsafe_because: Option<String>,
    }
);

record!(
    /// The summary of one metric of one attempt. Sealed with the attempt.
    MetricSummaryRow, "metric_summaries", key ["attempt_id", "name"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// The metric.
        name: String,
        /// Number of points recorded.
        point_count: u64,
        /// Number of points that were NaN or infinite.
        non_finite_count: u64,
        /// The step of the first point.
        first_step: MetricStep,
        /// The step of the last point.
        last_step: MetricStep,
        /// The first value; null when it was NaN.
        first_value: Option<f64>,
        /// The last value; null when it was NaN.
        last_value: Option<f64>,
        /// The smallest finite value.
        min_value: Option<f64>,
        /// The largest finite value.
        max_value: Option<f64>,
        /// The mean of the finite values.
        mean_value: Option<f64>,
        /// The step from which on every point was NaN or infinite; null when the last point was finite.
        non_finite_from_step: Option<MetricStep>,
        /// Number of points from that step on; null when the last point was finite.
        non_finite_end_count: Option<u64>,
    }
);

record!(
    /// One segment of an attempt's flight record. Sealed with the attempt.
    RecordSegmentRow, "record_segments", key ["attempt_id", "path"], {
        /// The attempt.
        attempt_id: AttemptId,
        /// The run.
        run_id: RunId,
        /// The segment's file name in the attempt's `records` folder.
        path: String,
        /// What wrote it: sdk, stdout, files, tensorboard or import; null when its header was torn.
        origin: Option<String>,
        /// Bytes of the file.
        size_bytes: u64,
        /// Number of complete frames in it.
        frame_count: u64,
        /// Number of frames missing by their sequence numbers.
        lost_frame_count: u64,
        /// Number of frames the writer could not write.
        dropped_frame_count: u64,
        /// Bytes outside of complete frames.
        torn_bytes: u64,
        /// Whether the writer closed it properly.
        closed: bool,
        /// The Parquet file that holds its metrics now.
        parquet_path: Option<String>,
        /// Why it could not be read at all, such as a newer format.
        unreadable: Option<String>,
    }
);
