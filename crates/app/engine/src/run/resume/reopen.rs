//! Reopens a run whose supervisor is gone.

use trackway_core::{LaunchKind, TerminationReason};
use trackway_ledger::{RunRow, RunState};

use super::home_copy::refuse_in_a_copy;
use super::opened::{not_resumable, opened};
use super::spent::resume_refused_by_budget;
use crate::Context;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;
use crate::run::blocked::is_of_data;
use crate::run::job::planned_job;
use crate::run::locks::places::HeldPlace;
use crate::run::locks::supervision;
use crate::run::prepare::begin::{Prepared, capture_surroundings, supervised};
use crate::run::prepare::isolated_changes::IsolatedChanges;
use crate::run::prepare::shared_paths::{Beginning, refuse_shared};
use crate::run::remote::RemotePlan;

/// A run whose supervisor is gone, as it was prepared. What can refuse it is looked at before the lease is taken: a supervisor that
/// was only paused would lose its run to a process that cannot continue it.
pub fn reopen(context: &Context, run: &RunRow, reporter: &dyn Reporter) -> Result<Prepared, AppError> {
    refuse_unless_open(context, run)?;
    refuse_in_a_copy(context, run, "resume")?;
    let job = planned_job(context, run).map_err(|error| elsewhere(context, run, error))?;
    // Held until the lease is taken: of two that begin at once, the second must see the first.
    let beginning = Beginning::one_at_a_time(context);
    refuse_shared(context, &job, Some(run.run_id), reporter)?;
    let supervision = supervised(supervision::supervise_after_others(context, run.run_id)?, run)?;
    drop(beginning);
    // Another command may have sealed its attempt since the row was read.
    let run = context.run_by_id(run.run_id)?;
    refuse_unless_open(context, &run)?;
    let capture = capture_surroundings(context, &job);
    let opened = match run.state {
        RunState::Blocked => Some(opened(context, (&run, &job, &capture), reporter)?),
        _ => None,
    };
    let remote = RemotePlan::of(context, run.run_id, &job.plan.checkpoint);
    let isolated = IsolatedChanges::of(context, run.run_id);
    let (recheck, checked_data_sha256) = (None, None);
    Ok(Prepared {
        run,
        job,
        capture,
        remote,
        supervision,
        place: HeldPlace::default(),
        isolated,
        recheck,
        checked_data_sha256,
        opened,
    })
}

/// # Errors
/// [`ErrorKind::Usage`] for a run that nothing continues. A stopped or failed one may continue from its last checkpoint, for example
/// after the code was fixed. [`ErrorKind::Blocked`] for one whose budgets leave nothing for another attempt.
fn refuse_unless_open(context: &Context, run: &RunRow) -> Result<(), AppError> {
    if run.kind != LaunchKind::Train {
        let (run_id, kind) = (run.run_id, run.kind.as_str());
        let message = format!("run {run_id} is of kind `{kind}`; only training runs can be resumed");
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("start a new one: `trackway prove`, `trackway rehearse`, `trackway diagnose`"));
    }
    let last = context.last_attempt_of(run.run_id)?;
    let reason = last.as_ref().and_then(|last| last.termination_reason);
    if !may_resume(run.kind, run.state, reason) {
        return Err(not_resumable(run, ""));
    }
    resume_refused_by_budget(context, run, last.as_ref())?.map_or(Ok(()), Err)
}

/// The error of a run whose plan this home does not have.
fn elsewhere(context: &Context, run: &RunRow, error: AppError) -> AppError {
    let folder = context.home.layout.run(run.run_id);
    let here = folder.folder().display();
    error.hint(format!(
        "resume it with the home that it was started in: `{here}` has no plan to continue it by"
    ))
}

/// Whether a run may be resumed: a training that has not completed, and that nothing but its data blocked. `last`: why
/// its last attempt ended.
#[must_use]
pub fn may_resume(kind: LaunchKind, state: RunState, last: Option<TerminationReason>) -> bool {
    let is_open = match state {
        RunState::Completed => false,
        RunState::Blocked => last.is_some_and(is_of_data),
        _ => true,
    };
    kind == LaunchKind::Train && is_open
}
