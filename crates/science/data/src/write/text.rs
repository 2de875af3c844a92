//! Rows as text: separated values and JSON lines.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use trackway_core::text::csv_field;

use super::TableFormat;

/// A file of text, with its header written.
pub(super) struct TextRows {
    file: BufWriter<File>,
    format: TableFormat,
    /// The columns' names as JSON.
    names: Vec<String>,
}

/// Columns that a text cannot hold.
pub(super) fn check(schema: &Schema) -> Result<(), String> {
    let nested = schema.fields().iter().find(|field| {
        let data_type = field.data_type();
        data_type.is_nested()
            || matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    });
    match nested {
        Some(field) => Err(format!(
            "column `{}` contains {}, which a text file cannot store: write .parquet",
            field.name(),
            if field.data_type().is_nested() { "nested values" } else { "bytes" }
        )),
        None => Ok(()),
    }
}

impl TextRows {
    pub(super) fn begin(mut file: BufWriter<File>, format: TableFormat, schema: &Schema) -> io::Result<Self> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if let TableFormat::Separated(separator) = format {
            let header: Vec<_> = names.iter().map(|name| csv_field(name, separator)).collect();
            writeln!(file, "{}", header.join(&separator.to_string()))?;
        }
        let names = names.into_iter().map(|name| serde_json::Value::from(name).to_string()).collect();
        Ok(Self { file, format, names })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let options = FormatOptions::new().with_display_error(false);
        let cells: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).map_err(io::Error::other))
            .collect::<io::Result<_>>()?;
        for row in 0..batch.num_rows() {
            match self.format {
                TableFormat::JsonLines => self.object(batch, &cells, row)?,
                TableFormat::Separated(separator) | TableFormat::Headless(separator) => {
                    self.record(batch, &cells, row, separator)?;
                }
                TableFormat::Parquet => unreachable!("Parquet is not a text format"),
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        batch: &RecordBatch,
        cells: &[ArrayFormatter<'_>],
        row: usize,
        separator: char,
    ) -> io::Result<()> {
        for (index, (array, cell)) in batch.columns().iter().zip(cells).enumerate() {
            if index > 0 {
                write!(self.file, "{separator}")?;
            }
            if array.is_valid(row) {
                self.file.write_all(csv_field(&cell.value(row).to_string(), separator).as_bytes())?;
            } else if cells.len() == 1 {
                // An empty line would be no row.
                self.file.write_all(b"\"\"")?;
            }
        }
        self.file.write_all(b"\n")
    }

    fn object(&mut self, batch: &RecordBatch, cells: &[ArrayFormatter<'_>], row: usize) -> io::Result<()> {
        for (index, ((array, cell), name)) in batch.columns().iter().zip(cells).zip(&self.names).enumerate() {
            write!(self.file, "{}{name}:", if index == 0 { '{' } else { ',' })?;
            let is_finite =
                || array.as_primitive_opt::<Float64Type>().is_none_or(|floats| floats.value(row).is_finite());
            let is_number =
                matches!(array.data_type(), DataType::Int64 | DataType::UInt64 | DataType::Float64);
            match array.data_type() {
                _ if array.is_null(row) || !is_finite() => write!(self.file, "null")?,
                DataType::Boolean => write!(self.file, "{}", cell.value(row))?,
                _ if is_number => write!(self.file, "{}", cell.value(row))?,
                _ => write!(self.file, "{}", serde_json::Value::from(cell.value(row).to_string()))?,
            }
        }
        self.file.write_all(b"}\n")
    }

    pub(super) fn into_file(self) -> io::Result<File> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
