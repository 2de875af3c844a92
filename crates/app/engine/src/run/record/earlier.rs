//! What the attempts of a rung before one show, as far as that one needs it: a fold, so that the thousandth attempt
//! reads no more than the second.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use trackway_core::{LaunchKind, RunId, Step, TerminationReason, Timestamp, with_fields_of};
use trackway_ledger::{AttemptRow, AttemptState};
use trackway_rules::{LoadAttempt, LoadCrashes};

use crate::Context;
use crate::checkpoints::{Pace, PaceSums};
use crate::error::AppError;

/// Attempts whose logs are known: so many of the first that made a step, and so many of the last.
const LOGS_MAX: usize = 4;

/// What the attempts of one rung show together.
#[derive(Debug, Clone, Default)]
pub(crate) struct EarlierAttempts {
    /// When the last of them ended.
    pub ended_at: Option<Timestamp>,
    /// The step with which the first of them began.
    pub first_step: Option<Step>,
    /// The furthest that one of them came.
    pub last_step: Option<Step>,
    /// The last step that one of them committed.
    pub last_committed_step: Option<Step>,
    /// The number and the effective batch of the last that has one.
    pub effective_batch: Option<(u32, u64)>,
    /// What crashed when it loaded its checkpoint.
    pub load_crashes: LoadCrashes,
    first_logs: Vec<PathBuf>,
    last_logs: VecDeque<PathBuf>,
}

/// Those of a run of one kind, by rung.
#[derive(Debug, Clone, Default)]
struct OfRun {
    rungs: BTreeMap<String, EarlierAttempts>,
    pace: PaceSums,
}

impl OfRun {
    fn take(&mut self, attempt: &AttemptRow) {
        self.pace.take(attempt);
        self.rungs.entry(attempt.rung.clone()).or_default().take(attempt);
    }
}

impl EarlierAttempts {
    /// Takes the next attempt.
    pub fn take(&mut self, attempt: &AttemptRow) {
        self.ended_at = attempt.ended_at;
        self.first_step = self.first_step.or(attempt.first_step);
        self.last_step = self.last_step.max(attempt.last_step);
        self.last_committed_step = self.last_committed_step.max(attempt.last_committed_step);
        let batch = attempt.effective_batch.map(|batch| (attempt.attempt_number, batch));
        self.effective_batch = batch.or(self.effective_batch);
        if attempt.state == AttemptState::Sealed {
            self.load_crashes.take(&as_seen(attempt));
        }
        let logs = PathBuf::from(&attempt.log_directory);
        if attempt.last_step.is_some() && self.first_logs.len() < LOGS_MAX {
            self.first_logs.push(logs.clone());
        }
        if self.last_logs.len() == LOGS_MAX {
            self.last_logs.pop_front();
        }
        self.last_logs.push_back(logs);
    }

    /// The folders with the logs of the first that made a step, then those of the last, oldest first.
    pub fn logs(&self) -> impl Iterator<Item = &PathBuf> {
        self.first_logs.iter().chain(&self.last_logs)
    }
}

fn as_seen(attempt: &AttemptRow) -> LoadAttempt {
    with_fields_of!(
        LoadAttempt,
        &attempt,
        [attempt_id, resumed_from_step, last_step, last_committed_step, exit_code, signal],
        resumed_from: attempt.resumed_from_manifest_sha256.clone(),
        reason: attempt.termination_reason.unwrap_or(TerminationReason::Unknown),
    )
}

/// The launches of the same kind and rung before an attempt.
///
/// # Errors
/// When the ledger cannot be read.
pub(crate) fn before(context: &Context, row: &AttemptRow) -> Result<EarlierAttempts, AppError> {
    of_rung(context, row, row.attempt_number)
}

/// The same, with the attempt itself.
///
/// # Errors
/// When the ledger cannot be read.
pub(crate) fn through(context: &Context, row: &AttemptRow) -> Result<EarlierAttempts, AppError> {
    of_rung(context, row, row.attempt_number.saturating_add(1))
}

/// How long a step took in the launches of the same kind before an attempt.
///
/// # Errors
/// When the ledger cannot be read.
pub(crate) fn pace_before(context: &Context, row: &AttemptRow) -> Result<Option<Pace>, AppError> {
    let known = of_run(context, (row.run_id, row.kind), row.attempt_number)?;
    Ok(known.pace.pace())
}

fn of_rung(context: &Context, row: &AttemptRow, before: u32) -> Result<EarlierAttempts, AppError> {
    let known = of_run(context, (row.run_id, row.kind), before)?;
    Ok(known.rungs.get(&row.rung).cloned().unwrap_or_default())
}

fn of_run(context: &Context, of: (RunId, LaunchKind), before: u32) -> Result<Arc<OfRun>, AppError> {
    context.fold_attempts(of, before, |known: &mut OfRun, attempt| {
        known.take(attempt);
        Ok(())
    })
}
