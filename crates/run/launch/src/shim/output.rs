//! One of the script's two outputs: from the pipe through redaction into the log, with the times of its lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use trackway_core::Clock;
use trackway_files::open_own;
use trackway_redact::StreamRedactor;

use super::log::Log;
use super::times::{LineStarts, LineTime};

/// How long an unfinished line waits for its end before it is shown.
const PARTIAL_LINE_MICROS: i64 = 200_000;
/// The pipe is made this large where the system allows it, so that a burst of output does not stop the script.
const PIPE_BYTES: i32 = 1024 * 1024;

/// A pipe that the script writes to and its log.
#[derive(Debug)]
pub(super) struct Output<'a> {
    /// `None` once no process can write to it any more.
    pipe: Option<File>,
    redactor: StreamRedactor<'a>,
    log: Log<File>,
    times: Log<File>,
    starts: LineStarts,
    clean: Vec<u8>,
    records: Vec<u8>,
    held_since: Option<i64>,
    bytes_read: u64,
}

impl<'a> Output<'a> {
    /// Opens the log before the script exists, so that it can never run unheard.
    pub fn open(log: &Path, times: &Path, redactor: StreamRedactor<'a>) -> io::Result<Self> {
        let open = |path: &Path| open_own(OpenOptions::new().append(true).create(true), path);
        Ok(Self {
            pipe: None,
            redactor,
            log: Log::new(open(log)?, true),
            times: Log::new(open(times)?, false),
            starts: LineStarts::new(),
            clean: Vec::new(),
            records: Vec::new(),
            held_since: None,
            bytes_read: 0,
        })
    }

    /// Makes the pipe. Gives back the script's end.
    pub fn make_pipe(&mut self) -> io::Result<File> {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // Unprivileged users may have used up their pipe memory; the usual 64 KiB do as well.
        fcntl(&read, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).ok();
        self.pipe = Some(File::from(read));
        Ok(File::from(write))
    }

    /// The pipe to wait for, while a process can write to it.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads once. Gives back the raw bytes, `None` when there are none now.
    pub fn read<'b>(&mut self, buffer: &'b mut [u8], clock: &dyn Clock) -> Option<&'b [u8]> {
        let pipe = self.pipe.as_mut()?;
        match pipe.read(buffer) {
            Ok(0) => {
                self.pipe = None;
                None
            }
            Ok(count) => {
                self.bytes_read += count as u64;
                self.redactor.push(&buffer[..count], &mut self.clean);
                self.store(clock);
                let held = self.redactor.held_bytes() > 0;
                let since = self.held_since.unwrap_or_else(|| clock.monotonic_micros());
                self.held_since = held.then_some(since);
                Some(&buffer[..count])
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                None
            }
            Err(_) => {
                self.pipe = None;
                None
            }
        }
    }

    fn store(&mut self, clock: &dyn Clock) {
        if self.clean.is_empty() {
            return;
        }
        let now = clock.monotonic_micros();
        self.starts.scan(&self.clean, self.log.offset(), clock.now(), &mut self.records);
        self.log.write(&self.clean, now);
        // Lines that a full disk made the log drop have no place in it that a time could be given to.
        self.records.truncate(LineTime::stored_bytes(&self.records, self.log.offset()));
        self.times.write(&self.records, now);
        self.clean.clear();
        self.records.clear();
    }

    /// Shows what waited long enough, and tries a full disk again.
    pub fn tick(&mut self, clock: &dyn Clock) {
        let now = clock.monotonic_micros();
        if self.held_since.is_some_and(|since| now >= since + PARTIAL_LINE_MICROS) {
            self.held_since = None;
            self.redactor.flush(&mut self.clean);
            self.store(clock);
        }
        self.log.retry(now);
        self.times.retry(now);
    }

    /// When `tick` must be called again.
    pub fn wake_at(&self) -> Option<i64> {
        let partial = self.held_since.map(|since| since + PARTIAL_LINE_MICROS);
        [partial, self.log.retry_at(), self.times.retry_at()].into_iter().flatten().min()
    }

    /// Stores everything that is left, durably.
    pub fn finish(&mut self, clock: &dyn Clock) {
        self.pipe = None;
        self.redactor.finish(&mut self.clean);
        self.store(clock);
        self.log.finish();
        self.times.finish();
        if self.log.offset() > 0 {
            // A log that cannot be synced is still in the kernel; the exit record must be written all the same.
            self.log.sink().sync_data().ok();
        }
    }

    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub fn lines(&self) -> u64 {
        self.starts.lines()
    }

    pub fn lost_bytes(&self) -> u64 {
        self.log.lost_bytes()
    }
}
