//! Two runs of a home that have their checkpoints at the same place: one that names what another names is refused, and
//! one that may find what another writes is reported.

use std::fs::File;

use nix::fcntl::{Flock, FlockArg};
use trackway_core::RunId;
use trackway_ledger::{Ledger, RunRow, RunState};

use super::adopt_patterns::patterns_of_job;
use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;
use crate::run::job::{Job, planned_job};
use crate::run::locks::places::at_most;
use crate::run_lock::RunLock;

/// While this is held no other run of the home begins.
pub(in crate::run) struct Beginning(Option<Flock<File>>);

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

/// How many live runs a report names.
const NAMED_MAX: usize = 3;

/// Refuses a job of which a live run names the same checkpoints, and reports live runs that look for theirs in the same
/// folder, in one line. A run that waits for its first attempt is not among these: it has launched nothing yet. `own`:
/// the run itself, if it began before.
///
/// # Errors
/// [`ErrorKind::Blocked`]: which run it is, and what to do.
pub(in crate::run) fn refuse_shared(
    context: &Context,
    job: &Job,
    own: Option<RunId>,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let Some(patterns) = patterns_of_job(context, job)? else { return Ok(()) };
    let mut beside = Vec::new();
    let open = context.ledger_read(Ledger::open_runs)?;
    for run in open.into_iter().filter(|run| Some(run.run_id) != own) {
        // A plan that cannot be read names nothing.
        let Some(other) = planned_job(context, &run).ok().filter(|other| !take_turns(context, job, other))
        else {
            continue;
        };
        let Some(others) = patterns_of_job(context, &other).ok().flatten() else { continue };
        let named = patterns.names_with(&others);
        if (named.is_some() || patterns.shares_folder_with(&others)) && is_live(context, &run)? {
            if let Some(pattern) = named {
                return Err(refused(&run, pattern));
            }
            if run.state != RunState::Waiting || context.last_attempt_of(run.run_id)?.is_some() {
                beside.push(format!("`{}` ({})", run.name, run.run_id));
            }
        }
    }
    if let Some(line) = shared_line(&beside, patterns.is_detecting()) {
        reporter.note(line);
    }
    Ok(())
}

/// Whether a live run names checkpoints that this job names too: both have begun, since their queue lets one run at once.
/// `own`: the run of the job.
///
/// # Errors
/// When the ledger cannot be read.
pub(in crate::run) fn names_what_is_live(context: &Context, job: &Job, own: RunId) -> Result<bool, AppError> {
    let Some(patterns) = patterns_of_job(context, job)? else { return Ok(false) };
    let open = context.ledger_read(Ledger::open_runs)?;
    for run in open.into_iter().filter(|run| run.run_id != own) {
        // A plan that cannot be read names nothing.
        let Ok(other) = planned_job(context, &run) else { continue };
        let Some(others) = patterns_of_job(context, &other).ok().flatten() else { continue };
        if patterns.names_with(&others).is_some() && is_live(context, &run)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the queue of two jobs does not let both run at once.
fn take_turns(context: &Context, one: &Job, other: &Job) -> bool {
    let queue = one.queue.as_ref().filter(|queue| other.queue.as_ref() == Some(*queue));
    queue.is_some_and(|queue| at_most(context, queue) == 1)
}

/// Whether a process supervises it here, or its last attempt may still run. A run whose supervisor and script died holds nothing.
fn is_live(context: &Context, run: &RunRow) -> Result<bool, AppError> {
    let files = context.home.layout.run(run.run_id);
    let is_supervised = RunLock::try_take(&files).is_ok_and(|lock| lock.is_none());
    if is_supervised {
        return Ok(true);
    }
    let Some(last) = context.last_attempt_of(run.run_id)?.filter(|last| last.sealed_at.is_none()) else {
        return Ok(false);
    };
    let placement = context.placement_of(&last).ok().flatten();
    let seen = placement.and_then(|placement| context.observe(&placement).ok());
    Ok(seen.is_some_and(|seen| !seen.is_final()))
}

/// What is reported of live runs that look for their checkpoints where this one does; none without any.
fn shared_line(beside: &[String], is_detecting: bool) -> Option<String> {
    let named = beside.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match beside.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let live = match beside.len() {
        0 => return None,
        1 => format!("run {named} is live and has its checkpoints"),
        count => format!("{count} runs are live ({named}{more}) and have their checkpoints"),
    };
    let how = if is_detecting { "looks for checkpoints" } else { "names checkpoints" };
    Some(format!(
        "{live} in a folder in which this run {how}: each of them commits only what it is shown to have written"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that live runs beside this one are one line, however many they are, and that without any nothing is said.
    #[test]
    fn live_runs_are_one_line() {
        let runs: Vec<String> = (1..=5).map(|number| format!("`r{number}` (run_{number})")).collect();
        let begins = |count: usize, begin: &str| {
            let line = shared_line(&runs[..count], true).unwrap();
            assert!(line.starts_with(begin) && !line.contains('\n'), "{line}");
        };
        assert_eq!(shared_line(&[], true), None);
        begins(1, "run `r1` (run_1) is live and has its checkpoints in a folder in which this run looks");
        begins(2, "2 runs are live (`r1` (run_1), `r2` (run_2)) and have their checkpoints in a folder in");
        begins(5, "5 runs are live (`r1` (run_1), `r2` (run_2), `r3` (run_3) and 2 more) and have their");
    }
}
