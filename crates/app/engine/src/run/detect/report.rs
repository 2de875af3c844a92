use trackway_api::detections::Detection;
use trackway_core::RunId;
use trackway_core::detect::DetectionPolicy;
use trackway_ledger::DetectionRow;

use crate::Context;
use crate::error::AppError;
use crate::run::{roll_back, stacks};

fn detection(row: DetectionRow) -> Detection {
    Detection {
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

/// What detectors found in a run, oldest first.
pub fn detections_of(context: &Context, run_id: RunId) -> Result<Vec<Detection>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.detections_of_run(run_id))?;
    let roll_backs = roll_back::rows(context, run_id)?;
    let whole = |row| {
        let mut detection = detection(row);
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
