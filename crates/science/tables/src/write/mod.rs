//! Tables as files: Parquet, CSV or JSON lines, there whole or not at all.

mod forms;
mod text;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use trackway_core::BoxError;
use trackway_files::TempFile;

use crate::error::DataError;
use crate::read::Source;
use crate::types::ColumnType;
pub use forms::Forms;
use text::TextRows;

/// Rows of a row group: what a writer of Parquet holds in memory.
const ROW_GROUP_ROWS: usize = 128 << 10;

/// Why a table could not be written down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    #[error("unknown format of `{}`: use the extension .parquet, .csv, .tsv or .jsonl", .path.display())]
    NoFormat { path: PathBuf },
    #[error("cannot write `{}`: {source}", .path.display())]
    Disk { path: PathBuf, source: io::Error },
    #[error("cannot write `{}`: {source}", .path.display())]
    Content { path: PathBuf, source: BoxError },
    /// The data could not be read again.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Apache Parquet, compressed with Snappy.
    Parquet,
    /// Separated values as RFC 4180 has them, with a header; a missing value is an empty field, an empty text a pair of
    /// quotes.
    Separated(char),
    /// The same without a header.
    Headless(char),
    /// One JSON object for each row; a missing value is `null`, and so is a number that is not finite, unless a JSON file has it.
    JsonLines,
}

impl TableFormat {
    /// As the files of a table are written, with the end of their names. Plain text becomes a CSV file.
    #[must_use]
    pub fn like(source: &Source) -> (Self, &'static str) {
        let first = source.files().first();
        match first.and_then(|file| file.dialect()) {
            Some((true, '\t')) => (Self::Separated('\t'), "tsv"),
            Some((true, separator)) => (Self::Separated(separator), "csv"),
            Some((false, separator)) => (Self::Headless(separator), "csv"),
            None if first.is_some_and(|file| file.path.ends_with("parquet")) => (Self::Parquet, "parquet"),
            None => (Self::JsonLines, "jsonl"),
        }
    }

    /// By the end of the file's name.
    ///
    /// # Errors
    /// [`WriteError::NoFormat`].
    pub fn of(path: &Path) -> Result<Self, WriteError> {
        let extension = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("parquet" | "pq") => Ok(Self::Parquet),
            Some("csv") => Ok(Self::Separated(',')),
            Some("tsv") => Ok(Self::Separated('\t')),
            Some("jsonl" | "ndjson") => Ok(Self::JsonLines),
            _ => Err(WriteError::NoFormat { path: path.to_owned() }),
        }
    }
}

/// A table that has its name only once it is whole. Dropped before, it leaves nothing.
pub struct TableFile {
    path: PathBuf,
    draft: TempFile,
    rows: Option<Rows>,
}

enum Rows {
    Parquet(Box<ArrowWriter<File>>),
    Text(TextRows),
}

impl TableFile {
    /// Begins a table of these columns, in the format of its file's extension.
    ///
    /// # Errors
    /// Those of [`Self::create`] and [`TableFormat::of`].
    pub fn by_extension(path: &Path, schema: &Arc<Schema>) -> Result<Self, WriteError> {
        Self::create(path, TableFormat::of(path)?, schema)
    }

    /// Begins a table of these columns. Parquet holds a row group in memory (131,072 rows), the others one batch.
    ///
    /// # Errors
    /// [`WriteError`]: a folder that is not there, columns that the format cannot hold.
    pub fn create(path: &Path, format: TableFormat, schema: &Arc<Schema>) -> Result<Self, WriteError> {
        let disk = |source| WriteError::Disk { path: path.to_owned(), source };
        let (draft, file) = TempFile::beside(path).map_err(disk)?;
        let mut table = Self { path: path.to_owned(), draft, rows: None };
        table.rows = Some(match format {
            TableFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
                    .build();
                let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties));
                Rows::Parquet(Box::new(writer.map_err(content(path))?))
            }
            TableFormat::Separated(_) | TableFormat::Headless(_) | TableFormat::JsonLines => {
                let wrong = |why: String| WriteError::Content { path: path.to_owned(), source: why.into() };
                text::check(schema).map_err(wrong)?;
                Rows::Text(TextRows::begin(BufWriter::new(file), format, schema).map_err(disk)?)
            }
        });
        Ok(table)
    }

    /// Adds rows, whose columns are those of the schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        match self.rows.as_mut().expect("rows are taken away at the end only") {
            Rows::Parquet(writer) => writer.write(batch).map_err(content(&self.path)),
            Rows::Text(rows) => {
                let path = &self.path;
                rows.write(batch).map_err(|source| WriteError::Disk { path: path.clone(), source })
            }
        }
    }

    /// Gives the table its name.
    ///
    /// # Errors
    /// [`WriteError`]; then there is no table.
    pub fn finish(mut self) -> Result<PathBuf, WriteError> {
        let path = self.path.clone();
        let disk = |source| WriteError::Disk { path: path.clone(), source };
        let file = match self.rows.take().expect("rows are taken away at the end only") {
            Rows::Parquet(writer) => writer.into_inner().map_err(content(&path))?,
            Rows::Text(rows) => rows.into_file().map_err(disk)?,
        };
        file.sync_all().and_then(|()| self.draft.persist(&path)).map_err(disk)?;
        trackway_files::give_to_user(&path).map_err(disk)?;
        Ok(path)
    }
}

fn content(path: &Path) -> impl FnOnce(ParquetError) -> WriteError + use<'_> {
    move |error| WriteError::Content { path: path.to_owned(), source: error.into() }
}

/// One schema for all batches of a scan: a column is written in its type, whatever single files hold.
#[must_use]
pub fn schema_of(batch: &RecordBatch, kinds: &[ColumnType]) -> Arc<Schema> {
    let fields = batch.schema_ref().fields().iter().zip(kinds).map(|(field, kind)| {
        let data_type = match (kind, field.data_type()) {
            (ColumnType::Int, DataType::UInt64) => DataType::UInt64,
            (ColumnType::Int, _) => DataType::Int64,
            (ColumnType::Float, _) => DataType::Float64,
            (ColumnType::Bool, _) => DataType::Boolean,
            (ColumnType::Timestamp, _) => DataType::Timestamp(TimeUnit::Microsecond, None),
            (ColumnType::Text | ColumnType::Mixed | ColumnType::Null, _) => DataType::Utf8,
            (_, other) => other.clone(),
        };
        Field::new(field.name(), data_type, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The batch with the schema's types.
///
/// # Errors
/// A value that they do not hold: it is never a null.
pub fn fitted(batch: &RecordBatch, schema: &Arc<Schema>) -> Result<RecordBatch, arrow::error::ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let fit = |(array, field): (&ArrayRef, &Arc<Field>)| match array.data_type() {
        DataType::Null => Ok(new_null_array(field.data_type(), array.len())),
        _ => cast_with_options(array, field.data_type(), &strict),
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(fit).collect::<Result<_, _>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns)
}

#[cfg(test)]
mod tests;
