//! What an attempt printed, read back: both streams merged by time, each in its own order.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use trackway_core::Timestamp;
use trackway_engine::reporter::Stream;
use trackway_launch::{AttemptChannel, ChannelReader, GrowingFile};

/// The longest piece of a line that is held in memory; a longer line comes in several pieces.
pub const PIECE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of one record in a `.times` file: an offset, and when what is there and behind it arrived.
const MARK_BYTES: u64 = 16;
/// Bytes that are read of a file at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A line, or a piece of a very long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When the shim read its first byte.
    pub at: Timestamp,
    /// Which stream it came from.
    pub stream: Stream,
    /// The bytes, with the newline where there was one.
    pub bytes: Vec<u8>,
}

/// Which lines are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogSelection {
    /// Only this stream.
    pub stream: Option<Stream>,
    /// Only the last lines, this many over both streams.
    pub tail: Option<usize>,
}

/// Calls `visit` for every selected line, oldest first, in bounded memory. How many bytes of the selected streams are before the first
/// line, where only the last ones are wanted.
///
/// # Errors
/// When a log exists but cannot be read, or when `visit` fails.
pub fn visit_lines(
    channel: &dyn AttemptChannel,
    selection: LogSelection,
    visit: &mut dyn FnMut(LogLine) -> std::io::Result<()>,
) -> std::io::Result<u64> {
    let mut cursors = Vec::new();
    for stream in [Stream::Stdout, Stream::Stderr] {
        if selection.stream.is_none_or(|wanted| wanted == stream) {
            cursors.push(Cursor::open(channel, stream, selection.tail)?);
        }
    }
    let mut left = selection.tail.map(|wanted| skip_surplus(&mut cursors, wanted)).transpose()?;
    let before_bytes: u64 = cursors.iter().map(|cursor| cursor.offset).sum();
    loop {
        let Some(cursor) = earliest(&mut cursors) else { return Ok(before_bytes) };
        if left == Some(0) {
            return Ok(before_bytes);
        }
        let piece = cursor.take_piece()?;
        left = left.map(|left| left - usize::from(piece.ends_line));
        visit(piece.line)?;
    }
}

/// The cursor whose next line is the earliest.
fn earliest<'c, 'a>(cursors: &'c mut [Cursor<'a>]) -> Option<&'c mut Cursor<'a>> {
    cursors.iter_mut().filter(|cursor| cursor.has_line()).min_by_key(|cursor| cursor.at)
}

/// Each cursor is at most `wanted` lines before its end; together they may hold more: drops the oldest.
fn skip_surplus(cursors: &mut [Cursor<'_>], wanted: usize) -> std::io::Result<usize> {
    let mut held: usize = cursors.iter().map(|cursor| cursor.lines_left).sum();
    while held > wanted {
        let Some(cursor) = earliest(cursors) else { break };
        let piece = cursor.take_piece()?;
        held -= usize::from(piece.ends_line);
    }
    Ok(wanted)
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    offset: u64,
    at: i64,
}

/// A line, or the next part of one.
struct Piece {
    line: LogLine,
    ends_line: bool,
}

/// A place in one of the logs, at the beginning of a line or of the next piece of a long one.
struct Cursor<'a> {
    stream: Stream,
    log: BufReader<ChannelReader<'a>>,
    offset: u64,
    log_bytes: u64,
    times: BufReader<ChannelReader<'a>>,
    /// When what is at `offset` arrived; `None`: the log has no times, and so no lines.
    at: Option<i64>,
    /// The mark behind that one.
    next: Option<Mark>,
    /// Counted only before a tail.
    lines_left: usize,
}

impl<'a> Cursor<'a> {
    fn open(channel: &'a dyn AttemptChannel, stream: Stream, tail: Option<usize>) -> std::io::Result<Self> {
        let (log, times) = (GrowingFile::Log(stream), GrowingFile::Times(stream));
        let log_bytes = channel.size_bytes(log)?;
        let (offset, lines_left) = match tail {
            Some(wanted) => tail_begin(channel, log, log_bytes, wanted)?,
            None => (0, usize::MAX),
        };
        let open = |file| BufReader::with_capacity(BUFFER_BYTES, ChannelReader::new(channel, file));
        let mut cursor = Self {
            stream,
            log: open(log),
            offset,
            log_bytes,
            times: open(times),
            at: None,
            next: None,
            lines_left,
        };
        cursor.log.seek(SeekFrom::Start(offset))?;
        let first = marks_before(channel, times, offset)?.saturating_sub(1);
        cursor.times.seek(SeekFrom::Start(first * MARK_BYTES))?;
        cursor.next = cursor.read_mark()?;
        cursor.pass_marks()?;
        Ok(cursor)
    }

    fn has_line(&self) -> bool {
        self.offset < self.log_bytes && self.at.is_some()
    }

    /// The next mark; a torn one ends the times.
    fn read_mark(&mut self) -> std::io::Result<Option<Mark>> {
        let mut record = [0; MARK_BYTES as usize];
        match self.times.read_exact(&mut record) {
            Ok(()) => Ok(Some(mark_of(record))),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Advances to the last mark at or before the offset.
    fn pass_marks(&mut self) -> std::io::Result<()> {
        while let Some(mark) = self.next.filter(|mark| mark.offset <= self.offset) {
            self.at = Some(mark.at);
            self.next = self.read_mark()?;
        }
        Ok(())
    }

    fn take_piece(&mut self) -> std::io::Result<Piece> {
        let at = Timestamp::from_micros(self.at.expect("only cursors with a time are taken from"));
        let length = (self.log_bytes - self.offset).min(PIECE_BYTES_MAX);
        let mut bytes = Vec::new();
        (&mut self.log).take(length).read_until(b'\n', &mut bytes)?;
        // A log that became shorter has ended.
        self.offset = if bytes.is_empty() { self.log_bytes } else { self.offset + bytes.len() as u64 };
        let ends_line = bytes.last() == Some(&b'\n') || self.offset >= self.log_bytes;
        self.lines_left = self.lines_left.saturating_sub(usize::from(ends_line));
        self.pass_marks()?;
        Ok(Piece { line: LogLine { at, stream: self.stream, bytes }, ends_line })
    }
}

fn mark_of(record: [u8; MARK_BYTES as usize]) -> Mark {
    let (offset, at) = record.split_at(8);
    Mark {
        offset: u64::from_le_bytes(offset.try_into().expect("half of 16 bytes")),
        at: i64::from_le_bytes(at.try_into().expect("half of 16 bytes")),
    }
}

/// Where the last lines of a log begin, and how many they are. A line is looked through for [`PIECE_BYTES_MAX`] bytes
/// on the average: a log without line ends is not read whole.
fn tail_begin(
    channel: &dyn AttemptChannel,
    log: GrowingFile<'_>,
    log_bytes: u64,
    wanted: usize,
) -> std::io::Result<(u64, usize)> {
    let floor = log_bytes.saturating_sub((wanted as u64).saturating_mul(PIECE_BYTES_MAX));
    let (mut lines, mut end) = (0, log_bytes);
    while end > floor && lines <= wanted {
        let begin = end.saturating_sub(BUFFER_BYTES as u64).max(floor);
        let block = channel.read(log, begin, end - begin)?;
        // A line begins behind each line end but for the one that ends the log.
        let newlines = block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        for (newline, _) in newlines {
            let behind = begin + newline as u64 + 1;
            if behind < log_bytes {
                lines += 1;
                if lines == wanted {
                    return Ok((behind, lines));
                }
            }
        }
        end = begin;
    }
    Ok((floor, lines + usize::from(log_bytes > 0 && wanted > 0)))
}

/// How many marks are at or before an offset, by bisection.
fn marks_before(channel: &dyn AttemptChannel, times: GrowingFile<'_>, offset: u64) -> std::io::Result<u64> {
    let (mut low, mut high) = (0, channel.size_bytes(times)? / MARK_BYTES);
    while low < high {
        let middle = low + (high - low) / 2;
        let record = channel.read(times, middle * MARK_BYTES, MARK_BYTES)?;
        let mark = <[u8; MARK_BYTES as usize]>::try_from(record).map(mark_of);
        if mark.is_ok_and(|mark| mark.offset <= offset) { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use trackway_launch::FolderChannel;

    use super::*;

    fn write_stream(folder: &Path, name: &str, lines: &[(i64, &str)]) {
        let (mut log, mut times) = (Vec::new(), Vec::new());
        for (at, text) in lines {
            times.extend((log.len() as u64).to_le_bytes());
            times.extend(at.to_le_bytes());
            log.extend(text.as_bytes());
        }
        std::fs::write(folder.join(format!("{name}.log")), log).unwrap();
        std::fs::write(folder.join(format!("{name}.times")), times).unwrap();
    }

    fn texts(folder: &Path, selection: LogSelection) -> Vec<String> {
        let mut texts = Vec::new();
        visit_lines(&FolderChannel::new(folder), selection, &mut |line| {
            texts.push(String::from_utf8(line.bytes).unwrap());
            Ok(())
        })
        .unwrap();
        texts
    }

    /// Proves that two streams are merged by time, each in its own order, and that `tail` counts over both.
    #[test]
    fn streams_merge_by_time_and_tail_counts_both() {
        let folder = tempfile::tempdir().unwrap();
        write_stream(folder.path(), "stdout", &[(1, "a\n"), (3, "c\n"), (5, "e\n")]);
        write_stream(folder.path(), "stderr", &[(2, "b\n"), (4, "d\n")]);
        assert_eq!(texts(folder.path(), LogSelection::default()), ["a\n", "b\n", "c\n", "d\n", "e\n"]);
        assert_eq!(texts(folder.path(), LogSelection { tail: Some(2), stream: None }), ["d\n", "e\n"]);
        let stdout = LogSelection { stream: Some(Stream::Stdout), tail: None };
        assert_eq!(texts(folder.path(), stdout), ["a\n", "c\n", "e\n"]);
    }

    /// Proves that a line longer than a piece comes whole, in pieces, followed by the next line.
    #[test]
    fn a_giant_line_comes_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let giant = "x".repeat(PIECE_BYTES_MAX as usize * 2 + 7) + "\n";
        write_stream(folder.path(), "stdout", &[(1, &giant), (2, "next\n")]);
        let texts = texts(folder.path(), LogSelection::default());
        assert_eq!(texts.len(), 4);
        assert_eq!(texts.concat(), format!("{giant}next\n"));
    }

    /// Proves that lines that have no mark have the time of the one before, that a tail begins in the midst of them, and that a log whose
    /// last line has no end is counted with it; and how much is before a tail is known.
    #[test]
    fn lines_that_came_together_share_a_mark() {
        let folder = tempfile::tempdir().unwrap();
        write_stream(folder.path(), "stdout", &[(1, "a\nb\n\nc\n"), (5, "d\ne")]);
        write_stream(folder.path(), "stderr", &[(3, "x\ny\n")]);
        let all = ["a\n", "b\n", "\n", "c\n", "x\n", "y\n", "d\n", "e"];
        for tail in 0..=all.len() {
            let last = &all[all.len() - tail..];
            assert_eq!(texts(folder.path(), LogSelection { tail: Some(tail), stream: None }), last, "{tail}");
        }
        let mut times = Vec::new();
        let last = LogSelection { tail: Some(5), stream: None };
        let before_bytes = visit_lines(&FolderChannel::new(folder.path()), last, &mut |line| {
            times.push(line.at.as_micros());
            Ok(())
        })
        .unwrap();
        assert_eq!(
            (times, before_bytes),
            (vec![1, 3, 3, 5, 5], 5),
            "`a`, `b` and the empty line are before them"
        );
    }

    /// Proves that a folder without logs has no lines, and that a mark beyond the log's end gives no line.
    #[test]
    fn missing_logs_and_early_marks_are_no_lines() {
        let folder = tempfile::tempdir().unwrap();
        assert!(texts(folder.path(), LogSelection::default()).is_empty());
        write_stream(folder.path(), "stdout", &[(1, "a\n")]);
        std::fs::write(folder.path().join("stdout.log"), b"").unwrap();
        assert!(texts(folder.path(), LogSelection::default()).is_empty());
    }
}
