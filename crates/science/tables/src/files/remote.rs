//! Files at URLs. This crate does not use the network: an application passes in how such files are listed and read.

use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file of known size of which any range can be read, from several threads at once.
pub trait ByteSource: Send + Sync {
    /// Its size when it was opened.
    fn size_bytes(&self) -> u64;

    /// Reads at most `buffer.len()` bytes from `offset` on and returns how many; 0 only at the end.
    ///
    /// # Errors
    /// The system's. Reading again is safe.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// An object of a remote storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its whole URL, such as `s3://bucket/data/part-1.parquet`.
    pub url: String,
    pub size_bytes: u64,
    /// What changes with its content: a version or an entity tag.
    pub version: String,
}

/// How files at URLs are found and read. Every call may be repeated.
pub trait RemoteFiles: Send + Sync {
    /// Every object whose URL begins with this one and a `/`, in any order.
    ///
    /// # Errors
    /// The storage's answer; [`io::ErrorKind::Unsupported`] for a scheme that is not known.
    fn list(&self, folder_url: &str) -> io::Result<Vec<RemoteFile>>;

    /// The object at this URL; `None` if there is none.
    ///
    /// # Errors
    /// As [`RemoteFiles::list`].
    fn head(&self, url: &str) -> io::Result<Option<RemoteFile>>;

    /// Opens an object for ranged reads.
    ///
    /// # Errors
    /// As [`RemoteFiles::list`]; [`io::ErrorKind::NotFound`].
    fn open(&self, url: &str) -> io::Result<Arc<dyn ByteSource>>;
}

/// The URL that a path is; `None` for one of a file system.
#[must_use]
pub fn url_of(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| text.contains("://"))
}
