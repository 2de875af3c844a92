use trackway_core::detect::{DetectionPolicy, DetectionSeverity, Detector};
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::record;

record!(
    /// Trouble that a detector found while an attempt went on: the beginning of an episode. Append-only, written within a
    /// second of the values that showed it.
    DetectionRow, "detections", key ["detection_id"], {
        /// Made of the attempt, the detector, the rank and the step, so that it is stored once.
        detection_id: String,
        /// The run.
        run_id: RunId,
        /// The attempt it was seen in.
        attempt_id: AttemptId,
        /// When it was found.
        at: Timestamp,
        /// Who found it, such as `non_finite`.
        detector: Detector,
        /// note, warn or critical.
        severity: DetectionSeverity,
        /// What was done, as the run file says: note, checkpoint or stop.
        policy: DetectionPolicy,
        /// The rank it was seen on.
        rank: u32,
        /// The step at which the symptom began.
        first_step: Step,
        /// The step at which the detector was sure.
        step: Step,
        /// The metric that shows it; none for a hang.
        metric: Option<String>,
        /// What was seen, in the unit of `threshold`; null where it is not finite.
        value: Option<f64>,
        /// The limit it passed.
        threshold: f64,
        /// The digest of the batch of `first_step`, where batches are recorded with one.
        batch_digest: Option<u64>,
        /// The last step that was committed by then.
        last_committed_step: Option<Step>,
        /// What was seen, with the numbers that decided.
        evidence: String,
        /// What is likely behind it.
        cause: String,
        /// What to do.
        advice: String,
        /// The batch that `first_step` trained on, counted from 0 over all passes through the data; null where the script does
        /// not tell.
        first_batch: Option<u64>,
        /// The batch that `step` trained on.
        last_batch: Option<u64>,
        /// Passes through the data that were finished at `first_step`.
        data_epoch: Option<u64>,
        /// What every process did when the run stood still: a file, from the attempt's folder.
        stacks_path: Option<String>,
    }
);
