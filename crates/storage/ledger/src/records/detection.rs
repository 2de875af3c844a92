use trackway_core::detect::{DetectionPolicy, DetectionSeverity, Detector};
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// A problem that a detector found in a running attempt: the start of an episode. Append-only, written within a
    /// second of the values that revealed it.
    DetectionRow, "detections", key ["detection_id"], {
        /// Derived from attempt, detector, rank and step, so that it is stored once.
        detection_id: String,
        /// The run.
        run_id: RunId,
        /// The attempt it was found in.
        attempt_id: AttemptId,
        /// When it was found.
        at: Timestamp,
        /// The detector, such as `non_finite`.
        detector: Detector,
        /// note, warn or critical.
        severity: DetectionSeverity,
        /// The action taken, from the run file: note, checkpoint, stop or roll_back.
        policy: DetectionPolicy,
        /// The rank it was found on.
        rank: u32,
        /// The step at which the symptom began.
        first_step: Step,
        /// The step at which the detector fired.
        step: Step,
        /// The metric that shows it; null for a hang.
        metric: Option<String>,
        /// The observed value, in the unit of `threshold`; null when not finite.
        value: Option<f64>,
        /// The limit it exceeded.
        threshold: f64,
        /// The digest of the batch of `first_step`, where batches are recorded with one.
        batch_digest: Option<u64>,
        /// The last step that was committed by then.
        last_committed_step: Option<Step>,
        /// The evidence, with the deciding numbers.
        evidence: String,
        /// The likely cause.
        cause: String,
        /// The recommended action.
        advice: String,
        /// The batch of `first_step`, counted from 0 over all passes through the data; null when the script does
        /// not report it.
        first_batch: Option<u64>,
        /// The batch of `step`.
        last_batch: Option<u64>,
        /// Completed passes through the data at `first_step`.
        data_epoch: Option<u64>,
        /// Stack traces of every process during a hang: a file, relative to the attempt's folder.
        stacks_path: Option<String>,
    }
);
