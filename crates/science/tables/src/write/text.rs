//! Rows as text: separated values and JSON lines.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use serde::de::IgnoredAny;
use trackway_core::text::csv_field;

use super::TableFormat;
use super::forms::{JSON_VALUES, OWN_JSON};

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
        let columns = batch.columns().iter().zip(batch.schema_ref().fields());
        for (index, (((array, field), cell), name)) in columns.zip(cells).zip(&self.names).enumerate() {
            write!(self.file, "{}{name}:", if index == 0 { '{' } else { ',' })?;
            let text = cell.value(row).to_string();
            let value = match field.data_type() {
                _ if array.is_null(row) => "null".to_owned(),
                DataType::Boolean => text,
                data_type if is_number(data_type) => json_number(text),
                _ if field.metadata().contains_key(JSON_VALUES) => json_value(text),
                _ if field.metadata().contains_key(OWN_JSON) => text,
                _ => serde_json::Value::from(text).to_string(),
            };
            self.file.write_all(value.as_bytes())?;
        }
        self.file.write_all(b"}\n")
    }

    pub(super) fn into_file(self) -> io::Result<File> {
        self.file.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => values.is_numeric(),
        data_type => data_type.is_numeric(),
    }
}

/// A number as Arrow displays it; `null` if it is not finite.
fn json_number(text: String) -> String {
    if text.ends_with(|last: char| last.is_ascii_digit()) { text } else { "null".to_owned() }
}

/// A string of a text file that is a JSON value, or a number in another notation (`007`, `+1.5`); any other one stays a string.
fn json_value(text: String) -> String {
    if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        return text;
    }
    let value = text.parse::<f64>().map_or_else(|_| serde_json::Value::from(text), serde_json::Value::from);
    value.to_string()
}
