//! The loop: waits for output, signals and deadlines, and does what [`super::end::ending`] decides.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::signalfd::SignalFd;
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use trackway_core::boundary::contained;
use trackway_core::{Clock, Timestamp};
use trackway_files::TempFile;
use trackway_formats::layout::AttemptLayout;
use trackway_formats::path_text::shown_word;
use trackway_formats::printed::Printed;
use trackway_redact::Redactor;

use super::checkpoints::adopting::{Adopting, ReachedSteps};
use super::checkpoints::writers::Io;
use super::end::ending::{Ending, Step, Tree};
use super::end::left::{Done, Work, recorded_bytes};
use super::end::oom;
use super::end::reserve::Reserved;
use super::metrics::course::KeptCourse;
use super::metrics::events;
use super::metrics::metric_files::{MetricFiles, WhatWasThere};
use super::metrics::printed::{OutputMetrics, PrintedCounts};
use super::metrics::reading::OutputReading;
use super::opened::code::CodeWatch;
use super::opened::inputs::Watch;
use super::output::left_out;
use super::output::stream::{self, Output};
use super::output::waking::Waking;
use super::side::{Records, SideThread, WaitingThread, begin_beside, side_by_side};
use super::signals::{Request, next};
use super::{Doing, ShimError, ShimRecord, script, telemetry};
use crate::exit_record::{
    ERROR_FILE_BYTES_MAX, EXIT_VERSION, ExitRecord, PROCESS_NAMES_MAX, SIGNALS_MAX, SignalReason, SignalSent,
};
use crate::process::{PidFd, ProcessIdentity, ProcessStat, own_descendants};
use crate::terminal::ShimSide;
use crate::{Isolation, StoredLaunch};

/// One read takes at most this much, so that neither output starves the other or the signals.
const READ_BYTES: usize = 256 * 1024;
/// How often what a script left behind is looked at.
const LOOK_MICROS: i64 = 1_000_000;
/// More of `error.json` than this is not looked at.
const ERROR_FILE_READ_BYTES_MAX: usize = 1024 * 1024;

/// One attempt, from the reserved exit record to the written one.
pub(super) struct Attempt<'a> {
    clock: Arc<dyn Clock>,
    redactor: &'a Redactor,
    files: AttemptLayout,
    records: Records,
    launch: StoredLaunch,
    shim: ShimRecord,
    signals: SignalFd,
    reserved: Reserved,
    outputs: [Output<'a>; 2],
    reading: Option<OutputReading>,
    event_files: Option<SideThread<u64>>,
    metric_files: Option<MetricFiles>,
    telemetry: Option<SideThread>,
    opened_files: Option<WaitingThread>,
    code_files: Option<WaitingThread>,
    adopting: Option<Adopting>,
    steps: ReachedSteps,
    printed: PrintedCounts,
    waking: Waking,
    ending: Ending,
    work: Work,
    main: Option<Pid>,
    main_succeeded: Option<bool>,
    any_left: bool,
    ended_pids: BTreeSet<i32>,
    started_micros: i64,
    oom_kills_before: Option<u64>,
    exit: ExitRecord,
}

impl<'a> Attempt<'a> {
    /// Reserves the exit record, opens the logs, and records the identity of the shim. After this the attempt has
    /// begun.
    pub fn prepare(
        clock: Arc<dyn Clock>,
        files: AttemptLayout,
        launch: StoredLaunch,
        shim: ShimRecord,
        signals: SignalFd,
        redactor: &'a Arc<Redactor>,
    ) -> Result<Self, ShimError> {
        let reserved = Reserved::new(files.clone()).doing("reserve exit.json")?;
        let stdout = Output::open(&files.stdout_log(), &files.stdout_times(), redactor.stream());
        let stderr = Output::open(&files.stderr_log(), &files.stderr_times(), redactor.stream());
        let (steps, printed) = (ReachedSteps::default(), PrintedCounts::default());
        let records = Records {
            folder: files.records(),
            run_id: launch.run_id.to_string(),
            attempt_id: launch.attempt_id.to_string(),
            clock: Arc::clone(&clock),
        };
        let reading = {
            let found = (steps.clone(), printed.clone());
            let (records, redactor) = (records.clone(), Arc::clone(redactor));
            let kept = KeptCourse::of(&launch);
            OutputReading::begin(move || {
                OutputMetrics::new(found.clone(), kept.clone(), records.clone(), Arc::clone(&redactor))
            })
        };
        let outputs = [stdout.doing("open stdout.log")?, stderr.doing("open stderr.log")?];
        shim.write(&files).doing("write shim.json")?;
        Ok(Self {
            started_micros: clock.monotonic_micros(),
            clock,
            redactor,
            ending: Ending::new(launch.grace_seconds, launch.linger_seconds),
            work: Work::of_this_machine(),
            exit: ExitRecord { version: EXIT_VERSION, started_at: shim.started_at, ..ExitRecord::default() },
            files,
            records,
            launch,
            shim,
            signals,
            reserved,
            outputs,
            reading: Some(reading),
            event_files: None,
            metric_files: None,
            telemetry: None,
            opened_files: None,
            code_files: None,
            adopting: None,
            steps,
            printed,
            waking: Waking::of_this_thread(),
            main: None,
            main_succeeded: None,
            any_left: false,
            ended_pids: BTreeSet::new(),
            oom_kills_before: oom::kill_count(),
        })
    }

    /// Starts the script, in the terminals that there are for it. If that fails the exit record has the reason.
    pub fn start(&mut self, argv: &[OsString], terminal: ShimSide) {
        // First, since they read what is there: what is read from then on is read by the script.
        let (adopting, logs) = side_by_side(
            || Adopting::begin(&self.launch, &self.files, self.steps.clone(), self.records.clone()),
            || WhatWasThere::of(&self.launch),
        );
        self.adopting = adopting;
        let since = (self.shim.started_at, self.adopting.as_ref().map(Adopting::sight));
        self.metric_files =
            MetricFiles::begin(&self.launch, logs, since, self.printed.clone(), self.records.clone());
        let there = self.adopting.as_ref().map(Adopting::there);
        let watch = contained(|| Watch::of(&self.launch, there)).ok().flatten();
        let code = contained(|| CodeWatch::of(&self.launch)).ok().flatten();
        let [stdout, stderr] = &mut self.outputs;
        let outputs =
            stdout.connect(terminal.stdout).and_then(|out| Ok((out, stderr.connect(terminal.stderr)?)));
        let spawned = outputs.map_err(|error| (error, script::FailedAt::Execute)).and_then(|(out, err)| {
            let isolation = self.launch.isolation.as_ref();
            let streams = script::Streams { stdin: terminal.stdin, stdout: out, stderr: err };
            script::spawn(argv, &self.launch.working_directory, isolation, streams)
        });
        match spawned {
            Ok(pid) => {
                self.main = Some(pid);
                if let Some(adopting) = &self.adopting {
                    adopting.started(pid);
                }
                if let Some(metric_files) = &self.metric_files {
                    metric_files.started(pid);
                }
                self.any_left = true;
                self.shim.child = ProcessIdentity::of(pid.as_raw()).ok().flatten();
                // Only a help for readers: the first form of the file already shows that the attempt began.
                self.shim.write(&self.files).ok();
                let isolation = self.launch.isolation.as_ref();
                let written =
                    isolation.map_or_else(|| self.launch.working_directory.clone(), Isolation::upper);
                self.event_files = events::follow(written, self.shim.started_at, self.records.clone());
                let (folder, devices) = (self.files.folder().to_owned(), self.launch.devices.clone());
                self.telemetry = telemetry::begin(folder, devices, self.records.clone());
                self.opened_files = watch.and_then(|watch| watch.begin(pid, self.records.clone()));
                self.code_files = code.and_then(|code| code.begin(self.records.clone()));
            }
            Err((error, at)) => {
                let program = argv.first().map(shown_word).unwrap_or_default();
                let program = self.redactor.text(&program);
                self.exit.spawn_error =
                    Some(script::explain(&error, at, &program, &self.launch.working_directory));
                self.main_succeeded = Some(false);
            }
        }
    }

    /// Runs until nothing of the attempt is left.
    pub fn supervise(&mut self) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            self.read_outputs(&mut buffer);
            self.handle_signals();
            self.outputs.iter_mut().for_each(|output| output.tick(&*self.clock));
            let tree = self.tree();
            match self.ending.next(self.clock.monotonic_micros(), tree) {
                Step::Wait => self.wait(),
                Step::SignalGroup(signal) => self.signal_group(signal, SignalReason::StopRequested),
                Step::TerminateTree(why) => self.signal_tree(Signal::SIGTERM, why),
                Step::KillTree(why) => self.signal_tree(Signal::SIGKILL, why),
                Step::GiveUp => {
                    self.note_unkillable();
                    break;
                }
                Step::Done => break,
            }
        }
        self.outputs.iter_mut().for_each(Output::hurry);
        // There is no writer left, but what was written may still be in the pipes.
        while self.read_outputs(&mut buffer) {}
    }

    fn tree(&mut self) -> Tree {
        // Who has no child has no descendant either: then there is nothing to look for among the processes of the machine.
        let looks = self.main_succeeded == Some(true) && self.any_left;
        let (apart, worked_at) = if looks { self.left() } else { (false, None) };
        Tree {
            main_succeeded: self.main_succeeded,
            any_left: self.any_left,
            output_open: self.outputs.iter().any(Output::is_open),
            apart,
            worked_at,
        }
    }

    /// Whether only processes in separate sessions are left of a script that succeeded, and when what is left was last seen to work.
    fn left(&mut self) -> (bool, Option<i64>) {
        // The script leads a group in the session of the shim.
        let own = nix::unistd::getsid(None).map_or(0, Pid::as_raw);
        let left = self.living();
        let done = Done {
            printed_bytes: self.outputs.iter().map(Output::bytes_read).sum(),
            recorded_bytes: recorded_bytes(&self.records.folder),
            cpu_ticks: left.iter().map(|process| process.cpu_ticks).sum(),
        };
        let now = self.clock.monotonic_micros();
        let worked_at = self.work.take(now, done);
        let apart = left.iter().all(|process| process.session != own);
        if worked_at == Some(now) && !apart {
            self.exit.left_worked_at = Some(self.clock.now());
        }
        (apart, worked_at)
    }

    /// Reads each output once; `false` when neither had anything. Standard error comes first: the bars there give the
    /// step of what is printed on standard output.
    fn read_outputs(&mut self, buffer: &mut [u8]) -> bool {
        let [stdout, stderr] = &mut self.outputs;
        let reading = &mut self.reading;
        let at = self.waking.printed_from(self.clock.now(), self.clock.monotonic_micros());
        let mut push = |output, bytes: &[u8]| {
            if let Some(reading) = reading {
                reading.push(output, bytes, at);
            }
        };
        let complained = stderr.read(buffer, &*self.clock).map(|bytes| push(Printed::Stderr, bytes));
        let printed = stdout.read(buffer, &*self.clock).map(|bytes| push(Printed::Stdout, bytes));
        complained.or(printed).is_some()
    }

    fn wait(&mut self) {
        if self.main_succeeded == Some(true) && self.any_left && self.shim.main_ended_at.is_none() {
            // A user should see why an attempt whose main process ended still runs.
            self.shim.main_ended_at = self.exit.main_ended_at;
            self.shim.write(&self.files).ok();
        }
        let now = self.clock.monotonic_micros();
        // Which processes are left is looked at from time to time, since none of their ends is an event.
        let looks_again = self.main_succeeded.is_some().then_some(now + LOOK_MICROS);
        let wake_at = self.outputs.iter().filter_map(Output::wake_at).chain(self.ending.wake_at());
        let wake_at = wake_at.chain(looks_again).min();
        // Rounded up: waking a little early would make the loop spin until the time has come.
        let timeout = wake_at.map_or(PollTimeout::NONE, |at| {
            PollTimeout::try_from(((at - now).max(0) + 999) / 1000).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.outputs.iter().flat_map(Output::waits_for));
        // An interrupted or failed wait only means that the loop looks again.
        poll(&mut fds, timeout).ok();
    }

    fn handle_signals(&mut self) {
        while let Ok(Some(request)) = next(&self.signals) {
            match request {
                Request::Reap => self.reap(),
                Request::Stop { first, grace_millis } => {
                    self.ending.stop(self.clock.monotonic_micros(), first, grace_millis);
                }
                Request::Forward(signal) => self.signal_group(signal, SignalReason::Forwarded),
            }
        }
    }

    /// Takes the status of every process that ended: the main one, and descendants that lost their parents.
    fn reap(&mut self) {
        loop {
            let mut status = 0;
            let before = self.adopting.as_ref().and_then(|_| Io::of_this_process());
            // SAFETY: waitpid gets a valid pointer; -1 means any child.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if let Some(adopting) = self.adopting.as_ref().filter(|_| pid > 0) {
                adopting.waited_for(Pid::from_raw(pid), before);
            }
            match Errno::result(pid) {
                Ok(0) => return,
                Ok(pid) if self.main == Some(Pid::from_raw(pid)) => self.main_ended(status),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => {
                    self.any_left = false;
                    return;
                }
            }
        }
    }

    fn main_ended(&mut self, status: i32) {
        if libc::WIFEXITED(status) {
            self.exit.exit_code = Some(libc::WEXITSTATUS(status));
        } else if libc::WIFSIGNALED(status) {
            self.exit.signal = Some(libc::WTERMSIG(status));
            self.exit.core_dumped = libc::WCOREDUMP(status);
        }
        self.exit.main_ended_at = Some(self.clock.now());
        self.main_succeeded = Some(self.exit.exit_code == Some(0));
    }

    fn signal_group(&mut self, signal: Signal, why: SignalReason) {
        if let Some(main) = self.main {
            killpg(main, signal).ok();
            if matches!(signal, Signal::SIGTERM | Signal::SIGINT) {
                // A stopped process would sleep through its grace period.
                killpg(main, Signal::SIGCONT).ok();
            }
            self.note_signal(signal, why);
        }
    }

    fn signal_tree(&mut self, signal: Signal, why: SignalReason) {
        let first = !self.exit.signals.iter().any(|sent| sent.signal == signal as i32 && sent.why == why);
        for process in self.living() {
            let handle = PidFd::open(process.identity()).ok().flatten();
            let sent = handle.is_some_and(|handle| handle.signal(signal as i32, None).is_ok());
            let leftover = self.main_succeeded.is_some() && sent;
            if leftover && self.ended_pids.len() < 100_000 && self.ended_pids.insert(process.pid) {
                self.exit.tree.leftover_processes_ended += 1;
                push_name(&mut self.exit.tree.names, process.name);
            }
        }
        if first {
            self.note_signal(signal, why);
        }
    }

    fn living(&self) -> Vec<ProcessStat> {
        own_descendants().unwrap_or_default()
    }

    fn note_signal(&mut self, signal: Signal, why: SignalReason) {
        if self.exit.signals.len() < SIGNALS_MAX {
            self.exit.signals.push(SignalSent { at: self.clock.now(), signal: signal as i32, why });
        }
    }

    fn note_unkillable(&mut self) {
        for process in self.living() {
            push_name(&mut self.exit.tree.unkillable, format!("{} ({})", process.name, process.pid));
        }
    }

    /// Closes the logs and writes the exit record.
    pub fn finish(mut self) -> Result<(), ShimError> {
        // Their last looks are taken beside those of the others.
        self.event_files.iter_mut().for_each(SideThread::end);
        self.telemetry.iter_mut().for_each(SideThread::end);
        [&mut self.opened_files, &mut self.code_files].into_iter().flatten().for_each(WaitingThread::end);
        // Processes in a container are there until that is removed.
        if self.launch.container.is_none() {
            self.adopting.iter_mut().for_each(Adopting::end);
        }
        let logs: Vec<_> = self.outputs.iter_mut().map(|output| output.finish(&*self.clock)).collect();
        let syncing = begin_beside("sync", move || logs.iter().flatten().for_each(stream::sync));
        let printed = self.reading.take().map(OutputReading::finish).unwrap_or_default();
        if let Some(telemetry) = self.telemetry.take() {
            telemetry.finish();
        }
        for waiting in [self.opened_files.take(), self.code_files.take()].into_iter().flatten() {
            waiting.finish();
        }
        if let Some(container) = &self.launch.container {
            container.remove(self.launch.attempt_id);
        }
        // Both go by who wrote, which was looked at for the last time, and search the folder side by side.
        let adopting = self.adopting.take().and_then(Adopting::begin_last_look);
        self.metric_files.iter_mut().for_each(MetricFiles::end);
        adopting.and_then(SideThread::finish);
        let event_values = self.event_files.take().and_then(SideThread::finish).unwrap_or(0);
        let file_values = self.metric_files.take().map_or(0, MetricFiles::finish);
        // After all that records: what no segment names is known then.
        let outputs = self.outputs.iter().zip([Printed::Stdout, Printed::Stderr]);
        let unkept = outputs.flat_map(|(output, of)| output.left_out(of));
        self.exit.left_out = left_out::record(&left_out::all(printed.left_out, unkept), &self.records);
        let [stdout, stderr] = &self.outputs;
        self.exit.stdout_bytes = stdout.bytes_read();
        self.exit.stderr_bytes = stderr.bytes_read();
        self.exit.lines = stdout.lines() + stderr.lines();
        self.exit.log_bytes_lost = stdout.lost_bytes() + stderr.lost_bytes();
        self.exit.metric_values = printed.values + event_values + file_values;
        self.exit.killed_after_grace = self.ending.killed_after_grace();
        self.exit.error_file = self.take_error_file();
        self.exit.oom_kill_delta = oom_delta(self.oom_kills_before, oom::kill_count());
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) {
            let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            self.exit.cpu_seconds = micros as f64 / 1e6;
            self.exit.peak_rss_bytes = usage.max_rss().max(0) as u64 * 1024;
        }
        // The logs are durable before the record is that says of how much output they are.
        syncing.into_iter().for_each(|thread| drop(thread.join()));
        note_times(&mut self.exit, self.clock.now(), self.clock.monotonic_micros() - self.started_micros);
        self.reserved.write(&self.exit).doing("write exit.json")
    }

    /// What the script's error handler left, without secrets: in the record, and in the file itself.
    fn take_error_file(&self) -> Option<String> {
        use std::io::Read;
        let path = self.files.error_json();
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&path).ok()?;
        file.take(ERROR_FILE_READ_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(ERROR_FILE_READ_BYTES_MAX)]).into_owned();
        let clean = self.redactor.text(&text);
        if clean != text || bytes.len() > ERROR_FILE_READ_BYTES_MAX {
            TempFile::write_cache(&path, clean.as_bytes()).ok();
        }
        let end = clean.floor_char_boundary(ERROR_FILE_BYTES_MAX);
        Some(clean[..end].to_owned())
    }
}

fn push_name(names: &mut Vec<String>, name: String) {
    if names.len() < PROCESS_NAMES_MAX {
        names.push(name);
    }
}

fn oom_delta(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Fills in the times: durations come from the monotonic clock, and a wall clock that jumped is named.
fn note_times(exit: &mut ExitRecord, ended_at: Timestamp, monotonic_micros: i64) {
    const JUMP_SECONDS: f64 = 1.0;
    exit.ended_at = ended_at;
    exit.wall_seconds = monotonic_micros as f64 / 1e6;
    let jump = ended_at.seconds_since(exit.started_at) - exit.wall_seconds;
    exit.clock_jump_seconds = (jump.abs() > JUMP_SECONDS).then_some(jump);
    exit.clock_went_backwards = ended_at < exit.started_at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use trackway_core::ManualClock;

    /// Proves that a wall clock set back during the attempt changes no duration and is named.
    #[test]
    fn a_clock_set_back_is_named_and_harmless() {
        let clock = ManualClock::at(Timestamp::from_micros(1_000_000_000));
        let mut exit = ExitRecord { started_at: clock.now(), ..ExitRecord::default() };
        clock.advance_micros(5_000_000);
        note_times(&mut exit, clock.now(), clock.monotonic_micros());
        assert_eq!(
            (exit.wall_seconds, exit.clock_jump_seconds, exit.clock_went_backwards),
            (5.0, None, false)
        );
        clock.set_wall(Timestamp::from_micros(400_000_000));
        note_times(&mut exit, clock.now(), clock.monotonic_micros());
        assert_eq!(
            (exit.wall_seconds, exit.clock_jump_seconds, exit.clock_went_backwards),
            (5.0, Some(-605.0), true)
        );
    }

    /// Proves that an OOM count that cannot be read is not taken for none.
    #[test]
    fn an_unreadable_oom_count_is_not_zero() {
        assert_eq!(oom_delta(Some(1), Some(3)), Some(2));
        assert_eq!(oom_delta(None, Some(3)), None);
        assert_eq!(oom_delta(Some(1), None), None);
    }
}
