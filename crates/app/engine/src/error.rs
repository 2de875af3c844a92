//! Errors by what the caller should do about them.

use trackway_formats::runfile::RunFileError;
use trackway_ledger::LedgerError;

/// What the caller should do about an error. The edges turn it into exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Correct the command line, the run file or the data it names.
    Usage,
    /// Nothing was launched, because launching would waste money.
    Blocked,
    /// Name something that exists.
    NotFound,
    /// A hash, a fence or a sealed receipt did not hold: investigate before continuing.
    Integrity,
    /// Another process changed the same at the same time: read it again and try again.
    Changed,
    /// Wait until another process releases the ledger, and try again.
    Locked,
    /// Wait until the ledger's server, or an engine, answers again.
    Unavailable,
    /// It was cancelled before it was done.
    Cancelled,
    /// Try again, or report a fault of Trackway's own.
    Fault,
}

impl ErrorKind {
    /// Whether a repeated call may succeed later without any change.
    #[must_use]
    pub fn is_passing(self) -> bool {
        matches!(self, Self::Changed | Self::Locked | Self::Unavailable | Self::Cancelled)
    }
}

/// An error of a use case: what happened, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    /// What the caller should do.
    pub kind: ErrorKind,
    /// What happened and where, causes included.
    pub message: String,
    /// What to do about it.
    pub hints: Vec<String>,
}

impl AppError {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// A fault of the machine while doing `what`, with its causes.
    pub fn fault(what: impl std::fmt::Display, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(ErrorKind::Fault, format!("{what}: {}", chain(error)))
    }

    /// The mistakes of a run file or a settings file, each with line and caret.
    #[must_use]
    pub fn run_file(errors: &[RunFileError], source: &str) -> Self {
        let rendered: Vec<String> = errors.iter().map(|error| error.render_plain(source)).collect();
        let message = rendered.join("\n\n");
        Self::new(ErrorKind::Usage, message.strip_prefix("error: ").unwrap_or(&message))
    }

    /// A file of the home could not be used.
    pub fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(ErrorKind::Fault, format!("cannot {doing} `{}`: {error}", path.display()))
    }
}

impl From<LedgerError> for AppError {
    fn from(error: LedgerError) -> Self {
        let kind = match error.kind() {
            trackway_ledger::ErrorKind::NotFound => ErrorKind::NotFound,
            trackway_ledger::ErrorKind::Usage => ErrorKind::Usage,
            trackway_ledger::ErrorKind::Integrity => ErrorKind::Integrity,
            trackway_ledger::ErrorKind::Locked => ErrorKind::Locked,
            trackway_ledger::ErrorKind::Unavailable => ErrorKind::Unavailable,
            trackway_ledger::ErrorKind::Changed => ErrorKind::Changed,
            trackway_ledger::ErrorKind::Newer | trackway_ledger::ErrorKind::Fault => ErrorKind::Fault,
        };
        let shown = Self::new(kind, error.to_string());
        match error {
            LedgerError::Ambiguous { .. } => shown.hint("use the full id"),
            _ => shown,
        }
    }
}

/// An error and its causes in one line; a cause that is already contained in the text before is not repeated.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
