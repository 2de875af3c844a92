//! Where the bytes of a file come from: a local file, or whatever else can read a range.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::files::context::ReadContext;
use crate::files::remote::{ByteSource, url_of};
use crate::limits::PAGE_VARIABLE;

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
///
/// # Errors
/// Those of the file system or the storage.
pub fn open(path: &Path, context: &ReadContext) -> io::Result<Arc<dyn ByteSource>> {
    match url_of(path) {
        Some(url) => context.remote()?.open(url),
        None => Ok(Arc::new(LocalFile::open(path)?)),
    }
}

/// Fills the buffer from `offset` on unless the source ends first; returns how many bytes were read.
///
/// # Errors
/// Those of [`ByteSource::read_at`], but for an interrupted reading, which is repeated.
pub fn read_full(source: &dyn ByteSource, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
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
        // A damaged footer may claim any length; no memory is allocated that the file cannot fill.
        if start.saturating_add(length as u64) > self.0.size_bytes() {
            let end = self.0.size_bytes();
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are after the file's end, {end}"
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

/// The same for reading pages. Before the Parquet reader decodes a page, the size in its header is checked: a page is
/// decoded whole, into as much memory as its header gives.
#[derive(Clone)]
pub(crate) struct ParquetPages {
    pub(crate) bytes: ParquetBytes,
    pub(crate) page_bytes_max: u64,
}

impl Length for ParquetPages {
    fn len(&self) -> u64 {
        self.bytes.len()
    }
}

impl ChunkReader for ParquetPages {
    type T = PageHeader;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let page_bytes_max = Some(self.page_bytes_max);
        Ok(PageHeader { inner: self.bytes.get_read(start)?, page_bytes_max })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.bytes.get_bytes(start, length)
    }
}

/// Reads the header of a page. The Parquet reader also makes one where a page's values begin, and never reads it.
pub(crate) struct PageHeader {
    inner: BufReader<From>,
    /// None: the claim was looked at.
    page_bytes_max: Option<u64>,
}

impl Read for PageHeader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(max) = self.page_bytes_max.take() {
            let refused = match claimed_bytes(self.inner.fill_buf()?) {
                Some(claimed) if claimed <= max => None,
                Some(claimed) => Some(format!(
                    "a page claims {claimed} bytes, decoded, and {} MiB is the most that is read; if it is meant to, raise the \
                     limit with {PAGE_VARIABLE}",
                    max >> 20
                )),
                None => Some("a page has no header with its size".into()),
            };
            if let Some(why) = refused {
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        self.inner.read(buffer)
    }
}

/// What the header of a page claims its values take: `2: i32 uncompressed_page_size` of a struct in Thrift's compact
/// protocol. Every writer writes its fields in order, and the two before it are numbers too.
fn claimed_bytes(header: &[u8]) -> Option<u64> {
    const FIELD: u8 = 2;
    const I32: u8 = 5;
    let mut rest = header.iter().copied();
    let mut field = 0;
    while field < FIELD {
        let head = rest.next()?;
        let step = head >> 4;
        if step == 0 || head & 15 != I32 {
            return None;
        }
        field += step;
        let number = zigzag(&mut rest)?;
        if field == FIELD {
            return u64::try_from(number).ok();
        }
    }
    None
}

fn zigzag(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    const BYTES_MAX: usize = 5;
    let mut number = 0u64;
    for (index, byte) in bytes.take(BYTES_MAX).enumerate() {
        number |= u64::from(byte & 127) << (7 * index);
        if byte < 128 {
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the claim of a page is read as written, negative ones and other headers being none.
    #[test]
    fn what_a_page_claims_is_read() {
        // 1: type 0, 2: uncompressed 5 / 2^31 - 1 / -1.
        assert_eq!(claimed_bytes(&[0x15, 0, 0x15, 10, 0x15, 8]), Some(5));
        assert_eq!(claimed_bytes(&[0x15, 0, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f]), Some(2_147_483_647));
        assert_eq!(claimed_bytes(&[0x25, 10]), Some(5));
        for other in [&[0x15, 0, 0x15, 1][..], &[0x15, 0, 0x2c, 0], &[0x15, 0], &[], &[5, 2, 10], &[0x15; 9]]
        {
            assert!(claimed_bytes(other).is_none_or(|claimed| claimed < 100), "{other:?}");
        }
        assert_eq!(claimed_bytes(&[0x15, 0, 0x15, 1]), None);
    }
}
