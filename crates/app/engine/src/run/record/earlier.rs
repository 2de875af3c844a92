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

/// What launches took together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct AttemptTotals {
    pub attempt_count: u32,
    pub wall_seconds: f64,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: f64,
    /// US dollars; none: no cost of any is known.
    pub cost_usd: Option<f64>,
}

impl AttemptTotals {
    /// Takes one more.
    pub fn take(&mut self, attempt: &AttemptRow) {
        self.attempt_count += 1;
        self.wall_seconds += attempt.wall_seconds.unwrap_or(0.0);
        self.gpu_seconds += attempt.gpu_seconds.unwrap_or(0.0);
        self.cost_usd = match (self.cost_usd, attempt.cost_usd) {
            (Some(before), Some(more)) => Some(before + more),
            (before, more) => before.or(more),
        };
    }
}

/// Those of a run of one kind, by rung.
#[derive(Debug, Clone, Default)]
struct OfRun {
    rungs: BTreeMap<String, EarlierAttempts>,
    pace: PaceSums,
    totals: AttemptTotals,
}

impl OfRun {
    fn take(&mut self, attempt: &AttemptRow) {
        self.pace.take(attempt);
        self.totals.take(attempt);
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

/// What the other launches of the same kind took together: sealing an attempt twice counts it once.
///
/// # Errors
/// When the ledger cannot be read.
pub(crate) fn totals_of_others(context: &Context, row: &AttemptRow) -> Result<AttemptTotals, AppError> {
    let of = (row.run_id, row.kind);
    let mut totals = of_run(context, of, row.attempt_number)?.totals;
    // One whose receipt was lost is sealed again behind later ones.
    let later = row.attempt_number.saturating_add(1)..i32::MAX.unsigned_abs();
    let later = context.ledger_read(|ledger| ledger.attempts_numbered(of, later.clone()))?;
    later.iter().for_each(|attempt| totals.take(attempt));
    Ok(totals)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SETTLES, World};

    /// Proves that the others of an attempt are those before it and those behind it, each once, in a process that knows the first of them
    /// and in one that knows none.
    #[test]
    fn the_others_are_before_and_behind() {
        let folder = tempfile::tempdir().unwrap();
        let world = World::new(folder.path(), SETTLES);
        let context = world.context();
        let run_id = world.run(&context, "exit 0", "").run_id;
        let run = context.run_by_id(run_id).unwrap();
        World::add_sealed(&context, &run, 2..6, |row| AttemptRow {
            wall_seconds: Some(f64::from(row.attempt_number)),
            cost_usd: (row.attempt_number != 2).then_some(0.5),
            ..row
        });
        let attempts = context.attempts_of_kind(run_id, LaunchKind::Train).unwrap();
        let first_seconds = attempts[0].wall_seconds.unwrap();
        for context in [&context, &world.context()] {
            for _ in 0..2 {
                let totals = totals_of_others(context, &attempts[2]).unwrap();
                assert_eq!((totals.attempt_count, totals.cost_usd), (4, Some(1.0)));
                assert!((totals.wall_seconds - first_seconds - 11.0).abs() < 1e-9, "{totals:?}");
            }
        }
    }
}
