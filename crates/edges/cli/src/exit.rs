//! Errors and exit codes of the command line.

use trackway_core::{BoxError, Timestamp};
use trackway_engine::error::{AppError, ErrorKind};

/// A fault of the machine or of Trackway.
pub const FAULT: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;
/// Checks, a freeze or a budget refuse a launch; an input that must not be used, or a run that still needs what would be replaced.
pub const BLOCKED: u8 = 3;
/// The run did not complete, or the command has no result.
pub const NOT_COMPLETED: u8 = 4;
/// What was judged is not good enough: a gate, a rung, the health of a run, a promotion.
pub const INSUFFICIENT: u8 = 5;
/// What was named does not exist.
pub const NOT_FOUND: u8 = 6;
/// Something is not what was approved, committed or sealed.
pub const INTEGRITY: u8 = 7;

/// Every exit code and what it means, as `trackway --help` and docs/cli-conventions.md list them.
pub const CODES: [(u8, &str); 8] = [
    (0, "done"),
    (FAULT, "a fault of the machine or of Trackway"),
    (USAGE, "invalid usage or run file"),
    (BLOCKED, "refused: checks, freeze, budget, a run that still needs it"),
    (NOT_COMPLETED, "the run did not complete, or the command has no result"),
    (INSUFFICIENT, "completed, but what was judged is not good enough: gate, health, promotion"),
    (NOT_FOUND, "not found"),
    (INTEGRITY, "what is here is not what was approved or hashed"),
];

/// The exit code of a command, or why it failed.
pub type Exit = Result<u8, Failure>;

/// Why a command failed. The exit code is that of the kind of its error, whatever caused it.
#[derive(Debug)]
pub struct Failure {
    pub error: AppError,
}

impl Failure {
    /// Wrong usage: exit code 2.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        AppError::new(ErrorKind::Usage, what).hint(hint).into()
    }

    /// A fault of the machine or of Trackway: exit code 1.
    pub fn fault(what: impl Into<String>) -> Self {
        AppError::new(ErrorKind::Fault, what).into()
    }

    /// The same with one more hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.error.hint(hint).into()
    }

    /// The same with why it happened.
    #[must_use]
    pub fn because(self, cause: impl Into<BoxError>) -> Self {
        self.error.because(cause).into()
    }

    /// The exit code of the command.
    pub fn code(&self) -> u8 {
        match self.error.kind {
            ErrorKind::Fault | ErrorKind::Changed | ErrorKind::Locked | ErrorKind::Unavailable => FAULT,
            ErrorKind::Usage => USAGE,
            ErrorKind::Blocked => BLOCKED,
            ErrorKind::Cancelled => NOT_COMPLETED,
            ErrorKind::NotFound => NOT_FOUND,
            ErrorKind::Integrity => INTEGRITY,
        }
    }
}

/// A timestamp as it was typed; a wrong one is answered with an example.
///
/// # Errors
/// The text is not a timestamp.
pub fn parse_time(text: &str, example: &str) -> Result<Timestamp, Failure> {
    let wrong = |_| Failure::usage(format!("invalid timestamp `{text}`"), format!("expected e.g. {example}"));
    text.parse().map_err(wrong)
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        Self { error }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        AppError::of(ErrorKind::Fault, error).into()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Proves that the exit code is that of what happened, whatever it was caused by.
    #[test]
    fn the_exit_code_does_not_depend_on_causes() {
        let cause = || AppError::new(ErrorKind::Integrity, "the manifest was changed");
        let kinds = [(ErrorKind::Usage, USAGE), (ErrorKind::NotFound, NOT_FOUND), (ErrorKind::Fault, FAULT)];
        for (kind, code) in kinds {
            let alone = Failure::from(AppError::new(kind, "it failed"));
            let caused = alone.code();
            assert_eq!(
                (caused, alone.because(cause()).because(io::Error::other("disk")).code()),
                (code, code)
            );
        }
        assert_eq!(Failure::from(cause().within("not launched")).code(), INTEGRITY);
    }
}
