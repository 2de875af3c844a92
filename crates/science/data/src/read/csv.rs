//! A block of separated values into chunks.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, BooleanBuilder, NullArray, PrimitiveBuilder, StringArray};
use arrow::datatypes::{ArrowPrimitiveType, Float64Type, Int64Type, TimestampMicrosecondType};

use super::blocks::Block;
use super::cells::{Missing, parse_bool, parse_float, parse_int, parse_timestamp, to_text};
use super::chunk::RowNumbers;
use super::coverage::{CellFaults, Coverage, Place, RejectKind};
use super::split::{RowEnd, Span, Splitter};
use super::{ChunkSink, Stop};
use crate::infer::{ColumnType, type_of};

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
    pub(crate) delimiter: u8,
    pub(crate) has_header: bool,
    /// Fields per row.
    pub(crate) fields: usize,
    /// Fields of a row that are looked at, at most.
    pub(crate) fields_max: usize,
    /// Columns whose name an earlier one has, as the header has it and as they are called.
    pub(crate) renamed: Arc<[(String, String)]>,
}

/// Reads a block. `columns` has for each column of the source which field it is, and its type.
pub(crate) fn read_block(
    block: &Block,
    layout: &CsvLayout,
    columns: &[(Option<usize>, ColumnType)],
    missing: &Missing,
    sink: &mut ChunkSink<'_>,
) -> Result<(), Stop> {
    // A delimiter that is not ASCII could cut a letter in two.
    let is_utf8 = layout.delimiter.is_ascii() && std::str::from_utf8(&block.text).is_ok();
    let mut splitter = Splitter::new(&block.text, layout.delimiter, block.first_line, layout.fields_max);
    if layout.has_header && block.is_first {
        splitter.next_row(&mut Vec::new());
    }
    let mut rows = Rows {
        text: &block.text,
        fields: layout.fields,
        fields_max: layout.fields_max,
        spans: Vec::new(),
        lines: Vec::new(),
        is_utf8,
    };
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
        for ((field, kind), faults) in columns.iter().zip(&mut faults) {
            arrays.push(match field {
                Some(field) => rows.column(*field, *kind, missing, sink.file, faults),
                None => absent(rows.lines.len(), faults),
            });
        }
        let originals = sink.keeps_originals().then(|| rows.originals(columns, sink.file));
        let first = rows.lines[0];
        let offset = |line: &u64| u32::try_from(line - first).expect("a block has fewer lines than 2^32");
        let numbers = RowNumbers::new(first, rows.lines.iter().map(offset).collect());
        sink.give((arrays, originals), rows.lines.len(), numbers, faults)?;
        if !more {
            break;
        }
    }
    Ok(())
}

/// A column that the file does not have.
pub(crate) fn absent(rows: usize, faults: &mut CellFaults) -> ArrayRef {
    faults.absent += rows as u64;
    Arc::new(NullArray::new(rows))
}

/// The rows of the next chunk: spans row by row, and the line of each row.
struct Rows<'t> {
    text: &'t [u8],
    fields: usize,
    fields_max: usize,
    spans: Vec<Span>,
    lines: Vec<u64>,
    is_utf8: bool,
}

impl Rows<'_> {
    /// Takes the next rows that have the right number of fields; false at the end of the block.
    fn fill(&mut self, splitter: &mut Splitter<'_>, file: usize, coverage: &mut Coverage) -> bool {
        self.spans.clear();
        self.lines.clear();
        let rows_max = chunk_rows(self.fields);
        while self.lines.len() < rows_max {
            let before = self.spans.len();
            let begin = splitter.position();
            let raw = |splitter: &Splitter<'_>| self.text[begin..splitter.position()].trim_ascii_start();
            match splitter.next_row(&mut self.spans) {
                RowEnd::Row { line } if self.spans.len() - before == self.fields => self.lines.push(line),
                RowEnd::Row { line } => {
                    let found = self.spans.len() - before;
                    self.spans.truncate(before);
                    let more = if found > self.fields_max { "more than " } else { "" };
                    let found = found.min(self.fields_max);
                    let detail = || format!("{more}{found} fields instead of {}", self.fields);
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
        for (spans, line) in self.spans.chunks_exact(self.fields).zip(&self.lines) {
            if spans.iter().any(|span| std::str::from_utf8(span.get(self.text, &mut scratch)).is_err()) {
                coverage.recoded(Place { file, row: *line });
            }
        }
    }

    fn column(
        &self,
        field: usize,
        kind: ColumnType,
        missing: &Missing,
        file: usize,
        faults: &mut CellFaults,
    ) -> ArrayRef {
        let rows = self.lines.len();
        match kind {
            ColumnType::Int => {
                self.typed(field, missing, file, faults, numbers::<Int64Type, _>(parse_int, rows))
            }
            ColumnType::Float => {
                self.typed(field, missing, file, faults, numbers::<Float64Type, _>(parse_float, rows))
            }
            ColumnType::Timestamp => self.typed(
                field,
                missing,
                file,
                faults,
                numbers::<TimestampMicrosecondType, _>(parse_timestamp, rows),
            ),
            ColumnType::Bool => self.typed(field, missing, file, faults, Truths(BooleanBuilder::new())),
            ColumnType::Null => self.typed(field, missing, file, faults, Nothing(0)),
            _ => self.typed(field, missing, file, faults, TextCells::new(rows, self.is_utf8)),
        }
    }

    /// The strings of the file. Faults are those of the typed columns.
    fn originals(&self, columns: &[(Option<usize>, ColumnType)], file: usize) -> Vec<ArrayRef> {
        let missing = Missing::empty();
        let strings = |(field, _): &(Option<usize>, ColumnType)| -> ArrayRef {
            match field {
                Some(field) => {
                    self.column(*field, ColumnType::Text, &missing, file, &mut CellFaults::default())
                }
                None => Arc::new(NullArray::new(self.lines.len())),
            }
        };
        columns.iter().map(strings).collect()
    }

    fn typed<C: Cells>(
        &self,
        field: usize,
        missing: &Missing,
        file: usize,
        faults: &mut CellFaults,
        mut cells: C,
    ) -> ArrayRef {
        let mut scratch = Vec::new();
        let mut missing_counts = vec![0; missing.texts().len()];
        for (row, span) in self.spans[field..].iter().step_by(self.fields).enumerate() {
            let value = span.get(self.text, &mut scratch);
            if let Some(which) = missing.find(value) {
                missing_counts[which] += 1;
                cells.push_null();
            } else if !cells.push(value) {
                let place = Place { file, row: self.lines[row] };
                faults.misfit(type_of(value), place, value);
                cells.push_null();
            }
        }
        for (text, count) in missing.texts().iter().zip(missing_counts) {
            faults.missing(text, count);
        }
        cells.finish()
    }
}

/// An array in the making.
trait Cells {
    /// Adds a value; false if it is none of this type.
    fn push(&mut self, value: &[u8]) -> bool;
    fn push_null(&mut self);
    fn finish(self) -> ArrayRef;
}

struct Numbers<T: ArrowPrimitiveType, F> {
    parse: F,
    builder: PrimitiveBuilder<T>,
}

fn numbers<T: ArrowPrimitiveType, F: Fn(&[u8]) -> Option<T::Native>>(parse: F, rows: usize) -> Numbers<T, F> {
    Numbers { parse, builder: PrimitiveBuilder::with_capacity(rows) }
}

impl<T: ArrowPrimitiveType, F: Fn(&[u8]) -> Option<T::Native>> Cells for Numbers<T, F> {
    #[inline]
    fn push(&mut self, value: &[u8]) -> bool {
        (self.parse)(value).map(|number| self.builder.append_value(number)).is_some()
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
    fn push(&mut self, value: &[u8]) -> bool {
        parse_bool(value).map(|truth| self.0.append_value(truth)).is_some()
    }

    fn push_null(&mut self) {
        self.0.append_null();
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A column of which no value was seen when types were decided.
struct Nothing(usize);

impl Cells for Nothing {
    fn push(&mut self, _value: &[u8]) -> bool {
        false
    }

    fn push_null(&mut self) {
        self.0 += 1;
    }

    fn finish(self) -> ArrayRef {
        Arc::new(NullArray::new(self.0))
    }
}

/// Strings. In a block of UTF-8 every field is UTF-8, so that one check at the end does.
struct TextCells {
    builder: BinaryBuilder,
    is_utf8: bool,
}

impl TextCells {
    fn new(rows: usize, is_utf8: bool) -> Self {
        Self { builder: BinaryBuilder::with_capacity(rows, rows * 8), is_utf8 }
    }
}

impl Cells for TextCells {
    #[inline]
    fn push(&mut self, value: &[u8]) -> bool {
        if self.is_utf8 {
            self.builder.append_value(value);
        } else {
            self.builder.append_value(to_text(value).as_bytes());
        }
        true
    }

    fn push_null(&mut self) {
        self.builder.append_null();
    }

    fn finish(mut self) -> ArrayRef {
        let texts = StringArray::try_from_binary(self.builder.finish());
        Arc::new(texts.expect("fields of a block of UTF-8 end at letters, and others were decoded"))
    }
}
