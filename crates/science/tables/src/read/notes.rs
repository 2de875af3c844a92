//! What reading did to what the files hold: left out, cut, renamed or read as something else, each with a count and its first
//! place. Nothing of that is silent: every answer about a table has these notes, and a strict reading ends where one of them
//! says that a value is not what the file has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trackway_core::text::shortened;
use trackway_results::reading::{
    CellFaults, Column, ColumnType, Occurrences, Place, ReadNote, ReadNoteKind, RejectKind,
};

use super::coverage::Coverage;
use super::sample::bytes_per_file;
use super::tally::{Strings, WORDS_NAMED};
use super::text::cells::USUAL_MISSING;
use super::{FileKind, Source, SourceFile, display};
use crate::counted;
use crate::error::compression_advice;
use crate::limits::EXAMPLES_MAX;
use crate::personal::masked_cell;
use crate::types::infer::{Style, TextReason};

/// The note on files that are no tables.
pub(super) fn left_out_files(base: &Path, others: &[&PathBuf]) -> Vec<ReadNote> {
    let Some(first) = others.first() else { return Vec::new() };
    let first = display(base, first);
    let advice = compression_advice(&first);
    let message = match others.len() {
        1 => format!("`{first}` was skipped (not a table){advice}"),
        count => format!("{count} files were skipped (not tables), the first `{first}`{advice}"),
    };
    let note = ReadNote::new(ReadNoteKind::SkippedFiles, others.len() as u64, message);
    vec![ReadNote { file: Some(first), ..note }]
}

/// Notes on one file, from its beginning.
pub(super) fn of_file(file: &SourceFile) -> Vec<ReadNote> {
    let path = &file.path;
    let renamed = |(given, name): &(String, String)| {
        let message = match given.is_empty() {
            true => format!("`{path}` has a column without a name: it is read as `{name}`"),
            false => format!("`{path}` names several columns `{given}`: one of them is read as `{name}`"),
        };
        ReadNote { column: Some(name.clone()), ..ReadNote::new(ReadNoteKind::RenamedColumn, 1, message) }
    };
    let mut notes: Vec<ReadNote> = file.renamed.iter().map(renamed).collect();
    let layout = |advice: &String| ReadNote::new(ReadNoteKind::Layout, 1, format!("`{path}`: {advice}"));
    notes.extend(file.advice.as_ref().map(layout));
    if let FileKind::Csv(layout) = &file.kind {
        if layout.skip_lines > 0 {
            let lines = counted(layout.skip_lines, "line");
            let message = format!("{lines} at the beginning of `{path}` left out on request");
            notes.push(ReadNote::new(ReadNoteKind::SkippedLines, layout.skip_lines, message));
        }
        if layout.dialect.has_backslashes {
            let message =
                format!("`{path}` escapes quotes with a backslash: `\\\"` within quotes is read as a quote");
            notes.push(ReadNote::new(ReadNoteKind::Backslashes, 1, message));
        }
        if layout.has_recoded_header {
            let message = format!("the header of `{path}` is not UTF-8: its names are read as Windows-1252");
            notes.push(ReadNote::new(ReadNoteKind::RenamedColumn, 1, message));
        }
    }
    notes.into_iter().map(|note| note.in_file(path)).collect()
}

impl Source {
    /// What reading did to what the files hold: from their beginning, and from the last scan of the source.
    #[must_use]
    pub fn reading(&self) -> Vec<ReadNote> {
        let types =
            self.columns.iter().enumerate().filter_map(|(index, column)| self.note_on_type(index, column));
        self.opening.iter().cloned().chain(types).chain(self.scanned.iter().cloned()).collect()
    }

    /// The sentences of [`Source::reading`] that no count of rows and no summary of a column says too.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let reading = self.reading();
        sentences(reading.iter().filter(|note| !note.kind.is_counted_elsewhere()))
    }

    /// Keeps what a scan found.
    pub(crate) fn remember(&mut self, coverage: &Coverage) {
        self.scanned = self.notes_of(coverage);
    }

    /// Why a column of numbers or dates is text, or in which order its dates are.
    fn note_on_type(&self, index: usize, column: &Column) -> Option<ReadNote> {
        let tally = &self.tallies[index];
        let decision = tally.decide(self.string_limit);
        let name = &column.name;
        if self.types_are_fixed && column.kind != decision.kind {
            return None;
        }
        let note = |kind, (count, line): (u64, Option<u64>), what: &str| {
            let first = match (line, self.files.as_slice()) {
                (Some(line), [only]) => format!(", the first in line {line} of `{}`", only.path),
                _ => String::new(),
            };
            let file = self.files.first().filter(|_| self.files.len() == 1).map(|file| file.path.clone());
            let message = format!("`{name}` {what}{first}");
            Some(ReadNote { row: line, file, ..ReadNote::new(kind, count, message) }.in_column(name))
        };
        let kept = |kept: TextReason, what: &str| note(ReadNoteKind::KeptAsText, tally.evidence(kept), what);
        let ordered =
            |style, what: &str| note(ReadNoteKind::FirstOfDate, tally.evidence_of_order(style), what);
        match (decision.kept, decision.style) {
            (Some(TextReason::Codes), _) => kept(
                TextReason::Codes,
                "is read as text: some of its digits are a code and not a number, with zeros in front or as a telephone number",
            ),
            (Some(TextReason::Digits), _) => kept(
                TextReason::Digits,
                "is read as text: some of its numbers have more digits than 64 bits hold",
            ),
            (Some(TextReason::Ambiguous), _) => kept(
                TextReason::Ambiguous,
                "is read as text: each of its dates could have the day first or the month first",
            ),
            (Some(TextReason::BothOrders), _) => kept(
                TextReason::BothOrders,
                "is read as text: some of its dates have the day first, others the month",
            ),
            (None, Style::Day) => ordered(
                Style::Day,
                "has dates that are read as day/month/year: some have a day above 12 there",
            ),
            (None, Style::Month) => ordered(
                Style::Month,
                "has dates that are read as month/day/year: some have a day above 12 there",
            ),
            (None, _) => {
                let commas = tally.commas().filter(|_| decision.kind == ColumnType::Text);
                let (found, advice) = if let Some(commas) = commas {
                    let (what, advice) = self.on_commas(commas.are_unclear);
                    (note(ReadNoteKind::DecimalMark, (commas.count, commas.line), what)?, advice.to_owned())
                } else {
                    let strings = tally.strings(self.string_limit)?;
                    let (what, advice) = self.on_strings(name, &strings);
                    (note(ReadNoteKind::KeptAsText, (strings.count, strings.line), &what)?, advice)
                };
                Some(ReadNote { message: format!("{}{advice}", found.message), ..found })
            }
        }
    }

    /// What a column with strings among its numbers is read as, and what reads these as missing.
    fn on_strings(&self, column: &str, strings: &Strings<'_>) -> (String, String) {
        let named: Vec<&String> = strings.words.iter().take(WORDS_NAMED).collect();
        let shown: Vec<String> = named.iter().map(|word| format!("`{}`", shown(column, word))).collect();
        let are_all = named.len() == strings.words.len();
        let whole_bytes = bytes_per_file(self.files.len()) as u64;
        let is_whole = self.files.iter().all(|file| file.size_bytes <= whole_bytes);
        let of = if is_whole { "its" } else { "the first" };
        let what = format!(
            "is read as text: {} of {of} {} not of type {} ({}{})",
            strings.count,
            are(strings.values, "value"),
            strings.mostly,
            shown.join(", "),
            if are_all { "" } else { " …" }
        );
        let options: Option<Vec<String>> = named.iter().map(|word| missing_option(column, word)).collect();
        let instead = if self.missing_is_given { "" } else { " instead of the usual strings" };
        let advice = match options.filter(|_| are_all) {
            Some(options) => format!("; with {} they are missing", options.join(" ")),
            None => "; --missing reads those that it names as missing".to_owned(),
        };
        (what, format!("{advice}{instead} (`missing` in a run file)"))
    }

    /// What a column of numbers with another decimal mark is read as, and what reads them.
    fn on_commas(&self, are_unclear: bool) -> (&'static str, &'static str) {
        match (self.has_decimal_comma(), are_unclear) {
            (true, _) => (
                "is read as text: its numbers have a decimal point",
                "; numbers with a decimal comma were requested",
            ),
            (false, false) => (
                "is read as text: its numbers have a decimal comma",
                ": --decimal , reads them (`decimal = \",\"` in a run file)",
            ),
            (false, true) => (
                "is read as text: each comma in its numbers has three digits behind it, and may be one of decimals or of thousands",
                "; --decimal , reads them as decimals (`decimal = \",\"` in a run file)",
            ),
        }
    }

    fn notes_of(&self, coverage: &Coverage) -> Vec<ReadNote> {
        let mut notes = Vec::new();
        let mut add = |kind, found: Occurrences, message: String| {
            if !found.is_none() {
                notes.push(self.placed(ReadNote::new(kind, found.count, message), found.first));
            }
        };
        for rejects in &coverage.rejects {
            let first = rejects.examples.first().map(|fault| fault.place);
            let found = Occurrences { count: rejects.count, first };
            let why = match rejects.kind {
                RejectKind::Ragged => "too few or too many fields: left out",
                RejectKind::OpenQuote => "a quote that is never closed: left out",
                RejectKind::BadJson => "no JSON object: left out",
            };
            add(ReadNoteKind::RejectedRows, found, format!("{} {why}", have(rejects.count, "row")));
        }
        let malformed = coverage.malformed_quotes;
        let message = format!(
            "{} text behind a closing quote (malformed quotes): the quote is left out",
            have(malformed.count, "row")
        );
        add(ReadNoteKind::MalformedQuotes, malformed, message);
        let empty = coverage.empty_lines;
        add(
            ReadNoteKind::EmptyLines,
            empty,
            format!("{} between rows left out", counted(empty.count, "empty line")),
        );
        let comments = coverage.comment_lines;
        let message = format!("{} left out on request", counted(comments.count, "comment line"));
        add(ReadNoteKind::Comments, comments, message);
        let recoded = Occurrences { count: coverage.rows_recoded, first: coverage.first_recoded };
        add(
            ReadNoteKind::Recoded,
            recoded,
            format!("{} not UTF-8: read as Windows-1252", are(recoded.count, "row")),
        );
        for (key, count) in &coverage.unknown_keys {
            let message = format!("{} a key `{key}` that is not a column", have(*count, "row"));
            add(ReadNoteKind::UnknownKeys, Occurrences { count: *count, first: None }, message);
        }
        for (column, faults) in self.columns.iter().zip(&coverage.columns) {
            let of_column = self.notes_of_column(column, &faults.faults);
            notes.extend(of_column.into_iter().map(|note| note.in_column(&column.name)));
        }
        notes
    }

    fn notes_of_column(&self, column: &Column, faults: &CellFaults) -> Vec<ReadNote> {
        let name = &column.name;
        let mut notes = Vec::new();
        let mut add = |kind, found: Occurrences, message: String| {
            if !found.is_none() {
                notes.push(self.placed(ReadNote::new(kind, found.count, message), found.first));
            }
        };
        let rounded = faults.rounded;
        let (kind, what) = match column.kind {
            ColumnType::Timestamp => (ReadNoteKind::Rounded, "cut to microseconds, or leap seconds"),
            ColumnType::Text | ColumnType::Mixed => (
                ReadNoteKind::Retyped,
                "read as strings, although the file has them as others: different ones may be equal",
            ),
            _ => (ReadNoteKind::Rounded, "rounded to 64-bit floats: different ones may be equal"),
        };
        let values = |count: u64| format!("`{name}`: {}", are(count, "value"));
        add(kind, rounded, format!("{} {what}", values(rounded.count)));
        let trimmed = faults.trimmed;
        add(
            ReadNoteKind::Trimmed,
            trimmed,
            format!("{} read without the blanks around", values(trimmed.count)),
        );
        let misfits =
            Occurrences { count: faults.misfits, first: faults.examples.first().map(|fault| fault.place) };
        let message = format!("{} not of type {}", values(misfits.count), column.kind);
        add(ReadNoteKind::Misfits, misfits, message);
        let is_known = |note: &ReadNote| note.kind == ReadNoteKind::AbsentColumns;
        if !self.opening.iter().any(is_known) {
            let absent = Occurrences { count: faults.absent, first: None };
            let message =
                format!("`{name}`: missing in {} of files without the column", counted(absent.count, "row"));
            add(ReadNoteKind::AbsentColumns, absent, message);
        }
        if !self.missing_is_given {
            let usual =
                faults.missing_strings.iter().filter(|(text, _)| USUAL_MISSING.contains(&text.as_str()));
            let texts: Vec<String> = usual.clone().map(|(text, _)| format!("`{text}`")).collect();
            let count = usual.map(|(_, count)| count).sum();
            let message = format!("{} taken for missing: {}", values(count), texts.join(", "));
            add(ReadNoteKind::MissingTexts, Occurrences { count, first: None }, message);
        }
        notes
    }

    fn placed(&self, note: ReadNote, first: Option<Place>) -> ReadNote {
        let Some(place) = first else { return note };
        let file = self.files.get(place.file);
        let path = file.map_or("?", |file| file.path.as_str());
        let what =
            if file.is_some_and(|file| matches!(file.kind, FileKind::Parquet(_))) { "row" } else { "line" };
        let message = format!("{}, the first in {what} {} of `{path}`", note.message, place.row);
        ReadNote { message, file: Some(path.to_owned()), row: Some(place.row), ..note }
    }
}

/// Letters of a string that are shown.
const WORD_LETTERS_MAX: usize = 24;

/// A string among numbers, without what is private.
fn shown(column: &str, word: &str) -> String {
    shortened(&masked_cell(column, word), WORD_LETTERS_MAX)
}

/// The option that reads a string as missing, as a shell takes it; `None` of one that is not shown as it is, or that a shell would change.
fn missing_option(column: &str, word: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/+:@%-".contains(letter);
    if shown(column, word) != word || word.contains(['\'', '\n', '\r']) {
        return None;
    }
    let between = if word.starts_with('-') { '=' } else { ' ' };
    let quote = if word.chars().all(is_plain) { "" } else { "'" };
    Some(format!("--missing{between}{quote}{word}{quote}"))
}

/// Of so many columns of one file with blanks around their strings there is one sentence.
const TRIMMED_COLUMNS_MIN: usize = 3;

/// Notes as a person reads them: in a file of values that are separated by a comma and a blank, many columns are alike.
pub fn sentences<'n>(notes: impl IntoIterator<Item = &'n ReadNote>) -> Vec<String> {
    let notes: Vec<&ReadNote> = notes.into_iter().collect();
    let mut trimmed: BTreeMap<Option<&str>, Vec<&ReadNote>> = BTreeMap::new();
    for note in notes.iter().filter(|note| note.kind == ReadNoteKind::Trimmed) {
        trimmed.entry(note.file.as_deref()).or_default().push(note);
    }
    trimmed.retain(|_, alike| alike.len() >= TRIMMED_COLUMNS_MIN);
    let sentence = |note: &&ReadNote| match trimmed.get(&note.file.as_deref()) {
        Some(alike) if note.kind == ReadNoteKind::Trimmed => {
            std::ptr::eq(alike[0], *note).then(|| trimmed_together(alike))
        }
        _ => Some(note.message.clone()),
    };
    notes.iter().filter_map(sentence).collect()
}

/// One sentence on blanks around the strings of several columns of one file.
fn trimmed_together(notes: &[&ReadNote]) -> String {
    let values: u64 = notes.iter().map(|note| note.count).sum();
    let column = notes[0].column.as_deref().unwrap_or("?");
    let (file, first) = (notes[0].file.as_deref(), notes.iter().filter_map(|note| note.row).min());
    let place = match (file, first) {
        (Some(file), Some(row)) => format!(", the first in line {row} of `{file}`"),
        _ => String::new(),
    };
    format!(
        "{} columns, such as `{column}`: {} read without the blanks around{place}",
        notes.len(),
        are(values, "value")
    )
}

/// The losses among notes in a sentence; `None` without any.
#[must_use]
pub fn losses(notes: &[ReadNote]) -> Option<String> {
    let messages = sentences(notes.iter().filter(|note| note.kind.is_loss()));
    let (shown, more) = messages.split_at(messages.len().min(EXAMPLES_MAX));
    let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join("; ")))
}

fn have(count: u64, what: &str) -> String {
    format!("{} {}", counted(count, what), if count == 1 { "has" } else { "have" })
}

fn are(count: u64, what: &str) -> String {
    format!("{} {}", counted(count, what), if count == 1 { "is" } else { "are" })
}
