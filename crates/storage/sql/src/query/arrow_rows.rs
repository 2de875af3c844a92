//! Rows of a database as Arrow columns, without a detour over [`Value`]s where the database allows it.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Float64Builder, Int64Builder, RecordBatch, RecordBatchOptions, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rusqlite::types::ValueRef;
use trackway_ledger::scan::{Column, ColumnKind, Value};
use trackway_records::{UTC, schema_of};

/// Rows per batch: large enough to work on in one go, small enough for a processor's cache.
const BATCH_ROWS: usize = 16_384;

/// One column in the making.
enum Builder {
    Text(StringBuilder),
    Integer(Int64Builder),
    Real(Float64Builder),
    Boolean(BooleanBuilder),
    Timestamp(TimestampMicrosecondBuilder),
}

macro_rules! each_kind {
    ($it:expr, $builder:ident => $done:expr) => {
        match $it {
            Self::Text($builder) => $done,
            Self::Integer($builder) => $done,
            Self::Real($builder) => $done,
            Self::Boolean($builder) => $done,
            Self::Timestamp($builder) => $done,
        }
    };
}

impl Builder {
    fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Text | ColumnKind::Word | ColumnKind::Json => Self::Text(StringBuilder::new()),
            ColumnKind::Integer => Self::Integer(Int64Builder::new()),
            ColumnKind::Real => Self::Real(Float64Builder::new()),
            ColumnKind::Boolean => Self::Boolean(BooleanBuilder::new()),
            ColumnKind::Timestamp => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone(UTC)),
        }
    }

    /// Takes a value of SQLite. `STRICT` tables hold what they declare; a real that is whole may come as integer.
    fn take_sqlite(&mut self, value: ValueRef<'_>) {
        match (self, value) {
            (Self::Text(builder), ValueRef::Text(text)) => match std::str::from_utf8(text) {
                Ok(text) => builder.append_value(text),
                Err(_) => builder.append_value(String::from_utf8_lossy(text)),
            },
            (Self::Integer(builder), ValueRef::Integer(number)) => builder.append_value(number),
            (Self::Real(builder), ValueRef::Real(number)) => builder.append_value(number),
            (Self::Real(builder), ValueRef::Integer(number)) => builder.append_value(number as f64),
            (Self::Boolean(builder), ValueRef::Integer(number)) => builder.append_value(number != 0),
            (Self::Timestamp(builder), ValueRef::Integer(number)) => builder.append_value(number),
            (builder, _) => builder.take_null(),
        }
    }

    fn take(&mut self, value: &Value) {
        match (self, value) {
            (Self::Text(builder), Value::Text(text)) => builder.append_value(text),
            (Self::Integer(builder), Value::Integer(number)) => builder.append_value(*number),
            (Self::Real(builder), Value::Real(number)) => builder.append_value(*number),
            (Self::Boolean(builder), Value::Boolean(truth)) => builder.append_value(*truth),
            (Self::Timestamp(builder), Value::Timestamp(moment)) => builder.append_value(moment.as_micros()),
            (builder, _) => builder.take_null(),
        }
    }

    fn take_null(&mut self) {
        each_kind!(self, builder => builder.append_null());
    }

    fn finish(&mut self) -> ArrayRef {
        each_kind!(self, builder => Arc::new(builder.finish()))
    }
}

/// Batches in the making.
pub(super) struct Batches {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    done: Vec<RecordBatch>,
}

impl Batches {
    pub(super) fn new(columns: &[Column]) -> Self {
        let builders = columns.iter().map(|column| Builder::new(column.kind)).collect();
        Self { schema: schema_of(columns), builders, rows: 0, done: Vec::new() }
    }

    /// Takes a row of SQLite, whose columns are in the order of ours.
    pub(super) fn take_sqlite(&mut self, row: &rusqlite::Row<'_>) -> Result<(), RowError> {
        for (index, builder) in self.builders.iter_mut().enumerate() {
            builder.take_sqlite(row.get_ref(index)?);
        }
        Ok(self.end_row()?)
    }

    /// Takes a row as values.
    pub(super) fn take(&mut self, values: &[Value]) -> Result<(), ArrowError> {
        for (builder, value) in self.builders.iter_mut().zip(values) {
            builder.take(value);
        }
        self.end_row()
    }

    fn end_row(&mut self) -> Result<(), ArrowError> {
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> Result<(), ArrowError> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        // The count matters when no column is requested, as in `count(*)`.
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.done.push(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?);
        self.rows = 0;
        Ok(())
    }

    /// The batches; empty when no row came.
    pub(super) fn finish(mut self) -> Result<Vec<RecordBatch>, ArrowError> {
        if self.rows > 0 {
            self.end_batch()?;
        }
        Ok(self.done)
    }
}

/// Calls `take` with these columns of each batch.
pub(super) fn each_batch<'n>(
    builder: ParquetRecordBatchReaderBuilder<File>,
    names: impl IntoIterator<Item = &'n str>,
    mut take: impl FnMut(RecordBatch) -> Result<(), ArrowError>,
) -> Result<(), String> {
    let mask = ProjectionMask::columns(builder.parquet_schema(), names);
    let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
    let mut reader = reader.map_err(|error| error.to_string())?;
    reader.try_for_each(|batch| take(batch?)).map_err(|error| error.to_string())
}

/// Why a row could not be taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
