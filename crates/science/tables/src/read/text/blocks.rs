//! Text files in blocks that end where a record ends.
//!
//! Blocks are cut one after the other, because only the bytes before a position determine whether it is within quotes.
//! Cutting looks at quotes and line ends only and runs at memory speed; parsing, the expensive part, then runs in
//! parallel.

use std::io;
use std::sync::Arc;

use super::split::{Dialect, QUOTE, count_lines, opens_quote, quote_end};
use crate::files::remote::ByteSource;
use crate::read::bytes::read_full;

/// The longest row of a text file. A longer one is most often an unclosed quote.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

/// Bytes of a file that become one unit of work.
pub(crate) const BLOCK_BYTES: usize = 8 << 20;

/// How much of a file's beginning is used to detect its encoding.
const ENCODING_SAMPLE_BYTES: usize = 4096;

/// The encoding of a text file. Single rows of other bytes are dealt with where they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
}

impl Encoding {
    /// By the byte order mark, else by the positions of the zeros of Latin letters. With the mark's length.
    pub(crate) fn detect(head: &[u8]) -> (Self, usize) {
        match head {
            [0xEF, 0xBB, 0xBF, ..] => return (Self::Utf8, 3),
            [0xFF, 0xFE, ..] => return (Self::Utf16Little, 2),
            [0xFE, 0xFF, ..] => return (Self::Utf16Big, 2),
            _ => {}
        }
        let head = &head[..head.len().min(ENCODING_SAMPLE_BYTES)];
        let zeros = |parity: usize| head.iter().skip(parity).step_by(2).filter(|byte| **byte == 0).count();
        match (zeros(0), zeros(1)) {
            (0, odd) if odd * 4 > head.len() => (Self::Utf16Little, 0),
            (even, 0) if even * 4 > head.len() => (Self::Utf16Big, 0),
            _ => (Self::Utf8, 0),
        }
    }

    /// Appends bytes as UTF-8 and returns how many could be decoded: a letter cut in two waits for its rest.
    pub(crate) fn decode(self, bytes: &[u8], text: &mut Vec<u8>) -> usize {
        let unit = match self {
            Self::Utf8 => {
                text.extend_from_slice(bytes);
                return bytes.len();
            }
            Self::Utf16Little => u16::from_le_bytes,
            Self::Utf16Big => u16::from_be_bytes,
        };
        let mut units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).peekable();
        let mut letter = [0; 4];
        let mut decoded = 0;
        while let Some(first) = units.next() {
            let is_high = (0xD800..0xDC00).contains(&first);
            if is_high && units.peek().is_none() {
                break;
            }
            let low = units.next_if(|next| is_high && (0xDC00..0xE000).contains(next));
            let code = match low {
                Some(low) => 0x10000 + ((u32::from(first) - 0xD800) << 10) + (u32::from(low) - 0xDC00),
                None => u32::from(first),
            };
            match char::from_u32(code) {
                Some(character) => text.extend_from_slice(character.encode_utf8(&mut letter).as_bytes()),
                None => text.extend_from_slice(&half_of_letter(first)),
            }
            decoded += 2 + 2 * usize::from(low.is_some());
        }
        decoded
    }
}

/// Half of a letter without its other half as three bytes that are not UTF-8: so it is counted, and stays apart from others.
fn half_of_letter(unit: u16) -> [u8; 3] {
    let six_bits = |shift: u32| 0x80 | (unit >> shift & 0x3F) as u8;
    [0xE0 | (unit >> 12) as u8, six_bits(6), six_bits(0)]
}

/// Where records end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordEnd {
    /// At every line feed.
    Line,
    /// At every line end that is not within quotes.
    Csv(Dialect),
}

/// Whole records, decoded.
pub(crate) struct Block {
    /// UTF-8, except for single stray bytes.
    pub(crate) text: Vec<u8>,
    /// The line on which it begins, from 1.
    pub(crate) first_line: u64,
    /// Whether it is the file's first.
    pub(crate) is_first: bool,
    /// How many of the file's bytes it covers.
    pub(crate) source_bytes: u64,
}

/// Cuts one file.
pub(crate) struct BlockReader {
    source: Arc<dyn ByteSource>,
    end: RecordEnd,
    encoding: Encoding,
    block_bytes: usize,
    offset: u64,
    /// Decoded text after the last block's end.
    rest: Vec<u8>,
    next_line: u64,
    is_first: bool,
    at_end: bool,
    /// Lines at the file's beginning that are left out.
    skip_lines: u64,
}

/// Why a file could not be cut.
#[derive(Debug)]
pub(crate) enum BlockError {
    Read(io::Error),
    Content(String),
}

impl BlockReader {
    pub(crate) fn open(
        source: Arc<dyn ByteSource>,
        end: RecordEnd,
        block_bytes: usize,
    ) -> Result<Self, BlockError> {
        let mut head = vec![0; ENCODING_SAMPLE_BYTES];
        let length = read_full(source.as_ref(), 0, &mut head).map_err(BlockError::Read)?;
        let (encoding, mark) = Encoding::detect(&head[..length]);
        Ok(Self {
            source,
            end,
            encoding,
            block_bytes,
            offset: mark as u64,
            rest: Vec::new(),
            next_line: 1,
            is_first: true,
            at_end: false,
            skip_lines: 0,
        })
    }

    /// Leaves out so many lines at the file's beginning, whatever they hold.
    pub(crate) fn without_first(mut self, lines: u64) -> Self {
        self.skip_lines = lines;
        self
    }

    /// The next records, in a buffer that may have been used before; `None` at the end of the file.
    pub(crate) fn next(&mut self, buffer: Vec<u8>) -> Result<Option<Block>, BlockError> {
        let mut text = buffer;
        text.clear();
        text.append(&mut self.rest);
        let from = self.offset;
        if self.skip_lines > 0 {
            self.skip_first(&mut text)?;
        }
        let mut wanted = self.block_bytes;
        let end = loop {
            self.fill(&mut text, wanted)?;
            if self.at_end {
                break text.len();
            }
            if let Some(end) = block_end(&text, self.end) {
                break end;
            }
            if text.len() > MAX_RECORD_BYTES {
                return Err(self.too_long());
            }
            // Doubling, so that looking for the end again and again stays linear.
            wanted = text.len() * 2;
        };
        if text.is_empty() {
            return Ok(None);
        }
        self.rest.extend_from_slice(&text[end..]);
        text.truncate(end);
        let first_line = self.next_line;
        self.next_line += match self.end {
            RecordEnd::Line => memchr::memchr_iter(b'\n', &text).count() as u64,
            RecordEnd::Csv(_) => count_lines(&text),
        };
        let is_first = std::mem::replace(&mut self.is_first, false);
        Ok(Some(Block { text, first_line, is_first, source_bytes: self.offset - from }))
    }

    /// Reads past the lines that are left out; what was read behind them stays in `text`.
    fn skip_first(&mut self, text: &mut Vec<u8>) -> Result<(), BlockError> {
        while self.skip_lines > 0 {
            match memchr::memchr(b'\n', text) {
                Some(end) => {
                    text.drain(..=end);
                    self.skip_lines -= 1;
                    self.next_line += 1;
                }
                None if self.at_end => {
                    text.clear();
                    self.skip_lines = 0;
                }
                None if text.len() > MAX_RECORD_BYTES => return Err(self.too_long()),
                None => self.fill(text, text.len() + ENCODING_SAMPLE_BYTES)?,
            }
        }
        Ok(())
    }

    /// Reads until the text is `wanted` long or the file ends.
    fn fill(&mut self, text: &mut Vec<u8>, wanted: usize) -> Result<(), BlockError> {
        // One byte more than there is shows the end; memory for more would only be cleared.
        let left = self.source.size_bytes().saturating_sub(self.offset).saturating_add(1);
        let missing = wanted.saturating_sub(text.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut bytes = Vec::new();
        let target = if self.encoding == Encoding::Utf8 { &mut *text } else { &mut bytes };
        let before = target.len();
        target.resize(before + missing, 0);
        let read =
            read_full(self.source.as_ref(), self.offset, &mut target[before..]).map_err(BlockError::Read)?;
        target.truncate(before + read);
        self.at_end = read < missing;
        self.offset += read as u64;
        if self.encoding != Encoding::Utf8 {
            let decoded = self.encoding.decode(&bytes, text);
            if self.at_end && decoded < bytes.len() {
                // Not UTF-8, so that it is counted.
                text.push(0xFF);
            } else {
                self.offset -= (bytes.len() - decoded) as u64;
            }
        }
        Ok(())
    }

    fn too_long(&self) -> BlockError {
        let (line, max) = (self.next_line, MAX_RECORD_BYTES >> 20);
        BlockError::Content(match self.end {
            RecordEnd::Line => format!("line {line} is longer than {max} MiB"),
            RecordEnd::Csv(_) => {
                format!("the row that begins in line {line} is longer than {max} MiB; is a quote left open?")
            }
        })
    }
}

/// Where a block ends: behind the last record that surely ends in the text. Empty lines behind it begin the next block, which
/// counts them with the row that follows.
fn block_end(text: &[u8], records: RecordEnd) -> Option<usize> {
    let end = last_record_end(text, records)?;
    if records == RecordEnd::Line {
        return Some(end);
    }
    match text[..end].iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')) {
        Some(last) => Some(last + 1 + if text[last + 1..end].starts_with(b"\r\n") { 2 } else { 1 }),
        None => (text.len() > MAX_RECORD_BYTES).then_some(end),
    }
}

/// The position after the last record that surely ends in the text, which begins where a record begins.
fn last_record_end(text: &[u8], end: RecordEnd) -> Option<usize> {
    let RecordEnd::Csv(dialect) = end else { return memchr::memrchr(b'\n', text).map(|at| at + 1) };
    let mut outside_from = 0;
    let mut found = None;
    let mut position = 0;
    while let Some(quote) = memchr::memchr(QUOTE, &text[position..]).map(|at| position + at) {
        position = quote + 1;
        let is_comment =
            || dialect.comment.is_some_and(|comment| is_in_comment(text, outside_from, quote, comment));
        if !opens_quote(text, quote, dialect.delimiter) || is_comment() {
            continue;
        }
        found = last_line_end(&text[outside_from..quote]).map(|at| outside_from + at).or(found);
        match quote_end(text, quote + 1, dialect.has_backslashes) {
            // A quote as the last byte may be the first half of an escaped one.
            Some(end) if end + 1 < text.len() => {
                outside_from = end + 1;
                position = outside_from;
            }
            _ => return found,
        }
    }
    last_line_end(&text[outside_from..]).map(|at| outside_from + at).or(found)
}

/// Whether the line of a place outside of quotes, which begin and end before `from`, is a comment.
fn is_in_comment(text: &[u8], from: usize, at: usize, comment: u8) -> bool {
    let begin = memchr::memrchr2(b'\n', b'\r', &text[from..at]).map(|end| from + end + 1);
    // A line in which a quoted field ends began before it.
    begin.or((from == 0).then_some(0)).is_some_and(|begin| text.get(begin) == Some(&comment))
}

fn last_line_end(text: &[u8]) -> Option<usize> {
    // A carriage return as the last byte may be the first half of a line end.
    let lone_return = || memchr::memrchr(b'\r', &text[..text.len().saturating_sub(1)]);
    memchr::memrchr(b'\n', text).or_else(lone_return).map(|at| at + 1)
}
