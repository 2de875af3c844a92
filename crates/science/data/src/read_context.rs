//! How data is read: a value that every reader gets.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::budget::Budget;
use crate::limits::Limits;
use crate::remote::RemoteFiles;

/// The limits of reading, the files behind URLs, and the memory that media share. Clones share all three.
#[derive(Clone)]
pub struct ReadContext(Arc<Parts>);

struct Parts {
    limits: Limits,
    remote: Option<Arc<dyn RemoteFiles>>,
    media: Budget,
}

impl ReadContext {
    /// Reads within these limits, and URLs with `remote`; without it a URL is refused.
    #[must_use]
    pub fn new(limits: Limits, remote: Option<Arc<dyn RemoteFiles>>) -> Self {
        Self(Arc::new(Parts { limits, remote, media: Budget::new(limits.media_bytes_max) }))
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.0.limits
    }

    /// What reads URLs.
    pub(crate) fn remote(&self) -> io::Result<&dyn RemoteFiles> {
        let none = || io::Error::new(io::ErrorKind::Unsupported, "this program reads no URLs");
        self.0.remote.as_deref().ok_or_else(none)
    }

    /// The memory of the images and texts that are read at the same time.
    pub(crate) fn media(&self) -> &Budget {
        &self.0.media
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
        let Parts { limits, remote, .. } = &*self.0;
        formatter
            .debug_struct("ReadContext")
            .field("limits", limits)
            .field("remote", &remote.is_some())
            .finish()
    }
}
