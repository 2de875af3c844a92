use trackway_core::BoxError;

/// What a caller should do about an error. Part of the contract; the wording of messages is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// It is not known whether it happened: read back, or try again later.
    Unavailable,
    /// Another process was faster, again and again: call again.
    Contended,
    /// Stop: a newer epoch was claimed.
    Fenced,
    /// No room. Nothing happened.
    Full,
    /// Not allowed: credentials, a read-only disk. Nothing happened.
    Refused,
    /// The storage cannot do what the log needs, or this program cannot interpret its contents: neither may be used
    /// with the other.
    Unsupported,
    /// The caller passed something that cannot be stored.
    Input,
    /// What should be there is not, or is something else.
    Damaged,
    /// The caller cancelled it.
    Cancelled,
}

/// What went wrong with a storage or its log.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot {action} {location}: {source}")]
    Backend { kind: ErrorKind, action: &'static str, location: String, source: BoxError },
    #[error("fenced: {holder} claimed epoch {found_epoch}, and this writer has epoch {epoch}")]
    Fenced { epoch: u64, found_epoch: u64, holder: String },
    #[error("other writers keep writing to the log {location}; gave up after {tries} tries")]
    Contended { location: String, tries: u32 },
    #[error("entry {number} of the log {location} has version {version}: use a newer Trackway")]
    Newer { location: String, number: u64, version: u32 },
    #[error("an entry cannot be written: {why}")]
    NotWritable { why: String },
    #[error("{location} cannot be used: {why}")]
    Damaged { location: String, why: String },
    #[error("stopped on request: {location}")]
    Cancelled { location: String },
    #[error("an entry of {size_bytes} bytes is too large; at most {max_bytes} are read")]
    TooLarge { size_bytes: usize, max_bytes: usize },
}

impl StoreError {
    /// What the caller should do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Backend { kind, .. } => *kind,
            Self::Fenced { .. } => ErrorKind::Fenced,
            Self::Contended { .. } => ErrorKind::Contended,
            Self::Newer { .. } => ErrorKind::Unsupported,
            Self::Damaged { .. } => ErrorKind::Damaged,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
            Self::TooLarge { .. } | Self::NotWritable { .. } => ErrorKind::Input,
        }
    }

    /// The same error, met while finding out the outcome of a call: that is unknown, whatever this error's kind.
    pub(crate) fn outcome_unknown(mut self) -> Self {
        if let Self::Backend { kind, .. } = &mut self {
            *kind = ErrorKind::Unavailable;
        }
        self
    }

    /// Wraps an error of the operating system about a path.
    pub fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let location = path.display().to_string();
        move |source| Self::Backend { kind: kind_of(&source), action, location, source: source.into() }
    }
}

fn kind_of(error: &std::io::Error) -> ErrorKind {
    use std::io::ErrorKind as Io;
    match error.kind() {
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::Full,
        Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::Refused,
        Io::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Unavailable,
    }
}
