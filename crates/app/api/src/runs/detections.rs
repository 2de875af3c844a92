//! What detectors found in a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::detect::{DetectionPolicy, DetectionSeverity, Detector};
use trackway_core::{AttemptId, Step, Timestamp};

/// What a detector found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Detection {
    /// The attempt it was seen in.
    pub attempt_id: AttemptId,
    /// When it was found.
    pub at: Timestamp,
    /// The detector (`docs/detectors.md`).
    pub detector: Detector,
    pub severity: DetectionSeverity,
    /// What was done.
    pub policy: DetectionPolicy,
    /// The rank it was seen on.
    pub rank: u32,
    /// The step at which the symptom began.
    pub first_step: Step,
    /// The step at which the detector fired.
    pub step: Step,
    /// The metric that shows it.
    pub metric: Option<String>,
    /// The value that was seen; null if it is not finite.
    pub value: Option<f64>,
    /// The limit it exceeded.
    pub threshold: f64,
    /// The digest of the batch of `first_step`.
    pub batch_digest: Option<u64>,
    /// The last step that was committed by then.
    pub last_committed_step: Option<Step>,
    /// A sentence about what was seen.
    pub evidence: String,
    /// The likely cause.
    pub cause: String,
    /// What to do.
    pub advice: String,
    /// The batch that `first_step` trained on, counted from 0 over all passes through the data.
    pub first_batch: Option<u64>,
    /// The batch that `step` trained on.
    pub last_batch: Option<u64>,
    /// Passes through the data that were finished at `first_step`.
    pub data_epoch: Option<u64>,
    /// The file with the stacks of all processes when training stopped making progress, from the attempt's folder.
    pub stacks_path: Option<String>,
    /// A sentence about the rollback that followed.
    pub rolled_back: Option<String>,
    /// The stacks, one line for each process; empty if the file no longer exists.
    pub stacks: Vec<String>,
}
