use std::path::PathBuf;

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

/// An error of the ledger: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Another process holds the ledger for longer than a writer waits.
    #[error(
        "the ledger `{location}` has been locked by another process for {waited_seconds:.0} s: wait until it is done, or find it with `fuser {location}` and end it, then try again"
    )]
    Locked {
        /// The file or URL, without a password.
        location: String,
        /// How long was waited.
        waited_seconds: f64,
    },
    /// The connection to the ledger's server was lost, or cannot be made again.
    #[error("the ledger `{location}` is unavailable: {why}")]
    Unavailable {
        /// The URL, without a password.
        location: String,
        /// The error of the server or the network.
        why: String,
    },
    /// The ledger was made by a newer program.
    #[error(
        "the ledger `{location}` has version {found}, but this program supports up to {known}: use a newer Trackway; nothing was changed"
    )]
    Newer {
        /// The file or URL.
        location: String,
        /// The ledger's version.
        found: i64,
        /// The newest version that this program supports.
        known: i64,
    },
    /// The ledger cannot be opened at all.
    #[error("cannot open the ledger `{location}`: {why}")]
    Open {
        /// The file or URL.
        location: String,
        /// Why, and what to do.
        why: String,
    },
    /// Nothing has this name.
    #[error("no {what} `{name}` in the ledger{hint}")]
    NotFound {
        /// run or attempt.
        what: &'static str,
        /// The requested name.
        name: String,
        /// Near names, or what there is.
        hint: String,
    },
    /// A reference has several meanings.
    #[error("`{word}` is ambiguous: it matches {}{}", .meanings.join(", "), if *.more { " …" } else { "" })]
    Ambiguous {
        /// The requested reference.
        word: String,
        /// Its possible meanings, described.
        meanings: Vec<String>,
        /// Whether there are more.
        more: bool,
    },
    /// The database, or the code before it, refused to change what must not change.
    #[error("the ledger `{location}` refused {doing}: {why}")]
    Integrity {
        /// The file or URL.
        location: String,
        /// What was tried.
        doing: String,
        /// Which rule did not hold.
        why: String,
    },
    /// A run was changed between reading it and writing it back: read it again.
    #[error("run {run_id} was changed by another process at the same time; nothing was written")]
    Changed {
        /// The run.
        run_id: String,
    },
    /// The lease under which this process wrote about a run was granted to another one.
    #[error("run {run_id} is now supervised by another process: {holder}; nothing was written")]
    Superseded {
        /// The run.
        run_id: String,
        /// Its supervisor, for people.
        holder: String,
    },
    /// The database failed.
    #[error("the ledger `{location}` failed at {doing}: {why}")]
    Database {
        /// The file or URL.
        location: String,
        /// What was tried.
        doing: String,
        /// The message of the database.
        why: String,
    },
    /// This build lacks what is needed.
    #[error("this build has no {what}: build it with feature `{feature}`")]
    NotBuilt {
        /// What is missing.
        what: String,
        /// The feature of the binary that adds it.
        feature: &'static str,
    },
    /// A query is wrong.
    #[error("{0}")]
    Query(String),
    /// A file of the home cannot be used.
    #[error("cannot {doing} `{path}`: {source}")]
    File {
        /// read, write …
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another tool's store cannot be imported.
    #[error("cannot import `{path}`: {why}")]
    Import {
        /// Which file or folder.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// A Parquet file cannot be read or written.
    #[error("cannot {doing} `{path}`: {why}")]
    Parquet {
        /// read, write …
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl LedgerError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Locked { .. } => ErrorKind::Locked,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Newer { .. } => ErrorKind::Newer,
            Self::NotFound { .. } | Self::Ambiguous { .. } => ErrorKind::NotFound,
            Self::Integrity { .. } | Self::Superseded { .. } => ErrorKind::Integrity,
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
