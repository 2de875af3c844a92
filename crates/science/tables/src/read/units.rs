//! Units of work, one after the other, in the order of files and rows.

use std::collections::VecDeque;
use std::sync::Arc;

use trackway_core::boundary::Contained;

use super::parquet_file::RowRange;
use super::tally::Tally;
use super::text::blocks::{BLOCK_BYTES, Block, BlockError, BlockReader, RecordEnd};
use super::text::cells::Missing;
use super::text::json::Keys;
use super::text::{csv, json, lines};
use super::{ChunkSink, FileKind, Source, Stop, Wanted};
use crate::error::DataError;
use crate::types::Column;

/// A piece of one file that one thread reads.
pub(crate) struct Unit {
    pub(crate) file: usize,
    work: Work,
}

enum Work {
    Block(Block),
    Rows(RowRange),
}

/// What is still to be read.
pub(crate) struct Units<'s> {
    source: &'s Source,
    next_file: usize,
    blocks: Option<BlockReader>,
    ranges: VecDeque<RowRange>,
}

impl<'s> Units<'s> {
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, next_file: 0, blocks: None, ranges: VecDeque::new() }
    }

    /// The next unit; text files are read here, one after the other. `done` is a unit whose memory can be used again.
    pub(crate) fn next(&mut self, done: Option<Unit>) -> Result<Option<Unit>, DataError> {
        let mut buffer = match done {
            Some(Unit { work: Work::Block(block), .. }) => block.text,
            _ => Vec::new(),
        };
        loop {
            // The file before `next_file` is the one being read.
            let file = self.next_file.wrapping_sub(1);
            if let Some(range) = self.ranges.pop_front() {
                return Ok(Some(Unit { file, work: Work::Rows(range) }));
            }
            if let Some(reader) = &mut self.blocks {
                match reader
                    .next(std::mem::take(&mut buffer))
                    .map_err(|error| self.source.block_error(file, error))?
                {
                    Some(block) => return Ok(Some(Unit { file, work: Work::Block(block) })),
                    None => self.blocks = None,
                }
            }
            if self.next_file == self.source.files.len() {
                return Ok(None);
            }
            self.next_file += 1;
            self.open(self.next_file - 1)?;
        }
    }

    /// A panic at the file that is being cut.
    pub(crate) fn fault(&self, panic: Contained) -> DataError {
        self.source.fault(self.next_file.saturating_sub(1), panic)
    }

    fn open(&mut self, file: usize) -> Result<(), DataError> {
        let opened = &self.source.files[file];
        let (end, skip_lines) = match &opened.kind {
            FileKind::Parquet(parquet) => {
                self.ranges = parquet.ranges().into();
                return Ok(());
            }
            FileKind::Empty => return Ok(()),
            FileKind::Csv(layout) => (RecordEnd::Csv(layout.dialect), layout.skip_lines),
            FileKind::Json | FileKind::Lines => (RecordEnd::Line, 0),
        };
        let reader = BlockReader::open(Arc::clone(&opened.bytes), end, BLOCK_BYTES);
        let reader = reader.map_err(|error| self.source.block_error(file, error))?;
        self.blocks = Some(reader.without_first(skip_lines));
        Ok(())
    }
}

impl Source {
    /// A panic while a file is read.
    pub(crate) fn fault(&self, file: usize, panic: Contained) -> DataError {
        let path = self.files.get(file).map(|file| file.path.clone()).unwrap_or_default();
        DataError::Fault { set: self.set.clone(), path, panic }
    }

    fn block_error(&self, file: usize, error: BlockError) -> DataError {
        let (set, path) = (self.set.clone(), self.files[file].path.clone());
        match error {
            BlockError::Read(source) => DataError::Unreadable { set, path: path.into(), source },
            BlockError::Content(message) => DataError::Corrupt { set, path, format: "text file", message },
        }
    }

    /// How each column that is read is read from a file.
    fn mapping(&self, file: usize) -> Vec<Wanted> {
        let names = &self.files[file].columns;
        let names = super::Positions::of(names);
        let columns = self.columns.iter().zip(&self.tallies).enumerate();
        let wanted = |(place, (column, tally)): (usize, (&Column, &Tally))| Wanted {
            field: names.find(&column.name, place),
            kind: column.kind,
            style: tally.style(column.kind),
            is_given: self.types_are_fixed,
            is_kept: tally.decide(self.string_limit).kept.is_some(),
        };
        columns.map(wanted).collect()
    }

    pub(crate) fn read(&self, unit: &Unit, sink: &mut ChunkSink<'_>) -> Result<(), Stop> {
        let missing: &Missing = &self.missing;
        match (&unit.work, &self.files[unit.file].kind) {
            (Work::Rows(range), FileKind::Parquet(parquet)) => {
                sink.coverage.bytes_read = range.bytes;
                parquet.read(range, &self.mapping(unit.file), sink)
            }
            (Work::Block(block), kind) => {
                sink.coverage.bytes_read = block.source_bytes;
                let mapping = self.mapping(unit.file);
                match kind {
                    FileKind::Csv(layout) => csv::read_block(block, layout, &mapping, missing, sink),
                    FileKind::Json => {
                        let mut keys = Keys::new(self.columns.iter().map(|column| column.name.as_str()));
                        json::read_block(block, &mapping, &mut keys, missing, sink)
                    }
                    _ => {
                        let line = self.columns.iter().position(|column| column.name == lines::LINE_COLUMN);
                        lines::read_block(block, self.columns.len(), line, sink)
                    }
                }
            }
            (Work::Rows(_), _) => Ok(()),
        }
    }
}
