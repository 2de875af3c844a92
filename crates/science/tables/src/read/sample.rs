//! Samples of a text file: dialect, header, and what its columns' values are.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

use trackway_formats::runfile::{DataSpec, DecimalMark};

use super::FileKind;
use super::bytes::read_full;
use super::tally::{SameForms, StringLimit, Tally};
use super::text::blocks::{BlockError, BlockReader, Encoding, RecordEnd};
use super::text::cells::{Missing, to_text};
use super::text::csv::CsvLayout;
use super::text::dialect::{
    self, FirstRow, advice, column_names, detect_backslashes, detect_delimiter, first_row, numbers_columns,
};
use super::text::json::{Cell, describe, parse_any_line, repeated_name};
use super::text::lines::LINE_COLUMN;
use super::text::split::{Dialect, RowEnd, Splitter};
use crate::files::remote::ByteSource;
use crate::limits::Limits;
use crate::types::infer::{Form, form_of};
use crate::types::{Column, ColumnType};

/// Bytes of all files of a set that are read as samples.
const SAMPLE_BUDGET_BYTES: usize = 64 << 20;

/// Bounds of one file's part.
const SAMPLE_BYTES: std::ops::RangeInclusive<usize> = 64 << 10..=1 << 20;

/// After the beginning, so many places of a file are looked at.
const PLACES: u64 = 8;

const PLACE_BYTES: usize = 64 << 10;

/// How much of a file's beginning is read as a sample.
pub(crate) fn bytes_per_file(files: usize) -> usize {
    (SAMPLE_BUDGET_BYTES / files.max(1)).clamp(*SAMPLE_BYTES.start(), *SAMPLE_BYTES.end())
}

/// What is derived from a sample.
pub(crate) struct Sampled {
    pub(crate) kind: FileKind,
    pub(crate) columns: Vec<Column>,
    pub(crate) tallies: Vec<Tally>,
    /// Columns without a name, or with that of an earlier one, as the file has it and as they are called.
    pub(crate) renamed: Vec<(String, String)>,
    /// The option that reads the file, where its rows do not fit its first one.
    pub(crate) advice: Option<String>,
}

pub(crate) enum SampleError {
    Read(io::Error),
    Content(String),
    /// The first row has another number of fields than the run file names columns.
    ColumnCount(usize),
}

impl From<BlockError> for SampleError {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::Read(error) => Self::Read(error),
            BlockError::Content(message) => Self::Content(message),
        }
    }
}

const EMPTY: Sampled = Sampled {
    kind: FileKind::Empty,
    columns: Vec::new(),
    tallies: Vec::new(),
    renamed: Vec::new(),
    advice: None,
};

pub(crate) fn csv(
    bytes: &Arc<dyn ByteSource>,
    spec: &DataSpec,
    missing: &Missing,
    sample_bytes: usize,
    limits: Limits,
) -> Result<Sampled, SampleError> {
    // Line ends alone first: to know where rows end, the delimiter must be known.
    let open = |end: RecordEnd, bytes_max: usize| {
        BlockReader::open(Arc::clone(bytes), end, bytes_max)
            .map(|reader| reader.without_first(spec.skip_lines))
    };
    let first = open(RecordEnd::Line, dialect::SAMPLE_BYTES)?.next(Vec::new())?;
    let Some(first) = first else { return Ok(EMPTY) };
    if let Some(at) = memchr::memchr(0, &first.text) {
        let line = memchr::memchr_iter(b'\n', &first.text[..at]).count() as u64 + first.first_line;
        return Err(SampleError::Content(format!("line {line} contains a NUL byte: not a text file")));
    }
    let byte_of = |letter: Option<char>| letter.and_then(|letter| u8::try_from(letter).ok());
    let comment = byte_of(spec.comment);
    let delimiter = byte_of(spec.delimiter).unwrap_or_else(|| detect_delimiter(&first.text, comment));
    let plain = Dialect { delimiter, has_backslashes: false, comment };
    let dialect = Dialect { has_backslashes: detect_backslashes(&first.text, plain), ..plain };
    let Some(head) = open(RecordEnd::Csv(dialect), sample_bytes)?.next(Vec::new())? else {
        return Ok(EMPTY);
    };
    let (layout, first) = layout(&head.text, dialect, spec, missing, limits)?;
    let given = match spec.columns.is_empty() {
        true => column_names(&first, layout.has_header),
        false => spec.columns.clone(),
    };
    let names = unique(&given);
    let is_unnamed = |place: usize| layout.has_header && spec.columns.is_empty() && first[place].is_empty();
    let mut tallies = vec![Tally::default(); layout.fields];
    let head_lines = Some(head.first_line);
    tally_rows((&head.text, head_lines), &layout, layout.has_header, missing, &mut tallies);
    for text in places(bytes, sample_bytes).map_err(SampleError::Read)? {
        tally_rows((&text, None), &layout, false, missing, &mut tallies);
    }
    let kind = |tally: &Tally| tally.decide(StringLimit::Fraction).kind;
    let advice = advice(&head.text, dialect, head.first_line - 1, spec.trailing_separator);
    let mut renamed: Vec<(String, String)> = Vec::new();
    for (place, (given, name)) in given.into_iter().zip(&names).enumerate() {
        // Where an option reads the file otherwise, its names are others.
        if is_unnamed(place) && advice.is_none() {
            renamed.push((String::new(), name.clone()));
        } else if given != *name {
            renamed.push((given, name.clone()));
        }
    }
    let columns =
        names.into_iter().zip(&tallies).map(|(name, tally)| Column { name, kind: kind(tally) }).collect();
    Ok(Sampled { kind: FileKind::Csv(layout), columns, tallies, renamed, advice })
}

/// Header or not, and the fields of the first row, without the blanks around them.
fn layout(
    text: &[u8],
    dialect: Dialect,
    spec: &DataSpec,
    missing: &Missing,
    limits: Limits,
) -> Result<(CsvLayout, Vec<Vec<u8>>), SampleError> {
    let user_names = &spec.columns;
    let mut spans = Vec::new();
    match Splitter::new(text, dialect, spec.skip_lines + 1, limits.columns_max).next_row(&mut spans) {
        RowEnd::Row { .. } => {}
        RowEnd::End => return Err(SampleError::Content("it contains only empty lines".into())),
        RowEnd::OpenQuote { line } => {
            let message =
                format!("the quote opened in line {line} is never closed, so there is no first row");
            return Err(SampleError::Content(message));
        }
    }
    if spec.trailing_separator && spans.len() > 1 && spans.last().is_some_and(|last| last.is_empty()) {
        spans.pop();
    }
    if spans.len() > limits.columns_max {
        return Err(SampleError::Content(limits.too_many("columns")));
    }
    let fields: Vec<Vec<u8>> =
        spans.iter().map(|span| span.get(text, &mut Vec::new()).trim_ascii().to_vec()).collect();
    if !user_names.is_empty() && user_names.len() != fields.len() {
        return Err(SampleError::ColumnCount(fields.len()));
    }
    let mut layout = CsvLayout {
        dialect,
        has_header: true,
        fields: fields.len(),
        fields_max: limits.columns_max,
        skip_lines: spec.skip_lines,
        has_trailing_separator: spec.trailing_separator,
        has_decimal_comma: spec.decimal == Some(DecimalMark::Comma),
        has_recoded_header: false,
    };
    layout.has_header = spec.header.unwrap_or_else(|| match first_row(&fields, user_names) {
        FirstRow::Header => true,
        FirstRow::Data => user_names.is_empty() && is_numbered(&fields, text, &layout),
        FirstRow::Words => has_other_than_words(text, &layout, missing),
    });
    let is_recoded = fields.iter().any(|field| std::str::from_utf8(field).is_err());
    layout.has_recoded_header = layout.has_header && user_names.is_empty() && is_recoded;
    Ok((layout, fields))
}

/// So many rows below a first one that numbers the columns must not do the same.
const ROWS_BELOW: usize = 200;

/// Whether the first row numbers the columns, and none of those below looks so.
fn is_numbered(first: &[Vec<u8>], text: &[u8], layout: &CsvLayout) -> bool {
    if !numbers_columns(first) {
        return false;
    }
    let mut splitter = Splitter::new(text, layout.dialect, 1, layout.fields_max);
    let (mut spans, mut rows) = (Vec::new(), 0);
    splitter.next_row(&mut spans);
    while rows < ROWS_BELOW {
        spans.clear();
        let RowEnd::Row { .. } = splitter.next_row(&mut spans) else { break };
        let fields: Vec<Vec<u8>> =
            spans.iter().map(|span| span.get(text, &mut Vec::new()).trim_ascii().to_vec()).collect();
        if numbers_columns(&fields) {
            return false;
        }
        rows += 1;
    }
    rows > 0
}

/// Whether a column below the first row holds numbers, times or booleans.
fn has_other_than_words(text: &[u8], layout: &CsvLayout, missing: &Missing) -> bool {
    let mut tallies = vec![Tally::default(); layout.fields];
    tally_rows((text, None), layout, true, missing, &mut tallies);
    tallies
        .iter()
        .any(|tally| !matches!(tally.decide(StringLimit::Fraction).kind, ColumnType::Text | ColumnType::Null))
}

/// A name that occurs again gets a number (`score.1`, as pandas has it), so that every column can be named.
pub(super) fn unique(names: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = names.iter().cloned().collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut unique = Vec::with_capacity(names.len());
    for name in names {
        let count = seen.entry(name).or_default();
        let mut free = name.clone();
        // The file may have a column of that very name.
        while *count > 0 && !taken.insert(free.clone()) {
            free = format!("{name}.{count}");
            *count += 1;
        }
        *count = (*count).max(1);
        unique.push(free);
    }
    unique
}

/// Counts the values of a text by column; `first_line` is known at the file's beginning only.
fn tally_rows(
    (text, first_line): (&[u8], Option<u64>),
    layout: &CsvLayout,
    skip_first: bool,
    missing: &Missing,
    tallies: &mut [Tally],
) {
    let mut splitter = Splitter::new(text, layout.dialect, first_line.unwrap_or(1), layout.fields_max);
    let mut spans = Vec::new();
    if skip_first {
        splitter.next_row(&mut spans);
    }
    let (mut scratch, mut usual) = (Vec::new(), Vec::new());
    let mut forms = vec![SameForms::default(); tallies.len()];
    loop {
        spans.clear();
        let RowEnd::Row { line } = splitter.next_row(&mut spans) else { break };
        layout.leave_out_trailing(&mut spans, 0);
        if spans.len() != layout.fields {
            continue;
        }
        for ((span, tally), forms) in spans.iter().zip(tallies.iter_mut()).zip(&mut forms) {
            let value = span.get(text, &mut scratch);
            if missing.find(value).is_none() {
                let form = form_of(layout.usual(value, &mut usual));
                tally.name(form, || to_text(value));
                forms.see(form, first_line.map(|_| line), tally);
            }
        }
    }
    forms.iter().zip(tallies).for_each(|(forms, tally)| forms.give(tally));
}

/// Whole lines from places spread over the file after its beginning. A place may be within quotes: then its rows are
/// mostly ragged and do not count.
fn places(bytes: &Arc<dyn ByteSource>, sample_bytes: usize) -> io::Result<Vec<Vec<u8>>> {
    let size = bytes.size_bytes();
    let mut head = [0; 4096];
    let length = read_full(bytes.as_ref(), 0, &mut head)?;
    let is_utf8 = Encoding::detect(&head[..length]).0 == Encoding::Utf8;
    if size <= 2 * sample_bytes as u64 || !is_utf8 {
        return Ok(Vec::new());
    }
    let mut texts = Vec::new();
    for place in 1..=PLACES {
        let mut text = vec![0; PLACE_BYTES];
        let offset = size * place / PLACES - PLACE_BYTES as u64;
        let length = read_full(bytes.as_ref(), offset, &mut text)?;
        text.truncate(length);
        let from = memchr::memchr(b'\n', &text).map_or(text.len(), |at| at + 1);
        let to = memchr::memrchr(b'\n', &text).map_or(from, |at| at + 1).max(from);
        texts.push(text[from..to].to_vec());
    }
    Ok(texts)
}

pub(crate) fn json(
    bytes: &Arc<dyn ByteSource>,
    missing: &Missing,
    sample_bytes: usize,
    limits: Limits,
) -> Result<Sampled, SampleError> {
    let Some(head) = BlockReader::open(Arc::clone(bytes), RecordEnd::Line, sample_bytes)?.next(Vec::new())?
    else {
        return Ok(EMPTY);
    };
    let mut keys = JsonTally { keys_max: limits.columns_max, ..JsonTally::default() };
    let mut first_error = None;
    for (line, number) in head.text.split(|byte| *byte == b'\n').zip(head.first_line..) {
        if let Err(error) = keys.add_line(line, Some(number), missing) {
            first_error.get_or_insert_with(|| format!(" (line {number}: {})", describe(&error)));
        }
    }
    let places = places(bytes, sample_bytes).map_err(SampleError::Read)?;
    for line in places.iter().flat_map(|text| text.split(|byte| *byte == b'\n')) {
        // What is wrong with it is for the scan to say, which knows its number.
        let _ = keys.add_line(line, None, missing);
    }
    if keys.is_full() {
        return Err(SampleError::Content(limits.too_many("different keys")));
    }
    if keys.rows == 0 {
        let detail = first_error.unwrap_or_default();
        return Err(SampleError::Content(format!("no line of its beginning holds a JSON object{detail}")));
    }
    keys.forms.iter().zip(&mut keys.tallies).for_each(|(forms, tally)| forms.give(tally));
    let column =
        |(name, tally): (String, &Tally)| Column { name, kind: tally.decide(StringLimit::Fraction).kind };
    let columns = keys.names.into_iter().zip(&keys.tallies).map(column).collect();
    let (tallies, renamed) = (keys.tallies, keys.renamed);
    Ok(Sampled { kind: FileKind::Json, columns, tallies, renamed, advice: None })
}

/// Keys in order of appearance.
#[derive(Default)]
struct JsonTally {
    index: HashMap<String, usize>,
    names: Vec<String>,
    tallies: Vec<Tally>,
    /// Of each key, the last values that are not in its tally yet.
    forms: Vec<SameForms>,
    /// The last row that has each key.
    last_rows: Vec<u64>,
    /// Keys that a row has again, and what the later ones are called.
    renamed: Vec<(String, String)>,
    rows: u64,
    keys_max: usize,
}

impl JsonTally {
    /// Whether there are more keys than are read.
    fn is_full(&self) -> bool {
        self.names.len() > self.keys_max
    }

    /// Counts a line, whose number is known at the file's beginning only.
    fn add_line(
        &mut self,
        line: &[u8],
        number: Option<u64>,
        missing: &Missing,
    ) -> Result<(), serde_json::Error> {
        if line.trim_ascii().is_empty() || self.is_full() {
            return Ok(());
        }
        let mut cells = Vec::new();
        let max = self.keys_max;
        parse_any_line(line, &mut |_, key, cell| {
            if cells.len() <= max {
                cells.push((key, cell));
            }
        })?;
        self.rows += 1;
        for (position, (key, cell)) in cells.into_iter().enumerate() {
            let index = self.place_of(position, &key);
            let is_missing = matches!(&cell, Cell::Text(text) if missing.find(text.as_bytes()).is_some());
            if let Some(form) = cell.form().filter(|_| !is_missing) {
                let tally = &mut self.tallies[index];
                tally.name(form, || cell.to_text());
                self.forms[index].see(form, number, tally);
            }
        }
        Ok(())
    }

    /// The column of a key of the row that is being counted; of a key that it had already, a further one. Most rows have the
    /// same keys in the same order.
    fn place_of(&mut self, position: usize, key: &str) -> usize {
        if self.names.get(position).is_some_and(|name| name == key) && self.last_rows[position] != self.rows {
            self.last_rows[position] = self.rows;
            return position;
        }
        let mut name = key.to_owned();
        for again in 1.. {
            let Some(index) = self.index.get(&name).copied() else {
                if name != key {
                    self.renamed.push((key.to_owned(), name.clone()));
                }
                self.index.insert(name.clone(), self.names.len());
                self.names.push(name);
                self.tallies.push(Tally::default());
                self.forms.push(SameForms::default());
                self.last_rows.push(self.rows);
                return self.names.len() - 1;
            };
            if std::mem::replace(&mut self.last_rows[index], self.rows) != self.rows {
                return index;
            }
            name = repeated_name(key, again);
        }
        unreachable!("a row has fewer keys than there are numbers")
    }
}

pub(crate) fn lines(bytes: &Arc<dyn ByteSource>) -> Sampled {
    if bytes.size_bytes() == 0 {
        return EMPTY;
    }
    let column = Column { name: LINE_COLUMN.to_owned(), kind: ColumnType::Text };
    let tallies = vec![Tally::certain(Some(Form::Text))];
    Sampled { kind: FileKind::Lines, columns: vec![column], tallies, renamed: Vec::new(), advice: None }
}
