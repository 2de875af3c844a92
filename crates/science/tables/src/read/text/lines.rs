//! A block of plain text into chunks: each line is a row of one text column, `line`. Empty lines are rows too.

use std::sync::Arc;

use arrow::array::StringBuilder;

use super::blocks::Block;
use super::cells::to_text;
use super::csv::{absent, chunk_rows};
use crate::read::chunk::RowNumbers;
use crate::read::coverage::CellTally;
use crate::read::{ChunkSink, Place, Stop};

/// The name of a text file's one column.
pub const LINE_COLUMN: &str = "line";

/// Reads a block. `line_column` is where the lines go among the source's `column_count` columns.
pub(crate) fn read_block(
    block: &Block,
    column_count: usize,
    line_column: Option<usize>,
    sink: &mut ChunkSink<'_>,
) -> Result<(), Stop> {
    let is_utf8 = std::str::from_utf8(&block.text).is_ok();
    let text = block.text.strip_suffix(b"\n").unwrap_or(&block.text);
    let mut builder = StringBuilder::new();
    let mut rows = 0;
    let mut first = block.first_line;
    let give = |builder: &mut StringBuilder, rows: usize, first: u64, sink: &mut ChunkSink<'_>| {
        let mut faults = vec![CellTally::default(); column_count];
        let lines: arrow::array::ArrayRef = Arc::new(builder.finish());
        let column = |(index, faults)| match line_column {
            Some(line_column) if line_column == index => Arc::clone(&lines),
            _ => absent(rows, faults),
        };
        let arrays = faults.iter_mut().enumerate().map(column).collect();
        sink.give((arrays, None), rows, RowNumbers::From(first), faults)
    };
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !is_utf8 && std::str::from_utf8(line).is_err() {
            sink.coverage.recoded(Place { file: sink.file, row: first + rows as u64 });
        }
        builder.append_value(to_text(line));
        rows += 1;
        if rows == chunk_rows(column_count) {
            give(&mut builder, rows, first, sink)?;
            first += rows as u64;
            rows = 0;
        }
    }
    if rows > 0 { give(&mut builder, rows, first, sink) } else { Ok(()) }
}
