//! The states of a run and its attempts.

use trackway_api::runs::{AttemptOutcome, RunOutcome};
use trackway_core::{RunId, with_fields_of};
use trackway_ledger::AttemptRow;

use super::remote::read_status;
use crate::Context;
use crate::error::AppError;

/// The state of a run now.
pub fn outcome(context: &Context, run_id: RunId) -> Result<RunOutcome, AppError> {
    let run = context.run_by_id(run_id)?;
    let attempts = context.attempts_of(run_id)?;
    Ok(RunOutcome {
        run_id,
        name: run.name,
        state: run.state,
        health: run.health,
        attempts: attempts.into_iter().map(attempt_outcome).collect(),
        rungs: context.rungs_of(run_id)?,
        remote: read_status(&context.home.layout.run(run_id)),
    })
}

fn attempt_outcome(row: AttemptRow) -> AttemptOutcome {
    with_fields_of!(
        AttemptOutcome,
        row,
        [
            attempt_id, attempt_number, rung, termination_reason, termination_rule, exit_code, signal,
            gpu_seconds, wall_seconds, last_step, last_committed_step, resumed_from_step,
        ]
    )
}
