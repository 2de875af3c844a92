use trackway_api::detections::Detection;
use trackway_core::RunId;
use trackway_core::detect::DetectionPolicy;
use trackway_ledger::DetectionRow;

use crate::Context;
use crate::error::AppError;
use crate::from_row;
use crate::run::{roll_back, stacks};

fn detection(row: DetectionRow) -> Detection {
    from_row!(
        Detection,
        row,
        [
            attempt_id, at, detector, severity, policy, rank, first_step, step, metric, value, threshold,
            batch_digest, last_committed_step, evidence, cause, advice, first_batch, last_batch, data_epoch,
            stacks_path,
        ],
        rolled_back: None,
        stacks: Vec::new(),
    )
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
