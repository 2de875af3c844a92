//! The state of a file, by which a change is noticed without reading it.
//!
//! A file counts as unchanged when size, both times of change, inode and device are the same; an object at a URL when
//! size and version are. A time of change that was younger than [`SETTLE_SECONDS`] when reading began is not trusted:
//! within one tick of the file system's clock a second write leaves no trace, so such a file is read again the next
//! time.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trackway_core::Timestamp;

use crate::files::context::ReadContext;
use crate::files::remote::url_of;

/// A file must have been still for this long before it was read.
const SETTLE_SECONDS: f64 = 2.0;

/// Identifies one state of a file without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Identity {
    Local { size_bytes: u64, modified_nanos: i64, changed_nanos: i64, inode: u64, device: u64 },
    Remote { size_bytes: u64, version: String },
}

impl Identity {
    /// Of a file on a disk, or of an object where the path is a URL.
    ///
    /// # Errors
    /// Those of the file system or the storage; [`io::ErrorKind::NotFound`].
    pub fn of(path: &Path, context: &ReadContext) -> io::Result<Self> {
        if let Some(url) = url_of(path) {
            let file = context.remote()?.head(url)?.ok_or(io::ErrorKind::NotFound)?;
            return Ok(Self::Remote { size_bytes: file.size_bytes, version: file.version });
        }
        Self::of_local(path)
    }

    /// Of a file on a disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn of_local(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Ok(Self::Local {
            size_bytes: metadata.len(),
            modified_nanos: nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed_nanos: nanos(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }

    /// The size of the file.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        match self {
            Self::Local { size_bytes, .. } | Self::Remote { size_bytes, .. } => *size_bytes,
        }
    }

    /// Whether a change after this time would show. An object has another version after each change.
    #[must_use]
    pub fn was_settled_at(&self, moment: Timestamp) -> bool {
        let Self::Local { modified_nanos, changed_nanos, .. } = self else { return true };
        let latest_micros = modified_nanos.max(changed_nanos) / 1000;
        latest_micros < moment.plus_seconds(-SETTLE_SECONDS).as_micros()
    }
}
