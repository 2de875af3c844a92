use std::path::{Path, PathBuf};

use trackway_core::BoxError;

/// What the caller should do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Wait, or end the process that holds the ledger, and try again.
    Locked,
    /// Wait until the ledger's server answers again; whether the last write arrived is not known. It may be repeated.
    Unavailable,
    /// Name something that exists.
    NotFound,
    /// Correct the query, the URL or the values.
    Usage,
    /// A sealed receipt, an append-only table or a hash did not hold: investigate before continuing.
    Integrity,
    /// Read again what was to be changed, and change that.
    Changed,
    /// Use a newer Trackway.
    Newer,
    /// Try again, or report a fault.
    Fault,
}

/// An error with more about it than it says itself: all its causes, or what to do.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Described {
    pub(crate) text: String,
    pub(crate) source: BoxError,
}

/// An error of the ledger: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error(
        "the ledger `{location}` has been locked by another process for {waited_seconds:.0} s: wait until it is done, or find it with `fuser {location}` and end it, then try again"
    )]
    Locked { location: String, waited_seconds: f64 },
    #[error("the ledger `{location}` is unavailable: {why}")]
    Unavailable {
        location: String,
        #[source]
        why: BoxError,
    },
    #[error(
        "the ledger `{location}` has version {found}, but this program supports up to {known}: use a newer Trackway; nothing was changed"
    )]
    Newer { location: String, found: i64, known: i64 },
    #[error("cannot open the ledger `{location}`: {why}")]
    Open {
        location: String,
        #[source]
        why: BoxError,
    },
    #[error("no {what} `{name}` in the ledger{hint}")]
    NotFound { what: &'static str, name: String, hint: String },
    #[error("`{word}` is ambiguous: it matches {}{}", .meanings.join(", "), if *.more { " …" } else { "" })]
    Ambiguous { word: String, meanings: Vec<String>, more: bool },
    #[error("the ledger `{location}` refused {doing}: {why}")]
    Integrity {
        location: String,
        doing: String,
        #[source]
        why: BoxError,
    },
    #[error("run {run_id} was changed by another process at the same time; nothing was written")]
    Changed { run_id: String },
    #[error("{subject} is now supervised by another process: {holder}; nothing was written")]
    Superseded { subject: String, holder: String },
    #[error("the ledger `{location}` failed at {doing}: {why}")]
    Database {
        location: String,
        doing: String,
        #[source]
        why: BoxError,
    },
    #[error(
        "the ledger `{location}` is damaged: {why}, found at {doing}; `trackway doctor rebuild` makes that of a home again from its files, or restore it from a copy"
    )]
    Damaged {
        location: String,
        doing: String,
        #[source]
        why: BoxError,
    },
    #[error("this build has no {what}: build it with feature `{feature}`")]
    NotBuilt { what: String, feature: &'static str },
    #[error("{0}")]
    Query(String),
    #[error("cannot {doing} `{path}`: {source}")]
    File { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot import `{path}`: {why}")]
    Import {
        path: PathBuf,
        #[source]
        why: BoxError,
    },
    #[error("cannot {doing} `{path}`: {why}")]
    Parquet {
        doing: &'static str,
        path: PathBuf,
        #[source]
        why: BoxError,
    },
}

impl LedgerError {
    /// Whether the ledger answers and only what it holds cannot be used.
    #[must_use]
    pub fn is_about_rows(&self) -> bool {
        matches!(self, Self::Database { .. } | Self::Damaged { .. } | Self::Integrity { .. } | Self::Query(_))
    }

    pub(crate) fn not_found(what: &'static str, name: impl ToString, hint: &str) -> Self {
        Self::NotFound { what, name: name.to_string(), hint: hint.into() }
    }

    /// What a database refused or failed at. A rule of a table says so in `why`; `is_constraint`: a constraint of the database.
    pub(crate) fn of_database(location: String, doing: String, why: BoxError, is_constraint: bool) -> Self {
        match why.to_string().split_once(INTEGRITY_MARK) {
            Some((_, rule)) => Self::Integrity { location, doing, why: rule.into() },
            None if is_constraint => Self::Integrity { location, doing, why },
            None => Self::Database { location, doing, why },
        }
    }

    /// Makes failures of the file system from what was done to which file.
    pub fn file(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { doing, path: path.clone(), source }
    }

    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Newer { .. } => ErrorKind::Newer,
            Self::NotFound { .. } | Self::Ambiguous { .. } => ErrorKind::NotFound,
            Self::Integrity { .. } | Self::Superseded { .. } | Self::Damaged { .. } => ErrorKind::Integrity,
            Self::Changed { .. } => ErrorKind::Changed,
            Self::Query(_) | Self::NotBuilt { .. } | Self::Import { .. } => ErrorKind::Usage,
            Self::Open { .. } | Self::Database { .. } | Self::File { .. } | Self::Parquet { .. } => {
                ErrorKind::Fault
            }
        }
    }
}

/// How every message of a trigger begins, so that the refusals of both databases differ from faults.
pub(crate) const INTEGRITY_MARK: &str = "trackway integrity: ";

/// The nearest of `names` to `word`, when one is near enough to be a typing error.
pub fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    names
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}
