//! Of a metric that several writers recorded, `effective_metrics` has the points of one: decided once for each metric of
//! an attempt.

use std::fs::File;

use arrow::array::{Array as _, AsArray, BooleanArray, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::statistics::Statistics;
use trackway_formats::record::{Origin, OriginOfEach};

use super::arrow_rows::each_batch;

/// The columns that decide which points count.
pub(super) const COLUMNS: [&str; 2] = ["origin", "name"];

/// Of each metric in a closed record the writer that counts; `None` where there is one writer.
pub(super) fn of_closed(file: File) -> Result<Option<OriginOfEach>, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    if has_one_origin(builder.metadata()) {
        return Ok(None);
    }
    let mut origins = OriginOfEach::default();
    each_batch(builder, COLUMNS, |batch| {
        take(&batch, &mut origins);
        Ok(())
    })?;
    Ok(Some(origins))
}

/// Whether the statistics of the file show that one writer recorded all of it.
fn has_one_origin(metadata: &ParquetMetaData) -> bool {
    let mut known: Option<Vec<u8>> = None;
    metadata.row_groups().iter().all(|group| {
        let column = group.columns().iter().find(|column| column.column_path().string() == COLUMNS[0]);
        let Some(Statistics::ByteArray(values)) = column.and_then(|column| column.statistics()) else {
            return false;
        };
        let (Some(least), Some(greatest)) = (values.min_opt(), values.max_opt()) else { return false };
        let first = known.get_or_insert_with(|| least.data().to_vec());
        least == greatest && least.data() == first.as_slice()
    })
}

fn take(batch: &RecordBatch, origins: &mut OriginOfEach) {
    let [Some(writers), Some(names)] = COLUMNS.map(|column| batch.column_by_name(column)) else { return };
    let (Some(writers), Some(names)) = (writers.as_string_opt::<i32>(), names.as_string_opt::<i32>()) else {
        return;
    };
    for row in 0..names.len() {
        origins.take(names.value(row), Origin::of_word(writers.value(row)));
    }
}

/// Which of these rows count; `None` when the columns are not there.
pub(super) fn counting(batch: &RecordBatch, origins: &OriginOfEach) -> Option<BooleanArray> {
    let [writers, names] = COLUMNS.map(|column| batch.column_by_name(column));
    let (writers, names) = (writers?.as_string_opt::<i32>()?, names?.as_string_opt::<i32>()?);
    let counts = |row: usize| origins.counts(names.value(row), Origin::of_word(writers.value(row)));
    Some((0..names.len()).map(|row| Some(counts(row))).collect())
}
