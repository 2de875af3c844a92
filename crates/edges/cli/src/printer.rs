//! The only place that writes to the terminal: data on stdout, everything else on stderr.
//!
//! Every text becomes a [`StyledLine`] on its way, and only this file turns one into bytes: what a script, a file or a name
//! holds cannot steer the terminal, wherever it is printed. The two exceptions have names: [`Printer::echo`] for the
//! script's output while it runs, and [`Printer::file`] for a document that is on its way into a file.

use std::io::{IsTerminal, Write};
use std::ops::Add;
use std::sync::OnceLock;

use indicatif::{ProgressBar, ProgressStyle};
use trackway_api::Document;
use trackway_core::visible::{escaped_json, visible, without_colours};
use trackway_engine::error::AppError;
pub use trackway_flows::data::masked_cut as cut;
use trackway_flows::data::{masked, masked_json};
use unicode_width::UnicodeWidthStr;

/// Spaces between the columns of a table.
const COLUMN_GAP: usize = 2;

/// Columns that a line of prose takes at most, but for a longer word.
const LINE_COLUMNS: usize = 120;
/// Columns that prose gets beside the other columns of a table, at least.
const PROSE_COLUMNS_MIN: usize = 40;
/// What marks a line as Trackway's own.
const NOTE_MARK: &str = "trackway:";

/// What marks what happened.
const ERROR_MARK: &str = "error:";
/// What marks a cause of a cause.
const CAUSE_MARK: &str = "caused by:";

/// Work that is expected to take less, in seconds, is not announced.
pub const QUOTE_SECONDS_MIN: f64 = 2.0;

/// How the terminal wants to be spoken to.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    json: bool,
    /// Personal data is hidden in whatever is printed.
    masks: bool,
    stdout_colour: bool,
    stderr_colour: bool,
}

/// How a word is emphasised; the meaning is always in the word as well.
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

/// One line as a person may see it: spans of visible letters, some in a tone. It is no `Display`, so that tones
/// cannot get lost in a `String`; pieces are joined with `+`.
#[derive(Debug, Clone, Default)]
pub struct StyledLine(Vec<(Option<Tone>, String)>);

impl StyledLine {
    /// Pieces with a separator between them. Values of data are separate pieces: personal ones are hidden, and the text
    /// before a number could change its meaning.
    pub fn joined(pieces: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        pieces.into_iter().reduce(|all, piece| all + separator + piece).unwrap_or_default()
    }

    fn toned(self, tone: Tone) -> Self {
        Self(self.0.into_iter().map(|(_, text)| (Some(tone), text)).collect())
    }

    /// Columns of a terminal that it takes.
    fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.width()).sum()
    }

    /// Without spaces at the end.
    fn trimmed(mut self) -> Self {
        while let Some((_, last)) = self.0.last_mut() {
            last.truncate(last.trim_end().len());
            if !last.is_empty() {
                break;
            }
            self.0.pop();
        }
        self
    }

    /// Letters for a terminal, with the codes of the tones where it has colours.
    fn render(&self, colour: bool) -> String {
        let mut line = String::new();
        for (tone, text) in &self.0 {
            match tone.filter(|_| colour) {
                Some(tone) => line.extend(["\u{1b}[", tone.code(), "m", text.as_str(), "\u{1b}[0m"]),
                None => line.push_str(text),
            }
        }
        line
    }
}

impl<T: AsRef<str>> From<T> for StyledLine {
    fn from(text: T) -> Self {
        Self(vec![(None, visible(text.as_ref()).into_owned())])
    }
}

impl From<&Self> for StyledLine {
    fn from(shown: &Self) -> Self {
        shown.clone()
    }
}

impl<T: Into<Self>> Add<T> for StyledLine {
    type Output = Self;

    fn add(mut self, more: T) -> Self {
        self.0.extend(more.into().0);
        self
    }
}

/// The cells of a row of a table, of which some are in a tone.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::printer::StyledLine::from($cell)),*] };
}
pub(crate) use row;

fn colour_wanted(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether a user watches the notes: progress is drawn only then.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether a person can answer questions.
pub fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Whether standard input is a pipe, a socket or a file.
pub fn stdin_is_piped() -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = std::fs::metadata("/dev/stdin").map(|about| about.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket() || kind.is_file())
}

/// Whether a person reads the data.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// The text of a progress line.
pub fn say(bar: &ProgressBar, text: impl Into<StyledLine>) {
    bar.set_message(text.into().render(false));
}

/// How a progress line looks.
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

impl Printer {
    /// A printer for this process.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            masks: false,
            stdout_colour: colour_wanted(stdout_is_terminal()),
            stderr_colour: colour_wanted(stderr_is_terminal()),
        }
    }

    /// The same, and whether it hides personal data: in lines, tables, errors, JSON and pages.
    pub fn masking(self, masks: bool) -> Self {
        Self { masks, ..self }
    }

    /// The same, and in colours only where they are wanted.
    pub fn coloured(self, wanted: bool) -> Self {
        Self {
            stdout_colour: self.stdout_colour && wanted,
            stderr_colour: self.stderr_colour && wanted,
            ..self
        }
    }

    /// Whether personal data is hidden.
    pub fn masks(self) -> bool {
        self.masks
    }

    fn hidden(self, shown: StyledLine) -> StyledLine {
        if !self.masks {
            return shown;
        }
        StyledLine(shown.0.into_iter().map(|(tone, text)| (tone, masked(&text).into_owned())).collect())
    }

    fn json(self, what: &str, text: serde_json::Result<String>) {
        match text {
            Ok(text) => write_line(&escaped_json(if self.masks { masked_json(&text) } else { text })),
            Err(error) => self.note(format!("cannot print {what} as JSON: {error}")),
        }
    }

    /// Whether programs, not people, read stdout.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// A line of data on stdout. A closed pipe ends the process quietly, as `head` expects.
    pub fn line(self, text: impl Into<StyledLine>) {
        write_line(&self.hidden(text.into()).render(self.stdout_colour));
    }

    /// A line of data that begins with a mark in a tone.
    pub fn point(self, tone: Tone, text: impl Into<StyledLine>) {
        self.line(self.tone(tone, "·") + " " + text);
    }

    /// Lines of data that begin with a mark in a tone.
    pub fn points<T: Into<StyledLine>>(self, tone: Tone, texts: impl IntoIterator<Item = T>) {
        texts.into_iter().for_each(|text| self.point(tone, text));
    }

    /// A line of a log: without its colours, and a carriage return begins a new line.
    pub fn log_line(self, before: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        for part in text.split('\r') {
            self.line(StyledLine::from(before) + without_colours(part));
        }
    }

    /// A document on its way into a file, byte by byte; only a terminal gets it line by line as visible text.
    pub fn file(self, bytes: &[u8]) {
        if stdout_is_terminal() {
            String::from_utf8_lossy(bytes).lines().for_each(|line| self.line(line));
        } else {
            quit_on_closed_pipe(write_all(std::io::stdout().lock(), bytes));
        }
    }

    /// The output of the user's own script while it runs, byte by byte, as if Trackway were not there. A closed pipe
    /// must not end the supervision.
    pub fn echo(self, to_stdout: bool, bytes: &[u8]) {
        let written = match to_stdout {
            true => write_all(std::io::stdout().lock(), bytes),
            false => write_all(std::io::stderr().lock(), bytes),
        };
        drop(written);
    }

    /// An empty screen, for a page that is redrawn.
    pub fn clear_screen(self) {
        quit_on_closed_pipe(std::io::stdout().write_all(b"\x1b[H\x1b[J"));
    }

    /// The answer of a command: a JSON document for programs, what `print` prints for people.
    pub fn answer(self, document: &impl Document, print: impl FnOnce()) {
        match self.json {
            true => self.document(document),
            false => print(),
        }
    }

    /// One JSON document on stdout.
    pub fn document(self, document: &impl Document) {
        self.json("the answer", serde_json::to_string_pretty(document));
    }

    /// One line of NDJSON on stdout.
    pub fn record(self, record: &impl Document) {
        self.json("a record", serde_json::to_string(record));
    }

    /// A line for people on stderr, marked as Trackway's own.
    pub fn note(self, text: impl Into<StyledLine>) {
        self.stderr_line(&(self.tone(Tone::Dim, NOTE_MARK) + " " + text));
    }

    /// The same of a text that may be long: in lines, those after the first one indented.
    pub fn long_note(self, text: &str) {
        const INDENT: &str = "  ";
        let columns = LINE_COLUMNS - NOTE_MARK.len() - 1 - INDENT.len();
        for (number, line) in broken(text, columns).into_iter().enumerate() {
            self.note(if number == 0 { line } else { INDENT.to_owned() + &line });
        }
    }

    /// A text of data that may be long: in lines, all indented by so many columns.
    pub fn paragraph(self, indent: usize, text: &str) {
        for line in broken(text, LINE_COLUMNS.saturating_sub(indent)) {
            self.line(" ".repeat(indent) + &line);
        }
    }

    /// A table whose last column is prose: it takes several lines where it is long.
    pub fn table_with_prose(self, header: &[&str], rows: Vec<Vec<String>>) {
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain(header.get(column).map(|title| title.width())).max().unwrap_or_default() + COLUMN_GAP
        };
        let others = header.len().saturating_sub(1);
        let taken: usize = (0..others).map(width).sum();
        let columns = LINE_COLUMNS.saturating_sub(taken).max(PROSE_COLUMNS_MIN);
        let lines = rows.into_iter().flat_map(|mut row| {
            let prose = broken(&row.pop().unwrap_or_default(), columns);
            prose.into_iter().enumerate().map(move |(number, line)| {
                let first = row.iter().map(|cell| if number == 0 { cell.clone() } else { String::new() });
                first.chain([line]).collect::<Vec<String>>()
            })
        });
        self.table(header, lines.collect());
    }

    /// An error on stderr: what happened with its nearest cause, the causes behind that, and what to do.
    pub fn error(self, error: &AppError) {
        for (number, (mark, text)) in marked(error).into_iter().enumerate() {
            // Each mistake of a file is an error for itself.
            if number > 0 && mark == ERROR_MARK {
                self.stderr_line(&StyledLine::default());
            }
            self.message(self.tone(Tone::Bad, mark), &text);
        }
        error.hints.iter().for_each(|hint| self.hint(hint));
    }

    /// What to do about an error, below it.
    pub fn hint(self, hint: &str) {
        self.message(self.tone(Tone::Warning, "hint:"), hint);
    }

    /// Wrong usage, with the message of the argument parser: its first word is the mark of an error.
    pub fn usage_error(self, text: &str) {
        let (mark, rest) = text.split_once(' ').unwrap_or(("", text));
        self.message(self.tone(Tone::Bad, mark), rest);
    }

    /// A question on stderr, and the line that answers it, without blanks around it; empty at the end of the input.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub fn ask(self, question: impl Into<StyledLine>) -> std::io::Result<String> {
        let mut stderr = std::io::stderr();
        let _ = write!(stderr, "{}", self.hidden(question.into()).render(self.stderr_colour));
        let _ = stderr.flush();
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn message(self, mark: StyledLine, text: &str) {
        let mut lines = text.lines();
        self.stderr_line(&(mark + " " + lines.next().unwrap_or_default()));
        lines.for_each(|line| self.stderr_line(&line.into()));
    }

    fn stderr_line(self, shown: &StyledLine) {
        let _ = writeln!(std::io::stderr(), "{}", self.hidden(shown.clone()).render(self.stderr_colour));
    }

    /// `text` in a tone.
    pub fn tone(self, tone: Tone, text: impl Into<StyledLine>) -> StyledLine {
        text.into().toned(tone)
    }

    /// A table a person can read, on stdout.
    pub fn table<C: Into<StyledLine>>(self, header: &[&str], rows: Vec<Vec<C>>) {
        let header: Vec<StyledLine> =
            header.iter().map(|title| StyledLine::from(*title).toned(Tone::Bold)).collect();
        let rows = rows.into_iter().map(|row| row.into_iter().map(|cell| self.hidden(cell.into())).collect());
        let rows: Vec<Vec<StyledLine>> = std::iter::once(header).chain(rows).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(StyledLine::width).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        for row in rows {
            let mut line = StyledLine::default();
            for (cell, width) in row.into_iter().zip(&widths) {
                let gap = width + COLUMN_GAP - cell.width();
                line = line + cell + " ".repeat(gap);
            }
            self.line(line.trimmed());
        }
    }
}

/// What a person reads of an error, each text with its mark: what happened and its nearest cause are one sentence, and
/// each cause behind that is another one. Of a file that has mistakes it is these.
fn marked(error: &AppError) -> Vec<(&'static str, String)> {
    if !error.mistakes().is_empty() {
        return error.mistakes().iter().map(|mistake| (ERROR_MARK, mistake.shown.clone())).collect();
    }
    let mut causes = error.causes().into_iter();
    let what = match causes.next() {
        Some(nearest) => format!("{}: {nearest}", error.what()),
        None => error.what().to_owned(),
    };
    std::iter::once((ERROR_MARK, what)).chain(causes.map(|cause| (CAUSE_MARK, cause))).collect()
}

/// A text broken at its spaces, so that no line takes more columns; a longer word has a line alone. There is at least one line.
fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { continue };
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn write_line(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(line.as_bytes()).and_then(|()| write_all(stdout, b"\n"));
    quit_on_closed_pipe(written);
}

fn write_all(mut to: impl Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// A closed pipe ends the process quietly; any other error is reported at the end, so that no work is lost for it.
fn quit_on_closed_pipe(written: std::io::Result<()>) {
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => drop(FAILED_WRITE.set(error.to_string())),
    }
}

/// Why stdout is not whole; `None`: everything was written.
pub fn failed_write() -> Option<&'static str> {
    FAILED_WRITE.get().map(String::as_str)
}

/// Why the first write failed.
static FAILED_WRITE: OnceLock<String> = OnceLock::new();

#[cfg(test)]
mod tests {
    use trackway_core::visible::steers_display;

    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{7}\u{9b}\r\u{202e}\nb";

    /// Proves that a text is broken at its spaces, that nothing of it is lost, and that a word which is too long has a line alone.
    #[test]
    fn a_long_text_is_broken() {
        let text = "one two three fourteen-letters four";
        assert_eq!(broken(text, 13), ["one two three", "fourteen-letters", "four"]);
        assert_eq!(broken(text, 200), [text]);
        assert_eq!(broken("", 10), [""]);
        assert!(broken(&"word ".repeat(100), LINE_COLUMNS).iter().all(|line| line.width() <= LINE_COLUMNS));
    }

    /// Proves that each error of a chain of three is read once: the nearest cause beside what happened, the next one below.
    #[test]
    fn a_chain_is_read_once() {
        let disk = AppError::fault("`a.json` cannot be read", std::io::Error::other("the disk is gone"));
        let said = marked(&disk.within("the checkpoints could not be read"));
        let what = "the checkpoints could not be read: `a.json` cannot be read".to_owned();
        assert_eq!(said, [(ERROR_MARK, what), (CAUSE_MARK, "the disk is gone".to_owned())]);
    }

    /// Proves that each mistake of a file is an error for itself, with its line and caret.
    #[test]
    fn every_mistake_of_a_file_is_an_error() {
        let text = "[run]\nnmae = \"a\"\nsead = 1\n";
        let errors = trackway_formats::runfile::parse(text, "trackway.toml", &[]).unwrap_err();
        let said = marked(&AppError::run_file(&errors, text));
        assert_eq!(said.len(), errors.len());
        let is_one = |(mark, text): &(&str, String)| *mark == ERROR_MARK && text.matches("-->").count() == 1;
        assert!(said.len() > 1 && said.iter().all(is_one), "{said:?}");
    }

    /// Proves that only tones become escape codes, never what a text holds.
    #[test]
    fn only_tones_are_escape_codes() {
        let shown = StyledLine::from(HOSTILE).toned(Tone::Bad) + HOSTILE.to_owned();
        let plain = shown.render(false);
        assert!(!plain.contains(steers_display), "{plain:?}");
        let coloured = shown.render(true);
        let codes = coloured.matches('\u{1b}').count();
        assert_eq!((codes, coloured.starts_with("\u{1b}[31ma")), (2, true), "{coloured:?}");
    }
}
