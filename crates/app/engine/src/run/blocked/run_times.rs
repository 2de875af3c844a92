//! When attempts ran in a folder: a file that was written meanwhile may be their output.

use std::path::{Path, PathBuf};

use serde_json::Value;
use trackway_core::Timestamp;
use trackway_ledger::{AttemptFilter, AttemptRow};

use crate::Context;
use crate::capture::script_of;
use crate::error::AppError;

/// Most attempts that are looked at, the newest first.
const ATTEMPTS_MAX: usize = 2000;

/// From when to when an attempt ran; one that has not ended has no second time.
type RunTime = (Timestamp, Option<Timestamp>);

/// When attempts ran.
#[derive(Debug, Clone, Default)]
pub struct RunTimes {
    all: Vec<RunTime>,
    /// Those of one script.
    of_script: Vec<RunTime>,
}

impl RunTimes {
    /// Of the attempts that ran in this folder, in one above it or in one below it, and which of them started this script.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn in_folder(context: &Context, folder: &Path, script: Option<&Path>) -> Result<Self, AppError> {
        let filter = AttemptFilter { limit: Some(ATTEMPTS_MAX), ..AttemptFilter::default() };
        let attempts = context.ledger_read(|ledger| ledger.list_attempts(&filter))?;
        let is_near = |attempt: &&AttemptRow| {
            let other = Path::new(&attempt.working_directory);
            folder.starts_with(other) || other.starts_with(folder)
        };
        let time = |attempt: &AttemptRow| Some((attempt.started_at?, attempt.ended_at));
        let is_of_script =
            |attempt: &&AttemptRow| script.is_some() && script_of_attempt(attempt).as_deref() == script;
        Ok(Self {
            all: attempts.iter().filter(is_near).filter_map(time).collect(),
            of_script: attempts.iter().filter(is_of_script).filter_map(time).collect(),
        })
    }

    /// Whether an attempt ran then. What a process writes it writes before its end is seen.
    #[must_use]
    pub fn has(&self, at: Timestamp) -> bool {
        covers(&self.all, at)
    }

    /// Whether one of the script did. A file that a command names may be written by another script and read by this one.
    #[must_use]
    pub fn has_of_script(&self, at: Timestamp) -> bool {
        covers(&self.of_script, at)
    }
}

fn covers(times: &[RunTime], at: Timestamp) -> bool {
    times.iter().any(|(start, end)| *start <= at && end.is_none_or(|end| at <= end))
}

/// What the command of an attempt starts.
fn script_of_attempt(attempt: &AttemptRow) -> Option<PathBuf> {
    let command = attempt.config_json.pointer("/run/command")?.as_array()?;
    let words: Vec<String> = command.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    script_of(&words, Path::new(&attempt.working_directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a time counts from the start of an attempt to its end, and of one that has not ended for ever.
    #[test]
    fn an_attempt_ran_from_its_start_to_its_end() {
        let at = Timestamp::from_micros;
        let times = [(at(10), Some(at(20))), (at(40), None)];
        assert_eq!(
            [9, 10, 20, 21, 40, 99].map(|micros| covers(&times, at(micros))),
            [false, true, true, false, true, true]
        );
    }
}
