//! One process that scores batches of rows. A separate thread writes a batch, so that neither side waits for the
//! other's full pipe.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use trackway_core::Clock;
use trackway_system::SystemClock;

use super::BATCH_ROWS_MAX;

/// The longest answer to a row.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// How long a command may take to end once its input did.
const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(50);
/// How long its standard error is waited for once it ended: what it started may hold it open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Characters of a line of its standard error that are kept.
const ERROR_CHARS_MAX: usize = 300;

pub(super) struct Process {
    child: Child,
    /// `None` while a batch is written.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The last line of its standard error, once that ended; `None` where it is passed on.
    last_error: Option<Receiver<String>>,
}

/// Why a batch has no answers.
pub(super) enum Exchange {
    Refused(String),
    Ended,
    Broken(String),
    Cancelled,
}

impl Process {
    /// Starts the command in a new group, so that it can be ended with all that it started, and writes the beginning of
    /// its input. `keeps_errors`: its standard error is not passed on; the last line of it is part of why it ended.
    pub(super) fn start(mut command: Command, head: &[u8], keeps_errors: bool) -> std::io::Result<Self> {
        let errors = if keeps_errors { Stdio::piped() } else { Stdio::inherit() };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        let mut child = command.spawn()?;
        let last_error = child.stderr.take().map(last_line_of);
        let mut input = child.stdin.take().expect("the input is piped");
        let output = child.stdout.take().expect("the output is piped");
        // A whole batch fits, so that its answers never keep the command from reading on.
        let (sender, lines) = sync_channel(BATCH_ROWS_MAX + 1);
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(line) = line(&mut output) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        // If it ended at once, the first batch will show it.
        let _ = input.write_all(head);
        Ok(Self { child, input: Some(input), lines, last_error })
    }

    /// Whether it can score again.
    pub(super) fn is_ready(&self) -> bool {
        self.input.is_some()
    }

    /// Answers to a batch of so many rows, waited for at most so long.
    pub(super) fn exchange(
        &mut self,
        batch: Vec<u8>,
        rows: usize,
        patience_seconds: f64,
        cancelled: &AtomicBool,
    ) -> Result<Vec<String>, Exchange> {
        if self.lines.try_recv().is_ok() {
            return Err(Exchange::Broken("answered more lines than rows".to_owned()));
        }
        let mut input = self.input.take().expect("one batch at a time");
        let (give_back, given_back) = sync_channel(1);
        std::thread::spawn(move || {
            // A command that ended is found out by its answers.
            let _ = input.write_all(&batch).and_then(|()| input.flush());
            let _ = give_back.send(input);
        });
        let answers = self.answers(rows, patience_seconds, cancelled);
        if matches!(answers, Err(Exchange::Broken(_) | Exchange::Cancelled)) {
            self.kill();
        }
        match given_back.recv_timeout(GRACE) {
            Ok(input) => {
                self.input = Some(input);
                answers
            }
            // What it does not read would hold the writer up for ever.
            Err(_) => {
                self.kill();
                answers.and(Err(Exchange::Broken("did not read its rows to the end".to_owned())))
            }
        }
    }

    fn answers(
        &self,
        rows: usize,
        patience_seconds: f64,
        cancelled: &AtomicBool,
    ) -> Result<Vec<String>, Exchange> {
        let began_micros = SystemClock.monotonic_micros();
        let mut answers = Vec::with_capacity(rows);
        while answers.len() < rows {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => match line.strip_prefix('!') {
                    Some(why) => return Err(Exchange::Refused(why.trim().to_owned())),
                    None => answers.push(line),
                },
                Err(RecvTimeoutError::Disconnected) => return Err(Exchange::Ended),
                Err(RecvTimeoutError::Timeout) => {
                    if cancelled.load(Ordering::Relaxed) {
                        return Err(Exchange::Cancelled);
                    }
                    let waited = (SystemClock.monotonic_micros() - began_micros) as f64 / 1e6;
                    if waited > patience_seconds {
                        let got = answers.len();
                        let why = format!(
                            "answered {got} of {rows} rows within {patience_seconds:.0} s; it must read by lines, not by \
                             blocks, and flush its answers at the end of a batch"
                        );
                        return Err(Exchange::Broken(why));
                    }
                }
            }
        }
        Ok(answers)
    }

    fn kill(&self) {
        let group = i32::try_from(self.child.id()).map(Pid::from_raw);
        // It may be gone already.
        let _ = group.map(|group| killpg(group, Signal::SIGKILL));
    }

    /// The last line of its standard error, of a process that ended; none where it was passed on.
    pub(super) fn last_error(&self) -> Option<String> {
        let last = self.last_error.as_ref()?.recv_timeout(LAST_WORDS).ok()?;
        Some(last).filter(|line| !line.is_empty())
    }

    /// Ends it, and returns how it ended.
    pub(super) fn end(&mut self) -> String {
        self.input = None;
        let began_micros = SystemClock.monotonic_micros();
        let patience = GRACE.as_micros() as i64;
        while let Ok(None) = self.child.try_wait() {
            if SystemClock.monotonic_micros() - began_micros > patience {
                self.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Reads an output to its end, so that no pipe is full, and then gives its last line that is not empty.
fn last_line_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, last) = sync_channel(1);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let (mut last, mut bytes) = (String::new(), Vec::new());
        while matches!((&mut output).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut bytes), Ok(read) if read > 0)
        {
            let text = String::from_utf8_lossy(&bytes);
            if !text.trim().is_empty() {
                last = text.trim().chars().take(ERROR_CHARS_MAX).collect();
            }
            bytes.clear();
        }
        // It may not be waited for any more.
        let _ = sender.send(last);
    });
    last
}

/// The next line without its end; `None` at the end, and where it is longer than [`ANSWER_BYTES_MAX`].
fn line(output: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let read = output.take(ANSWER_BYTES_MAX).read_until(b'\n', &mut bytes).ok()?;
    let is_whole = bytes.last() == Some(&b'\n') || (read as u64) < ANSWER_BYTES_MAX;
    if read == 0 || !is_whole {
        return None;
    }
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}
