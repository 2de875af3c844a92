//! What the script prints in a terminal, as bytes on their way to the person who watches.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use trackway_core::Clock;

/// When so much waits for a slow terminal, the script waits, too, as it would if it ran alone.
const PAUSE_BYTES: usize = 4 << 20;
/// It waits no longer for a terminal that takes nothing, such as one that is paused or whose connection is lost; then so much
/// waits, and the rest is left out.
const PATIENCE_MICROS: i64 = 1_000_000;
const BACKLOG_BYTES_MAX: usize = 16 << 20;
/// The pipe is made this large where the system allows it.
const PIPE_BYTES: i32 = 1 << 20;
/// How long the end of the attempt waits for a slow terminal.
const LAST_MICROS: i64 = 30_000_000;
/// How long it waits for a terminal that takes nothing before it looks at the time.
const LOOK_MILLIS: u16 = 100;

/// A pipe to the supervisor.
#[derive(Debug)]
pub(super) struct Display {
    /// None once the supervisor is gone.
    pipe: Option<File>,
    backlog: VecDeque<u8>,
    /// Not shown since the backlog was full.
    left_out_bytes: u64,
    /// The same in all.
    not_shown_bytes: u64,
    /// When it last took something, or nothing waited.
    taken_at: i64,
}

impl Display {
    /// `pipe` does not block.
    pub fn new(pipe: OwnedFd) -> Self {
        // Unprivileged users may have used up their pipe memory; the usual 64 KiB do as well.
        fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).ok();
        Self {
            pipe: Some(pipe.into()),
            backlog: VecDeque::new(),
            left_out_bytes: 0,
            not_shown_bytes: 0,
            taken_at: i64::MIN,
        }
    }

    /// Shows this, now or soon. `now` is of the monotonic clock, in microseconds.
    pub fn show(&mut self, bytes: &[u8], now: i64) {
        let mut written = 0;
        if self.backlog.is_empty() {
            self.taken_at = now;
            written = write(&mut self.pipe, bytes);
        }
        if self.pipe.is_none() {
            return;
        }
        let waiting = &bytes[written..];
        // Nothing is shown after a gap before the gap is.
        let room = if self.left_out_bytes > 0 { 0 } else { BACKLOG_BYTES_MAX - self.backlog.len() };
        let kept = waiting.len().min(room);
        self.backlog.extend(&waiting[..kept]);
        let left_out = (waiting.len() - kept) as u64;
        self.left_out_bytes += left_out;
        self.not_shown_bytes += left_out;
    }

    /// The pipe, while something waits for a place in it.
    pub fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| !self.backlog.is_empty()).map(AsFd::as_fd)
    }

    /// Until when the script waits for the terminal, if it does; earlier when the terminal takes something.
    pub fn pauses_until(&self) -> Option<i64> {
        (self.backlog.len() >= PAUSE_BYTES).then(|| self.taken_at.saturating_add(PATIENCE_MICROS))
    }

    /// Tries what waits again.
    pub fn retry(&mut self, now: i64) {
        while !self.backlog.is_empty() {
            let written = write(&mut self.pipe, self.backlog.as_slices().0);
            if self.pipe.is_none() {
                self.backlog = VecDeque::new();
                return;
            }
            if written == 0 {
                return;
            }
            self.backlog.drain(..written);
            self.taken_at = now;
        }
        let left_out_bytes = std::mem::take(&mut self.left_out_bytes);
        if left_out_bytes > 0 {
            let gap = format!(
                "\x1b[0m\n[trackway: {left_out_bytes} bytes of output are not shown here, since this terminal took \
                 nothing; the log has them]\n"
            );
            self.show(gap.as_bytes(), now);
        }
    }

    /// Shows the rest to a terminal that takes it, and ends. How many bytes a terminal that was there did not get.
    pub fn finish(mut self, clock: &dyn Clock) -> u64 {
        let until = clock.monotonic_micros() + LAST_MICROS;
        self.retry(clock.monotonic_micros());
        while let Some(pipe) = self.waits_for()
            && clock.monotonic_micros() < until.min(self.taken_at.saturating_add(PATIENCE_MICROS))
        {
            let mut room = [PollFd::new(pipe, PollFlags::POLLOUT)];
            poll(&mut room, PollTimeout::from(LOOK_MILLIS)).ok();
            self.retry(clock.monotonic_micros());
        }
        self.not_shown_bytes + self.backlog.len() as u64
    }
}

/// How much of it the pipe took, which is closed when it is read no more.
fn write(pipe: &mut Option<File>, bytes: &[u8]) -> usize {
    let mut written = 0;
    while let Some(file) = pipe
        && written < bytes.len()
    {
        match file.write(&bytes[written..]) {
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => *pipe = None,
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use nix::fcntl::OFlag;
    use trackway_system::SystemClock;

    use super::*;

    fn pipe() -> (File, Display) {
        let (read, write) = nix::unistd::pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).unwrap();
        (read.into(), Display::new(write))
    }

    fn read(pipe: &mut File) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Ends in an error when nothing is there now; what was read before stays.
        pipe.read_to_end(&mut bytes).ok();
        bytes
    }

    /// Proves that a terminal that reads slowly gets everything in order while the script waits for it, and that the script waits no
    /// longer for one that takes nothing: then a gap is marked once, and counted.
    #[test]
    fn a_slow_terminal_gets_all_and_a_stuck_one_a_mark() {
        let (mut reader, mut display) = pipe();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..6 {
            display.show(&piece, 7);
        }
        assert!(display.waits_for().is_some());
        assert_eq!(display.pauses_until(), Some(7 + PATIENCE_MICROS));
        let mut shown = read(&mut reader);
        display.retry(9);
        assert!(display.pauses_until().is_none_or(|until| until == 9 + PATIENCE_MICROS), "it took something");
        while display.waits_for().is_some() {
            shown.extend(read(&mut reader));
            display.retry(9);
        }
        shown.extend(read(&mut reader));
        assert_eq!((shown.len(), display.pauses_until()), (6 << 20, None));

        for _ in 0..20 {
            display.show(&piece, 10);
        }
        display.show(b"after the gap began", 10);
        let mut shown = Vec::new();
        while display.waits_for().is_some() {
            shown.extend(read(&mut reader));
            display.retry(11);
        }
        display.show(b"later", 11);
        shown.extend(read(&mut reader));
        let text = String::from_utf8_lossy(&shown);
        assert_eq!(text.matches("bytes of output are not shown here").count(), 1);
        assert!(text.ends_with("the log has them]\nlater") && !text.contains("after the gap began"));
        let not_shown = display.finish(&SystemClock);
        assert!(text.contains(&format!("{not_shown} bytes of output")), "{not_shown}");
    }

    /// Proves that a supervisor that is gone costs no memory and no time.
    #[test]
    fn without_a_reader_nothing_waits() {
        let (reader, mut display) = pipe();
        drop(reader);
        display.show(&vec![b'x'; 4 << 20], 0);
        assert!(display.waits_for().is_none() && display.backlog.is_empty());
        assert_eq!(display.finish(&SystemClock), 0);
    }
}
