//! One pass over a file: every chunk is hashed and parsed while it is in memory.

use std::fs::File;
use std::io::{self, Read};

use crate::infer::Column;
use crate::manifest::Finding;

/// Bytes read at a time, per file.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks shorter than this are hashed and parsed one after the other: handing work to another thread costs more.
const PARALLEL_MIN_BYTES: usize = 64 << 10;

/// The longest row of a CSV or JSONL file. A longer one is most often an unclosed quote.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

/// What a parser learned about a file.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) rows: Option<u64>,
    pub(crate) schema: Option<Vec<Column>>,
    pub(crate) header: Option<bool>,
    pub(crate) delimiter: Option<char>,
    pub(crate) findings: Vec<Finding>,
}

/// A parser that is fed a file chunk by chunk. An error ends the pass; its text says what is wrong and where.
pub(crate) trait Parser: Send {
    /// The next bytes of the file.
    fn feed(&mut self, chunk: &[u8]) -> Result<(), String>;
    /// No more bytes come.
    fn finish(self: Box<Self>) -> Result<Content, String>;
}

/// A parser for files of which only size and hash are kept.
pub(crate) struct NoParser;

impl Parser for NoParser {
    fn feed(&mut self, _chunk: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Content, String> {
        Ok(Content::default())
    }
}

/// Why a pass failed.
pub(crate) enum ScanError {
    Read(io::Error),
    Content(String),
}

/// What one pass found.
pub(crate) struct Scanned {
    pub(crate) size_bytes: u64,
    pub(crate) blake3: String,
    pub(crate) content: Content,
}

/// Reads the file to its end, hashing and parsing every chunk. `progress` is told the size of each chunk.
pub(crate) fn scan(
    file: &mut File,
    mut parser: Box<dyn Parser>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Scanned, ScanError> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut size_bytes = 0;
    loop {
        let length = read_full(file, &mut chunk).map_err(ScanError::Read)?;
        if length == 0 {
            break;
        }
        let bytes = &chunk[..length];
        let parsed = if length < PARALLEL_MIN_BYTES {
            hasher.update(bytes);
            parser.feed(bytes)
        } else {
            rayon::join(|| hasher.update(bytes), || parser.feed(bytes)).1
        };
        parsed.map_err(ScanError::Content)?;
        size_bytes += length as u64;
        progress(length as u64);
    }
    let content = parser.finish().map_err(ScanError::Content)?;
    Ok(Scanned { size_bytes, blake3: hasher.finalize().to_hex().to_string(), content })
}

/// Fills the buffer unless the file ends first.
fn read_full(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
