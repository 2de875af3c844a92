//! What every command does first: seal what ended without a supervisor. Silence is never taken for an end.

use trackway_core::LaunchKind;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::run::lock::RunLock;
use trackway_engine::run::supervision::SupervisionClaim;
use trackway_engine::run::{self, has_ended, seal};
use trackway_ledger::AttemptRow;

use crate::evaluation::evaluate;

/// Seals every attempt that ended without a supervisor, and returns a line for each.
///
/// Attempts with a supervisor, live ones, and ones that cannot be seen from here are left alone. An attempt that cannot
/// be sealed now is set aside silently ([`trackway_engine::deferred_seals`]): it must not disturb the current command.
pub fn reconcile(context: &Context) -> Result<Vec<String>, AppError> {
    // A read-only user changes nothing: the owner's next command seals.
    if !context.home.is_writable() || context.ledger_is_read_only() {
        return Ok(Vec::new());
    }
    let tightened = context.home.tighten();
    let open = context.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
    let running = context.ledger_read(trackway_ledger::Ledger::running_evaluations)?;
    context.forget_sealed(|id| {
        open.iter().any(|attempt| attempt.attempt_id.to_string() == id)
            || running.iter().any(|evaluation| evaluation.evaluation_id == id)
    });
    // A ledger may serve many homes: the locks and files of the others are not here.
    let own = open.iter().filter(|attempt| is_of_this_home(context, attempt));
    let mut lines: Vec<String> =
        tightened.into_iter().chain(own.filter_map(|attempt| reconcile_one(context, attempt))).collect();
    lines.extend(evaluate::close_lost_evaluations(context, &running));
    Ok(lines)
}

fn is_of_this_home(context: &Context, attempt: &AttemptRow) -> bool {
    let folder = context.home.layout.attempt(attempt.attempt_id);
    folder.folder() == std::path::Path::new(&attempt.log_directory)
}

/// What [`reconcile`] would seal now, a line for each; nothing is changed.
pub fn ended_without_supervisor(context: &Context) -> Result<Vec<String>, AppError> {
    let open = context.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
    let own = open.iter().filter(|attempt| is_of_this_home(context, attempt));
    let ended = own.filter(|attempt| {
        let lock = RunLock::try_take(&context.home.layout.run(attempt.run_id)).ok().flatten();
        lock.is_some() && matches!(has_ended(context, attempt), Ok(Some(true)))
    });
    Ok(ended
        .map(|attempt| {
            format!("attempt {} would be sealed: it has ended without a supervisor", attempt.attempt_id)
        })
        .collect())
}

/// Seals every attempt of this home that ended, whether it was set aside or not; returns how many. `locks`: those of
/// all runs, if the caller has them; else each is taken.
pub(crate) fn seal_ended(context: &Context, locks: &[RunLock]) -> Result<usize, AppError> {
    let open = context.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
    let own = open.iter().filter(|attempt| context.home.layout.attempt(attempt.attempt_id).folder().is_dir());
    let sealed = own.filter(|attempt| {
        let _supervision = match locks.is_empty() {
            true => match run::try_supervise(context, attempt.run_id).map(SupervisionClaim::mine) {
                Ok(Some(supervision)) => Some(supervision),
                _ => return false,
            },
            false => None,
        };
        context.forget_set_aside(&attempt.attempt_id.to_string());
        let ended = || has_ended(context, attempt).map(|ended| matches!(ended, Some(true)).then_some(()));
        let seal = || match ended()? {
            Some(()) => seal::seal(context, &attempt.attempt_id).map(Some),
            None => Ok(None),
        };
        context.try_to_seal(&attempt.attempt_id.to_string(), seal).is_some()
    });
    Ok(sealed.count())
}

fn reconcile_one(context: &Context, attempt: &AttemptRow) -> Option<String> {
    // A home on another machine's disk: the run's folder is there, but its processes cannot be seen from here.
    let lock = RunLock::try_take(&context.home.layout.run(attempt.run_id)).ok().flatten()?;
    context.try_to_seal(&attempt.attempt_id.to_string(), || seal_if_ended(context, attempt, lock))
}

fn seal_if_ended(context: &Context, attempt: &AttemptRow, lock: RunLock) -> Result<Option<String>, AppError> {
    let id = attempt.attempt_id;
    Ok(match has_ended(context, attempt)? {
        None => None,
        Some(true) => {
            let Some(_supervision) = run::supervise_with(context, attempt.run_id, lock)?.mine() else {
                return Ok(None);
            };
            let reason = seal::seal(context, &id)?.row.termination_reason.map(|reason| reason.to_string());
            Some(format!("attempt {id} had ended without a supervisor: {}", reason.unwrap_or_default()))
        }
        Some(false) if attempt.kind != LaunchKind::Train => {
            Some(format!("rehearsal {id} is still running without a supervisor and ends by itself"))
        }
        Some(false) => Some(format!(
            "attempt {id} is still running without a supervisor; reattach with: trackway resume {}",
            attempt.run_id
        )),
    })
}
