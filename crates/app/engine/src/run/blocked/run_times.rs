//! When attempts ran in a folder: a file that was written meanwhile may be their output.

use std::path::Path;

use trackway_core::Timestamp;
use trackway_ledger::{AttemptFilter, AttemptRow};

use crate::Context;
use crate::error::AppError;

/// Most attempts that are looked at, the newest first.
const ATTEMPTS_MAX: usize = 2000;

/// From when to when attempts ran; one that has not ended has no second time.
#[derive(Debug, Clone, Default)]
pub struct RunTimes(Vec<(Timestamp, Option<Timestamp>)>);

impl RunTimes {
    /// Of the attempts that ran in this folder, in one above it or in one below it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn in_folder(context: &Context, folder: &Path) -> Result<Self, AppError> {
        let filter = AttemptFilter { limit: Some(ATTEMPTS_MAX), ..AttemptFilter::default() };
        let attempts = context.ledger_read(|ledger| ledger.list_attempts(&filter))?;
        let is_near = |attempt: &&AttemptRow| {
            let other = Path::new(&attempt.working_directory);
            folder.starts_with(other) || other.starts_with(folder)
        };
        let time = |attempt: &AttemptRow| Some((attempt.started_at?, attempt.ended_at));
        Ok(Self(attempts.iter().filter(is_near).filter_map(time).collect()))
    }

    /// These.
    #[must_use]
    pub const fn new(times: Vec<(Timestamp, Option<Timestamp>)>) -> Self {
        Self(times)
    }

    /// Whether an attempt ran then. What a process writes it writes before its end is seen.
    #[must_use]
    pub fn has(&self, at: Timestamp) -> bool {
        self.0.iter().any(|(start, end)| *start <= at && end.is_none_or(|end| at <= end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a time counts from the start of an attempt to its end, and of one that has not ended for ever.
    #[test]
    fn an_attempt_ran_from_its_start_to_its_end() {
        let at = Timestamp::from_micros;
        let times = RunTimes::new(vec![(at(10), Some(at(20))), (at(40), None)]);
        assert_eq!(
            [9, 10, 20, 21, 40, 99].map(|micros| times.has(at(micros))),
            [false, true, true, false, true, true]
        );
    }
}
