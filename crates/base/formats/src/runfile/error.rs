use std::fmt;
use std::ops::Range;

/// One mistake in a run file, in a change of it or in a settings file. [`super::parse`] returns all of them, in file
/// order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFileError {
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// The bytes at fault, in the file or, when [`Self::override_text`] is set, in that text.
    pub span: Range<usize>,
    /// The line of the first byte at fault, counted from 1.
    pub line: usize,
    /// The column of the first byte at fault in characters, counted from 1.
    pub column: usize,
    /// What to do about it.
    pub hint: Option<String>,
    /// The file's name; for a mistake in a change of it what made the change, and its text: `--set KEY=VALUE`.
    pub source_name: String,
    /// The text of the change at fault; `None` for a mistake in the file itself.
    pub override_text: Option<String>,
}

impl RunFileError {
    /// A mistake at these bytes of a text.
    pub(crate) fn at(
        source_name: &str,
        text: &str,
        span: Range<usize>,
        message: String,
        hint: Option<String>,
    ) -> Self {
        let (line, column) = line_and_column(text, span.start);
        Self { message, span, line, column, hint, source_name: source_name.to_owned(), override_text: None }
    }

    /// The error as plain text: message, place, the line with a caret under the fault, hint.
    ///
    /// `source` is the text of the file; an error of a change shows that instead.
    #[must_use]
    pub fn render_plain(&self, source: &str) -> String {
        let text = self.override_text.as_deref().unwrap_or(source);
        let line_text = text.lines().nth(self.line.saturating_sub(1)).unwrap_or("");
        let gutter = " ".repeat(self.line.to_string().len());
        let caret = caret_line(text, line_text, &self.span, self.column);
        let mut rendered = format!(
            "{message}\n{gutter}--> {name}:{line}:{column}\n{gutter} |\n{line} | {line_text}\n{gutter} | {caret}",
            message = self.message,
            name = self.source_name,
            line = self.line,
            column = self.column,
        );
        if let Some(hint) = &self.hint {
            rendered.push_str(&format!("\nhint: {hint}"));
        }
        rendered
    }
}

impl fmt::Display for RunFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}: {}", self.source_name, self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RunFileError {}

/// Blanks up to the column, tabs kept so that the caret is in the right place in a terminal, then one caret per
/// character of the fault on its first line.
fn caret_line(text: &str, line_text: &str, span: &Range<usize>, column: usize) -> String {
    let before = column.saturating_sub(1);
    let indent: String =
        line_text.chars().take(before).map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
    let fault = text.get(span.clone()).unwrap_or("").lines().next().unwrap_or("");
    let room = line_text.chars().count().saturating_sub(before);
    let width = fault.chars().count().min(room).max(1);
    format!("{indent}{}", "^".repeat(width))
}

/// The line and column (both from 1, column in characters) of a byte offset. An offset past the end or inside
/// a character counts as the nearest character before it.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
