//! Parquet files, whole or not at all.

use std::fs::{self, File};
use std::path::Path;

use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use trackway_files::TempFile;
use trackway_ledger::{AttemptRow, LedgerError};

use crate::metric_batch::metric_batch;
use crate::parts::SegmentFile;
use crate::schema::metric_schema;

/// zstd's own default: about half the size of snappy at a speed that does not matter once per attempt.
const ZSTD_LEVEL: i32 = 3;
/// So many rows are encoded in memory before they are written.
pub(crate) const ROW_GROUP_ROWS: usize = 1 << 18;

/// Writes the points of segments, in the order of the files. Gives the most rows that were in memory at once.
pub(crate) fn write_metrics(
    path: &Path,
    attempt: &AttemptRow,
    files: &[&SegmentFile],
) -> Result<usize, LedgerError> {
    let parquet =
        |error: ParquetError| LedgerError::Parquet { doing: "write", path: path.into(), why: error.into() };
    let mut rows_max = 0;
    write_whole(path, |file| {
        let mut writer = ArrowWriter::try_new(file, metric_schema(), Some(parquet_properties()))?;
        for file in files {
            let written = file.each_part(|part| {
                let batch = metric_batch(attempt, part).map_err(|error| parquet(error.into()))?;
                rows_max = rows_max.max(writer.in_progress_rows() + batch.num_rows());
                writer.write(&batch).map_err(parquet)
            });
            written.map_err(|error| ParquetError::External(Box::new(error)))?;
        }
        writer.close().map(|_| ())
    })?;
    Ok(rows_max)
}

/// How Parquet files are written.
#[must_use]
pub fn parquet_properties() -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default();
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build()
}

/// Writes a Parquet file aside, syncs it and renames it into place.
pub fn write_whole(
    path: &Path,
    write: impl FnOnce(File) -> Result<(), ParquetError>,
) -> Result<(), LedgerError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(LedgerError::file("make", folder))?;
    // The last of two writers of the same file wins; both are whole.
    let (temporary, file) = TempFile::beside(path).map_err(LedgerError::file("write", path))?;
    let kept = file.try_clone().map_err(LedgerError::file("write", path))?;
    write(file).map_err(|error| LedgerError::Parquet {
        doing: "write",
        path: path.into(),
        why: error.into(),
    })?;
    kept.sync_all().map_err(LedgerError::file("sync", path))?;
    temporary.persist(path).map_err(LedgerError::file("write", path))
}
