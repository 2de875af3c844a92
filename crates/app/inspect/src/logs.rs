//! What an attempt printed, read back: both streams merged by time, each in its own order.

use std::io::{BufReader, Read, Seek, SeekFrom};

use trackway_core::Timestamp;
use trackway_engine::reporter::Stream;
use trackway_launch::{AttemptChannel, ChannelReader, GrowingFile};

/// The longest piece of a line that is held in memory; a longer line comes in several pieces.
pub const PIECE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of one record in a `.times` file: where a line starts, and when.
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

/// Calls `visit` for every selected line, oldest first, in bounded memory.
///
/// # Errors
/// When a log exists but cannot be read, or when `visit` fails.
pub fn visit_lines(
    channel: &dyn AttemptChannel,
    selection: LogSelection,
    visit: &mut dyn FnMut(LogLine) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut cursors = Vec::new();
    for stream in [Stream::Stdout, Stream::Stderr] {
        if selection.stream.is_none_or(|wanted| wanted == stream) {
            cursors.push(Cursor::open(channel, stream, selection.tail)?);
        }
    }
    let mut left = selection.tail.map(|wanted| skip_surplus(&mut cursors, wanted)).transpose()?;
    loop {
        let Some(cursor) = earliest(&mut cursors) else { return Ok(()) };
        let line = cursor.take_line()?;
        if let Some(left) = &mut left {
            if *left == 0 {
                return Ok(());
            }
            *left -= 1;
        }
        visit(line)?;
    }
}

/// The cursor whose next line is the earliest.
fn earliest<'c, 'a>(cursors: &'c mut [Cursor<'a>]) -> Option<&'c mut Cursor<'a>> {
    let with_lines = cursors.iter_mut().filter(|cursor| cursor.mark.is_some());
    with_lines.min_by_key(|cursor| cursor.mark.map(|mark| mark.at))
}

/// Each cursor is at most `wanted` lines before its end; together they may hold more: drops the oldest.
fn skip_surplus(cursors: &mut [Cursor<'_>], wanted: usize) -> std::io::Result<usize> {
    let mut held: usize = cursors.iter().map(|cursor| cursor.lines_left).sum();
    while held > wanted {
        let Some(cursor) = earliest(cursors) else { break };
        cursor.take_line()?;
        held -= 1;
    }
    Ok(wanted)
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    offset: u64,
    at: i64,
}

struct Cursor<'a> {
    stream: Stream,
    log: BufReader<ChannelReader<'a>>,
    log_offset: u64,
    log_bytes: u64,
    times: BufReader<ChannelReader<'a>>,
    mark: Option<Mark>,
    lines_left: usize,
}

impl<'a> Cursor<'a> {
    fn open(channel: &'a dyn AttemptChannel, stream: Stream, tail: Option<usize>) -> std::io::Result<Self> {
        let (log, times) = (GrowingFile::Log(stream), GrowingFile::Times(stream));
        let open = |file| BufReader::with_capacity(BUFFER_BYTES, ChannelReader::new(channel, file));
        let log_bytes = channel.size_bytes(log)?;
        let marks = channel.size_bytes(times)? / MARK_BYTES;
        let first = tail.map_or(0, |wanted| marks.saturating_sub(wanted as u64));
        let mut times = open(times);
        times.seek(SeekFrom::Start(first * MARK_BYTES))?;
        let mut cursor = Self {
            stream,
            log: open(log),
            log_offset: 0,
            log_bytes,
            times,
            mark: None,
            lines_left: usize::try_from(marks - first).unwrap_or(usize::MAX),
        };
        cursor.mark = cursor.next_mark()?;
        Ok(cursor)
    }

    /// The next mark whose bytes are in the log; a torn or too early mark ends the stream.
    fn next_mark(&mut self) -> std::io::Result<Option<Mark>> {
        let mut record = [0; MARK_BYTES as usize];
        match self.times.read_exact(&mut record) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let (offset, at) = record.split_at(8);
        let mark = Mark {
            offset: u64::from_le_bytes(offset.try_into().expect("half of 16 bytes")),
            at: i64::from_le_bytes(at.try_into().expect("half of 16 bytes")),
        };
        Ok((mark.offset < self.log_bytes).then_some(mark))
    }

    fn take_line(&mut self) -> std::io::Result<LogLine> {
        let mark = self.mark.expect("only cursors with a mark are taken from");
        let next = self.next_mark()?;
        let end = next.map_or(self.log_bytes, |next| next.offset.max(mark.offset));
        let length = (end - mark.offset).min(PIECE_BYTES_MAX);
        self.log.seek_relative(mark.offset as i64 - self.log_offset as i64)?;
        let mut bytes = Vec::new();
        (&mut self.log).take(length).read_to_end(&mut bytes)?;
        self.log_offset = mark.offset + bytes.len() as u64;
        // A piece that did not fit comes again from where this one ended.
        self.mark = if mark.offset + length < end {
            Some(Mark { offset: mark.offset + length, at: mark.at })
        } else {
            self.lines_left = self.lines_left.saturating_sub(1);
            next
        };
        if mark.offset + length < end && next.is_some() {
            self.times.seek_relative(-(MARK_BYTES as i64))?;
        }
        Ok(LogLine { at: Timestamp::from_micros(mark.at), stream: self.stream, bytes })
    }
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
