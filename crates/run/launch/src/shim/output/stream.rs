//! One of the script's two outputs: from its pipe, or its terminal, through redaction into the log, with the times of its
//! lines. Of a terminal the log has what it shows at last, without colours; the person who watches gets every byte.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags};
use trackway_core::Clock;
use trackway_files::open_own;
use trackway_formats::printed::{LeftOut, LeftOutKind, Printed};
use trackway_redact::StreamRedactor;

use super::display::Display;
use super::log::Log;
use super::redrawn::Redrawn;
use super::times::{LineStarts, LineTime};
use crate::terminal::OutputEnds;

/// How long an unfinished line waits for its end before it is shown.
const PARTIAL_LINE_MICROS: i64 = 200_000;
/// The pipe is made this large where the system allows it, so that a burst of output does not stop the script.
const PIPE_BYTES: i32 = 1024 * 1024;
/// So much at once in a terminal, which gives no more in one read, is the beginning of more.
const MUCH_BYTES: usize = 4095;
/// How long that is waited for: as long as the system's own buffer takes what the script writes meanwhile.
const NAP: Duration = Duration::from_micros(200);

/// What the script writes to and its log.
#[derive(Debug)]
pub(in crate::shim) struct Output<'a> {
    /// A pipe, or the other side of a terminal. `None` once no process can write to it any more.
    source: Option<File>,
    terminal: Option<InTerminal>,
    /// It is not read before then, since the person's terminal is behind.
    pauses_until: Option<i64>,
    redactor: StreamRedactor<'a>,
    log: Log<File>,
    times: Log<File>,
    starts: LineStarts,
    clean: Vec<u8>,
    records: Vec<u8>,
    held_since: Option<i64>,
    bytes_read: u64,
    /// States of lines that the log does not have, and bytes that the terminal was not shown; known at the end.
    drawn_over: u64,
    not_shown_bytes: u64,
}

/// Makes a log durable. One that cannot be synced is still in the kernel; the exit record must be written all the same.
pub(in crate::shim) fn sync(log: &File) {
    log.sync_data().ok();
}

/// What an output has that is a terminal.
#[derive(Debug)]
struct InTerminal {
    display: Display,
    redrawn: Redrawn,
    lines: Vec<u8>,
}

impl<'a> Output<'a> {
    /// Opens the log before the script exists, so that it can never run unheard.
    pub fn open(log: &Path, times: &Path, redactor: StreamRedactor<'a>) -> io::Result<Self> {
        let open = |path: &Path| open_own(OpenOptions::new().append(true).create(true), path);
        Ok(Self {
            source: None,
            terminal: None,
            pauses_until: None,
            redactor,
            log: Log::new(open(log)?, true),
            times: Log::new(open(times)?, false),
            starts: LineStarts::new(),
            clean: Vec::new(),
            records: Vec::new(),
            held_since: None,
            bytes_read: 0,
            drawn_over: 0,
            not_shown_bytes: 0,
        })
    }

    /// Connects it with a terminal, or with a pipe without one. Gives back the script's end.
    pub fn connect(&mut self, terminal: Option<OutputEnds>) -> io::Result<File> {
        let (source, script) = match terminal {
            Some(OutputEnds { master, script, display }) => {
                let display = Display::new(display);
                self.terminal = Some(InTerminal { display, redrawn: Redrawn::new(), lines: Vec::new() });
                (master, script)
            }
            None => nix::unistd::pipe2(OFlag::O_CLOEXEC)?,
        };
        fcntl(&source, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        if self.terminal.is_none() {
            // Unprivileged users may have used up their pipe memory; the usual 64 KiB do as well.
            fcntl(&source, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).ok();
        }
        self.source = Some(source.into());
        Ok(script.into())
    }

    /// What to wait for: what the script writes, while a process can, and a place for what a person is to see.
    pub fn waits_for(&self) -> impl Iterator<Item = PollFd<'_>> {
        let source = self.source.as_ref().filter(|_| self.pauses_until.is_none());
        let source = source.map(|source| PollFd::new(source.as_fd(), PollFlags::POLLIN));
        let display = self.terminal.as_ref().and_then(|terminal| terminal.display.waits_for());
        source.into_iter().chain(display.map(|display| PollFd::new(display, PollFlags::POLLOUT)))
    }

    pub fn is_open(&self) -> bool {
        self.source.is_some()
    }

    /// Reads once. Gives back the raw bytes, `None` when there are none now.
    pub fn read<'b>(&mut self, buffer: &'b mut [u8], clock: &dyn Clock) -> Option<&'b [u8]> {
        if self.pauses_until.is_some() {
            return None;
        }
        let count = self.fill(buffer, clock);
        let bytes = &buffer[..count];
        if bytes.is_empty() {
            return None;
        }
        self.bytes_read += count as u64;
        match &mut self.terminal {
            None => self.take(bytes, clock),
            Some(terminal) => {
                let now = clock.monotonic_micros();
                terminal.display.show(bytes, now);
                terminal.redrawn.push(bytes, now, &mut terminal.lines);
                self.take_lines(clock);
            }
        }
        Some(bytes)
    }

    /// How much was there. A terminal gives little at a time, so it is read until the buffer is full, and while much arrives for the
    /// time of a nap; at its end, when no process has it open any more, it gives an error.
    fn fill(&mut self, buffer: &mut [u8], clock: &dyn Clock) -> usize {
        let (mut filled, mut napped_at) = (0, 0);
        while let Some(source) = &mut self.source
            && filled < buffer.len()
        {
            match source.read(&mut buffer[filled..]) {
                Ok(count) if count > 0 => {
                    filled += count;
                    if self.terminal.is_none() {
                        break;
                    }
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    if filled < napped_at + MUCH_BYTES {
                        break;
                    }
                    napped_at = filled;
                    clock.sleep(NAP);
                }
                _ => self.source = None,
            }
        }
        filled
    }

    /// Takes the lines that the terminal is done with.
    fn take_lines(&mut self, clock: &dyn Clock) {
        let Some(terminal) = &mut self.terminal else { return };
        let mut lines = std::mem::take(&mut terminal.lines);
        if !lines.is_empty() {
            self.take(&lines, clock);
        }
        lines.clear();
        if let Some(terminal) = &mut self.terminal {
            // Its room is used again.
            terminal.lines = lines;
        }
    }

    fn take(&mut self, bytes: &[u8], clock: &dyn Clock) {
        self.redactor.push(bytes, &mut self.clean);
        self.store(clock);
        let held = self.redactor.held_bytes() > 0;
        let since = self.held_since.unwrap_or_else(|| clock.monotonic_micros());
        self.held_since = held.then_some(since);
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
        if let Some(terminal) = &mut self.terminal {
            terminal.display.retry(now);
            self.pauses_until = terminal.display.pauses_until().filter(|until| now < *until);
            terminal.redrawn.tick(now, &mut terminal.lines);
            self.take_lines(clock);
        }
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
        let redrawn = self.terminal.as_ref().and_then(|terminal| terminal.redrawn.wake_at());
        [partial, redrawn, self.pauses_until, self.log.retry_at(), self.times.retry_at()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Reads on however far the person's terminal is behind: nothing more is printed.
    pub fn hurry(&mut self) {
        self.pauses_until = None;
    }

    /// Stores everything that is left. Gives back the log, if it has something that is still to be made durable.
    pub fn finish(&mut self, clock: &dyn Clock) -> Option<File> {
        self.source = None;
        if let Some(terminal) = &mut self.terminal {
            terminal.redrawn.finish(&mut terminal.lines);
            self.take_lines(clock);
        }
        self.redactor.finish(&mut self.clean);
        self.store(clock);
        self.log.finish();
        self.times.finish();
        let log = Some(self.log.sink()).filter(|_| self.log.offset() > 0);
        let to_sync = log.and_then(|log| log.try_clone().inspect_err(|_| sync(log)).ok());
        if let Some(terminal) = self.terminal.take() {
            self.drawn_over = terminal.redrawn.drawn_over();
            self.not_shown_bytes = terminal.display.finish(clock);
        }
        to_sync
    }

    /// What of this output the log does not have or the terminal was not shown, beside what a full disk lost.
    pub fn left_out(&self, of: Printed) -> Vec<LeftOut> {
        let counts =
            [(LeftOutKind::DrawnOver, self.drawn_over), (LeftOutKind::NotShown, self.not_shown_bytes)];
        let left_out = |(kind, count)| LeftOut { kind, output: Some(of), count, line: None };
        counts.into_iter().filter(|(_, count)| *count > 0).map(left_out).collect()
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
