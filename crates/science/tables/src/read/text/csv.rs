//! A block of separated values into chunks.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, BooleanBuilder, NullArray, PrimitiveBuilder, StringArray};
use arrow::datatypes::{ArrowPrimitiveType, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};

use super::blocks::Block;
use super::cells::{Missing, parse_bool, to_text};
use super::split::{Dialect, QUOTE, RowEnd, Span, Splitter};
use crate::read::chunk::{Marks, Originals, RowNumbers};
use crate::read::coverage::{CellTally, Coverage};
use crate::read::numbers::{
    ReadFloat, parse_any_int, parse_any_unsigned, parse_int, parse_unsigned, read_any_float, read_float,
};
use crate::read::{ChunkSink, Place, RejectKind, Stop, Wanted};
use crate::types::ColumnType;
use crate::types::infer::{Style, as_usual, form_of};
use crate::types::times;

/// Rows per chunk: few enough that a column of them stays in the processor's cache.
const CHUNK_ROWS: usize = 8192;

/// Cells per chunk: tables of very many columns have fewer rows in one.
const CHUNK_CELLS: usize = 1 << 20;

/// The most rows of a chunk of so many columns.
pub(crate) fn chunk_rows(columns: usize) -> usize {
    (CHUNK_CELLS / columns.max(1)).clamp(1, CHUNK_ROWS)
}

/// How a CSV file is read.
#[derive(Debug, Clone)]
pub(crate) struct CsvLayout {
    pub(crate) dialect: Dialect,
    pub(crate) has_header: bool,
    /// Fields per row.
    pub(crate) fields: usize,
    /// Fields of a row that are looked at, at most.
    pub(crate) fields_max: usize,
    /// Lines at the beginning that are left out.
    pub(crate) skip_lines: u64,
    /// Whether a row may end with a separator behind its last field.
    pub(crate) has_trailing_separator: bool,
    /// Whether numbers have a decimal comma.
    pub(crate) has_decimal_comma: bool,
    /// Whether the header has bytes that are no UTF-8.
    pub(crate) has_recoded_header: bool,
}

impl CsvLayout {
    /// A value in the notation that types and numbers are read from.
    pub(crate) fn usual<'v>(&self, value: &'v [u8], scratch: &'v mut Vec<u8>) -> &'v [u8] {
        if self.has_decimal_comma { as_usual(value, scratch) } else { value }
    }

    /// Takes away the nothing behind the separator at the end of a row whose fields begin at `from`.
    pub(crate) fn leave_out_trailing(&self, spans: &mut Vec<Span>, from: usize) {
        let is_one_more = self.has_trailing_separator && spans.len() - from == self.fields + 1;
        if is_one_more && spans.last().is_some_and(|last| last.is_empty()) {
            spans.pop();
        }
    }
}

/// Reads a block. `columns` are those of the source.
pub(crate) fn read_block(
    block: &Block,
    layout: &CsvLayout,
    columns: &[Wanted],
    missing: &Missing,
    sink: &mut ChunkSink<'_>,
) -> Result<(), Stop> {
    // A delimiter that is not ASCII could cut a letter in two.
    let is_utf8 = layout.dialect.delimiter.is_ascii() && std::str::from_utf8(&block.text).is_ok();
    let mut splitter = Splitter::new(&block.text, layout.dialect, block.first_line, layout.fields_max);
    if layout.has_header && block.is_first {
        splitter.next_row(&mut Vec::new());
    }
    let mut rows = Rows { text: &block.text, layout, spans: Vec::new(), lines: Vec::new(), is_utf8 };
    loop {
        let more = rows.fill(&mut splitter, sink.file, &mut sink.coverage);
        if rows.lines.is_empty() {
            break;
        }
        if !is_utf8 {
            rows.count_recoded(sink.file, &mut sink.coverage);
        }
        let mut faults = vec![sink.no_faults(); columns.len()];
        let mut arrays = Vec::with_capacity(columns.len());
        for (wanted, faults) in columns.iter().zip(&mut faults) {
            arrays.push(match wanted.field {
                Some(field) => rows.column(field, wanted, missing, sink.file, faults),
                None => absent(rows.lines.len(), faults),
            });
        }
        let originals = sink.keeps_originals().then(|| rows.originals(columns, missing, sink.file));
        let first = rows.lines[0];
        let offset = |line: &u64| u32::try_from(line - first).expect("a block has fewer lines than 2^32");
        let numbers = RowNumbers::new(first, rows.lines.iter().map(offset).collect());
        sink.give((arrays, originals), rows.lines.len(), numbers, faults)?;
        if !more {
            break;
        }
    }
    let left_out = splitter.left_out();
    let place = |line: u64| Place { file: sink.file, row: line };
    sink.coverage.empty_lines.add(left_out.empty.0, place(left_out.empty.1));
    sink.coverage.comment_lines.add(left_out.comments.0, place(left_out.comments.1));
    Ok(())
}

/// A column that the file does not have.
pub(crate) fn absent(rows: usize, faults: &mut CellTally) -> ArrayRef {
    faults.faults.absent += rows as u64;
    Arc::new(NullArray::new(rows))
}

/// The rows of the next chunk: spans row by row, and the line of each row.
struct Rows<'t> {
    text: &'t [u8],
    layout: &'t CsvLayout,
    spans: Vec<Span>,
    lines: Vec<u64>,
    is_utf8: bool,
}

impl Rows<'_> {
    /// Takes the next rows that have the right number of fields; false at the end of the block.
    fn fill(&mut self, splitter: &mut Splitter<'_>, file: usize, coverage: &mut Coverage) -> bool {
        self.spans.clear();
        self.lines.clear();
        let (fields, fields_max) = (self.layout.fields, self.layout.fields_max);
        let rows_max = chunk_rows(fields);
        while self.lines.len() < rows_max {
            let before = self.spans.len();
            let begin = splitter.position();
            let raw = |splitter: &Splitter<'_>| self.text[begin..splitter.position()].trim_ascii_start();
            let end = splitter.next_row(&mut self.spans);
            self.layout.leave_out_trailing(&mut self.spans, before);
            match end {
                RowEnd::Row { line } if self.spans.len() - before == fields => {
                    if splitter.is_malformed() {
                        coverage.malformed_quotes.add(1, Place { file, row: line });
                    }
                    self.lines.push(line);
                }
                RowEnd::Row { line } => {
                    let found = self.spans.len() - before;
                    self.spans.truncate(before);
                    let more = if found > fields_max { "more than " } else { "" };
                    let found = found.min(fields_max);
                    let detail = || format!("{more}{found} fields instead of {fields}");
                    coverage.reject(RejectKind::Ragged, Place { file, row: line }, raw(splitter), detail);
                }
                RowEnd::OpenQuote { line } => {
                    self.spans.truncate(before);
                    let detail = || "a quote is opened and never closed".to_owned();
                    coverage.reject(RejectKind::OpenQuote, Place { file, row: line }, raw(splitter), detail);
                    return false;
                }
                RowEnd::End => return false,
            }
        }
        true
    }

    /// Counts the rows with bytes that are no UTF-8.
    fn count_recoded(&self, file: usize, coverage: &mut Coverage) {
        let mut scratch = Vec::new();
        for (spans, line) in self.spans.chunks_exact(self.layout.fields).zip(&self.lines) {
            if spans.iter().any(|span| std::str::from_utf8(span.get(self.text, &mut scratch)).is_err()) {
                coverage.recoded(Place { file, row: *line });
            }
        }
    }

    fn column(
        &self,
        field: usize,
        wanted: &Wanted,
        missing: &Missing,
        file: usize,
        faults: &mut CellTally,
    ) -> ArrayRef {
        let rows = self.lines.len();
        let cells = (field, missing, file);
        match (wanted.kind, wanted.style, wanted.is_given) {
            (ColumnType::Int, Style::Unsigned, false) => {
                self.typed(cells, faults, numbers::<UInt64Type, _>(whole(parse_unsigned), rows))
            }
            (ColumnType::Int, Style::Unsigned, true) => {
                self.typed(cells, faults, numbers::<UInt64Type, _>(whole(parse_any_unsigned), rows))
            }
            (ColumnType::Int, _, false) => {
                self.typed(cells, faults, numbers::<Int64Type, _>(whole(parse_int), rows))
            }
            (ColumnType::Int, _, true) => {
                self.typed(cells, faults, numbers::<Int64Type, _>(whole(parse_any_int), rows))
            }
            (ColumnType::Float, _, false) => {
                self.typed(cells, faults, numbers::<Float64Type, _>(float(read_float), rows))
            }
            (ColumnType::Float, _, true) => {
                self.typed(cells, faults, numbers::<Float64Type, _>(float(read_any_float), rows))
            }
            (ColumnType::Timestamp, style, _) => {
                let order = style.first_of_date();
                let time = |value: &[u8]| times::parse(value, order).map(|it| (it.micros, it.is_cut));
                self.typed(cells, faults, numbers::<TimestampMicrosecondType, _>(time, rows))
            }
            (ColumnType::Bool, ..) => self.typed(cells, faults, Truths(BooleanBuilder::new())),
            (ColumnType::Null, ..) => self.typed(cells, faults, UntypedColumn(0)),
            _ => self.texts(cells, faults),
        }
    }

    /// The strings of the file. Faults are those of the typed columns.
    fn originals(&self, columns: &[Wanted], missing: &Missing, file: usize) -> Originals {
        let empty = Missing::empty();
        let mut originals = Originals::default();
        for (column, wanted) in columns.iter().enumerate() {
            originals.columns.push(match wanted.field {
                Some(field) => {
                    self.mark((column, field), missing, &mut originals.marks);
                    self.texts((field, &empty, file), &mut CellTally::default())
                }
                None => Arc::new(NullArray::new(self.lines.len())),
            });
        }
        originals
    }

    /// Marks the cells of a column that their strings do not show as they are written: with blanks around, with text behind the
    /// closing quote, and in quotes what means a missing value.
    fn mark(&self, (column, field): (usize, usize), missing: &Missing, marks: &mut Marks) {
        let mut scratch = Vec::new();
        for (row, span) in self.spans[field..].iter().step_by(self.layout.fields).enumerate() {
            match span.otherwise_written(self.text) {
                Some(written) => marks.add(row, column, written),
                None if span.is_quoted() && missing.find(span.text(self.text, &mut scratch).0).is_some() => {
                    marks.add(row, column, &[QUOTE]);
                }
                None => {}
            }
        }
    }

    fn typed<C: Cells>(
        &self,
        (field, missing, file): (usize, &Missing, usize),
        faults: &mut CellTally,
        mut cells: C,
    ) -> ArrayRef {
        let (mut scratch, mut usual) = (Vec::new(), Vec::new());
        let mut missing_counts = vec![0; missing.texts().len()];
        for (row, span) in self.spans[field..].iter().step_by(self.layout.fields).enumerate() {
            let value = span.get(self.text, &mut scratch);
            if let Some(which) = missing.find(value) {
                missing_counts[which] += 1;
                cells.push_null();
                continue;
            }
            let usual = self.layout.usual(value, &mut usual);
            match cells.push(usual) {
                Fit::Whole => {}
                Fit::Rounded => faults.count_rounded(self.place(file, row)),
                Fit::Not => {
                    faults.misfit(form_of(usual), self.place(file, row), value);
                    cells.push_null();
                }
            }
        }
        for (text, count) in missing.texts().iter().zip(missing_counts) {
            faults.missing(text, count);
        }
        cells.finish()
    }

    /// A column of strings, each as it is within its quotes; in a block of UTF-8 every field is UTF-8, so that one check at
    /// the end does.
    fn texts(&self, (field, missing, file): (usize, &Missing, usize), faults: &mut CellTally) -> ArrayRef {
        let rows = self.lines.len();
        let mut builder = BinaryBuilder::with_capacity(rows, rows * 8);
        let mut scratch = Vec::new();
        let mut missing_counts = vec![0; missing.texts().len()];
        for (row, span) in self.spans[field..].iter().step_by(self.layout.fields).enumerate() {
            let (value, is_trimmed) = span.text(self.text, &mut scratch);
            if let Some(which) = missing.find(value) {
                missing_counts[which] += 1;
                builder.append_null();
                continue;
            }
            if is_trimmed {
                faults.count_trimmed(self.place(file, row));
            }
            match self.is_utf8 {
                true => builder.append_value(value),
                false => builder.append_value(to_text(value).as_bytes()),
            }
        }
        for (text, count) in missing.texts().iter().zip(missing_counts) {
            faults.missing(text, count);
        }
        let texts = StringArray::try_from_binary(builder.finish());
        Arc::new(texts.expect("fields of a block of UTF-8 end at letters, and others were decoded"))
    }

    fn place(&self, file: usize, row: usize) -> Place {
        Place { file, row: self.lines[row] }
    }
}

/// How a value fits into a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Whole,
    /// With fewer digits than it is written with.
    Rounded,
    Not,
}

/// An array in the making.
trait Cells {
    /// Adds a value, unless it does not fit.
    fn push(&mut self, value: &[u8]) -> Fit;
    fn push_null(&mut self);
    fn finish(self) -> ArrayRef;
}

/// Numbers and times. What reads one returns whether it has fewer digits than it is written with.
struct Numbers<T: ArrowPrimitiveType, F> {
    read: F,
    builder: PrimitiveBuilder<T>,
}

fn numbers<T: ArrowPrimitiveType, F: Fn(&[u8]) -> Option<(T::Native, bool)>>(
    read: F,
    rows: usize,
) -> Numbers<T, F> {
    Numbers { read, builder: PrimitiveBuilder::with_capacity(rows) }
}

fn whole<N>(parse: impl Fn(&[u8]) -> Option<N>) -> impl Fn(&[u8]) -> Option<(N, bool)> {
    move |value| Some((parse(value)?, false))
}

fn float(read: impl Fn(&[u8]) -> Option<ReadFloat>) -> impl Fn(&[u8]) -> Option<(f64, bool)> {
    move |value| read(value).map(|it| (it.number, it.is_rounded))
}

impl<T: ArrowPrimitiveType, F: Fn(&[u8]) -> Option<(T::Native, bool)>> Cells for Numbers<T, F> {
    #[inline]
    fn push(&mut self, value: &[u8]) -> Fit {
        match (self.read)(value) {
            Some((number, is_rounded)) => {
                self.builder.append_value(number);
                if is_rounded { Fit::Rounded } else { Fit::Whole }
            }
            None => Fit::Not,
        }
    }

    fn push_null(&mut self) {
        self.builder.append_null();
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.builder.finish())
    }
}

struct Truths(BooleanBuilder);

impl Cells for Truths {
    fn push(&mut self, value: &[u8]) -> Fit {
        match parse_bool(value) {
            Some(truth) => {
                self.0.append_value(truth);
                Fit::Whole
            }
            None => Fit::Not,
        }
    }

    fn push_null(&mut self) {
        self.0.append_null();
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A column of which no value was seen when types were decided.
struct UntypedColumn(usize);

impl Cells for UntypedColumn {
    fn push(&mut self, _value: &[u8]) -> Fit {
        Fit::Not
    }

    fn push_null(&mut self) {
        self.0 += 1;
    }

    fn finish(self) -> ArrayRef {
        Arc::new(NullArray::new(self.0))
    }
}
