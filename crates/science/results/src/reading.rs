//! What reading a table found and did: its columns, rows and cells that could not be read, and notes on what was changed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

/// A column of a schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DataColumn")]
pub struct Column {
    /// The name, without surrounding blanks.
    pub name: String,
    /// The narrowest type that every value has.
    #[serde(rename = "type")]
    pub kind: ColumnType,
}

closed_list!(
    /// What a column's values are.
    ColumnType, "type of a column", {
        /// Every value is missing.
        Null = "null",
        /// `true` and `false`, in any case.
        Bool = "bool",
        /// Whole numbers of at most 64 bits.
        Int = "int",
        /// Numbers.
        Float = "float",
        /// Dates, with or without a time: ISO 8601 and the usual other forms.
        Timestamp = "timestamp",
        /// Anything else written out; digits that are a code, or that no number of 64 bits holds.
        Text = "text",
        /// Bytes (Parquet).
        Binary = "binary",
        /// A list (JSON, Parquet).
        List = "list",
        /// A nested object (JSON, Parquet).
        Object = "object",
        /// Values of kinds that have no type in common (JSON).
        Mixed = "mixed",
    }
);

#[allow(clippy::derivable_impls, reason = "the macro of closed lists takes no derive")]
impl Default for ColumnType {
    fn default() -> Self {
        Self::Null
    }
}

impl ColumnType {
    /// The narrowest type that holds values of both types.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (same, other) if same == other => same,
            (Self::Null, known) | (known, Self::Null) => known,
            (Self::Int, Self::Float) | (Self::Float, Self::Int) => Self::Float,
            (Self::Binary | Self::List | Self::Object | Self::Mixed, _)
            | (_, Self::Binary | Self::List | Self::Object | Self::Mixed) => Self::Mixed,
            _ => Self::Text,
        }
    }
}

/// Where a row is: files by their index in the source, rows by what a person can look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RowPlace")]
pub struct Place {
    /// Index of the file among those that were read, from 0.
    pub file: usize,
    /// From 1: the line on which the row begins (CSV, JSONL, text), else the row (Parquet).
    pub row: u64,
}

/// How often reading changed something or left it out, and where first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ReadCount")]
pub struct Occurrences {
    /// How often.
    pub count: u64,
    pub first: Option<Place>,
}

impl Occurrences {
    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.count == 0
    }

    /// Counts more of them, with the first of these.
    pub fn add(&mut self, count: u64, first: Place) {
        if count > 0 {
            self.count += count;
            self.first.get_or_insert(first);
        }
    }

    /// Adds those of rows that come later.
    pub fn merge(&mut self, later: Self) {
        self.count += later.count;
        self.first = self.first.or(later.first);
    }
}

/// Why a row could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RejectKind {
    /// Fewer or more fields than the file has columns.
    Ragged,
    /// A quote that is still open when the file ends.
    OpenQuote,
    /// A line that is not a JSON object.
    BadJson,
}

/// Rows rejected for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RejectedRows")]
pub struct Rejects {
    /// The reason.
    pub kind: RejectKind,
    /// How many rows.
    pub count: u64,
    /// The first 5 of them, in file order.
    pub examples: Vec<Fault>,
}

/// One faulty row or cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DataFault")]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What is there: for a cell its text, at most 64 bytes of it.
    pub detail: String,
}

/// What is wrong with, or missing from, the cells of one column. The rows stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellFaults {
    /// Cells that hold something which the column's type does not: null in the batch, but no missing values.
    pub misfits: u64,
    /// The misfits by what they are instead.
    pub misfit_kinds: BTreeMap<ColumnType, u64>,
    /// The first 5 misfits, in file order.
    pub examples: Vec<Fault>,
    /// Missing cells by their string (`""`, `?`, `NA` …). Parquet's and JSON's nulls have none.
    pub missing_strings: BTreeMap<String, u64>,
    /// Rows of files that do not have this column; null in the batch.
    pub absent: u64,
    /// Values written with more digits than their column holds, times with more than microseconds, leap seconds, and values of JSON
    /// beside strings: others may be equal to them here.
    #[serde(default, skip_serializing_if = "Occurrences::is_none")]
    pub rounded: Occurrences,
    /// Strings that had blanks around them, outside of quotes, which were left out.
    #[serde(default, skip_serializing_if = "Occurrences::is_none")]
    pub trimmed: Occurrences,
}

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
        /// Printed rows of tables with measures were not recorded: nothing shows what each of them is of.
        UnreadRows = "unread_rows",
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
        /// Values that were printed, or read from files, are not in the flight record.
        LostValues = "lost_values",
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// A note without a place.
    #[must_use]
    pub fn new(kind: ReadNoteKind, count: u64, message: String) -> Self {
        Self { kind, message, count, file: None, row: None, column: None }
    }

    /// The same, with the path of the file.
    #[must_use]
    pub fn in_file(self, path: &str) -> Self {
        Self { file: Some(path.to_owned()), ..self }
    }

    /// The same, with the name of the column.
    #[must_use]
    pub fn in_column(self, name: &str) -> Self {
        Self { column: Some(name.to_owned()), ..self }
    }
}
