//! Ends evaluations whose conductor is gone. Silence is never taken for an end.

use trackway_core::{Clock as _, LaunchKind, RunId};
use trackway_ledger::{AttemptState, EvaluationEnd, EvaluationRow, EvaluationState, RunState};

use crate::App;
use crate::error::AppError;
use crate::run::lock::RunLock;

impl App {
    /// Ends, as failed, every evaluation of this home that nobody conducts any more and of which no launch lives; says in a line
    /// each what was found.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(crate) fn close_lost_evaluations(&self) -> Result<Vec<String>, AppError> {
        let running = self.ledger_read(trackway_ledger::Ledger::running_evaluations)?;
        Ok(running.iter().filter_map(|row| self.close_lost(row).transpose()).map(told).collect())
    }

    /// The run of an evaluator that is not launched again waits for nothing.
    pub(super) fn rest_launches(&self, launch_run_id: RunId) -> Result<(), AppError> {
        let run = self.find_run(&launch_run_id.to_string())?;
        if run.state.is_final() { Ok(()) } else { self.set_run_state(launch_run_id, RunState::Failed) }
    }

    fn close_lost(&self, row: &EvaluationRow) -> Result<Option<String>, AppError> {
        let Some(launch_run_id) = row.launch_run_id else { return Ok(None) };
        let folder = self.home.run_folder(launch_run_id);
        // A ledger may serve many homes: what is conducted elsewhere is not here.
        if !folder.join("plan.json").exists() {
            return Ok(None);
        }
        let lock = RunLock::try_take(&folder).map_err(|error| AppError::file("lock", &folder, &error))?;
        let Some(_conductor) = lock else { return Ok(None) };
        // It may have ended since it was read.
        let row = self.ledger_read(|ledger| ledger.find_evaluation(&row.evaluation_id))?;
        let attempts = self.attempts_of_kind(launch_run_id, LaunchKind::Evaluate)?;
        let sealed = attempts.iter().all(|attempt| attempt.state == AttemptState::Sealed);
        if row.state != EvaluationState::Running || !sealed {
            return Ok(None);
        }
        let last = attempts.last();
        let ended = last.and_then(|last| last.termination_reason).map(|reason| reason.to_string());
        let failure = format!(
            "nobody conducted it any more; the evaluator {}",
            ended.map_or("was not launched".into(), |reason| format!("ended as `{reason}`"))
        );
        let id = row.evaluation_id.clone();
        let evaluation = EvaluationRow {
            state: EvaluationState::Failed,
            ended_at: Some(self.clock.now()),
            failure: Some(failure.clone()),
            launch_attempt_id: last.map(|last| last.attempt_id),
            launch_count: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
            ..row.clone()
        };
        let end = EvaluationEnd { evaluation, metrics: Vec::new(), slices: Vec::new() };
        self.ledger_write(|ledger| ledger.end_evaluation(&end))?;
        self.rest_launches(launch_run_id)?;
        // The pin ends by itself if it cannot be taken away now.
        let let_go =
            self.checkpoints(&row.run_id.to_string()).and_then(|checkpoints| checkpoints.let_go(&id));
        let held = let_go.err().map(|error| format!("; its checkpoint is still held: {error}"));
        Ok(Some(format!("evaluation {id} has failed: {failure}{}", held.unwrap_or_default())))
    }
}

/// One that cannot be closed now is left for the next command.
fn told(found: Result<String, AppError>) -> String {
    found.unwrap_or_else(|error| format!("an evaluation could not be looked at: {error}"))
}
