//! Where the chunks of a unit go.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};

use super::Source;
use super::chunk::{Chunk, Marks, Originals, RowNumbers};
use super::coverage::{CellTally, Coverage};
use crate::error::DataError;
use crate::types::Column;

/// Hands chunks of one unit to the pass and keeps the account.
pub(crate) struct ChunkSink<'s> {
    pub(crate) file: usize,
    pub(crate) coverage: Coverage,
    source: &'s Source,
    wants_faulty: bool,
    take: &'s mut dyn FnMut(&Chunk) -> Result<(), Stop>,
}

/// Why a unit was not read to its end.
pub(crate) enum Stop {
    Cancelled,
    Failed(DataError),
}

impl<'s> ChunkSink<'s> {
    pub(crate) fn new(
        file: usize,
        source: &'s Source,
        wants_faulty: bool,
        take: &'s mut dyn FnMut(&Chunk) -> Result<(), Stop>,
    ) -> Self {
        let columns = vec![CellTally::default(); source.columns.len()];
        let rejected = wants_faulty.then(Vec::new);
        Self {
            file,
            coverage: Coverage { columns, rejected, ..Coverage::default() },
            source,
            wants_faulty,
            take,
        }
    }

    /// The account of a column of a chunk, at its beginning.
    pub(in crate::read) fn no_faults(&self) -> CellTally {
        CellTally { listed: self.wants_faulty.then(Vec::new), ..CellTally::default() }
    }

    pub(in crate::read) fn keeps_originals(&self) -> bool {
        self.source.keeps_originals
    }

    /// `originals` are the cells as they are in the file, if these are kept and others than `arrays`.
    pub(in crate::read) fn give(
        &mut self,
        (arrays, originals): (Vec<ArrayRef>, Option<Originals>),
        rows: usize,
        numbers: RowNumbers,
        cells: Vec<CellTally>,
    ) -> Result<(), Stop> {
        let batch = self.batch(arrays, rows);
        let (originals, marks) = match originals {
            Some(Originals { columns, marks }) => (Some(self.batch(columns, rows)), marks),
            None => (None, Marks::default()),
        };
        self.coverage.read(self.file, rows);
        let chunk = Chunk { file: self.file, batch, originals, marks, rows: numbers, cells };
        let taken = (self.take)(&chunk);
        for (known, more) in self.coverage.columns.iter_mut().zip(chunk.cells) {
            known.merge(more);
        }
        taken
    }

    pub(in crate::read) fn batch(&self, arrays: Vec<ArrayRef>, rows: usize) -> RecordBatch {
        let field = |(column, array): (&Column, &ArrayRef)| {
            Field::new(column.name.as_str(), array.data_type().clone(), true)
        };
        let fields: Vec<Field> = self.source.columns.iter().zip(&arrays).map(field).collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .expect("every column has as many rows as the chunk, of its field's type")
    }

    pub(in crate::read) fn corrupt(&self, message: String) -> Stop {
        let path = self.source.files[self.file].path.clone();
        Stop::Failed(DataError::Corrupt {
            set: self.source.set.clone(),
            path,
            format: "Parquet file",
            message,
        })
    }
}
