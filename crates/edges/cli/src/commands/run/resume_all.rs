//! `trackway resume --all`: every run that a shutdown or a preemption left, each with a supervisor without a terminal.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::run::try_supervise;
use trackway_ledger::{RunFilter, RunState};

use crate::exit::{Exit, FAULT};
use crate::printer::Printer;

/// Runs that one command resumes at most.
const RUNS_MAX: usize = 1000;
/// A run that was planned so long ago is not being started by the command that planned it, which holds it soon after.
const STARTING_SECONDS: f64 = 10.0;

/// Resumes them one after the other, each as `trackway resume RUN --detach`. `words` is this command line without the name of the program.
pub fn resume_all(context: &Context, words: impl Iterator<Item = OsString>, printer: Printer) -> Exit {
    let runs = left(context)?;
    if runs.is_empty() {
        printer.note("no run waits for its next attempt");
        return Ok(0);
    }
    let words: Vec<OsString> = words.filter(|word| word != OsStr::new("--detach")).collect();
    let mut code = 0;
    for run in &runs {
        let id = run.to_string();
        let own = words.iter().map(|word| if word == OsStr::new("--all") { OsStr::new(&id) } else { word });
        let mut command = Command::new(std::env::current_exe()?);
        command.args(own).arg("--detach").stdin(Stdio::null());
        let ended = command.status()?;
        if !ended.success() {
            code = ended.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAULT);
            printer.note(format!("{run} was not resumed"));
        }
    }
    Ok(code)
}

/// The runs without a supervisor that have not ended, the oldest first.
fn left(context: &Context) -> Result<Vec<RunId>, AppError> {
    let mut found = Vec::new();
    let now = context.clock.now();
    for state in [RunState::Planned, RunState::Waiting, RunState::Running] {
        let filter = RunFilter { state: Some(state), limit: Some(RUNS_MAX), ..RunFilter::default() };
        for run in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
            let is_of_home = context.home.layout.run(run.run_id).folder().is_dir();
            let may_start = is_starting(run.state, now.seconds_since(run.created_at));
            if is_of_home && !may_start && try_supervise(context, run.run_id)?.mine().is_some() {
                found.push((run.created_at, run.run_id));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, run)| run).collect())
}

/// Whether the command that planned a run may be about to start it.
fn is_starting(state: RunState, age_seconds: f64) -> bool {
    state == RunState::Planned && age_seconds < STARTING_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a run whose supervisor died before it held it is resumed, and one that was planned just now is not.
    #[test]
    fn a_run_that_was_only_planned_is_left() {
        for (state, age_seconds, expected) in [
            (RunState::Planned, 1.0, true),
            (RunState::Planned, 60.0, false),
            (RunState::Running, 1.0, false),
            (RunState::Waiting, 1.0, false),
        ] {
            assert_eq!(is_starting(state, age_seconds), expected, "{state} {age_seconds}");
        }
    }
}
