//! What reading did to what the files hold: left out, cut, renamed or read as something else, each with a count and its first
//! place. Nothing of that is silent: every answer about a table has these notes, and a strict reading ends where one of them
//! says that a value is not what the file has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

use super::coverage::{CellFaults, Coverage, Occurrences, Place, RejectKind};
use super::text::cells::USUAL_MISSING;
use super::{FileKind, Source, SourceFile};
use crate::counted;
use crate::limits::EXAMPLES_MAX;
use crate::types::infer::{Column, ColumnType, Kept, Style};

closed_list!(
    /// What reading did.
    ReadNoteKind, "kind of a note on reading", {
        /// Files that are not tables were left out.
        SkippedFiles = "skipped_files",
        /// Columns that a file does not have are missing in its rows.
        AbsentColumns = "absent_columns",
        /// A column has no name, or that of an earlier one, and got one with a number.
        RenamedColumn = "renamed_column",
        /// The first row does not fit the others: an option reads the file.
        Layout = "layout",
        /// Rows were left out.
        RejectedRows = "rejected_rows",
        /// Empty lines between rows were left out.
        EmptyLines = "empty_lines",
        /// Keys that are not columns were left out.
        UnknownKeys = "unknown_keys",
        /// A quote with text behind it was left out.
        MalformedQuotes = "malformed_quotes",
        /// Bytes that are not UTF-8 were read as Windows-1252.
        Recoded = "recoded",
        /// Blanks around a string were left out.
        Trimmed = "trimmed",
        /// Digits beyond those that the column's type holds were left out.
        Rounded = "rounded",
        /// Values beside strings, such as JSON's numbers, were read as strings.
        Retyped = "retyped",
        /// Values that are not of their column's type are missing.
        Misfits = "misfits",
        /// Strings that usually mean a missing value were read as one.
        MissingTexts = "missing_texts",
        /// Lines at the beginning were left out on request.
        SkippedLines = "skipped_lines",
        /// Comments were left out on request.
        Comments = "comments",
        /// A backslash before a quote makes it a letter.
        Backslashes = "backslashes",
        /// Numbers or dates are kept as the strings that the file has.
        KeptAsText = "kept_as_text",
        /// Numbers are kept as the strings that the file has: their decimal mark is not the one that is read.
        DecimalMark = "decimal_mark",
        /// Dates are read with the day, or the month, before the other.
        FirstOfDate = "date_order",
        /// Lines of an output that are too long were not searched for values.
        LongLines = "long_lines",
        /// Printed values beyond those of a line, or with names that are too long, were not recorded.
        SurplusValues = "surplus_values",
        /// Printed values whose comma may be one of decimals or of thousands were not recorded.
        UnclearCommas = "unclear_commas",
        /// Printed settings beyond those that are taken were left out.
        SurplusSettings = "surplus_settings",
        /// Printed values that look like secrets were not recorded.
        SecretValues = "secret_values",
        /// States of lines that a script drew over are not in the log.
        DrawnOver = "drawn_over",
        /// Output was not shown in a terminal that took nothing; the log has it.
        NotShown = "not_shown",
        /// Output was not stored: the disk was full.
        LostOutput = "lost_output",
        /// Values of metrics beyond the names that are recorded were left out.
        SurplusNames = "surplus_names",
        /// Parts of the flight record were not written.
        DroppedFrames = "dropped_frames",
        /// Rows of the flight record are not in the ledger.
        CutRecord = "cut_record",
        /// Parts of an event file or of a file of metrics were not recorded.
        SkippedParts = "skipped_parts",
        /// Something of a run of another tool was not imported.
        NotImported = "not_imported",
        /// Something of a run of another tool is not here as it is there.
        ChangedImport = "changed_import",
    }
);

impl ReadNoteKind {
    /// Whether something was read otherwise than it is written, which was not requested: a strict reading ends there.
    #[must_use]
    pub fn is_loss(self) -> bool {
        !matches!(
            self,
            Self::SkippedLines
                | Self::Comments
                | Self::Backslashes
                | Self::KeptAsText
                | Self::DecimalMark
                | Self::FirstOfDate
                | Self::NotShown
        )
    }

    /// Whether the counts of rows and the summaries of columns say it too.
    #[must_use]
    pub fn is_counted_elsewhere(self) -> bool {
        matches!(self, Self::RejectedRows | Self::Recoded | Self::Misfits | Self::MissingTexts)
    }
}

/// Something that reading did to what the files hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReadNote {
    pub kind: ReadNoteKind,
    /// The same in a sentence.
    pub message: String,
    /// Number of rows, values, lines, bytes, columns or files; of what is known from the beginning of a file only, those seen there.
    pub count: u64,
    /// The file of the first.
    pub file: Option<String>,
    /// The line (text, a log) or the row (Parquet) of the first, from 1.
    pub row: Option<u64>,
    pub column: Option<String>,
}

impl ReadNote {
    pub(super) fn new(kind: ReadNoteKind, count: u64, message: String) -> Self {
        Self { kind, message, count, file: None, row: None, column: None }
    }

    pub(super) fn of_file(mut self, file: &SourceFile) -> Self {
        self.file = Some(file.path.clone());
        self
    }

    fn of_column(mut self, column: &Column) -> Self {
        self.column = Some(column.name.clone());
        self
    }
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
    }
    notes.into_iter().map(|note| note.of_file(file)).collect()
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
            Some(ReadNote { row: line, file, ..ReadNote::new(kind, count, message) }.of_column(column))
        };
        let kept = |kept: Kept, what: &str| note(ReadNoteKind::KeptAsText, tally.evidence(kept), what);
        let ordered =
            |style, what: &str| note(ReadNoteKind::FirstOfDate, tally.evidence_of_order(style), what);
        match (decision.kept, decision.style) {
            (Some(Kept::Codes), _) => kept(
                Kept::Codes,
                "is read as text: some of its digits are a code and not a number, with zeros in front or as a telephone number",
            ),
            (Some(Kept::Digits), _) => {
                kept(Kept::Digits, "is read as text: some of its numbers have more digits than 64 bits hold")
            }
            (Some(Kept::Ambiguous), _) => kept(
                Kept::Ambiguous,
                "is read as text: each of its dates could have the day first or the month first",
            ),
            (Some(Kept::BothOrders), _) => kept(
                Kept::BothOrders,
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
                let commas = tally.commas().filter(|_| decision.kind == ColumnType::Text)?;
                let (what, advice) = self.on_commas(commas.are_unclear);
                let found = note(ReadNoteKind::DecimalMark, (commas.count, commas.line), what)?;
                Some(ReadNote { message: format!("{}{advice}", found.message), ..found })
            }
        }
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
            let of_column = self.notes_of_column(column, faults);
            notes.extend(of_column.into_iter().map(|note| note.of_column(column)));
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
