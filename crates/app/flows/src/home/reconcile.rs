//! What every command does first: seal what ended without a supervisor. Silence is never taken for an end.

use trackway_core::LaunchKind;
use trackway_engine::Context;
use trackway_engine::deferred_seals::has_room;
use trackway_engine::error::AppError;
use trackway_engine::run::supervision::{SupervisionClaim, is_supervised};
use trackway_engine::run::{self, has_ended, seal};
use trackway_engine::run_lock::RunLock;
use trackway_ledger::AttemptRow;

use crate::evaluation::evaluate;

/// What was sealed without a supervisor, or would be.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Attempts that were sealed.
    pub sealed_count: u64,
    /// Evaluations that ended.
    pub ended_count: u64,
    /// A sentence about each of them, and about what else is to be known.
    pub lines: Vec<String>,
}

/// Seals every attempt that ended without a supervisor.
///
/// Attempts with a supervisor, live ones, and ones that cannot be seen from here are left alone. An attempt that cannot
/// be sealed now is set aside silently ([`trackway_engine::deferred_seals`]): it must not disturb the current command.
pub fn reconcile(context: &Context) -> Result<Reconciled, AppError> {
    // A read-only user changes nothing: the owner's next command seals.
    if !context.home.is_writable() || context.ledger_is_read_only() {
        return Ok(Reconciled::default());
    }
    let mut lines: Vec<String> = context.home.tighten().into_iter().collect();
    let open = context.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
    let running = context.ledger_read(trackway_ledger::Ledger::running_evaluations)?;
    context.forget_sealed(|id| {
        open.iter().any(|attempt| attempt.attempt_id.to_string() == id)
            || running.iter().any(|evaluation| evaluation.evaluation_id == id)
    });
    // A ledger may serve many homes: the locks and files of the others are not here.
    let own = open.iter().filter(|attempt| is_of_this_home(context, attempt));
    let mut sealed_count = 0;
    for attempt in own.filter_map(|attempt| reconcile_one(context, attempt)) {
        sealed_count += u64::from(matches!(attempt, UnsupervisedAttempt::Sealed(_)));
        let (UnsupervisedAttempt::Sealed(line)
        | UnsupervisedAttempt::Running(line)
        | UnsupervisedAttempt::Unsealed(line)) = attempt;
        lines.push(line);
    }
    let ended = evaluate::close_lost_evaluations(context, &running);
    let ended_count = ended.len() as u64;
    lines.extend(ended);
    Ok(Reconciled { sealed_count, ended_count, lines })
}

/// An attempt without a supervisor, with a sentence about it.
enum UnsupervisedAttempt {
    Sealed(String),
    Running(String),
    /// There is no room for its receipt.
    Unsealed(String),
}

fn is_of_this_home(context: &Context, attempt: &AttemptRow) -> bool {
    let folder = context.home.layout.attempt(attempt.attempt_id);
    folder.folder() == std::path::Path::new(&attempt.log_directory)
}

/// What [`reconcile`] would do now; nothing is changed.
pub fn ended_without_supervisor(context: &Context) -> Result<Reconciled, AppError> {
    let open = context.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
    let running = context.ledger_read(trackway_ledger::Ledger::running_evaluations)?;
    let own = open.iter().filter(|attempt| is_of_this_home(context, attempt));
    let ended = own.filter(|attempt| {
        matches!(is_supervised(context, attempt.run_id), Ok(false))
            && matches!(has_ended(context, attempt), Ok(Some(true)))
    });
    let attempts: Vec<String> = ended
        .map(|attempt| {
            format!("attempt {} would be sealed: it has ended without a supervisor", attempt.attempt_id)
        })
        .collect();
    let evaluations = evaluate::lost_evaluations(context, &running);
    Ok(Reconciled {
        sealed_count: attempts.len() as u64,
        ended_count: evaluations.len() as u64,
        lines: attempts.into_iter().chain(evaluations).collect(),
    })
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

fn reconcile_one(context: &Context, attempt: &AttemptRow) -> Option<UnsupervisedAttempt> {
    // A home on another machine's disk: the run's folder is there, but its processes cannot be seen from here.
    let lock = RunLock::try_take(&context.home.layout.run(attempt.run_id)).ok().flatten()?;
    let mut unsealed = None;
    let sealed = context.try_to_seal(&attempt.attempt_id.to_string(), || {
        // What passes is tried again by the next command, and nothing is to be done about it.
        seal_if_ended(context, attempt, lock)
            .inspect_err(|error| unsealed = (!error.kind.is_passing()).then(|| error.to_string()))
    });
    // What is shown of it is then what the ledger had before.
    let unsealed = unsealed.filter(|_| !has_room(&context.home));
    sealed.or(unsealed.map(|why| {
        UnsupervisedAttempt::Unsealed(format!("attempt {} could not be sealed: {why}", attempt.attempt_id))
    }))
}

fn seal_if_ended(
    context: &Context,
    attempt: &AttemptRow,
    lock: RunLock,
) -> Result<Option<UnsupervisedAttempt>, AppError> {
    let id = attempt.attempt_id;
    Ok(match has_ended(context, attempt)? {
        None => None,
        Some(true) => {
            let Some(_supervision) = run::supervise_with(context, attempt.run_id, lock)?.mine() else {
                return Ok(None);
            };
            let reason = seal::seal(context, &id)?.row.termination_reason.map(|reason| reason.to_string());
            let reason = reason.unwrap_or_default();
            Some(UnsupervisedAttempt::Sealed(format!(
                "attempt {id} had ended without a supervisor: {reason}"
            )))
        }
        Some(false) if attempt.kind != LaunchKind::Train => Some(UnsupervisedAttempt::Running(format!(
            "rehearsal {id} is still running without a supervisor and ends by itself"
        ))),
        Some(false) => Some(UnsupervisedAttempt::Running(format!(
            "attempt {id} is still running without a supervisor; reattach with: trackway resume {}",
            attempt.run_id
        ))),
    })
}
