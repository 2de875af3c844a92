use serde::Serialize;
use trackway_core::detect::{DetectionPolicy, DetectionSeverity, Detector};
use trackway_core::{AttemptId, RunId, Step, Timestamp};
use trackway_ledger::DetectionRow;

use crate::Context;
use crate::error::AppError;
use crate::run::{roll_back, stacks};

/// What a detector found in a run. Field names are the JSON contract of `trackway explain` and `trackway watch`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Detection {
    /// The attempt it was seen in.
    pub attempt_id: AttemptId,
    /// When it was found.
    pub at: Timestamp,
    /// Who found it.
    pub detector: Detector,
    /// How bad it is.
    pub severity: DetectionSeverity,
    /// What was done.
    pub policy: DetectionPolicy,
    /// The rank it was seen on.
    pub rank: u32,
    /// The step at which the symptom began.
    pub first_step: Step,
    /// The step at which the detector was sure.
    pub step: Step,
    /// The metric that shows it.
    pub metric: Option<String>,
    /// What was seen; none where it is not finite.
    pub value: Option<f64>,
    /// The limit it passed.
    pub threshold: f64,
    /// The digest of the batch of `first_step`.
    pub batch_digest: Option<u64>,
    /// The last step that was committed by then.
    pub last_committed_step: Option<Step>,
    /// What was seen, in words.
    pub evidence: String,
    /// What is likely behind it.
    pub cause: String,
    /// What to do.
    pub advice: String,
    /// The batch that `first_step` trained on, counted from 0 over all passes through the data.
    pub first_batch: Option<u64>,
    /// The batch that `step` trained on.
    pub last_batch: Option<u64>,
    /// Passes through the data that were finished at `first_step`.
    pub data_epoch: Option<u64>,
    /// What every process did when the run stood still: a file, from the attempt's folder.
    pub stacks_path: Option<String>,
    /// Where the run went back to because of it.
    pub rolled_back: Option<String>,
    /// The stacks, a line for each process; none where the file is gone.
    pub stacks: Vec<String>,
}

impl From<DetectionRow> for Detection {
    fn from(row: DetectionRow) -> Self {
        Self {
            attempt_id: row.attempt_id,
            at: row.at,
            detector: row.detector,
            severity: row.severity,
            policy: row.policy,
            rank: row.rank,
            first_step: row.first_step,
            step: row.step,
            metric: row.metric,
            value: row.value,
            threshold: row.threshold,
            batch_digest: row.batch_digest,
            last_committed_step: row.last_committed_step,
            evidence: row.evidence,
            cause: row.cause,
            advice: row.advice,
            first_batch: row.first_batch,
            last_batch: row.last_batch,
            data_epoch: row.data_epoch,
            stacks_path: row.stacks_path,
            rolled_back: None,
            stacks: Vec::new(),
        }
    }
}

/// What detectors found in a run, oldest first.
pub fn detections_of(context: &Context, run_id: RunId) -> Result<Vec<Detection>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.detections_of_run(run_id))?;
    let roll_backs = roll_back::rows(context, run_id)?;
    let whole = |row| {
        let mut detection = Detection::from(row);
        detection.rolled_back = roll_backs
            .iter()
            .find(|it| it.attempt_id == detection.attempt_id && it.detector == Some(detection.detector))
            .filter(|_| detection.policy == DetectionPolicy::RollBack)
            .map(roll_back::of_row);
        if let Some(path) = &detection.stacks_path {
            detection.stacks = stacks::lines(&context.home.layout.attempt(detection.attempt_id), path);
        }
        detection
    };
    Ok(rows.into_iter().map(whole).collect())
}
