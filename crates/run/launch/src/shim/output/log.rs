//! A log that never blocks its writer: what a full disk refuses waits in memory, is tried again, and is dropped and
//! counted when even that is full.

use std::io::{self, Write};

/// At most this much waits for a full disk, per log.
pub const BACKLOG_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A full disk is tried again so often.
pub(super) const RETRY_MICROS: i64 = 500_000;

/// Bytes on their way to a file.
#[derive(Debug)]
pub(super) struct Log<W> {
    sink: W,
    backlog: Vec<u8>,
    /// Bytes that were accepted: stored, or waiting in the backlog.
    accepted_bytes: u64,
    lost_bytes: u64,
    /// Lost since the last marker line.
    lost_unmarked_bytes: u64,
    retry_at: Option<i64>,
    /// Whether a line in the log states how much was lost. Only for logs that people read.
    mark_losses: bool,
}

impl<W: Write> Log<W> {
    pub fn new(sink: W, mark_losses: bool) -> Self {
        Self {
            sink,
            backlog: Vec::new(),
            accepted_bytes: 0,
            lost_bytes: 0,
            lost_unmarked_bytes: 0,
            retry_at: None,
            mark_losses,
        }
    }

    /// The offset of the next byte in the file.
    pub fn offset(&self) -> u64 {
        self.accepted_bytes
    }

    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    pub fn sink(&self) -> &W {
        &self.sink
    }

    /// When a full disk is to be tried again.
    pub fn retry_at(&self) -> Option<i64> {
        self.retry_at
    }

    /// Takes the bytes, whatever errors the disk returns.
    pub fn write(&mut self, bytes: &[u8], now: i64) {
        if self.retry_at.is_none() {
            let stored = self.store(bytes);
            self.accepted_bytes += stored as u64;
            if stored < bytes.len() {
                self.retry_at = Some(now + RETRY_MICROS);
                self.wait_or_lose(&bytes[stored..]);
            }
        } else {
            self.wait_or_lose(bytes);
        }
    }

    fn wait_or_lose(&mut self, bytes: &[u8]) {
        // Once bytes were lost, later ones must not be written before the marker of the loss.
        let room = if self.lost_unmarked_bytes > 0 { 0 } else { BACKLOG_BYTES_MAX - self.backlog.len() };
        let kept = bytes.len().min(room);
        self.backlog.extend_from_slice(&bytes[..kept]);
        self.accepted_bytes += kept as u64;
        let lost = (bytes.len() - kept) as u64;
        self.lost_bytes += lost;
        self.lost_unmarked_bytes += lost;
    }

    /// Tries the waiting bytes again when their time has come.
    pub fn retry(&mut self, now: i64) {
        if self.retry_at.is_some_and(|at| now >= at) {
            self.retry_at = None;
            let backlog = std::mem::take(&mut self.backlog);
            let stored = self.store(&backlog);
            if stored < backlog.len() {
                self.backlog = backlog;
                self.backlog.drain(..stored);
                self.retry_at = Some(now + RETRY_MICROS);
            } else if self.lost_unmarked_bytes > 0 {
                self.write_marker(now);
            }
        }
    }

    fn write_marker(&mut self, now: i64) {
        let lost = std::mem::take(&mut self.lost_unmarked_bytes);
        if self.mark_losses {
            let marker = format!("\n[trackway: {lost} bytes of output were lost here: the disk was full]\n");
            self.write(marker.as_bytes(), now);
        }
    }

    /// The last try. What still has no place is lost.
    pub fn finish(&mut self) {
        self.retry(i64::MAX - RETRY_MICROS);
        let lost = std::mem::take(&mut self.backlog).len() as u64;
        self.lost_bytes += lost;
        self.accepted_bytes -= lost;
    }

    /// Stores as much as the sink takes.
    fn store(&mut self, bytes: &[u8]) -> usize {
        let mut stored = 0;
        while stored < bytes.len() {
            match self.sink.write(&bytes[stored..]) {
                Ok(0) => break,
                Ok(count) => stored += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with a limit that a test can move.
    #[derive(Debug, Default)]
    struct Disk {
        stored: Vec<u8>,
        limit: usize,
    }

    impl Write for &mut Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.limit - self.stored.len();
            if room == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            let taken = bytes.len().min(room);
            self.stored.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Proves that a disk that was full for a while costs nothing, not even the order.
    #[test]
    fn a_short_shortage_loses_nothing() {
        let mut disk = Disk { limit: 4, ..Disk::default() };
        let mut log = Log::new(&mut disk, true);
        log.write(b"abcdef", 0);
        assert_eq!(log.retry_at(), Some(RETRY_MICROS));
        log.write(b"ghi", 1);
        assert_eq!(log.offset(), 9);
        log.retry(2);
        log.sink.limit = 100;
        log.retry(RETRY_MICROS);
        log.write(b"jkl", RETRY_MICROS);
        log.finish();
        assert_eq!(log.lost_bytes(), 0);
        assert_eq!(disk.stored, b"abcdefghijkl");
    }

    /// Proves that memory stays bounded, that the loss is counted to the byte, and that the log shows where it was.
    #[test]
    fn a_long_shortage_is_bounded_counted_and_marked() {
        let mut disk = Disk::default();
        let mut log = Log::new(&mut disk, true);
        let megabyte = vec![b'x'; 1 << 20];
        for _ in 0..10 {
            log.write(&megabyte, 0);
        }
        assert!(log.backlog.len() <= BACKLOG_BYTES_MAX);
        assert_eq!(log.lost_bytes(), 2 << 20);
        log.sink.limit = usize::MAX;
        log.retry(RETRY_MICROS);
        log.write(b"after\n", RETRY_MICROS);
        log.finish();
        let accepted = log.offset();
        let text = String::from_utf8(disk.stored).unwrap();
        assert_eq!(text.len() as u64, accepted);
        assert!(
            text.ends_with(
                "x\n[trackway: 2097152 bytes of output were lost here: the disk was full]\nafter\n"
            )
        );
    }

    /// Proves that what never found room is counted at the end.
    #[test]
    fn what_never_found_room_is_counted() {
        let mut disk = Disk { limit: 3, ..Disk::default() };
        let mut log = Log::new(&mut disk, true);
        log.write(b"abcdef", 0);
        log.finish();
        assert_eq!((log.lost_bytes(), log.offset()), (3, 3));
    }
}
