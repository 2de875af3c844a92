//! References: the only place that turns what users type into ids (docs/names.md). All other code in this crate uses
//! ids.

use trackway_core::{AttemptId, Clock as _, RunId};
use trackway_ledger::{EvaluationRow, RunOrAttempt};

use crate::Context;
use crate::error::{AppError, ErrorKind};

impl Context {
    /// The run or the attempt of a reference, in the order of [`trackway_ledger::Ledger::resolve`].
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], also when the reference has several meanings: then it lists them.
    pub fn resolve(&self, word: &str) -> Result<RunOrAttempt, AppError> {
        self.ledger_read(|ledger| ledger.resolve(word, self.clock.now()))
    }

    /// The run of a reference; an attempt means its run.
    ///
    /// # Errors
    /// As [`Context::resolve`].
    pub fn resolve_run(&self, word: &str) -> Result<RunId, AppError> {
        self.resolve(word).map(|found| found.run_id())
    }

    /// The attempt of a reference; a run means its last attempt.
    ///
    /// # Errors
    /// As [`Context::resolve`]; [`ErrorKind::NotFound`] for a run without attempts.
    pub fn resolve_attempt(&self, word: &str) -> Result<AttemptId, AppError> {
        let run = match self.resolve(word)? {
            RunOrAttempt::Attempt(attempt) => return Ok(attempt.attempt_id),
            RunOrAttempt::Run(run) => run,
        };
        let last = self.last_attempt_of_kind(run.run_id, run.kind)?;
        last.map(|attempt| attempt.attempt_id).ok_or_else(|| {
            let message = format!("run `{}` has no attempt: nothing was launched", run.name);
            AppError::new(ErrorKind::NotFound, message)
        })
    }

    /// The evaluation of a reference, in the order of [`trackway_ledger::Ledger::resolve_evaluation`].
    ///
    /// # Errors
    /// As [`Context::resolve`].
    pub fn resolve_evaluation(&self, word: &str) -> Result<EvaluationRow, AppError> {
        self.ledger_read(|ledger| ledger.resolve_evaluation(word, self.clock.now()))
    }
}
