//! The side that is held in memory.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_empty_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema};

use super::{JoinError, RIGHT_BYTES_MAX, content, kinds};
use crate::infer::{Column, ColumnType};
use crate::pass::{Pass, PassObserver, scan};
use crate::read::{Chunk, Coverage, Source};
use crate::write::{fitted, schema_of};

/// All rows of a source.
pub(super) struct Right {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) schema: Arc<Schema>,
    pub(super) rows: usize,
    pub(super) coverage: Coverage,
}

impl Right {
    /// Reads a source whose types are settled.
    pub(super) fn read(
        source: &mut Source,
        side: &'static str,
        watch: &PassObserver<'_>,
    ) -> Result<Self, JoinError> {
        let make =
            |source: &Source| Gathered { kinds: kinds(source), batches: Vec::new(), bytes: 0, failed: None };
        let (gathered, coverage) = scan(source, &make, watch)?;
        if let Some(why) = gathered.failed {
            return Err(JoinError::Content(why));
        }
        if gathered.bytes > RIGHT_BYTES_MAX {
            return Err(JoinError::TooLarge { side });
        }
        let Some(first) = gathered.batches.first() else { return Ok(Self::empty(source, coverage)) };
        let schema = first.schema();
        let batches =
            gathered.batches.iter().map(|batch| fitted(batch, &schema)).collect::<Result<Vec<_>, _>>();
        let whole = concat_batches(&schema, &batches.map_err(content)?).map_err(content)?;
        Ok(Self { columns: whole.columns().to_vec(), schema, rows: whole.num_rows(), coverage })
    }

    /// The columns of a source without rows.
    fn empty(source: &Source, coverage: Coverage) -> Self {
        let text = |column: &Column| Field::new(&column.name, DataType::Utf8, true);
        let fields: Vec<Field> = source.columns().iter().map(text).collect();
        let columns = fields.iter().map(|field| new_empty_array(field.data_type())).collect();
        Self { columns, schema: Arc::new(Schema::new(fields)), rows: 0, coverage }
    }
}

/// Batches in the order of the rows, until there are too many.
struct Gathered {
    kinds: Vec<ColumnType>,
    batches: Vec<RecordBatch>,
    bytes: usize,
    failed: Option<String>,
}

impl Pass for Gathered {
    fn observe(&mut self, chunk: &Chunk) {
        match fitted(&chunk.batch, &schema_of(&chunk.batch, &self.kinds)) {
            Ok(batch) => {
                self.bytes += batch.get_array_memory_size();
                self.batches.push(batch);
            }
            Err(error) => self.failed = self.failed.take().or(Some(error.to_string())),
        }
    }

    fn merge(&mut self, later: Self) {
        self.bytes += later.bytes;
        self.failed = self.failed.take().or(later.failed);
        match self.bytes > RIGHT_BYTES_MAX {
            true => self.batches.clear(),
            false => self.batches.extend(later.batches),
        }
    }
}
