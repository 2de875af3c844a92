//! Ends evaluations whose conductor is gone: as it would have, where the evaluator ended well. Silence is never taken for an end.

use std::fs::OpenOptions;
use std::io::Write as _;

use trackway_core::{LaunchKind, RunId, TerminationReason};
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::run::supervision::is_supervised;
use trackway_engine::{Context, run};
use trackway_ledger::{AttemptRow, AttemptState, EvaluationEnd, EvaluationRow, EvaluationState, RunState};

use crate::checkpoints::{self, CheckpointRef, Checkpoints, writable_again};
use crate::evaluation::baseline::section_of;
use crate::evaluation::evaluate::collect;
use crate::evaluation::evaluate::judge::UNOBSERVED;

/// How often finishing an evaluation is begun: one whose outputs crash every command must not do so for ever.
const FINISHES_MAX: u64 = 3;

/// Ends every evaluation of this home without a supervisor and without a live launch. If the evaluator ended well, its
/// output is evaluated and the receipt sealed as its supervisor would have done; else it has failed. Returns a line for
/// each.
///
/// The process that holds the lock of the evaluator's run does it; a second command skips it. A kill at any point
/// leaves it to the next command, which begins again. One that cannot be closed now is set aside
/// ([`trackway_engine::deferred_seals`]).
pub(crate) fn close_lost_evaluations(context: &Context, running: &[EvaluationRow]) -> Vec<String> {
    running.iter().filter_map(|row| close_lost(context, row)).collect()
}

/// The evaluations that [`close_lost_evaluations`] would end now, a sentence each; nothing is changed.
pub(crate) fn lost_evaluations(context: &Context, running: &[EvaluationRow]) -> Vec<String> {
    let lost = running.iter().filter(|row| matches!(is_lost(context, row), Ok(true)));
    lost.map(|row| format!("evaluation {} would be ended: it has no supervisor", row.evaluation_id)).collect()
}

/// Whether an evaluation of this home has neither a supervisor nor a launch that is live.
fn is_lost(context: &Context, row: &EvaluationRow) -> Result<bool, AppError> {
    let Some(launch_run_id) = row.launch_run_id else { return Ok(false) };
    let is_here = context.home.layout.run(launch_run_id).plan_json().exists();
    if !is_here || is_supervised(context, launch_run_id)? {
        return Ok(false);
    }
    for attempt in context.attempts_of_kind(launch_run_id, LaunchKind::Evaluate)? {
        let is_sealed = attempt.state == AttemptState::Sealed;
        if !is_sealed && run::has_ended(context, &attempt)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The run of an evaluator that is not launched again waits for nothing.
pub(super) fn rest_launches(context: &Context, launch_run_id: RunId) -> Result<(), AppError> {
    let run = context.run_by_id(launch_run_id)?;
    if run.state.is_final() { Ok(()) } else { context.set_run_state(launch_run_id, RunState::Failed) }
}

/// Releases the checkpoint of an evaluation that no longer reads it. What was fetched for it is deleted.
pub(super) fn release(
    context: &Context,
    checkpoints: &Checkpoints,
    evaluation_id: &str,
) -> Result<(), AppError> {
    let brought = context.home.layout.evaluation(evaluation_id).checkpoint();
    writable_again(&brought);
    context.home.remove(&brought).map_err(|error| AppError::file("delete", &brought, error))?;
    checkpoints.release(evaluation_id)?;
    checkpoints.mirror(context)
}

fn close_lost(context: &Context, row: &EvaluationRow) -> Option<String> {
    let launch_run_id = row.launch_run_id?;
    // A ledger may serve many homes: what is conducted elsewhere is not here.
    if !context.home.layout.run(launch_run_id).plan_json().exists() {
        return None;
    }
    let _supervision = run::try_supervise(context, launch_run_id).ok()?.mine()?;
    context.try_to_seal(&row.evaluation_id, || end_if_lost(context, row, launch_run_id))
}

fn end_if_lost(
    context: &Context,
    row: &EvaluationRow,
    launch_run_id: RunId,
) -> Result<Option<String>, AppError> {
    // It may have ended since it was read.
    let row = context.evaluation_by_id(&row.evaluation_id)?;
    let attempts = context.attempts_of_kind(launch_run_id, LaunchKind::Evaluate)?;
    let sealed = attempts.iter().all(|attempt| attempt.state == AttemptState::Sealed);
    if row.state != EvaluationState::Running || !sealed {
        return Ok(None);
    }
    let end = end_of_lost(context, row, &attempts)?;
    rest_launches(context, launch_run_id)?;
    let EvaluationRow { evaluation_id, run_id, .. } = &end.evaluation;
    // The pin ends by itself if it cannot be taken away now.
    let released = checkpoints::checkpoints(context, *run_id)
        .and_then(|checkpoints| release(context, &checkpoints, evaluation_id));
    let stored = context.end_evaluation(&end)?;
    let held = released.err().map(|error| format!("; its checkpoint is still held: {error}"));
    Ok(Some(format!("{}{}", sentence(&stored), held.unwrap_or_default())))
}

/// What its conductor would have written down. A fault that may pass (a full disk) leaves it to the next command.
fn end_of_lost(
    context: &Context,
    row: EvaluationRow,
    attempts: &[AttemptRow],
) -> Result<EvaluationEnd, AppError> {
    let last = attempts.last();
    let row = EvaluationRow {
        launch_attempt_id: last.map(|last| last.attempt_id),
        launch_count: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
        ..row
    };
    let timeout_seconds = section_of(&row)?.timeout_seconds;
    if let Some(why) = why_lost(last, timeout_seconds) {
        return Ok(collect::failed(context, row, &format!("its supervisor died; {why}")));
    }
    let count = count_finish(context, &row.evaluation_id)?;
    if count > FINISHES_MAX {
        let why = format!("{FINISHES_MAX} attempts to finish it were interrupted");
        return Ok(collect::failed(context, row, &why));
    }
    if let Err(error) = check_subject(context, &row) {
        return match error.kind {
            ErrorKind::Fault | ErrorKind::Locked => Err(error),
            _ => Ok(collect::failed(context, row, &error.to_string())),
        };
    }
    let number = last.map_or(1, |last| last.attempt_number);
    let folder = context.home.layout.evaluation(&row.evaluation_id).launch(number);
    match collect::collected(context, row.clone(), &folder, UNOBSERVED) {
        Err(error)
            if !matches!(error.kind, ErrorKind::Fault | ErrorKind::Locked | ErrorKind::Unavailable) =>
        {
            Ok(collect::failed(context, row, &error.to_string()))
        }
        end => end,
    }
}

/// Whether the evaluated weights are still those that were committed.
fn check_subject(context: &Context, row: &EvaluationRow) -> Result<(), AppError> {
    let checkpoints = checkpoints::checkpoints(context, row.run_id)?;
    let chosen = checkpoints.chosen(&CheckpointRef::Manifest(row.checkpoint_manifest_sha256.clone()))?;
    let far = context.home.layout.evaluation(&row.evaluation_id).checkpoint();
    checkpoints.writable_again(&chosen);
    checkpoints.check_unchanged(&chosen, &far)
}

/// Counts that finishing an evaluation is begun, before it is.
fn count_finish(context: &Context, evaluation_id: &str) -> Result<u64, AppError> {
    let path = context.home.layout.evaluation(evaluation_id).finishes();
    let count = || -> std::io::Result<u64> {
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all(b".")?;
        Ok(file.metadata()?.len())
    };
    count().map_err(|error| AppError::file("write", &path, error))
}

/// Why there is nothing to evaluate; none: the evaluator ended well, and in time. Without a supervisor it may have
/// taken too long.
fn why_lost(last: Option<&AttemptRow>, timeout_seconds: f64) -> Option<String> {
    let Some(last) = last else { return Some("the evaluator was not launched".into()) };
    let reason = last.termination_reason.unwrap_or(TerminationReason::Unknown);
    if !reason.is_success() {
        return Some(format!("the evaluator ended as `{reason}` (`trackway logs {}`)", last.attempt_id));
    }
    let seconds = last.wall_seconds.unwrap_or(0.0);
    (seconds > timeout_seconds).then(|| {
        format!("the evaluator took {seconds:.0} s, longer than `evaluate.timeout` ({timeout_seconds:.0} s)")
    })
}

fn sentence(ended: &EvaluationRow) -> String {
    let id = &ended.evaluation_id;
    match &ended.failure {
        Some(why) => format!("evaluation {id} has failed: {why}"),
        None => format!("evaluation {id} is finished: its supervisor died after its evaluator had succeeded"),
    }
}
