//! `--detach`: a supervisor without a terminal. The command starts this program again, in a separate session; that one reports to
//! the command until the first attempt is launched, and to a file in the home from then on.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, dup2_stderr, dup2_stdout, setsid};
use trackway_api::runs::DetachedRun;
use trackway_core::{AttemptId, Clock, RunId};
use trackway_engine::Context;
use trackway_engine::reporter::{Notice, Progress, Reporter, Stream};
use trackway_flows::training::preflight::{PreflightEvent, PreflightReporter};
use trackway_formats::layout::HomeLayout;
use trackway_system::Cancel;

use crate::commands::live::{Live, is_said, published, sentence};
use crate::exit::{Exit, Failure};
use crate::printer::Printer;
use crate::signals;

/// How long the command waits until the first attempt is launched or the run is refused. Pre-flight may read much data.
const LAUNCH_WAIT_SECONDS: u64 = 1_800;
/// How long one look of this wait takes.
const TURN: Duration = Duration::from_millis(100);
/// Turns within a second.
const TURNS_PER_SECOND: u64 = 10;
/// What the supervisor may print before it detaches, such as the report of a run that is refused, at most.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// What a user writes, and what this program is started with instead.
const OPTIONS: (&str, &str) = ("--detach", "--detached");

/// Starts the supervisor, and waits until its first attempt is launched or the run is refused. `words` is this command line
/// without the name of the program.
pub fn start(words: impl Iterator<Item = OsString>, printer: Printer) -> Exit {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(supervisor_words(words)).stdin(Stdio::null()).stdout(Stdio::piped());
    trackway_files::restore_umask(&mut command);
    let mut supervisor = command.spawn()?;
    let answers = answer_of(&mut supervisor);
    let cancel = Cancel::default();
    signals::supervise(&cancel);
    let mut requests_sent = 0;
    for _ in 0..LAUNCH_WAIT_SECONDS * TURNS_PER_SECOND {
        match answers.recv_timeout(TURN) {
            Ok(answer) => return print_answer(&answer, supervisor, printer),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if cancel.is_detached() => return Ok(0),
            Err(RecvTimeoutError::Timeout) => {}
        }
        // The supervisor is in a separate session: what is typed here does not reach it.
        if cancel.stop_requests() > requests_sent {
            requests_sent = cancel.stop_requests();
            let _ = kill(pid_of(&supervisor), Signal::SIGTERM);
        }
    }
    let pid = supervisor.id();
    Err(Failure::fault(format!("no attempt was launched within {} minutes", LAUNCH_WAIT_SECONDS / 60))
        .hint(format!("process {pid} continues and launches it when that is done; end it with: kill {pid}")))
}

/// The words for the supervisor: those of the user, but for the option that brought them here.
fn supervisor_words(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut is_ours = true;
    let replaced = |word: OsString| {
        is_ours &= word != OsStr::new("--");
        if is_ours && word == OsStr::new(OPTIONS.0) { OPTIONS.1.into() } else { word }
    };
    words.map(replaced).collect()
}

fn pid_of(process: &Child) -> Pid {
    Pid::from_raw(i32::try_from(process.id()).unwrap_or(i32::MAX))
}

/// What the supervisor writes to its standard output until it closes it.
fn answer_of(supervisor: &mut Child) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    let stdout = supervisor.stdout.take();
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        if let Some(stdout) = stdout {
            let _ = stdout.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
        }
        // Nothing waits for it any more where the command has ended.
        let _ = sender.send(answer);
    });
    receiver
}

fn print_answer(answer: &[u8], mut supervisor: Child, printer: Printer) -> Exit {
    let Ok(run) = serde_json::from_slice::<DetachedRun>(answer) else {
        // It has reported why on standard error.
        let status = supervisor.wait()?;
        printer.file(answer);
        return match status.code() {
            Some(code) => Ok(u8::try_from(code).unwrap_or(1)),
            None => {
                Err(Failure::fault(format!("the supervisor ended before it launched an attempt: {status}")))
            }
        };
    };
    printer.answer(&run, || {
        let DetachedRun { run_id, supervisor_pid, supervisor_log, .. } = &run;
        printer.line(run_id.to_string());
        let log = supervisor_log.as_ref().map(|path| format!(", which writes to {path}")).unwrap_or_default();
        printer.note(format!("detached: process {supervisor_pid} supervises the run{log}"));
        printer.note(format!(
            "trackway watch {run_id} follows it, trackway logs {run_id} shows its output, trackway stop {run_id} stops it"
        ));
    });
    Ok(0)
}

/// Supervises a run as the process that [`start`] started. `run` is known of a run that is resumed.
pub fn supervise<T>(
    context: &Context,
    run: Option<(RunId, String)>,
    printer: Printer,
    work: impl FnOnce(&dyn PreflightReporter) -> T,
) -> (T, Printer) {
    let _ = setsid();
    signals::supervise_detached(&context.request.cancel);
    let reporter = Arc::new(Detaching {
        home: context.home.layout.clone(),
        clock: Arc::clone(&context.clock),
        printer,
        live: Live::new(printer),
        run: Mutex::new(run),
        after: OnceLock::new(),
    });
    let done = published(context, &reporter, |reports| work(reports));
    reporter.live.finish();
    let printer = reporter.after.get().copied().unwrap_or(printer);
    (done, printer)
}

/// Reports to the command that waits until an attempt is supervised, and then to the file.
struct Detaching {
    home: HomeLayout,
    clock: Arc<dyn Clock>,
    printer: Printer,
    live: Live,
    run: Mutex<Option<(RunId, String)>>,
    /// The printer of the file, once this process has detached.
    after: OnceLock<Printer>,
}

impl Detaching {
    /// Names the run to the command, and writes to the file from now on.
    fn detach(&self, attempt: Option<(AttemptId, u32)>) {
        let Some((run_id, name)) = self.run.lock().ok().and_then(|mut run| run.take()) else { return };
        self.live.finish();
        let path = self.home.run(run_id).supervisor_log();
        let opened = trackway_files::open_own(OpenOptions::new().create(true).append(true), &path);
        let nowhere = || OpenOptions::new().write(true).open("/dev/null");
        if let Err(error) = &opened {
            self.printer.note(format!("`{}` cannot be written: {error}", path.display()));
        }
        let detached = DetachedRun {
            run_id,
            name,
            attempt_id: attempt.map(|(attempt_id, _)| attempt_id),
            attempt_number: attempt.map(|(_, number)| number),
            supervisor_pid: std::process::id(),
            supervisor_log: opened.as_ref().ok().map(|_| path.to_string_lossy().into_owned()),
        };
        let answer = serde_json::to_vec(&detached).expect("ids, numbers and strings are JSON");
        self.printer.echo(true, &answer);
        if let Ok(file) = opened.or_else(|_| nowhere()) {
            let _ = dup2_stdout(&file).and_then(|()| dup2_stderr(&file));
        }
        let _ = self.after.set(Printer::new(false));
    }
}

impl Reporter for Detaching {
    fn notice(&self, notice: &Notice) {
        if let Some(printer) = self.after.get() {
            if is_said(notice) || !self.live.is_due(notice) {
                return;
            }
            return printer.note(format!("{} {}", self.clock.now(), sentence(notice)));
        }
        self.live.notice(notice);
        match notice {
            Notice::RunStarted { run_id, name, .. } => {
                if let Ok(mut run) = self.run.lock() {
                    *run = Some((*run_id, name.clone()));
                }
            }
            Notice::AttemptStarted { attempt_id, attempt_number, .. } => {
                self.detach(Some((*attempt_id, *attempt_number)));
            }
            // The command does not wait for a place.
            Notice::Queued(_) => self.detach(None),
            _ => {}
        }
    }

    /// The output of the script is in its logs.
    fn output(&self, _: Stream, _: &[u8]) {}

    /// Also of an attempt that was running already.
    fn progress(&self, _: &Progress) {
        if self.after.get().is_none() {
            self.detach(None);
        }
    }

    fn reading_data(&self, done_bytes: u64, total_bytes: u64) {
        if self.after.get().is_none() {
            self.live.reading_data(done_bytes, total_bytes);
        }
    }

    fn fetching(&self, done_bytes: u64, total_bytes: u64) {
        if self.after.get().is_none() {
            self.live.fetching(done_bytes, total_bytes);
        }
    }
}

impl PreflightReporter for Detaching {
    fn preflight(&self, event: &PreflightEvent<'_>) {
        if self.after.get().is_none() {
            self.live.preflight(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that only an option of Trackway is replaced, not a word of the script.
    #[test]
    fn only_the_own_option_is_replaced() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let given = words("run --name x --detach -- train --detach").into_iter();
        assert_eq!(supervisor_words(given), words("run --name x --detached -- train --detach"));
    }
}
