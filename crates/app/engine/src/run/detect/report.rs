use trackway_api::runs::detections::Detection;
use trackway_core::detect::DetectionPolicy;
use trackway_core::{RunId, with_fields_of};
use trackway_ledger::DetectionRow;

use crate::Context;
use crate::error::AppError;
use crate::run::record::stacks;
use crate::run::retry::roll_back;

/// What detectors found in a run, oldest first.
pub fn detections_of(context: &Context, run_id: RunId) -> Result<Vec<Detection>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.detections_of_run(run_id))?;
    let roll_backs = roll_back::rows(context, run_id)?;
    let detection = |row: DetectionRow| {
        let files = context.home.layout.attempt(row.attempt_id);
        let rolled_back = roll_backs
            .iter()
            .find(|it| it.attempt_id == row.attempt_id && it.detector == Some(row.detector))
            .filter(|_| row.policy == DetectionPolicy::RollBack);
        with_fields_of!(
            Detection,
            row,
            [
                attempt_id, at, detector, severity, policy, rank, first_step, step, metric, value, threshold,
                batch_digest, last_committed_step, evidence, cause, advice, first_batch, last_batch,
                data_epoch, stacks_path,
            ],
            rolled_back: rolled_back.map(roll_back::of_row),
            stacks: row.stacks_path.iter().flat_map(|path| stacks::lines(&files, path)).collect(),
        )
    };
    Ok(rows.into_iter().map(detection).collect())
}
