//! How data is read: a value that every reader gets.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::files::budget::Budget;
use crate::files::remote::RemoteFiles;
use crate::limits::Limits;

/// The limits of reading, the files behind URLs, and the memory that media share. Clones share all three.
#[derive(Clone)]
pub struct ReadContext {
    parts: Arc<Parts>,
    is_strict: bool,
}

struct Parts {
    limits: Limits,
    remote: Option<Arc<dyn RemoteFiles>>,
    media: Budget,
}

impl ReadContext {
    /// Reads within these limits, and URLs with `remote`; without it a URL is refused.
    #[must_use]
    pub fn new(limits: Limits, remote: Option<Arc<dyn RemoteFiles>>) -> Self {
        let parts = Parts { limits, remote, media: Budget::new(limits.media_bytes_max) };
        Self { parts: Arc::new(parts), is_strict: false }
    }

    /// The same, for readings that end with an error where something is not read as it is written: see
    /// [`ReadNote`](crate::read::ReadNote).
    #[must_use]
    pub fn strict(&self, is_strict: bool) -> Self {
        Self { parts: Arc::clone(&self.parts), is_strict }
    }

    /// Whether readings are strict.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.is_strict
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.parts.limits
    }

    /// What reads URLs.
    pub(crate) fn remote(&self) -> io::Result<&dyn RemoteFiles> {
        let none = || io::Error::new(io::ErrorKind::Unsupported, "this program reads no URLs");
        self.parts.remote.as_deref().ok_or_else(none)
    }

    /// The memory of the images and texts that are read at the same time.
    #[must_use]
    pub fn media(&self) -> &Budget {
        &self.parts.media
    }
}

/// The default limits, and no URLs.
impl Default for ReadContext {
    fn default() -> Self {
        Self::new(Limits::default(), None)
    }
}

impl fmt::Debug for ReadContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { limits, remote, .. } = &*self.parts;
        formatter
            .debug_struct("ReadContext")
            .field("limits", limits)
            .field("remote", &remote.is_some())
            .field("is_strict", &self.is_strict)
            .finish()
    }
}
