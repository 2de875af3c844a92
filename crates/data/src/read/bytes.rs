//! Where the bytes of a file come from: a local file, or whatever else can read a range.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::remote::{remote, url_of};

/// A file of known size of which any range can be read, from several threads at once.
pub trait ByteSource: Send + Sync {
    /// Its size when it was opened.
    fn size_bytes(&self) -> u64;

    /// Reads at most `buffer.len()` bytes from `offset` on and says how many; 0 only at the end.
    ///
    /// # Errors
    /// The system's. Reading again is safe.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A file on a local disk.
struct LocalFile {
    file: File,
    size_bytes: u64,
}

impl LocalFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size_bytes = file.metadata()?.len();
        Ok(Self { file, size_bytes })
    }
}

impl ByteSource for LocalFile {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
}

/// Opens a local file or, where the path is a URL, an object.
pub(crate) fn open(path: &Path) -> io::Result<Arc<dyn ByteSource>> {
    match url_of(path) {
        Some(url) => remote()?.open(url),
        None => Ok(Arc::new(LocalFile::open(path)?)),
    }
}

/// Fills the buffer from `offset` on unless the source ends first; says how much was read.
pub(crate) fn read_full(source: &dyn ByteSource, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match source.read_at(offset + length as u64, &mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// A [`ByteSource`] as the Parquet reader wants it.
#[derive(Clone)]
pub(crate) struct ParquetBytes(pub(crate) Arc<dyn ByteSource>);

impl Length for ParquetBytes {
    fn len(&self) -> u64 {
        self.0.size_bytes()
    }
}

impl ChunkReader for ParquetBytes {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(From { source: Arc::clone(&self.0), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // A damaged footer may claim any length; no memory is asked for that the file cannot fill.
        if start.saturating_add(length as u64) > self.0.size_bytes() {
            let end = self.0.size_bytes();
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} lie behind the file's end, {end}"
            )));
        }
        let mut buffer = vec![0; length];
        let read = read_full(self.0.as_ref(), start, &mut buffer)?;
        if read < length {
            return Err(ParquetError::EOF(format!(
                "the file ends after {read} of {length} bytes at {start}"
            )));
        }
        Ok(buffer.into())
    }
}

/// Reads a source from an offset to its end.
pub(crate) struct From {
    source: Arc<dyn ByteSource>,
    offset: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read_at(self.offset, buffer)?;
        self.offset += length as u64;
        Ok(length)
    }
}
