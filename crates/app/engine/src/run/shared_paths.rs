//! Two runs of a home that have their checkpoints at the same place: one that names what another names is refused, and one that may find what
//! another writes is reported.

use std::fs::File;

use nix::fcntl::{Flock, FlockArg};
use trackway_adopt::Patterns;
use trackway_core::RunId;
use trackway_ledger::{RunFilter, RunRow, RunState};

use super::adopt_patterns::patterns_of_job;
use super::job::{Job, planned_job};
use super::lock::RunLock;
use super::places::at_most;
use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;

/// While this is held no other run of the home begins.
pub(super) struct Beginning(Option<Flock<File>>);

impl Beginning {
    /// Waits for others that begin just now. Where folders cannot be locked nothing is waited for.
    pub fn one_at_a_time(context: &Context) -> Self {
        let folder = context.home.layout.runs();
        let lock = std::fs::create_dir_all(&folder).and_then(|()| File::open(&folder)).ok();
        Self(lock.and_then(|folder| Flock::lock(folder, FlockArg::LockExclusive).ok()))
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.take();
    }
}

/// Refuses a job of which a live run names the same checkpoints, and reports live runs that look for theirs in the same folder. `own`: the run
/// itself, if it began before.
///
/// # Errors
/// [`ErrorKind::Blocked`]: which run it is, and what to do.
pub(super) fn refuse_shared(
    context: &Context,
    job: &Job,
    own: Option<RunId>,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let Some(patterns) = patterns_of_job(context, job)? else { return Ok(()) };
    for run in open_runs(context)?.into_iter().filter(|run| Some(run.run_id) != own) {
        // A plan that cannot be read names nothing.
        let Some(other) = planned_job(context, &run).ok().filter(|other| !take_turns(context, job, other))
        else {
            continue;
        };
        let Some(others) = patterns_of_job(context, &other).ok().flatten() else { continue };
        let named = patterns.names_with(&others);
        if (named.is_some() || patterns.shares_folder_with(&others)) && is_live(context, &run)? {
            let Some(pattern) = named else {
                report_shared(&run, &patterns, reporter);
                continue;
            };
            return Err(refused(&run, pattern));
        }
    }
    Ok(())
}

/// Whether the queue of two jobs never lets both run at once.
fn take_turns(context: &Context, one: &Job, other: &Job) -> bool {
    let queue = one.queue.as_ref().filter(|queue| other.queue.as_ref() == Some(*queue));
    queue.is_some_and(|queue| at_most(context, queue) == 1)
}

fn open_runs(context: &Context) -> Result<Vec<RunRow>, AppError> {
    let mut runs = Vec::new();
    for state in [RunState::Planned, RunState::Running, RunState::Waiting] {
        let in_state = RunFilter { state: Some(state), ..RunFilter::default() };
        runs.extend(context.ledger_read(|ledger| ledger.list_runs(&in_state))?);
    }
    Ok(runs)
}

/// Whether a process supervises it here, or its last attempt may still run. A run whose supervisor and script died holds nothing.
fn is_live(context: &Context, run: &RunRow) -> Result<bool, AppError> {
    let files = context.home.layout.run(run.run_id);
    let is_supervised = RunLock::try_take(&files).is_ok_and(|lock| lock.is_none());
    if is_supervised {
        return Ok(true);
    }
    let Some(last) = context.attempts_of(run.run_id)?.pop().filter(|last| last.sealed_at.is_none()) else {
        return Ok(false);
    };
    let placement = context.placement_of(&last).ok().flatten();
    let seen = placement.and_then(|placement| context.observe(&placement).ok());
    Ok(seen.is_some_and(|seen| !seen.is_final()))
}

fn report_shared(run: &RunRow, patterns: &Patterns, reporter: &dyn Reporter) {
    let how = if patterns.is_detecting() { "looks for checkpoints" } else { "names checkpoints" };
    reporter.note(format!(
        "run `{}` ({}) is live and has its checkpoints in a folder in which this run {how}: each of them commits only what it is shown to have written",
        run.name, run.run_id
    ));
}

fn refused(run: &RunRow, pattern: &str) -> AppError {
    let message = format!(
        "not launched: run `{}` ({}) is live, and its `checkpoint.adopt` names what `{pattern}` names: one would overwrite the checkpoints of the other",
        run.name, run.run_id
    );
    AppError::new(ErrorKind::Blocked, message)
        .hint("let this run write to another folder, and name that in `checkpoint.adopt`")
        .hint(format!("or wait for the other one: trackway watch {}", run.run_id))
}
