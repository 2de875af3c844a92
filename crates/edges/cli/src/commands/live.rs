//! Shows a running run: the script's output as it is, Trackway's messages and a status line on stderr.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget};
use trackway_engine::Context;
use trackway_engine::notices::{Listener, Notices};
use trackway_engine::reporter::{Notice, Progress, Reporter, Stream, TerminalStreams};
use trackway_flows::checkpoints::BytesProgress;
use trackway_flows::training::preflight::{PreflightEvent, PreflightReporter};
use trackway_rules::decide::DecisionRule;

use super::checks::preflight_summary;
use crate::printer::{Printer, say, stderr_is_terminal, style};
use crate::signals;
use crate::units::{counted, duration, metric};

/// More bytes than these get a progress bar while they are read: fewer take less than two seconds.
const BAR_BYTES_MIN: u64 = 256 << 20;

/// A progress bar over bytes, for a person at a terminal; it shows itself only when there is much to read.
pub struct BytesBar {
    what: &'static str,
    bar: Mutex<Option<ProgressBar>>,
}

impl BytesBar {
    pub fn new(what: &'static str) -> Self {
        Self { what, bar: Mutex::new(None) }
    }

    /// So many bytes are done of so many in all. Any thread may report this.
    pub fn at(&self, done_bytes: u64, total_bytes: u64) {
        if total_bytes < BAR_BYTES_MIN || !stderr_is_terminal() {
            return;
        }
        let Ok(mut bar) = self.bar.lock() else { return };
        let bar = bar.get_or_insert_with(|| {
            let template = "{msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
            let bar = ProgressBar::new(total_bytes).with_style(style(template));
            say(&bar, self.what);
            bar
        });
        bar.set_position(done_bytes);
        if done_bytes >= total_bytes {
            bar.finish_and_clear();
        }
    }
}

/// A progress bar over bytes, for work with checkpoints.
pub fn watch(what: &'static str) -> BytesProgress {
    let bar = BytesBar::new(what);
    Arc::new(move |done_bytes, total_bytes| bar.at(done_bytes, total_bytes))
}

/// How long a search takes before it gets a bar.
const SEARCH_SECONDS_MIN: f64 = 2.0;

/// A progress bar over the candidates of a search for slices, for a person at a terminal; it shows itself after two seconds.
#[derive(Default)]
pub struct CandidatesBar(Mutex<Option<ProgressBar>>);

impl CandidatesBar {
    /// So many candidates with so many predicates are done of so many. Any thread may report this.
    pub fn at(&self, predicates: usize, done: u64, total: u64) {
        if !stderr_is_terminal() {
            return;
        }
        let Ok(mut bar) = self.0.lock() else { return };
        let bar = bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
            bar.with_style(style("{msg} [{bar:30}] {pos} of {len}, {eta} left"))
        });
        if bar.is_hidden() && bar.elapsed().as_secs_f64() > SEARCH_SECONDS_MIN {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        say(bar, format!("slices of {predicates} predicates"));
        bar.set_length(total);
        bar.set_position(done);
    }

    pub fn finish(&self) {
        if let Ok(mut bar) = self.0.lock()
            && let Some(bar) = bar.take()
        {
            bar.finish_and_clear();
        }
    }
}

/// A progress bar over rows, for a person at a terminal.
pub struct RowsBar {
    bar: ProgressBar,
}

impl RowsBar {
    pub fn new(what: &'static str) -> Self {
        let bar = if stderr_is_terminal() { ProgressBar::no_length() } else { ProgressBar::hidden() };
        let template = "{msg} [{bar:30}] {human_pos} of {human_len} rows, {per_sec}, {eta} left";
        bar.set_style(style(template));
        say(&bar, what);
        Self { bar }
    }

    /// So many rows are done of so many in all.
    pub fn at(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
        if done >= all {
            self.bar.finish_and_clear();
        }
    }
}

/// A line that says how many of something are done, for a person at a terminal.
pub struct CountSpinner {
    bar: ProgressBar,
}

impl CountSpinner {
    pub fn new() -> Self {
        let bar = if stderr_is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let bar = bar.with_style(style("{spinner} {human_pos} {msg}, {elapsed}"));
        // One of them may take long: a large checkpoint.
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// So many of these.
    pub fn at(&self, what: &'static str, count: u64) {
        say(&self.bar, what);
        self.bar.set_position(count);
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// When a wait of so many seconds is said again: after ten seconds, a minute, and every ten minutes.
fn next_line_of_wait(seconds: u64) -> u64 {
    match seconds {
        0..10 => 10,
        10..60 => 60,
        _ => seconds + 600,
    }
}

/// A line without anything in it is not drawn.
fn show_status(status: &ProgressBar, is_shown: bool) {
    status.set_style(style(if is_shown { "{spinner} {msg}" } else { "" }));
}

/// A reporter for a person at a terminal, or for a log file when there is none.
pub struct Live {
    printer: Printer,
    status: Option<ProgressBar>,
    reading: BytesBar,
    uploading: BytesBar,
    fetching: BytesBar,
    searching: CandidatesBar,
    /// The script's last output did not end its line.
    mid_line: AtomicBool,
    /// Which streams of the script are terminals.
    terminal: TerminalStreams,
    /// From how many seconds of a wait on it is said again.
    next_wait_seconds: AtomicU64,
}

impl Live {
    pub fn new(printer: Printer) -> Self {
        let status = stderr_is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            show_status(&bar, true);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self {
            printer,
            status,
            reading: BytesBar::new("reading data"),
            uploading: BytesBar::new("uploading"),
            fetching: BytesBar::new("downloading the checkpoint"),
            searching: CandidatesBar::default(),
            mid_line: AtomicBool::new(false),
            terminal: TerminalStreams::default(),
            next_wait_seconds: AtomicU64::new(0),
        }
    }

    /// Whether a notice is worth a line now: a wait is said again at growing intervals.
    pub(super) fn is_due(&self, notice: &Notice) -> bool {
        let Notice::Queued(wait) = notice else { return true };
        let seconds = wait.waited_seconds as u64;
        let is_due = seconds >= self.next_wait_seconds.load(Ordering::Relaxed);
        if is_due {
            self.next_wait_seconds.store(next_line_of_wait(seconds), Ordering::Relaxed);
        }
        is_due
    }

    /// Takes the status line away.
    pub fn finish(&self) {
        self.searching.finish();
        if let Some(status) = &self.status {
            status.finish_and_clear();
        }
    }

    /// Whether what is written next is in the middle of a line. The status line is not drawn into a line of the script that has
    /// not ended, such as its progress bar.
    fn set_mid_line(&self, is_mid_line: bool) {
        let was_mid_line = self.mid_line.swap(is_mid_line, Ordering::Relaxed);
        if let Some(status) = self.status.as_ref().filter(|_| was_mid_line != is_mid_line) {
            show_status(status, !is_mid_line);
        }
    }

    /// Writes while the status line is out of the way.
    fn aside(&self, write: impl FnOnce()) {
        match &self.status {
            Some(status) => status.suspend(write),
            None => write(),
        }
    }
}

/// Prints the notices of a request as notes.
pub fn printed_by(printer: Printer) -> Listener {
    Arc::new(move |notice: &Notice| {
        if !matches!(notice, Notice::Progress(_) | Notice::Queued(_)) {
            printer.note(sentence(notice));
        }
    })
}

/// Publishes what a use case reports as notices of its request; what is only for a terminal goes to it directly.
pub struct Published<R> {
    notices: Notices,
    terminal: Arc<R>,
}

/// Does work whose reports are notices of the request, and shows them on a terminal while it lasts.
pub fn published<R: PreflightReporter + Send + Sync + 'static, T>(
    context: &Context,
    terminal: &Arc<R>,
    work: impl FnOnce(&Published<R>) -> T,
) -> T {
    let notices = context.request.notices.clone();
    let shown = Arc::clone(terminal);
    let before = notices.listen(Some(Arc::new(move |notice: &Notice| match notice {
        Notice::Progress(progress) => shown.progress(progress),
        other => shown.notice(other),
    })));
    let done = work(&Published { notices: notices.clone(), terminal: Arc::clone(terminal) });
    notices.listen(before);
    done
}

impl<R: Reporter + Send> Reporter for Published<R> {
    fn notice(&self, notice: &Notice) {
        self.notices.notice(notice);
    }

    fn terminal(&self) -> TerminalStreams {
        self.terminal.terminal()
    }

    fn output(&self, stream: Stream, bytes: &[u8]) {
        self.terminal.output(stream, bytes);
    }

    fn progress(&self, progress: &Progress) {
        self.notices.progress(progress);
    }

    fn reading_data(&self, done_bytes: u64, total_bytes: u64) {
        self.terminal.reading_data(done_bytes, total_bytes);
    }

    fn searching(&self, predicates: usize, done: u64, total: u64) {
        self.terminal.searching(predicates, done, total);
    }

    fn uploading(&self, done_bytes: u64, total_bytes: u64) {
        self.terminal.uploading(done_bytes, total_bytes);
    }

    fn fetching(&self, done_bytes: u64, total_bytes: u64) {
        self.terminal.fetching(done_bytes, total_bytes);
    }
}

impl<R: PreflightReporter + Send> PreflightReporter for Published<R> {
    fn preflight(&self, event: &PreflightEvent<'_>) {
        self.terminal.preflight(event);
    }
}

/// Does what launches a script: signals end it, and it is shown while it lasts.
pub fn supervised<T>(context: &Context, printer: Printer, work: impl FnOnce(&Published<Live>) -> T) -> T {
    supervised_in(TerminalStreams::default(), context, printer, work)
}

/// The same for a script some of whose streams are terminals.
pub fn supervised_in<T>(
    terminal: TerminalStreams,
    context: &Context,
    printer: Printer,
    work: impl FnOnce(&Published<Live>) -> T,
) -> T {
    signals::supervise(&context.request.cancel);
    let live = Arc::new(Live { terminal, ..Live::new(printer) });
    let done = published(context, &live, work);
    live.finish();
    done
}

/// What launches took, after the answer of a command that made them.
pub fn note_launches(printer: Printer, count: usize, seconds: f64) {
    printer.note(format!("{} in {}", counted(count as u64, "launch"), duration(seconds)));
}

impl Reporter for Live {
    fn notice(&self, notice: &Notice) {
        if let (Notice::Queued(wait), Some(status)) = (notice, &self.status) {
            return say(status, wait.to_string());
        }
        if is_said(notice) || !self.is_due(notice) {
            return;
        }
        let text = sentence(notice);
        let is_mid_line = self.mid_line.load(Ordering::Relaxed);
        self.aside(|| {
            if is_mid_line {
                self.printer.echo(false, b"\n");
            }
            self.printer.note(&text);
        });
        self.set_mid_line(false);
    }

    fn terminal(&self) -> TerminalStreams {
        self.terminal
    }

    fn output(&self, stream: Stream, bytes: &[u8]) {
        let json = self.printer.is_json();
        let Some(last) = bytes.last() else { return };
        let ends_line = *last == b'\n';
        // Hidden before its line is written, shown after it.
        if !ends_line {
            self.set_mid_line(true);
        }
        // Under `--json` stdout holds one document.
        self.aside(|| self.printer.echo(stream == Stream::Stdout && !json, bytes));
        if ends_line {
            self.set_mid_line(false);
        }
    }

    fn progress(&self, progress: &Progress) {
        if let Some(status) = &self.status {
            say(status, status_line(progress));
        }
    }

    fn reading_data(&self, done_bytes: u64, total_bytes: u64) {
        self.reading.at(done_bytes, total_bytes);
    }

    fn searching(&self, predicates: usize, done: u64, total: u64) {
        self.searching.at(predicates, done, total);
    }

    fn uploading(&self, done_bytes: u64, total_bytes: u64) {
        self.uploading.at(done_bytes, total_bytes);
    }

    fn fetching(&self, done_bytes: u64, total_bytes: u64) {
        self.fetching.at(done_bytes, total_bytes);
    }
}

/// Whether the line before says it already: that an attempt which succeeded is the last one follows from its end.
pub(super) fn is_said(notice: &Notice) -> bool {
    matches!(notice, Notice::Decided { rule, .. } if rule == DecisionRule::Finished.as_str())
}

pub(super) fn sentence(notice: &Notice) -> String {
    match notice {
        Notice::RunStarted { run_id, name, config_sha256 } => {
            format!("`{name}` is {run_id}, config {}", crate::units::short_hash(config_sha256))
        }
        Notice::AttemptStarted { attempt_number, attempt_id, rung, resumed_from_step, warm_start } => {
            let rung = rung.as_ref().map(|rung| format!(" at {rung} of the data")).unwrap_or_default();
            let begins = match (resumed_from_step, warm_start) {
                (Some(step), _) => format!("resumes from step {step}"),
                (None, Some(weights)) => weights.clone(),
                (None, None) => "starts".into(),
            };
            format!("attempt {attempt_number} ({attempt_id}){rung} {begins}")
        }
        Notice::AttemptEnded { attempt_number, reason, rule, evidence, .. } => {
            format!("attempt {attempt_number} ended: {reason} (rule `{rule}`): {evidence}")
        }
        Notice::Decided { rule, why, delay_seconds } => match delay_seconds {
            Some(delay) if *delay > 0.0 => format!("{why} (rule `{rule}`); launches in {}", duration(*delay)),
            _ => format!("{why} (rule `{rule}`)"),
        },
        Notice::Note { text } | Notice::Warning { text } | Notice::Detected { text, .. } => text.clone(),
        Notice::Progress(progress) => status_line(progress),
        Notice::Queued(wait) => wait.to_string(),
    }
}

/// `step 120 · 35.2 steps/s · loss 0.4312 · committed 100`
fn status_line(progress: &Progress) -> String {
    let mut parts = Vec::new();
    parts.extend(progress.step.map(|step| format!("step {step}")));
    parts.extend(progress.steps_per_second.map(|rate| format!("{rate:.1} steps/s")));
    parts.extend(progress.loss.as_ref().map(|(name, value)| format!("{name} {}", metric(*value))));
    parts.extend(progress.last_committed_step.map(|step| format!("committed {step}")));
    if parts.is_empty() { "running".into() } else { parts.join(" · ") }
}

impl PreflightReporter for Live {
    fn preflight(&self, event: &PreflightEvent<'_>) {
        match event {
            PreflightEvent::Began { title } => self.status.iter().for_each(|status| say(status, *title)),
            PreflightEvent::Judged(report) => {
                self.aside(|| preflight_summary(report).iter().for_each(|line| self.printer.note(line)));
            }
            PreflightEvent::Quote(_) | PreflightEvent::Reading { .. } | PreflightEvent::Ended { .. } => {}
        }
    }
}
