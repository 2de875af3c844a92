//! What every command does first: seal what ended while nobody watched. Silence is never taken for an end.

use trackway_core::{Clock as _, LaunchKind};
use trackway_launch::{AttemptFiles, Observation, START_MILLIS_MAX};
use trackway_ledger::AttemptRow;

use crate::App;
use crate::error::AppError;
use crate::home::changed_at;
use crate::run::lock::RunLock;
use crate::run::supervision::Taken;
use crate::seal;

impl App {
    /// Seals every attempt that ended without a supervisor, and says in a line each what was found.
    ///
    /// Attempts with a supervisor, live ones, and ones that cannot be seen from here are left alone. An attempt that cannot be
    /// sealed now is set aside without a word ([`crate::set_aside`]): it must not disturb the command that came by.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn reconcile(&self) -> Result<Vec<String>, AppError> {
        // Who may only read changes nothing: its owner's next command seals.
        if !self.home.is_writable() || self.ledger.is_read_only() {
            return Ok(Vec::new());
        }
        let tightened = self.home.tighten();
        let open = self.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
        let running = self.ledger_read(trackway_ledger::Ledger::running_evaluations)?;
        self.forget_sealed(|id| {
            open.iter().any(|attempt| attempt.attempt_id.to_string() == id)
                || running.iter().any(|evaluation| evaluation.evaluation_id == id)
        });
        // A ledger may serve many homes: the locks and files of the others are not here.
        let own = open.iter().filter(|attempt| {
            self.home.attempt_folder(attempt.attempt_id) == std::path::Path::new(&attempt.log_directory)
        });
        let mut told: Vec<String> =
            tightened.into_iter().chain(own.filter_map(|attempt| self.reconcile_one(attempt))).collect();
        told.extend(self.close_lost_evaluations(&running));
        Ok(told)
    }

    /// Seals every attempt of this home that ended, whether it was set aside or not; says how many. `locks`: those of all runs,
    /// where the caller has them; else each is taken.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn seal_ended(&self, locks: &[RunLock]) -> Result<usize, AppError> {
        let open = self.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
        let own = open.iter().filter(|attempt| self.home.attempt_folder(attempt.attempt_id).is_dir());
        let sealed = own.filter(|attempt| {
            let _supervision = match locks.is_empty() {
                true => match self.try_supervise(attempt.run_id).map(Taken::mine) {
                    Ok(Some(supervision)) => Some(supervision),
                    _ => return false,
                },
                false => None,
            };
            self.forget_set_aside(&attempt.attempt_id.to_string());
            let ended = || Ok(matches!(self.has_ended(attempt)?, Some(true)).then_some(()));
            let seal = || match ended()? {
                Some(()) => seal::seal(self, &attempt.attempt_id).map(Some),
                None => Ok(None),
            };
            self.try_to_seal(&attempt.attempt_id.to_string(), seal).is_some()
        });
        Ok(sealed.count())
    }

    fn reconcile_one(&self, attempt: &AttemptRow) -> Option<String> {
        // A home on another machine's disk: the run's folder is there, the processes are not ours to judge.
        let lock = RunLock::try_take(&self.home.run_folder(attempt.run_id)).ok().flatten()?;
        self.try_to_seal(&attempt.attempt_id.to_string(), || self.seal_if_ended(attempt, lock))
    }

    fn seal_if_ended(&self, attempt: &AttemptRow, lock: RunLock) -> Result<Option<String>, AppError> {
        let id = attempt.attempt_id;
        Ok(match self.has_ended(attempt)? {
            None => None,
            Some(true) => {
                let Some(_supervision) = self.supervise_with(attempt.run_id, lock)?.mine() else {
                    return Ok(None);
                };
                let reason = seal::seal(self, &id)?.row.termination_reason.map(|reason| reason.to_string());
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

    /// Whether a shim may have been started so lately that it did not introduce itself yet.
    pub(crate) fn may_be_starting(&self, attempt: &AttemptRow) -> bool {
        let files = AttemptFiles::new(self.home.attempt_folder(attempt.attempt_id));
        changed_at(&files.launch_json()).is_some_and(|written| {
            self.clock.now().seconds_since(written) < f64::from(START_MILLIS_MAX) / 1000.0
        })
    }

    /// Whether the attempt ended; none when nobody can tell.
    fn has_ended(&self, attempt: &AttemptRow) -> Result<Option<bool>, AppError> {
        let Some(placement) = self.placement_of(attempt)? else {
            // Without a supervisor and without a shim, nothing was ever started; but a shim may be on its way.
            return Ok((!self.may_be_starting(attempt)).then_some(true));
        };
        let seen = self
            .launchers
            .of(&placement)?
            .observe(&placement)
            .map_err(|error| AppError::fault("the launcher", &error))?;
        Ok(match seen.state {
            Observation::Exited(_) | Observation::Gone { .. } => Some(true),
            Observation::Running(_) | Observation::Pending { .. } => Some(false),
            Observation::CannotTell { .. } => None,
        })
    }
}
