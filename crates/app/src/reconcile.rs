//! What every command does first: seal what ended while nobody watched. Silence is never taken for an end.

use trackway_core::{Clock as _, LaunchKind};
use trackway_launch::{AttemptFiles, Launcher as _, Observation, START_MILLIS_MAX};
use trackway_ledger::AttemptRow;

use crate::App;
use crate::error::AppError;
use crate::home::changed_at;
use crate::run::lock::RunLock;
use crate::seal;

impl App {
    /// Seals every attempt that ended without a supervisor, and says in a line each what was found.
    ///
    /// Attempts with a supervisor, live ones, and ones that cannot be seen from here are left alone. An attempt that
    /// cannot be sealed now (a locked ledger) is left for the next command.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn reconcile(&self) -> Result<Vec<String>, AppError> {
        let open = self.ledger_read(trackway_ledger::Ledger::unsealed_attempts)?;
        // A ledger may serve many homes: the locks and files of the others are not here.
        let own = open.iter().filter(|attempt| {
            self.home.attempt_folder(attempt.attempt_id) == std::path::Path::new(&attempt.log_directory)
        });
        let mut told: Vec<String> = own.filter_map(|attempt| self.reconcile_one(attempt)).collect();
        told.extend(self.close_lost_evaluations()?);
        Ok(told)
    }

    fn reconcile_one(&self, attempt: &AttemptRow) -> Option<String> {
        let id = attempt.attempt_id;
        // A home on another machine's disk: the run's folder is there, the processes are not ours to judge.
        let lock = match RunLock::try_take(&self.home.run_folder(attempt.run_id)) {
            Ok(Some(lock)) => lock,
            Ok(None) => return None,
            Err(error) => return Some(format!("attempt {id} could not be looked at: {error}")),
        };
        let told = match self.has_ended(attempt) {
            Ok(None) => return None,
            Ok(Some(true)) => match seal::seal(self, &id) {
                Ok(sealed) => {
                    let reason = sealed.row.termination_reason.map(|reason| reason.to_string());
                    Some(format!(
                        "attempt {id} had ended without a supervisor: {}",
                        reason.unwrap_or_default()
                    ))
                }
                Err(error) => Some(format!("attempt {id} ended, and is not sealed yet: {error}")),
            },
            Ok(Some(false)) if attempt.kind != LaunchKind::Train => {
                Some(format!("the rehearsal {id} goes on without a supervisor and ends by itself"))
            }
            Ok(Some(false)) => Some(format!(
                "attempt {id} goes on without a supervisor; take it up with: trackway resume {}",
                attempt.run_id
            )),
            Err(error) => Some(format!("attempt {id} could not be looked at: {error}")),
        };
        drop(lock);
        told
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
        let observed =
            self.launcher.observe(&placement).map_err(|error| AppError::fault("the launcher", &error))?;
        Ok(match observed {
            Observation::Exited(_) | Observation::Gone { .. } => Some(true),
            Observation::Running(_) | Observation::Pending { .. } => Some(false),
            Observation::CannotTell { .. } => None,
        })
    }
}
