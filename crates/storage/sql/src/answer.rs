//! The answer of a query, and the ways to hand it on.

use std::io::{self, Write};
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int64Type, SchemaRef, TimeUnit, TimestampMicrosecondType, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::ArrowWriter;
use serde_json::{Map, Value as Json};
use trackway_core::Timestamp;
use trackway_core::text::csv_field;
use trackway_ledger::LedgerError;
use trackway_records::{parquet_properties, write_whole};

/// The answer of a query: columns of Arrow data, in batches.
#[derive(Debug, Clone)]
pub struct Answer {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Answer {
    #[cfg(feature = "datafusion")]
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        // What came may be narrower about nulls than what was planned; the data's own schema is the true one.
        let schema = batches.first().map_or(schema, RecordBatch::schema);
        Self { schema, batches }
    }

    /// A table that no query made, to be printed or written like one.
    #[must_use]
    pub fn of(table: RecordBatch) -> Self {
        Self { schema: table.schema(), batches: vec![table] }
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The data; empty when no row answers the query.
    #[must_use]
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// The names of the columns, in order.
    #[must_use]
    pub fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Whether a column holds numbers, to align it by.
    #[must_use]
    pub fn is_numeric(&self, column: usize) -> bool {
        self.schema.fields().get(column).is_some_and(|field| field.data_type().is_numeric())
    }

    /// How many rows answer the query.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Every row as a JSON object. Numbers stay numbers but NaN and infinities, which JSON lacks and which become
    /// null; timestamps are RFC 3339 text; everything else that JSON lacks is text.
    ///
    /// # Errors
    /// [`LedgerError::Query`] when a value cannot be shown.
    pub fn json_rows(&self) -> Result<Vec<Map<String, Json>>, LedgerError> {
        let mut rows = Vec::with_capacity(self.row_count());
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let mut object = Map::new();
                for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
                    object.insert(field.name().clone(), json_value(column, row)?);
                }
                rows.push(object);
            }
        }
        Ok(rows)
    }

    /// Every row as strings, null as an empty one. Timestamps are RFC 3339.
    ///
    /// # Errors
    /// [`LedgerError::Query`] when a value cannot be shown.
    pub fn text_rows(&self) -> Result<Vec<Vec<String>>, LedgerError> {
        let mut rows = Vec::with_capacity(self.row_count());
        for batch in &self.batches {
            for row in 0..batch.num_rows() {
                let texts = batch.columns().iter().map(|column| text_value(column, row));
                rows.push(texts.collect::<Result<Vec<_>, _>>()?);
            }
        }
        Ok(rows)
    }

    /// Writes CSV (RFC 4180): a header, then every row.
    ///
    /// # Errors
    /// The errors of the writer; a value that cannot be shown is [`io::ErrorKind::InvalidData`].
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        write_csv_line(out, &self.columns())?;
        let rows = self.text_rows().map_err(io::Error::other)?;
        rows.iter().try_for_each(|row| write_csv_line(out, row))
    }

    /// Writes a Parquet file (zstd), whole or not at all. Gives the number of rows.
    ///
    /// # Errors
    /// [`LedgerError::File`], [`LedgerError::Parquet`].
    pub fn write_parquet(&self, path: &Path) -> Result<usize, LedgerError> {
        write_whole(path, |file| {
            let mut writer =
                ArrowWriter::try_new(file, SchemaRef::clone(&self.schema), Some(parquet_properties()))?;
            self.batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.close().map(|_| ())
        })?;
        Ok(self.row_count())
    }
}

fn write_csv_line(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    for (index, cell) in cells.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // NULL and the empty string are both empty here.
        let cell = if cell.is_empty() { cell.into() } else { csv_field(cell, ',') };
        write!(out, "{comma}{cell}")?;
    }
    out.write_all(b"\n")
}

fn json_value(column: &dyn Array, row: usize) -> Result<Json, LedgerError> {
    if column.is_null(row) {
        return Ok(Json::Null);
    }
    Ok(match column.data_type() {
        DataType::Null => Json::Null,
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into(),
        // `From<f64>` gives null for what JSON lacks.
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).into(),
        other if other.is_integer() => text_value(column, row)?.parse::<i64>().map_or(Json::Null, Json::from),
        _ => text_value(column, row)?.into(),
    })
}

fn text_value(column: &dyn Array, row: usize) -> Result<String, LedgerError> {
    if column.is_null(row) {
        return Ok(String::new());
    }
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().value(row).to_owned()),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            Ok(Timestamp::from_micros(micros).to_rfc3339())
        }
        _ => {
            let options = FormatOptions::new();
            let formatter = ArrayFormatter::try_new(column, &options)
                .map_err(|error| LedgerError::Query(format!("cannot show a value: {error}")))?;
            Ok(formatter.value(row).to_string())
        }
    }
}
