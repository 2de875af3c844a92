//! Where bytes come from, and how a parser reads them within its bounds.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use trackway_formats::path_text;
use trackway_formats::zip::{Pieces, ZipFault};

use crate::limits::{BLOCK_BYTES, MAX_PIECE_BYTES, MAX_READ_BYTES, MAX_SEARCH_BYTES, MAX_SMALL_BYTES};
use crate::listing::{Entry, Listing};

/// Where the bytes of a listing's files come from.
pub trait Source {
    /// Up to `length` bytes from `offset` on; fewer only at the end of the file. `path` is that of the listing.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>>;
}

/// A folder on a disk. It keeps the file open that was read last, so make a new one for each listing: a file that was replaced
/// meanwhile would still be read as it was.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    open: RefCell<Option<(String, File)>>,
}

impl Folder {
    /// The folder whose listing has the paths.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), open: RefCell::new(None) }
    }
}

impl Source for Folder {
    fn read_at(&self, path: &str, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut open = self.open.borrow_mut();
        if open.as_ref().is_none_or(|(name, _)| name != path) {
            *open = Some((path.to_owned(), File::open(path_text::join(&self.root, path))?));
        }
        let mut bytes = vec![0; length];
        let mut filled = 0;
        if let Some((_, file)) = open.as_ref() {
            while filled < length {
                match file.read_at(&mut bytes[filled..], offset.saturating_add(filled as u64)) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// Why a walk over a file stopped before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The file ends in the middle of something.
    Ends,
    /// The bytes are not what the format allows.
    Malformed(String),
    /// A bound of this crate was reached, or the format has nothing more to check.
    Beyond(String),
}

impl Fault {
    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed(what.into())
    }
}

impl From<ZipFault> for Fault {
    fn from(fault: ZipFault) -> Self {
        match fault {
            ZipFault::Malformed(what) => Self::Malformed(what),
            ZipFault::Beyond(what) => Self::Beyond(what),
        }
    }
}

/// The bytes of a file, or of a part of it, read forwards in blocks.
pub(crate) struct Reader<'a> {
    source: &'a dyn Source,
    path: &'a str,
    start: u64,
    end: u64,
    position: u64,
    block: Vec<u8>,
    block_at: u64,
    read: u64,
    most: u64,
}

impl<'a> Reader<'a> {
    /// A file, to be checked.
    pub(crate) fn new(source: &'a dyn Source, file: &'a Entry) -> Self {
        Self {
            source,
            path: &file.path,
            start: 0,
            end: file.size,
            position: 0,
            block: Vec::new(),
            block_at: 0,
            read: 0,
            most: MAX_READ_BYTES,
        }
    }

    /// A file of which something is searched for near its begin.
    pub(crate) fn searching(source: &'a dyn Source, file: &'a Entry) -> Self {
        Self { most: MAX_SEARCH_BYTES, ..Self::new(source, file) }
    }

    /// A part of the file, as a reader that begins at 0.
    pub(crate) fn part(&self, offset: u64, length: u64) -> Result<Reader<'a>, Fault> {
        let start = self.start.checked_add(offset).ok_or(Fault::Ends)?;
        let end = start.checked_add(length).filter(|end| *end <= self.end).ok_or(Fault::Ends)?;
        Ok(Reader { start, end, position: start, block: Vec::new(), block_at: 0, ..*self })
    }

    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    pub(crate) fn position(&self) -> u64 {
        self.position - self.start
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.end - self.position
    }

    fn fetch(&mut self, at: u64, length: usize) -> Result<Vec<u8>, Fault> {
        self.read += length as u64;
        if self.read > self.most {
            return Err(Fault::Beyond(format!("more than {} MiB would be read", self.most >> 20)));
        }
        self.source
            .read_at(self.path, at, length)
            .map_err(|error| Fault::Beyond(format!("it cannot be read: {error}")))
    }

    /// A piece at an offset, without a change of the position.
    pub(crate) fn piece(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, Fault> {
        let at = self.start.checked_add(offset).ok_or(Fault::Ends)?;
        if at.checked_add(length as u64).is_none_or(|end| end > self.end) || length > MAX_PIECE_BYTES {
            return Err(if length > MAX_PIECE_BYTES { too_long(length as u64) } else { Fault::Ends });
        }
        let bytes = self.fetch(at, length)?;
        if bytes.len() == length { Ok(bytes) } else { Err(Fault::Ends) }
    }

    /// The next byte, if its block was read already.
    #[inline]
    fn buffered(&self) -> Option<u8> {
        let at = usize::try_from(self.position.checked_sub(self.block_at)?).ok()?;
        self.block.get(at).copied()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Fault> {
        if let Some(byte) = self.buffered() {
            self.position += 1;
            return Ok(byte);
        }
        Ok(self.array::<1>()?[0])
    }

    /// The next byte, which is read again later; nothing at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Option<u8>, Fault> {
        if let Some(byte) = self.buffered() {
            return Ok(Some(byte));
        }
        if self.remaining() == 0 {
            return Ok(None);
        }
        let byte = self.byte()?;
        self.position -= 1;
        Ok(Some(byte))
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// The next bytes, at most [`MAX_PIECE_BYTES`].
    pub(crate) fn take(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        if length > self.remaining() {
            return Err(Fault::Ends);
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_PIECE_BYTES);
        let mut bytes = vec![0; length.ok_or_else(|| too_long(self.remaining()))?];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        if bytes.len() as u64 > self.remaining() {
            return Err(Fault::Ends);
        }
        let mut filled = 0;
        while filled < bytes.len() {
            let within = self.position.checked_sub(self.block_at).and_then(|at| usize::try_from(at).ok());
            let Some(at) = within.filter(|at| *at < self.block.len()) else {
                let length = self.remaining().min(BLOCK_BYTES as u64);
                self.block = self.fetch(self.position, usize::try_from(length).unwrap_or(BLOCK_BYTES))?;
                self.block_at = self.position;
                if self.block.is_empty() {
                    return Err(Fault::Ends);
                }
                continue;
            };
            let count = (bytes.len() - filled).min(self.block.len() - at);
            bytes[filled..filled + count].copy_from_slice(&self.block[at..at + count]);
            filled += count;
            self.position += count as u64;
        }
        Ok(())
    }

    pub(crate) fn skip(&mut self, length: u64) -> Result<(), Fault> {
        if length > self.remaining() {
            return Err(Fault::Ends);
        }
        self.position += length;
        Ok(())
    }
}

impl Pieces for Reader<'_> {
    type Error = Fault;

    fn size_bytes(&self) -> u64 {
        self.len()
    }

    fn piece(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, Fault> {
        Reader::piece(self, offset, length)
    }
}

fn too_long(length: u64) -> Fault {
    Fault::Beyond(format!("a piece of {length} bytes is longer than is read at once"))
}

/// The first bytes of a file: fewer if it is shorter, none if it cannot be read.
pub(crate) fn head(source: &dyn Source, file: &Entry, length: usize) -> Vec<u8> {
    let length = usize::try_from(file.size).unwrap_or(length).min(length);
    source.read_at(&file.path, 0, length).unwrap_or_default()
}

/// The text of a small file, as [`path_text`] has it: it may be a name. Nothing if it is long or cannot be read.
pub(crate) fn small_text(source: &dyn Source, listing: &Listing, path: &str) -> Option<String> {
    let file = listing.file(path).filter(|file| file.size <= MAX_SMALL_BYTES)?;
    let bytes = source.read_at(path, 0, usize::try_from(file.size).ok()?).ok()?;
    Some(path_text::text_of(OsString::from_vec(bytes)))
}
