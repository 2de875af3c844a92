//! Errors by what the caller should do about them.

use std::error::Error;
use std::fmt;

use trackway_core::BoxError;
use trackway_formats::runfile::RunFileError;
use trackway_ledger::LedgerError;

/// What the caller should do about an error. The edges turn it into exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Correct the command line, the run file or the data it names.
    Usage,
    /// Nothing was done: a launch would waste money, or a run still needs what would be replaced.
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

/// An error of a use case: what happened, why, and what to do.
///
/// As text it is one line with all its causes, as notes and rows of the ledger keep it. Who prints it for a person takes
/// [`AppError::what`] and [`AppError::causes`] apart.
#[derive(Debug)]
pub struct AppError {
    /// What the caller should do.
    pub kind: ErrorKind,
    /// What to do about it.
    pub hints: Vec<String>,
    what: String,
    source: Option<BoxError>,
    mistakes: Vec<FileMistake>,
}

/// A mistake of a run file or a settings file, as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMistake {
    /// What is wrong, and where.
    pub error: RunFileError,
    /// The same with the line and a caret below it.
    pub shown: String,
}

impl AppError {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, what: impl Into<String>) -> Self {
        Self { kind, hints: Vec::new(), what: what.into(), source: None, mistakes: Vec::new() }
    }

    /// An error of a kind that another error describes completely.
    pub fn of(kind: ErrorKind, error: impl Into<BoxError>) -> Self {
        let error = error.into();
        Self::new(kind, error.to_string()).because(error)
    }

    /// A fault of the machine while doing `what`.
    pub fn fault(what: impl fmt::Display, error: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::Fault, what.to_string()).because(error)
    }

    /// A file of the home could not be used.
    pub fn file(doing: &str, path: &std::path::Path, error: std::io::Error) -> Self {
        Self::fault(format_args!("cannot {doing} `{}`", path.display()), error)
    }

    /// The mistakes of a run file or a settings file, each with line and caret; `text` is that of the file.
    #[must_use]
    pub fn run_file(errors: &[RunFileError], text: &str) -> Self {
        let shown: Vec<String> = errors.iter().map(|error| error.render_plain(text)).collect();
        let what = shown.join("\n\n");
        let both = errors.iter().cloned().zip(shown);
        let mistakes = both.map(|(error, shown)| FileMistake { error, shown }).collect();
        Self { mistakes, ..Self::new(ErrorKind::Usage, what) }
    }

    /// Adds why it happened.
    #[must_use]
    pub fn because(mut self, cause: impl Into<BoxError>) -> Self {
        self.source = Some(cause.into());
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same of another kind.
    #[must_use]
    pub fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// The same as the cause of what could not be done for it, with its kind and what to do.
    #[must_use]
    pub fn within(mut self, what: impl Into<String>) -> Self {
        let hints = std::mem::take(&mut self.hints);
        Self { hints, ..Self::new(self.kind, what).because(self) }
    }

    /// What happened and where, without its causes.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Why it happened, the nearest cause first; what was said before is left out.
    #[must_use]
    pub fn causes(&self) -> Vec<String> {
        let (mut said, mut causes) = (self.what.clone(), Vec::new());
        for cause in std::iter::successors(self.source(), |&cause| cause.source()) {
            let text = text_of(cause);
            if !said.contains(&text) {
                said.extend(["\n", text.as_str()]);
                causes.push(text);
            }
        }
        causes
    }

    /// The mistakes of a file, where it is about these: they are all that happened.
    #[must_use]
    pub fn mistakes(&self) -> &[FileMistake] {
        &self.mistakes
    }
}

/// What an error says without its causes, where that can be known.
fn text_of(error: &(dyn Error + 'static)) -> String {
    error.downcast_ref::<AppError>().map_or_else(|| error.to_string(), |error| error.what.clone())
}

impl fmt::Display for AppError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)?;
        self.causes().iter().try_for_each(|cause| write!(formatter, ": {cause}"))
    }
}

impl Error for AppError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|cause| cause as _)
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
        let is_ambiguous = matches!(error, LedgerError::Ambiguous { .. });
        let shown = Self::of(kind, error);
        if is_ambiguous { shown.hint("use the full id") } else { shown }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// An error that says only what itself did.
    #[derive(Debug, thiserror::Error)]
    #[error("the manifest is not readable")]
    struct Outer(#[source] Inner);

    /// An error whose text has its cause in it.
    #[derive(Debug, thiserror::Error)]
    #[error("cannot read `manifest.json`: {0}")]
    struct Inner(#[source] io::Error);

    fn chain() -> AppError {
        let disk = io::Error::other("the disk is gone");
        AppError::fault("the checkpoints could not be read", Outer(Inner(disk)))
    }

    /// Proves that every error of a chain is said once, the nearest first, also where a text repeats its cause.
    #[test]
    fn each_cause_is_said_once() {
        let error = chain();
        assert_eq!(error.what(), "the checkpoints could not be read");
        let causes = ["the manifest is not readable", "cannot read `manifest.json`: the disk is gone"];
        assert_eq!(error.causes(), causes);
        assert_eq!(error.to_string(), format!("{}: {}: {}", error.what(), causes[0], causes[1]));
        let itself = AppError::of(ErrorKind::Usage, Inner(io::Error::other("the disk is gone")));
        assert_eq!((itself.to_string().as_str(), itself.causes().len()), (causes[1], 0));
    }

    /// Proves that an error within another one is a cause like any other, and that kind and hints are those of the inner one.
    #[test]
    fn an_error_within_another_one_keeps_its_kind() {
        let outer =
            chain().with_kind(ErrorKind::Integrity).hint("look at the disk").within("`run.start_from`");
        assert_eq!(
            (outer.kind, outer.hints.as_slice()),
            (ErrorKind::Integrity, &["look at the disk".to_owned()][..])
        );
        assert_eq!((outer.what(), outer.causes().len()), ("`run.start_from`", 3));
        assert_eq!(outer.causes()[0], "the checkpoints could not be read");
    }

    /// Proves that the chain leads to the error of the disk, as a caller may look for it.
    #[test]
    fn the_sources_lead_to_the_first_cause() {
        let error = chain();
        let last = std::iter::successors(error.source(), |&cause| cause.source()).last();
        assert!(last.is_some_and(|cause| cause.is::<io::Error>()), "{error:?}");
    }
}
