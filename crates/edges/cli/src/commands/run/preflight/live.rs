//! One line per step while it is running: a spinner or a bar at a terminal, a plain line at its end otherwise.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar};
use trackway_api::runs::preflight::Quote;
use trackway_engine::reporter::{Notice, Reporter};
use trackway_flows::training::preflight::{CheckResult, PreflightEvent, PreflightReporter, Verdict};

use crate::printer::{Printer, QUOTE_SECONDS_MIN, say, stderr_is_terminal, style};
use crate::units::{bytes, duration};

const SPINNER: &str = "{spinner} {msg}";
const BAR: &str = "{spinner} {msg} [{bar:24}] {bytes} of {total_bytes}, {eta} left";
const TICK: Duration = Duration::from_millis(120);

/// Shows the steps.
pub struct StepLines {
    printer: Printer,
    /// At a terminal.
    all: Option<MultiProgress>,
    lines: Mutex<BTreeMap<&'static str, ProgressBar>>,
}

impl StepLines {
    pub fn new(printer: Printer) -> Self {
        let all = stderr_is_terminal().then(MultiProgress::new);
        Self { printer, all, lines: Mutex::new(BTreeMap::new()) }
    }

    /// Takes the lines away.
    pub fn finish(&self) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *lines).values().for_each(ProgressBar::finish_and_clear);
    }

    fn note(&self, text: &str) {
        match &self.all {
            Some(all) => all.suspend(|| self.printer.note(text)),
            None => self.printer.note(text),
        }
    }

    fn quote(&self, quote: &Quote) {
        if quote.seconds < QUOTE_SECONDS_MIN {
            return;
        }
        let text = format!("the checks read {}, about {}", bytes(quote.bytes), duration(quote.seconds));
        self.note(&text);
    }

    fn began(&self, title: &'static str) {
        let Some(all) = &self.all else { return };
        let line = all.add(ProgressBar::new_spinner());
        line.set_style(style(SPINNER));
        say(&line, title);
        line.enable_steady_tick(TICK);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).insert(title, line);
    }

    fn reading(&self, title: &str, done_bytes: u64, total_bytes: u64) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(line) = lines.get(title).filter(|_| total_bytes > 0) else { return };
        if line.length() != Some(total_bytes) {
            line.set_style(style(BAR));
            line.set_length(total_bytes);
        }
        line.set_position(done_bytes.min(total_bytes));
    }

    fn ended(&self, title: &'static str, results: &[CheckResult]) {
        let seconds = results.iter().filter_map(|result| result.seconds).fold(0.0, f64::max);
        let text = format!("{title}: {} ({})", word(results), duration(seconds));
        let line = self.lines.lock().unwrap_or_else(PoisonError::into_inner).remove(title);
        line.iter().for_each(ProgressBar::finish_and_clear);
        self.note(&text);
    }
}

/// The worst of a step's verdicts, as the step found it.
fn word(results: &[CheckResult]) -> &'static str {
    let rank = |verdict: Verdict| match verdict {
        Verdict::Block => 0,
        Verdict::NotRun => 1,
        Verdict::Warn => 2,
        Verdict::Pass => 3,
        Verdict::NotApplicable => 4,
    };
    let worst = results.iter().map(|result| result.verdict).min_by_key(|verdict| rank(*verdict));
    match worst.unwrap_or(Verdict::NotRun) {
        Verdict::Pass | Verdict::NotApplicable => "done",
        Verdict::NotRun => "not run",
        Verdict::Warn | Verdict::Block => "found something",
    }
}

impl Reporter for StepLines {
    fn notice(&self, notice: &Notice) {
        if let Notice::Note { text } | Notice::Warning { text } = notice {
            self.note(text);
        }
    }
}

impl PreflightReporter for StepLines {
    fn preflight(&self, event: &PreflightEvent<'_>) {
        match event {
            PreflightEvent::Quote(quote) => self.quote(quote),
            PreflightEvent::Began { title } => self.began(title),
            PreflightEvent::Reading { title, done_bytes, total_bytes } => {
                self.reading(title, *done_bytes, *total_bytes)
            }
            PreflightEvent::Ended { title, results } => self.ended(title, results),
            PreflightEvent::Judged(_) => {}
        }
    }
}
