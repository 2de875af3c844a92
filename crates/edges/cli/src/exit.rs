//! Errors and exit codes of the command line (DESIGN §8).

use trackway_core::Timestamp;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_formats::runfile::parse_duration;

/// A fault of the machine or of Trackway.
pub const FAULT: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;
/// Something was found that must not be trained on, or forbids the launch.
pub const BLOCKED: u8 = 3;
/// The run ended without completing.
pub const NOT_COMPLETED: u8 = 4;
/// A rule refused what would come next.
pub const REFUSED: u8 = 5;
/// There is no such thing.
pub const NOT_FOUND: u8 = 6;
/// Something is not what was committed or sealed.
pub const INTEGRITY: u8 = 7;

/// The exit code of a command, or why it failed.
pub type Exit = Result<u8, Failure>;

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
        Self { code: FAULT, message: message.into(), hints: Vec::new() }
    }
}

/// A duration as it was typed, in seconds; a wrong one is answered with `examples`.
///
/// # Errors
/// It is none.
pub fn seconds(text: &str, examples: &str) -> Result<f64, Failure> {
    let wrong = || Failure::usage(format!("invalid duration `{text}`"), format!("expected e.g. {examples}"));
    parse_duration(text).ok_or_else(wrong)
}

/// A timestamp as it was typed; a wrong one is answered with an example.
///
/// # Errors
/// It is none.
pub fn moment(text: &str, example: &str) -> Result<Timestamp, Failure> {
    let wrong = |_| Failure::usage(format!("invalid timestamp `{text}`"), format!("expected e.g. {example}"));
    text.parse().map_err(wrong)
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        let code = match error.kind {
            ErrorKind::Fault | ErrorKind::Changed | ErrorKind::Locked | ErrorKind::Unavailable => FAULT,
            ErrorKind::Usage => USAGE,
            ErrorKind::Blocked => BLOCKED,
            ErrorKind::Cancelled => NOT_COMPLETED,
            ErrorKind::NotFound => NOT_FOUND,
            ErrorKind::Integrity => INTEGRITY,
        };
        Self { code, message: error.message, hints: error.hints }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::fault(error.to_string())
    }
}
