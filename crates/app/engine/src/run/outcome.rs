//! The states of a run and its attempts.

use serde::Serialize;
use trackway_core::{AttemptId, RunId, Step};
use trackway_ledger::RungRow;

use super::remote::RemoteStatus;
use crate::Context;
use crate::error::AppError;

/// How a run ended.
#[derive(Debug, Clone, Serialize)]
pub struct RunOutcome {
    /// The run.
    pub run_id: RunId,
    /// Its name.
    pub name: String,
    /// `completed`, `failed`, `stopped`, `blocked`, or `running` when the supervisor let go of a live attempt.
    pub state: String,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptOutcome>,
    /// The rungs of its ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungRow>,
    /// How its remote stands; it has none.
    pub remote: Option<RemoteStatus>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptOutcome {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// Why it ended; none while it lives.
    pub termination_reason: Option<String>,
    /// The rule that named the reason.
    pub termination_rule: Option<String>,
    /// The script's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: Option<f64>,
    /// Wall seconds.
    pub wall_seconds: Option<f64>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    /// The last step it committed.
    pub last_committed_step: Option<Step>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
}

/// The state of a run now.
///
/// # Errors
/// When the ledger cannot be read.
pub fn outcome(context: &Context, run_id: RunId) -> Result<RunOutcome, AppError> {
    let run = context.run_by_id(run_id)?;
    let attempts = context.attempts_of(run_id)?;
    Ok(RunOutcome {
        run_id,
        name: run.name,
        state: run.state.as_str().into(),
        attempts: attempts.into_iter().map(AttemptOutcome::from_row).collect(),
        rungs: context.rungs_of(run_id)?,
        remote: RemoteStatus::read(&context.home.layout.run(run_id)),
    })
}

impl AttemptOutcome {
    fn from_row(row: trackway_ledger::AttemptRow) -> Self {
        Self {
            attempt_id: row.attempt_id,
            attempt_number: row.attempt_number,
            rung: row.rung,
            termination_reason: row.termination_reason.map(|reason| reason.to_string()),
            termination_rule: row.termination_rule,
            exit_code: row.exit_code,
            signal: row.signal,
            gpu_seconds: row.gpu_seconds,
            wall_seconds: row.wall_seconds,
            last_step: row.last_step,
            last_committed_step: row.last_committed_step,
            resumed_from_step: row.resumed_from_step,
        }
    }
}
