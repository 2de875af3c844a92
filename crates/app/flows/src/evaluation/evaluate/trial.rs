//! The evaluator tried on the checkpoint of a rehearsal: whether it starts, ends well and leaves what can be read. Nothing of it is
//! kept, and no use of the task set is counted: no number of it is shown.

use trackway_core::{LaunchKind, RunId, Step, TerminationReason};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::{NotesOnly, Reporter};
use trackway_engine::run::{Prepared, Rehearsal, Start, begin, rehearse};
use trackway_files::TempFolder;
use trackway_ledger::AttemptRow;
use trackway_rules::preflight::rehearsal::EvaluatorTrial;

use super::launches::{evaluator_variables, linked};
use super::outputs::check_outputs;
use super::subject::EvaluationRequest;
use crate::checkpoints::{self, CheckpointRef, ReadOnly};

/// Rows that the built-in evaluator scores in a trial.
const ROWS_MAX: u64 = 256;
/// The name of its folder for outputs, while it is there.
const OUT: &str = "evaluation";

/// How it went, and its launch.
pub(crate) struct Tried {
    pub trial: EvaluatorTrial,
    pub launch: AttemptRow,
    /// The run of the launch.
    pub run_id: RunId,
}

/// Launches the evaluator of a run file once on a checkpoint of a rehearsal, in its place of a queue.
///
/// # Errors
/// A fault while launching. What the evaluator does wrong is not an error but the result.
pub(crate) fn try_evaluator(
    context: &Context,
    asked: &EvaluationRequest,
    of: &Prepared,
    step: Step,
    timeout_seconds: f64,
    reporter: &dyn Reporter,
) -> Result<Tried, AppError> {
    let (section, run_id) = (&asked.section, of.run.run_id);
    let job = asked.evaluator_job_for(context, Some(ROWS_MAX))?;
    let checkpoints = checkpoints::checkpoints(context, run_id)?;
    let chosen = checkpoints.chosen(&CheckpointRef::Step(step))?;
    let run_folder = context.home.layout.run(run_id).folder().to_owned();
    let out = TempFolder::beside(&run_folder.join(OUT))
        .map_err(|error| AppError::file("make a folder in", &run_folder, error))?;
    let folder = checkpoints.verified_folder(&chosen, out.path(), &|_, _| {})?;
    // Not in the folder of the results, which must be empty.
    let links = TempFolder::beside(&run_folder.join(OUT))
        .map_err(|error| AppError::file("make a folder in", &run_folder, error))?;
    let as_written = linked(&folder, links.path())?;
    let mut start = Start::without_data(context, job);
    start.place = of.place.clone();
    let prepared = begin(context, &start, LaunchKind::Evaluate, &NotesOnly(reporter))?;
    let timeout_seconds = timeout_seconds.min(section.timeout_seconds);
    let read_only = ReadOnly::of(&folder);
    let rehearsal = Rehearsal {
        environment: evaluator_variables(asked, &chosen, &folder, &as_written, out.path()),
        timeout_seconds: Some(timeout_seconds),
        ..Rehearsal::default()
    };
    let sealed = rehearse(context, &prepared, None, &rehearsal, &NotesOnly(reporter))?;
    drop(read_only);
    let reason = sealed.row.termination_reason.unwrap_or(TerminationReason::Unknown);
    let trial = match reason {
        TerminationReason::Timeout => EvaluatorTrial::TimedOut(timeout_seconds as u64),
        _ if !reason.is_success() => EvaluatorTrial::Failed(format!(
            "it ended as `{reason}` ({}; `trackway logs {}`)",
            sealed.evidence, sealed.row.attempt_id
        )),
        _ => match check_outputs(context, out.path(), section, 0) {
            Ok(()) => EvaluatorTrial::Answered,
            Err(error) if error.kind == ErrorKind::Usage => EvaluatorTrial::Failed(error.to_string()),
            Err(error) => return Err(error),
        },
    };
    Ok(Tried { trial, run_id: prepared.run.run_id, launch: sealed.row })
}
