//! The side that is held in memory.

use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray, RecordBatch, new_empty_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Coverage, Source};
use trackway_tables::write::{Forms, fitted, schema_of};
use trackway_tables::{Column, ColumnType};

use super::{JoinError, RIGHT_BYTES_MAX, content, kinds};

/// All rows of a source.
pub(super) struct Right {
    /// As they were read; where the cells are wanted, only those that were said to be needed have values.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
    /// As they are written, if they are wanted.
    pub(super) cells: Option<RecordBatch>,
    pub(super) coverage: Coverage,
}

/// The cells of a source that keeps its originals, and the columns that are needed as they were read.
#[derive(Clone, Copy)]
pub(super) struct WrittenCells<'w> {
    pub(super) forms: &'w Forms,
    pub(super) needed: &'w [usize],
}

impl Right {
    /// Reads a source whose types are settled.
    pub(super) fn read(
        source: &mut Source,
        side: &'static str,
        written: Option<WrittenCells<'_>>,
        watch: &PassObserver<'_>,
    ) -> Result<Self, JoinError> {
        let make = |source: &Source| GatheredBatches {
            kinds: kinds(source),
            written,
            typed: Vec::new(),
            cells: Vec::new(),
            bytes: 0,
            failed: None,
        };
        let (gathered, coverage) = scan(source, &make, watch)?;
        if let Some(why) = gathered.failed {
            return Err(JoinError::Content(why.into()));
        }
        if gathered.bytes > RIGHT_BYTES_MAX {
            return Err(JoinError::TooLarge { side });
        }
        if gathered.typed.is_empty() {
            return Ok(Self::empty(source, written.is_some(), coverage));
        }
        let typed = whole(&gathered.typed).map_err(content)?;
        let cells = (!gathered.cells.is_empty()).then(|| whole(&gathered.cells)).transpose();
        Ok(Self {
            columns: typed.columns().to_vec(),
            rows: typed.num_rows(),
            cells: cells.map_err(content)?,
            coverage,
        })
    }

    /// The columns of a source without rows.
    fn empty(source: &Source, has_cells: bool, coverage: Coverage) -> Self {
        let text = |column: &Column| Field::new(&column.name, DataType::Utf8, true);
        let schema = Arc::new(Schema::new(source.columns().iter().map(text).collect::<Vec<_>>()));
        let columns = schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect();
        let cells = has_cells.then(|| RecordBatch::new_empty(Arc::clone(&schema)));
        Self { columns, rows: 0, cells, coverage }
    }
}

/// Batches as one, of the types of the first.
fn whole(batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    let schema = batches[0].schema();
    let batches = batches.iter().map(|batch| fitted(batch, &schema)).collect::<Result<Vec<_>, _>>()?;
    concat_batches(&schema, &batches)
}

/// Batches in the order of the rows, until there are too many.
struct GatheredBatches<'w> {
    kinds: Vec<ColumnType>,
    written: Option<WrittenCells<'w>>,
    typed: Vec<RecordBatch>,
    cells: Vec<RecordBatch>,
    bytes: usize,
    failed: Option<String>,
}

impl GatheredBatches<'_> {
    fn add(&mut self, chunk: &Chunk) -> Result<(), ArrowError> {
        let typed = fitted(&chunk.batch, &schema_of(&chunk.batch, &self.kinds))?;
        let typed = match self.written {
            None => typed,
            Some(WrittenCells { forms, needed }) => {
                let cells = forms.cells(chunk);
                let cells = fitted(&cells, &forms.schema(&cells))?;
                self.bytes += cells.get_array_memory_size();
                self.cells.push(cells);
                only(&typed, needed)?
            }
        };
        self.bytes += typed.get_array_memory_size();
        self.typed.push(typed);
        Ok(())
    }
}

/// A batch of which only the columns at these places have values.
fn only(batch: &RecordBatch, places: &[usize]) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(batch.schema_ref().fields()).enumerate();
    let kept = |(place, (array, field)): (usize, (&ArrayRef, &Arc<Field>))| match places.contains(&place) {
        true => (Arc::clone(field), Arc::clone(array)),
        false => {
            let nothing: ArrayRef = Arc::new(NullArray::new(array.len()));
            (Arc::new(Field::new(field.name(), DataType::Null, true)), nothing)
        }
    };
    let (fields, arrays): (Vec<Arc<Field>>, Vec<ArrayRef>) = columns.map(kept).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

impl Pass for GatheredBatches<'_> {
    fn observe(&mut self, chunk: &Chunk) {
        if let Err(error) = self.add(chunk) {
            self.failed = self.failed.take().or(Some(error.to_string()));
        }
    }

    fn merge(&mut self, later: Self) {
        self.bytes += later.bytes;
        self.failed = self.failed.take().or(later.failed);
        match self.bytes > RIGHT_BYTES_MAX {
            true => {
                self.typed.clear();
                self.cells.clear();
            }
            false => {
                self.typed.extend(later.typed);
                self.cells.extend(later.cells);
            }
        }
    }
}
