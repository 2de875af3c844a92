//! Ends evaluations whose conductor is gone: as it would have, where the evaluator ended well. Silence is never taken for an end.

use std::fs::OpenOptions;
use std::io::Write as _;

use trackway_core::{LaunchKind, RunId, TerminationReason};
use trackway_ledger::{AttemptRow, AttemptState, EvaluationEnd, EvaluationRow, EvaluationState, RunState};

use super::collect::section_of;
use crate::App;
use crate::checkpoints::Checkpoints;
use crate::error::{AppError, ErrorKind};
use crate::run::lock::RunLock;

/// How often finishing an evaluation is begun: one whose outputs bring every command down with it must not do so for ever.
const FINISHES_MAX: u64 = 10;
/// The file in an evaluation's folder that has a byte for each of these times.
const FINISHES: &str = "finishes";

impl App {
    /// Ends every evaluation of this home that nobody conducts any more and of which no launch lives. Where the evaluator ended well,
    /// what it left is judged and the receipt sealed as by its conductor; else it has failed. Says in a line each what was found.
    ///
    /// Whoever holds the lock of the evaluator's run does it; a second command passes over it. A kill at any point leaves it to the next
    /// command, which begins anew.
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

    /// Lets go of the checkpoint of an evaluation that reads it no more. What was brought here for it goes.
    pub(super) fn let_go_of(&self, checkpoints: &Checkpoints, evaluation_id: &str) -> Result<(), AppError> {
        let brought = self.home.brought_checkpoint(evaluation_id);
        match std::fs::remove_dir_all(&brought) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(AppError::file("delete", &brought, &error))
            }
            _ => checkpoints.let_go(evaluation_id),
        }
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
        let end = self.end_of_lost(row, &attempts)?;
        self.rest_launches(launch_run_id)?;
        let EvaluationRow { evaluation_id, run_id, .. } = &end.evaluation;
        // The pin ends by itself if it cannot be taken away now.
        let let_go = self
            .checkpoints(&run_id.to_string())
            .and_then(|checkpoints| self.let_go_of(&checkpoints, evaluation_id));
        let stored = self.ledger_write(|ledger| ledger.end_evaluation(&end))?;
        let held = let_go.err().map(|error| format!("; its checkpoint is still held: {error}"));
        Ok(Some(format!("{}{}", sentence(&stored), held.unwrap_or_default())))
    }

    /// What its conductor would have written down. A fault that may pass (a full disk) leaves it to the next command.
    fn end_of_lost(&self, row: EvaluationRow, attempts: &[AttemptRow]) -> Result<EvaluationEnd, AppError> {
        let last = attempts.last();
        let row = EvaluationRow {
            launch_attempt_id: last.map(|last| last.attempt_id),
            launch_count: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
            ..row
        };
        let timeout_seconds = section_of(&row)?.timeout_seconds;
        if let Some(why) = why_lost(last, timeout_seconds) {
            return Ok(self.failed(row, &format!("nobody conducted it any more; {why}")));
        }
        let count = self.count_finish(&row.evaluation_id)?;
        if count > FINISHES_MAX {
            let why = format!("finishing it was begun {FINISHES_MAX} times and never came to an end");
            return Ok(self.failed(row, &why));
        }
        let number = last.map_or(1, |last| last.attempt_number);
        let folder = self.home.evaluator_outputs(&row.evaluation_id, number);
        match self.collected(row.clone(), &folder) {
            Err(error) if !matches!(error.kind, ErrorKind::Fault | ErrorKind::Locked) => {
                Ok(self.failed(row, &error.message))
            }
            end => end,
        }
    }

    /// Counts that finishing an evaluation is begun, before it is.
    fn count_finish(&self, evaluation_id: &str) -> Result<u64, AppError> {
        let path = self.home.evaluation_folder(evaluation_id).join(FINISHES);
        let count = || -> std::io::Result<u64> {
            let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.write_all(b".")?;
            Ok(file.metadata()?.len())
        };
        count().map_err(|error| AppError::file("write", &path, &error))
    }
}

/// Why there is nothing to judge; none: the evaluator ended in order, and in time. Nobody was there to end one that took too long.
fn why_lost(last: Option<&AttemptRow>, timeout_seconds: f64) -> Option<String> {
    let Some(last) = last else { return Some("the evaluator was not launched".into()) };
    let reason = last.termination_reason.unwrap_or(TerminationReason::Unknown);
    if !reason.is_success() {
        return Some(format!("the evaluator ended as `{reason}` (`trackway logs {}`)", last.attempt_id));
    }
    let seconds = last.wall_seconds.unwrap_or(0.0);
    (seconds > timeout_seconds).then(|| {
        format!(
            "the evaluator took {seconds:.0} s, and `evaluate.timeout` lets it have {timeout_seconds:.0} s"
        )
    })
}

fn sentence(ended: &EvaluationRow) -> String {
    let id = &ended.evaluation_id;
    match &ended.failure {
        Some(why) => format!("evaluation {id} has failed: {why}"),
        None => format!(
            "evaluation {id} is finished: nobody conducted it any more, and its evaluator had ended well"
        ),
    }
}

/// One that cannot be closed now is left for the next command.
fn told(found: Result<String, AppError>) -> String {
    found.unwrap_or_else(|error| format!("an evaluation could not be looked at: {error}"))
}
