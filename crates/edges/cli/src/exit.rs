//! Errors and exit codes of the command line (DESIGN §8).

use trackway_engine::error::{AppError, ErrorKind};

/// Wrong usage.
pub const USAGE: u8 = 2;
/// Something was found that must not be trained on, or forbids the launch.
pub const BLOCKED: u8 = 3;
/// The run ended without completing.
pub const NOT_COMPLETED: u8 = 4;
/// A rule refused what would come next.
pub const REFUSED: u8 = 5;
/// Something is not what was committed or sealed.
pub const INTEGRITY: u8 = 7;

/// Why a command failed: what to print, and the exit code.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub message: String,
    pub hints: Vec<String>,
}

impl Failure {
    /// Wrong usage: exit code 2.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into(), hints: vec![hint.into()] }
    }

    /// The same with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// A fault of the machine or of Trackway: exit code 1.
    pub fn fault(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into(), hints: Vec::new() }
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        let code = match error.kind {
            ErrorKind::Fault | ErrorKind::Changed | ErrorKind::Locked | ErrorKind::Unavailable => 1,
            ErrorKind::Usage => USAGE,
            ErrorKind::Blocked => 3,
            ErrorKind::Cancelled => NOT_COMPLETED,
            ErrorKind::NotFound => 6,
            ErrorKind::Integrity => 7,
        };
        Self { code, message: error.message, hints: error.hints }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::fault(error.to_string())
    }
}
