//! When the lines of a log arrived: records of 16 bytes, offset (u64) and microseconds UTC (i64), little-endian. Lines
//! that arrived together have one record: a flood of short lines would have more records than text.

use trackway_core::Timestamp;

/// Within a long line there is a record at least this often.
pub const MARK_EVERY_BYTES: u64 = 1024 * 1024;
/// The size of one record.
pub const TIME_RECORD_BYTES: usize = 16;

/// One record: what is at this offset of the log, and behind it up to the next record, arrived at this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineTime {
    /// Where in the log the first of these lines (or the next MiB of a long one) begins.
    pub offset_bytes: u64,
    /// When it arrived, by the wall clock.
    pub at: Timestamp,
}

impl LineTime {
    /// The record as it is in the file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; TIME_RECORD_BYTES] {
        let mut record = [0; TIME_RECORD_BYTES];
        record[..8].copy_from_slice(&self.offset_bytes.to_le_bytes());
        record[8..].copy_from_slice(&self.at.as_micros().to_le_bytes());
        record
    }

    /// How many bytes of these records are about bytes of the log before `end_bytes`.
    pub(super) fn stored_bytes(records: &[u8], end_bytes: u64) -> usize {
        let last_first = records.rchunks_exact(TIME_RECORD_BYTES);
        let beyond = last_first.take_while(|record| {
            Self::read_all(record).next().is_some_and(|time| time.offset_bytes >= end_bytes)
        });
        records.len() - beyond.count() * TIME_RECORD_BYTES
    }

    /// Reads the records of a `*.times` file. A torn last record is left out.
    pub fn read_all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        let (numbers, _) = bytes.as_chunks::<8>();
        numbers.as_chunks().0.iter().map(|[offset_bytes, micros]| Self {
            offset_bytes: u64::from_le_bytes(*offset_bytes),
            at: Timestamp::from_micros(i64::from_le_bytes(*micros)),
        })
    }
}

/// Finds where lines begin in the bytes that are about to be logged.
#[derive(Debug)]
pub(super) struct LineStarts {
    at_line_start: bool,
    marked_bytes: u64,
    marked_at: Option<Timestamp>,
    lines: u64,
}

impl LineStarts {
    pub fn new() -> Self {
        Self { at_line_start: true, marked_bytes: 0, marked_at: None, lines: 0 }
    }

    /// How many lines have begun.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Appends the records for `bytes`, which will be at `offset_bytes`. A line that arrived with the line before it has none.
    pub fn scan(&mut self, bytes: &[u8], offset_bytes: u64, at: Timestamp, records: &mut Vec<u8>) {
        let Some(last) = bytes.last() else { return };
        let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let ends_line = *last == b'\n';
        let first_line = match self.at_line_start {
            true => Some(0),
            false => memchr::memchr(b'\n', bytes).map(|newline| newline + 1).filter(|at| *at < bytes.len()),
        };
        if let Some(first) = first_line {
            let start = offset_bytes + first as u64;
            self.lines += newlines + u64::from(self.at_line_start) - u64::from(ends_line);
            if self.marked_at != Some(at) {
                self.mark_long(start, at, records);
                (self.marked_bytes, self.marked_at) = (start, Some(at));
                records.extend_from_slice(&LineTime { offset_bytes: start, at }.to_bytes());
            }
        }
        self.mark_long(offset_bytes + bytes.len() as u64, at, records);
        self.at_line_start = ends_line;
    }

    /// Marks each MiB without a mark before `end_bytes`.
    fn mark_long(&mut self, end_bytes: u64, at: Timestamp, records: &mut Vec<u8>) {
        while end_bytes > self.marked_bytes + MARK_EVERY_BYTES {
            self.marked_bytes += MARK_EVERY_BYTES;
            records.extend_from_slice(&LineTime { offset_bytes: self.marked_bytes, at }.to_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that what arrives together has one record, that every line is counted however the bytes are cut, and that
    /// a giant line has marks.
    #[test]
    fn lines_and_giant_lines_are_marked() {
        let at = Timestamp::from_micros(7);
        for (size, expected) in
            [(1, vec![0, 3, 4, 6]), (2, vec![0, 3, 4, 6]), (3, vec![0, 3, 6]), (100, vec![0])]
        {
            let (mut starts, mut records, mut offset) = (LineStarts::new(), Vec::new(), 0);
            for piece in b"ab\n\nc\nlast".chunks(size) {
                starts.scan(piece, offset, Timestamp::from_micros(offset as i64), &mut records);
                offset += piece.len() as u64;
            }
            let offsets: Vec<u64> = LineTime::read_all(&records).map(|time| time.offset_bytes).collect();
            assert_eq!((offsets, starts.lines()), (expected, 4), "{size}");
        }
        let (mut starts, mut records) = (LineStarts::new(), Vec::new());
        starts.scan(&[b'\n'; 65_536], 0, at, &mut records);
        assert_eq!((records.len(), starts.lines()), (TIME_RECORD_BYTES, 65_536));
        let (mut starts, mut records) = (LineStarts::new(), Vec::new());
        for piece in 0..40u64 {
            starts.scan(&[b'x'; 65_536], piece * 65_536, at, &mut records);
        }
        let offsets: Vec<u64> = LineTime::read_all(&records).map(|time| time.offset_bytes).collect();
        assert_eq!(offsets, [0, 1 << 20, 2 << 20]);
        assert_eq!(
            LineTime::stored_bytes(&records, 1 << 20),
            TIME_RECORD_BYTES,
            "only the first one is before it"
        );
        assert_eq!(LineTime::stored_bytes(&records, 3 << 20), records.len());
    }
}
