//! A run from start to end: plan, capture, launch, supervise, seal, decide, and again.

pub(crate) mod curves;
pub mod detect;
mod drive;
mod echo;
mod inject;
mod job;
pub(crate) mod ladder;
mod launch;
pub(crate) mod live_record;
pub(crate) mod lock;
mod policy;
mod prepare;
pub mod remote;
pub(crate) mod roll_back;
mod sight;
pub(crate) mod stacks;
mod supervise;
pub(crate) mod supervision;
mod watchdog;

pub(crate) use drive::{Rehearsal, rehearse, wait};
pub use inject::{Fault, Injection, InjectionError, Moment};
pub(crate) use job::Job;
pub use job::{Source, StoredJob};
pub(crate) use launch::{note_placement, note_seen};
pub(crate) use policy::{Decided, budget_limits, decide};
pub(crate) use prepare::{Prepared, Start, begin, capture_surroundings, read};

use serde::Serialize;
use trackway_core::{AttemptId, Clock as _, LaunchKind, RunId, Step};
use trackway_ledger::{EventRow, RunState, RungRow};

use crate::App;
use crate::error::AppError;
use crate::preflight::{PreflightReport, Selection, Told, Verdict, check, record};
use crate::report::Reporter;

/// What is asked for with `trackway run`.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The run file or the command.
    pub source: Source,
    /// A fault to rehearse in the first attempt.
    pub injection: Option<Injection>,
    /// Launch although the last attempt on the same data and config ended in a data error.
    pub retry_data_error: bool,
    /// Which checks are made before the launch.
    pub selection: Selection,
}

/// How a run ended. Field names are the JSON contract of `trackway run`.
#[derive(Debug, Clone, Serialize)]
pub struct RunOutcome {
    /// The run.
    pub run_id: RunId,
    /// Its name.
    pub name: String,
    /// `completed`, `failed`, `stopped`, `blocked`, or `running` when the supervisor let go of a live attempt.
    pub state: String,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptOutcome>,
    /// The rungs of its ladder that were launched, from the smallest; empty without `[ladder]`.
    pub rungs: Vec<RungRow>,
    /// The evaluation of its result; none was asked for, or there was nothing to evaluate.
    pub evaluation: Option<crate::evaluate::EvaluationReceipt>,
    /// The verdicts of its gates.
    pub gates: Vec<serde_json::Value>,
    /// How its remote stands; it has none.
    pub remote: Option<remote::RemoteStatus>,
    /// What was checked before the launch by this command; nothing was.
    pub preflight: Option<PreflightReport>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Serialize)]
pub struct AttemptOutcome {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Counted from 1 in the run.
    pub attempt_number: u32,
    /// The rung of the data, such as `10%`.
    pub rung: String,
    /// Why it ended; none while it lives.
    pub termination_reason: Option<String>,
    /// The rule that named the reason.
    pub termination_rule: Option<String>,
    /// The script's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// GPUs allocated × wall seconds.
    pub gpu_seconds: Option<f64>,
    /// Wall seconds.
    pub wall_seconds: Option<f64>,
    /// The last step it reported.
    pub last_step: Option<Step>,
    /// The last step it committed.
    pub last_committed_step: Option<Step>,
    /// The committed step it continued from.
    pub resumed_from_step: Option<Step>,
}

impl App {
    /// Runs a job to its end, over as many attempts as its budgets allow.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Usage`] and `Blocked` before anything is launched. A fault while supervising leaves
    /// the attempt running; the next command takes it up.
    pub fn run(&self, request: RunRequest, reporter: &dyn Reporter) -> Result<RunOutcome, AppError> {
        let start = read(self, &request.source, request.retry_data_error, reporter)?;
        crate::evaluate::check_before_launch(self, &start.job)?;
        let report = self.check_before_launch(&start, &request, reporter)?;
        let prepared = begin(self, &start, LaunchKind::Train, reporter)?;
        let run_id = prepared.run.run_id;
        let Some(report) = report else {
            self.tell_unchecked(run_id, &request)?;
            let outcome = drive::drive(self, prepared, request.injection, reporter)?;
            return self.evaluate_after(outcome, reporter);
        };
        record(self, run_id, &report)?;
        let state = match report.verdict {
            _ if report.stopped => RunState::Stopped,
            Verdict::Block => RunState::Blocked,
            _ => {
                let outcome = drive::drive(self, prepared, request.injection, reporter)?;
                let outcome = self.evaluate_after(outcome, reporter)?;
                return Ok(RunOutcome { preflight: Some(report), ..outcome });
            }
        };
        self.tell_not_launched(run_id, state, &report)?;
        Ok(RunOutcome { preflight: Some(report), ..self.outcome(run_id)? })
    }

    /// A command without a run file names neither data nor settings: there is nothing to check.
    fn check_before_launch(
        &self,
        start: &Start,
        request: &RunRequest,
        reporter: &dyn Reporter,
    ) -> Result<Option<PreflightReport>, AppError> {
        let has_file = matches!(request.source, Source::File { .. });
        if !has_file || request.selection.skip_all.is_some() {
            return Ok(None);
        }
        let report = check(self, (&start.job, &start.capture, Some(start)), &request.selection, reporter)?;
        reporter.preflight(&Told::Judged(&report));
        Ok(Some(report))
    }

    /// That nothing was checked, and on whose word, is part of the receipt.
    fn tell_unchecked(&self, run_id: RunId, request: &RunRequest) -> Result<(), AppError> {
        let Some(why) = &request.selection.skip_all else { return Ok(()) };
        self.tell(run_id, "preflight_skipped", format!("launched without pre-flight: {why}"))
    }

    fn tell_not_launched(
        &self,
        run_id: RunId,
        state: RunState,
        report: &PreflightReport,
    ) -> Result<(), AppError> {
        let (kind, text) = match state {
            RunState::Blocked => {
                ("preflight_blocked", format!("not launched because of {}", report.blocked_by().join(", ")))
            }
            _ => ("preflight_stopped", "stopped before the launch".to_owned()),
        };
        self.tell(run_id, kind, text)?;
        self.set_run_state(run_id, state)
    }

    fn tell(&self, run_id: RunId, kind: &str, message: String) -> Result<(), AppError> {
        let event = EventRow {
            event_id: format!("{run_id}:{kind}"),
            run_id,
            attempt_id: None,
            at: self.clock.now(),
            kind: kind.into(),
            step: None,
            message,
            fields_json: None,
            source: "supervisor".into(),
        };
        self.ledger_write(|ledger| ledger.append_event(&event)).map(|_| ())
    }

    /// Takes up a run whose supervisor is gone: attaches to its live attempt, or goes on with what was decided. Of one that
    /// completed, what is not at its remote yet is sent there.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`]; `Usage` when another supervisor has it or it is at its end.
    pub fn resume(&self, run: RunId, reporter: &dyn Reporter) -> Result<RunOutcome, AppError> {
        let row = self.run_by_id(run)?;
        if row.state == RunState::Completed
            && let Some(remote) = self.settle_remote(&row, reporter)?
        {
            return Ok(RunOutcome { remote: Some(remote), ..self.outcome(row.run_id)? });
        }
        let prepared = prepare::take_up(self, &row)?;
        let outcome = drive::drive(self, prepared, None, reporter)?;
        self.evaluate_after(outcome, reporter)
    }

    /// How a run stands now.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn outcome(&self, run_id: RunId) -> Result<RunOutcome, AppError> {
        let run = self.run_by_id(run_id)?;
        let attempts = self.attempts_of(run_id)?;
        Ok(RunOutcome {
            run_id,
            name: run.name,
            state: run.state.as_str().into(),
            attempts: attempts.into_iter().map(AttemptOutcome::from_row).collect(),
            rungs: self.rungs_of(run_id)?,
            evaluation: None,
            gates: Vec::new(),
            remote: remote::RemoteStatus::read(&self.home.run_folder(run_id)),
            preflight: None,
        })
    }
}

impl AttemptOutcome {
    fn from_row(row: trackway_ledger::AttemptRow) -> Self {
        Self {
            attempt_id: row.attempt_id,
            attempt_number: row.attempt_number,
            rung: row.rung,
            termination_reason: row.termination_reason.map(|reason| reason.to_string()),
            termination_rule: row.termination_rule,
            exit_code: row.exit_code,
            signal: row.signal,
            gpu_seconds: row.gpu_seconds,
            wall_seconds: row.wall_seconds,
            last_step: row.last_step,
            last_committed_step: row.last_committed_step,
            resumed_from_step: row.resumed_from_step,
        }
    }
}
