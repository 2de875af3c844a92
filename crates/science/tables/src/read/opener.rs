//! Opens the files of a set: the format of each, and its columns from a footer or a sample.

use std::path::Path;
use std::sync::Arc;

use trackway_core::boundary::Contained;
use trackway_formats::runfile::{DataFormat, DataSpec};

use super::parquet_file::ParquetFile;
use super::sample::{self, Sampled};
use super::tally::Tally;
use super::text::cells::Missing;
use super::{FileKind, SourceFile, bytes, display};
use crate::error::DataError;
use crate::files::context::ReadContext;
use crate::files::format::{format_of, is_text};
use crate::files::identity::Identity;
use crate::files::remote::url_of;

/// Opens the files of one set.
pub(super) struct Opener<'o> {
    pub(super) base: &'o Path,
    pub(super) set: &'o str,
    pub(super) spec: &'o DataSpec,
    pub(super) missing: &'o Missing,
    pub(super) sample_bytes: usize,
    pub(super) context: &'o ReadContext,
}

impl Opener<'_> {
    pub(super) fn fault(&self, path: &Path, panic: Contained) -> DataError {
        DataError::Fault { set: self.set.to_owned(), path: display(self.base, path), panic }
    }

    pub(super) fn open(&self, path: &Path) -> Result<(SourceFile, Vec<Tally>), DataError> {
        let unreadable =
            |source| DataError::Unreadable { set: self.set.to_owned(), path: path.to_owned(), source };
        let shown = display(self.base, path);
        let identity =
            url_of(path).is_none().then(|| Identity::of_local(path)).transpose().map_err(unreadable)?;
        let opened = identity.map(|identity| (path.to_owned(), identity));
        let bytes = bytes::open(path, self.context).map_err(unreadable)?;
        let format = table_format(path, self.spec).expect("only tables are opened");
        let corrupt = |message| DataError::Corrupt {
            set: self.set.to_owned(),
            path: shown.clone(),
            format: format.name(),
            message,
        };
        let limits = self.context.limits();
        let check_count = |count: usize| match count > limits.columns_max {
            true => Err(corrupt(limits.too_many("columns"))),
            false => Ok(()),
        };
        if format == TableFormat::Parquet {
            let parquet = ParquetFile::open(Arc::clone(&bytes), limits.page_bytes_max).map_err(corrupt)?;
            let (columns, given) = parquet.columns();
            check_count(columns.len())?;
            let tallies = parquet.tallies();
            let renamed = given.into_iter().zip(&columns).filter(|(given, column)| *given != column.name);
            let renamed = renamed.map(|(given, column)| (given, column.name.clone())).collect();
            let (size_bytes, kind) = (bytes.size_bytes(), FileKind::Parquet(parquet));
            let (columns, advice) = (columns.into(), None);
            let file = SourceFile { path: shown, size_bytes, opened, bytes, kind, columns, renamed, advice };
            return Ok((file, tallies));
        }
        let sampled = match format {
            TableFormat::Csv => sample::csv(&bytes, self.spec, self.missing, self.sample_bytes, limits),
            TableFormat::Jsonl => sample::json(&bytes, self.missing, self.sample_bytes, limits),
            _ => Ok(sample::lines(&bytes)),
        };
        let Sampled { kind, columns, tallies, renamed, advice } = sampled.map_err(|error| match error {
            sample::SampleError::Read(source) => unreadable(source),
            sample::SampleError::Content(message) => corrupt(message),
            sample::SampleError::ColumnCount(found) => DataError::ColumnCount {
                set: self.set.to_owned(),
                path: shown.clone(),
                named: self.spec.columns.len(),
                found,
            },
        })?;
        let size_bytes = bytes.size_bytes();
        let (columns, renamed) = (columns.into(), renamed.into());
        let path = shown.clone();
        Ok((SourceFile { path, size_bytes, opened, bytes, kind, columns, renamed, advice }, tallies))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableFormat {
    Parquet,
    Csv,
    Jsonl,
    Lines,
}

impl TableFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Parquet => "Parquet file",
            Self::Csv => "CSV file",
            Self::Jsonl => "JSONL file",
            Self::Lines => "text file",
        }
    }
}

/// How a file is read as a table; `None` if its name does not determine it.
pub(super) fn table_format(path: &Path, spec: &DataSpec) -> Option<TableFormat> {
    match spec.format.unwrap_or_else(|| format_of(path)) {
        DataFormat::Parquet => Some(TableFormat::Parquet),
        DataFormat::Csv => Some(TableFormat::Csv),
        DataFormat::Jsonl => Some(TableFormat::Jsonl),
        DataFormat::Other => is_text(path).then_some(TableFormat::Lines),
    }
}
