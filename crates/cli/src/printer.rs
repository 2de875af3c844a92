//! The only place that writes to the terminal: data on stdout, everything else on stderr.

use std::io::{IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// How the terminal wants to be spoken to.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    json: bool,
    stdout_colour: bool,
    stderr_colour: bool,
}

/// How a word is set off; the meaning is always in the word as well.
#[derive(Debug, Clone, Copy)]
pub enum Tone {
    /// A heading.
    Bold,
    /// Beside the point.
    Dim,
    /// It went well.
    Good,
    /// It did not.
    Bad,
    /// Worth a look.
    Warning,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Warning => "33",
        }
    }
}

fn colour_wanted(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

impl Printer {
    /// A printer for this process.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            stdout_colour: colour_wanted(std::io::stdout().is_terminal()),
            stderr_colour: colour_wanted(std::io::stderr().is_terminal()),
        }
    }

    /// Whether programs, not people, read stdout.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// A line of data on stdout. A closed pipe ends the process quietly, as `head` expects.
    pub fn line(self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
        quit_on_closed_pipe(written.and_then(|()| stdout.flush()));
    }

    /// Bytes on stdout as they are.
    pub fn raw(self, bytes: &[u8]) -> std::io::Result<()> {
        let mut stdout = std::io::stdout().lock();
        quit_on_closed_pipe(stdout.write_all(bytes).and_then(|()| stdout.flush()));
        Ok(())
    }

    /// One JSON document on stdout.
    pub fn document(self, document: &impl Serialize) {
        match serde_json::to_string_pretty(document) {
            Ok(text) => self.line(&text),
            Err(error) => self.note(&format!("cannot print the answer as JSON: {error}")),
        }
    }

    /// One line of NDJSON on stdout.
    pub fn record(self, record: &impl Serialize) {
        match serde_json::to_string(record) {
            Ok(text) => self.line(&text),
            Err(error) => self.note(&format!("cannot print a record as JSON: {error}")),
        }
    }

    /// A line for people on stderr, marked as Trackway's own.
    pub fn note(self, text: &str) {
        let mark = paint(self.stderr_colour, Tone::Dim, "trackway:");
        let _ = writeln!(std::io::stderr(), "{mark} {text}");
    }

    /// An error with its chain and hints on stderr.
    pub fn error(self, text: &str, hints: &[String]) {
        let mark = paint(self.stderr_colour, Tone::Bad, "error:");
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "{mark} {text}");
        for hint in hints {
            let _ = writeln!(stderr, "{} {hint}", paint(self.stderr_colour, Tone::Warning, "hint:"));
        }
    }

    /// `text` in a tone, for stdout.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        paint(self.stdout_colour, tone, text)
    }

    /// A table a person can read, on stdout.
    pub fn table(self, header: &[&str], rows: Vec<Vec<String>>) {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(header.iter());
        for row in rows {
            table.add_row(row.iter().map(|cell| visible(cell)));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let text = table.to_string();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            self.line(&if number == 0 { self.tone(Tone::Bold, line) } else { line.into() });
        }
    }
}

/// Control characters as visible text: what a script or a name holds must not steer the terminal.
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\t' { '\u{fffd}' } else { letter })
        .collect()
}

fn paint(colour: bool, tone: Tone, text: &str) -> String {
    if colour { format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code()) } else { text.into() }
}

fn quit_on_closed_pipe(written: std::io::Result<()>) {
    if written.is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}
