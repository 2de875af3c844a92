//! How a run that diverged continues from a checkpoint before it did, as the command to type.

use trackway_api::detections::Detection;
use trackway_core::{DiagnosisKind, TerminationReason};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::roll_back::{Seen, WayBack, way_back};
use trackway_ledger::{AttemptRow, RunRow};
use trackway_tower::diagnosis::kind_of_detector;

/// The command, where the last attempt of a run that has ended diverged and a checkpoint from before is left.
pub fn way_back_action(
    context: &Context,
    run: &RunRow,
    attempt: &AttemptRow,
    attempts: &[AttemptRow],
    detections: &[Detection],
) -> Result<Option<String>, AppError> {
    let is_last = attempts.last().is_some_and(|last| last.attempt_id == attempt.attempt_id);
    let diverged = attempt.termination_reason == Some(TerminationReason::NumericDivergence);
    let Some(seen) = seen(attempt, detections).filter(|_| is_last && diverged && run.state.is_final()) else {
        return Ok(None);
    };
    let resume = format!("trackway resume {}", run.run_id);
    Ok(way_back(context, run, attempt, &seen)?.map(|way| match way {
        WayBack::Done(Some(step)) => {
            format!("to continue from step {step}, to which it was rolled back: {resume}")
        }
        WayBack::Done(None) => format!("to begin again, as it was rolled back to the beginning: {resume}"),
        WayBack::To { step, skip } => {
            let skip = skip.map(|range| format!(" --skip-batches {range}")).unwrap_or_default();
            let first = seen.first_step;
            format!(
                "to continue from the checkpoint of step {step}, before it diverged (by step {first}): \
                 trackway rollback {} --to-step {step}{skip} && {resume}",
                run.run_id
            )
        }
    }))
}

/// Where the numbers went wrong: as a detector saw it, or at the last step at the latest.
fn seen(attempt: &AttemptRow, detections: &[Detection]) -> Option<Seen> {
    let of_numbers = |found: &&Detection| {
        found.attempt_id == attempt.attempt_id
            && kind_of_detector(found.detector) == Some(DiagnosisKind::Numeric)
    };
    if let Some(found) = detections.iter().find(of_numbers) {
        let Detection { first_step, step, first_batch, last_batch, .. } = *found;
        return Some(Seen { first_step, step, first_batch, last_batch });
    }
    let step = attempt.last_step?;
    Some(Seen { first_step: step, step, first_batch: None, last_batch: None })
}
