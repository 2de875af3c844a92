//! Parquet files: which rows make a unit of work, and reading them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, NullArray};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::{CompressionCodec, Encoding};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use trackway_core::boundary::contained;

use super::bytes::{ParquetBytes, ParquetPages};
use super::chunk::{Originals, RowNumbers, holds_strings};
use super::coverage::CellTally;
use super::retype::{canonical, dictionary_type, kind_of, stored_form};
use super::sample::unique;
use super::tally::Tally;
use super::text::csv::absent;
use super::{ChunkSink, Place, Stop, Wanted};
use crate::files::remote::ByteSource;
use crate::limits::PAGE_VARIABLE;
use crate::types::{Column, ColumnType};

/// Rows of a unit: small row groups are combined, large ones are cut.
const UNIT_ROWS: u64 = 512 << 10;

/// Rows per chunk at most. More than of text files, because each chunk of a column costs the decoder some set-up.
const CHUNK_ROWS: u64 = 16 << 10;

/// Decoded bytes per chunk, about: tables with many columns or long texts have fewer rows in one.
const CHUNK_BYTES: u64 = 8 << 20;

/// What a value takes at least when it is decoded, with its levels.
const DECODED_VALUE_BYTES: u64 = 8;

/// What the values of one row may take when they are decoded.
const ROW_BYTES_MAX: u64 = 64 << 20;

/// Values that one byte of a nested column may give, if they would take more than [`ROW_BYTES_MAX`] in all. Lists whose
/// lengths and values all repeat come near it with 20,000 values in each.
const VALUES_PER_BYTE_MAX: u64 = 4096;

/// A page has a header of some bytes, and at most 2^31 values.
const ROWS_PER_BYTE_MAX: u64 = 1 << 27;

/// The largest dictionary that is kept as one: with more values than this a key is not cheaper than the string.
const MAX_DICTIONARY_BYTES: i64 = 1 << 20;

/// What one column takes while it is read, at most, with the usual page sizes: a page, a dictionary, and what comes out.
const OPEN_COLUMN_BYTES: u64 = 2 << 20;

const DAMAGED: &str = "the file is damaged: write or copy it again";

/// Runs one step of the decoder, which belongs to others and panics at some damaged files.
fn decoded<T>(step: impl FnOnce() -> T) -> Result<T, String> {
    contained(step).map_err(|panic| format!("decoding it failed: {panic}; {DAMAGED}"))
}

/// An error of the decoder with what to do. One about a limit contains it already.
fn hinted(error: &str) -> String {
    if error.contains(PAGE_VARIABLE) { error.to_owned() } else { format!("{error}; {DAMAGED}") }
}

/// An opened Parquet file.
#[derive(Clone)]
pub(crate) struct ParquetFile {
    bytes: ParquetBytes,
    metadata: ArrowReaderMetadata,
    page_bytes_max: u64,
}

/// Consecutive rows of a file: of several row groups all, or of one a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowRange {
    pub(crate) groups: Vec<usize>,
    pub(crate) skip: u64,
    pub(crate) rows: u64,
    /// Number of the first row in the file, from 1.
    pub(crate) first_row: u64,
    /// About how many of the file's bytes it covers.
    pub(crate) bytes: u64,
}

/// The feature that a build lacks to decompress this.
fn missing_feature(codec: CompressionCodec, has_extra_codecs: bool) -> Option<&'static str> {
    let is_extra =
        matches!(codec, CompressionCodec::BROTLI | CompressionCodec::LZ4 | CompressionCodec::LZ4_RAW);
    (is_extra && !has_extra_codecs).then_some("parquet-extra")
}

impl ParquetFile {
    /// Reads the footer. The error explains what is wrong with it.
    pub(crate) fn open(source: Arc<dyn ByteSource>, page_bytes_max: u64) -> Result<Self, String> {
        let bytes = ParquetBytes(source);
        let metadata =
            decoded(|| ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new()))?.map_err(|error| {
                format!("{error}; an incompletely written file has no footer: write or copy it again")
            })?;
        let file = Self { bytes, metadata, page_bytes_max };
        file.check_codecs()?;
        file.check_row_counts()?;
        file.check_nested_columns()?;
        Ok(file)
    }

    /// Whether this build decompresses every column.
    fn check_codecs(&self) -> Result<(), String> {
        let columns = self.footer().row_groups().iter().flat_map(RowGroupMetaData::columns);
        let refused = columns.map(ColumnChunkMetaData::compression_codec).find_map(|codec| {
            missing_feature(codec, cfg!(feature = "parquet-extra")).map(|feature| (codec, feature))
        });
        match refused {
            None => Ok(()),
            Some((codec, feature)) => Err(format!(
                "it is compressed with {codec}, which this build does not read: build it with feature `{feature}`"
            )),
        }
    }

    /// A row is decoded whole, and of nested columns a row may hold any number of values: neither the rows on average nor a
    /// single one of them may take more than [`ROW_BYTES_MAX`].
    fn check_nested_columns(&self) -> Result<(), String> {
        for (number, group) in self.footer().row_groups().iter().enumerate() {
            let rows = group.num_rows().unsigned_abs().max(1);
            for column in group.columns().iter().filter(|it| it.column_descr().max_rep_level() > 0) {
                let bytes = decoded_bytes(column);
                let stored = column.uncompressed_size().unsigned_abs().max(1);
                let is_packed = column.num_values().unsigned_abs() / stored > VALUES_PER_BYTE_MAX;
                if bytes / rows > ROW_BYTES_MAX || (is_packed && bytes > ROW_BYTES_MAX) {
                    let (name, values) = (column.column_path(), column.num_values());
                    return Err(format!(
                        "row group {} claims {values} values of the nested column `{name}` for {rows} rows in {stored} \
                         bytes; a row may take {} MiB: write long lists as separate rows",
                        number + 1,
                        ROW_BYTES_MAX >> 20
                    ));
                }
            }
        }
        Ok(())
    }

    /// The footer has the number of rows twice; both must agree, and none be negative.
    fn check_row_counts(&self) -> Result<(), String> {
        let total = self.footer().file_metadata().num_rows();
        let groups = self.footer().row_groups();
        let sum = groups.iter().try_fold(0i64, |sum, group| sum.checked_add(group.num_rows()));
        if total < 0 || groups.iter().any(|group| group.num_rows() < 0) || sum != Some(total) {
            return Err(format!("its footer claims {total} rows, but its row groups do not add up to that"));
        }
        let rows_max = u128::from(self.bytes.0.size_bytes()) * u128::from(ROWS_PER_BYTE_MAX);
        if u128::from(total.unsigned_abs()) > rows_max {
            return Err(format!("its footer claims {total} rows, and no file of its size holds so many"));
        }
        Ok(())
    }

    fn footer(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// Rows in the file.
    pub(crate) fn rows(&self) -> u64 {
        self.footer().file_metadata().num_rows().unsigned_abs()
    }

    /// The columns, of which a later one with a name that an earlier one has gets a number, and the names as they are given.
    pub(crate) fn columns(&self) -> (Vec<Column>, Vec<String>) {
        let fields = self.metadata.schema().fields();
        let given: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let column = |(name, field): (String, &Arc<Field>)| Column { name, kind: kind_of(field.data_type()) };
        (unique(&given).into_iter().zip(fields).map(column).collect(), given)
    }

    /// What the types say of the columns' values.
    pub(crate) fn tallies(&self) -> Vec<Tally> {
        let fields = self.metadata.schema().fields().iter();
        fields.map(|field| Tally::certain(stored_form(field.data_type()))).collect()
    }

    /// The type that a column is stored in.
    pub(crate) fn stored_type(&self, column: usize) -> Option<&DataType> {
        self.metadata.schema().fields().get(column).map(|field| field.data_type())
    }

    /// About how many bytes of memory each column takes while it is read.
    pub(crate) fn open_bytes(&self) -> Vec<u64> {
        let mut most = vec![0; self.metadata.schema().fields().len()];
        for group in self.footer().row_groups() {
            let mut sums = vec![0; most.len()];
            for (leaf, column) in group.columns().iter().enumerate() {
                let bytes = column.uncompressed_size().unsigned_abs().min(OPEN_COLUMN_BYTES);
                sums[self.metadata.parquet_schema().get_column_root_idx(leaf)] += bytes;
            }
            most.iter_mut().zip(sums).for_each(|(most, sum)| *most = sum.max(*most));
        }
        most
    }

    /// Cuts the file into units of about [`UNIT_ROWS`].
    pub(crate) fn ranges(&self) -> Vec<RowRange> {
        let mut ranges: Vec<RowRange> = Vec::new();
        let mut first_row = 1;
        for (index, group) in self.footer().row_groups().iter().enumerate() {
            let rows = group.num_rows().unsigned_abs();
            let bytes = group.compressed_size().unsigned_abs();
            match ranges.last_mut() {
                Some(last) if last.skip == 0 && last.rows + rows <= UNIT_ROWS => {
                    last.groups.push(index);
                    last.rows += rows;
                    last.bytes = last.bytes.saturating_add(bytes);
                }
                _ => ranges.extend(cut(index, rows, first_row, bytes)),
            }
            first_row += rows;
        }
        ranges
    }

    /// Reads a range. `columns` are those of the source.
    pub(crate) fn read(
        &self,
        range: &RowRange,
        columns: &[Wanted],
        sink: &mut ChunkSink<'_>,
    ) -> Result<(), Stop> {
        if range.rows == 0 {
            return Ok(());
        }
        let mut wanted: Vec<usize> = columns.iter().filter_map(|column| column.field).collect();
        wanted.sort_unstable();
        let reader = decoded(|| self.reader(range, &wanted)).and_then(|reader| reader);
        let mut reader = reader.map_err(|message| sink.corrupt(message))?;
        let mut done = 0;
        while let Some(batch) = decoded(|| reader.next()).map_err(|message| sink.corrupt(message))? {
            let batch = batch.map_err(|error| {
                let row = range.first_row + done;
                sink.corrupt(format!("rows from {row} on cannot be decoded: {}", hinted(&error.to_string())))
            })?;
            let rows = batch.num_rows();
            let mut faults: Vec<CellTally> = columns.iter().map(|_| sink.no_faults()).collect();
            let mut arrays = Vec::with_capacity(columns.len());
            let mut originals = sink.keeps_originals().then(Originals::default);
            let (file, first_row) = (sink.file, range.first_row + done);
            let place = |row: usize| Place { file, row: first_row + row as u64 };
            for (index, (column, faults)) in columns.iter().zip(&mut faults).enumerate() {
                let at = column.field.and_then(|field| wanted.binary_search(&field).ok());
                if let Some(originals) = &mut originals {
                    originals.take_array(
                        index,
                        column.kind,
                        match at {
                            Some(at) => Arc::clone(batch.column(at)),
                            None => Arc::new(NullArray::new(rows)),
                        },
                    );
                }
                arrays.push(match at {
                    Some(at) => decoded(|| canonical(batch.column(at), column, faults, &place))
                        .and_then(|array| array)
                        .map_err(|message| sink.corrupt(message))?,
                    None => absent(rows, faults),
                });
            }
            sink.give((arrays, originals), rows, RowNumbers::From(first_row), faults)?;
            done += rows as u64;
        }
        if done == range.rows {
            return Ok(());
        }
        let claimed = range.rows;
        Err(sink.corrupt(format!("{done} rows could be read where the footer claims {claimed}")))
    }

    fn reader(
        &self,
        range: &RowRange,
        wanted: &[usize],
    ) -> Result<parquet::arrow::arrow_reader::ParquetRecordBatchReader, String> {
        let options = ArrowReaderOptions::new().with_schema(self.schema_for(&range.groups));
        let metadata = ArrowReaderMetadata::try_new(Arc::clone(self.metadata.metadata()), options)
            .unwrap_or_else(|_| self.metadata.clone());
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), wanted.iter().copied());
        let usize_of = |rows: u64| usize::try_from(rows).map_err(|error| error.to_string());
        let pages = ParquetPages { bytes: self.bytes.clone(), page_bytes_max: self.page_bytes_max };
        ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata)
            .with_projection(mask)
            .with_row_groups(range.groups.clone())
            .with_offset(usize_of(range.skip)?)
            .with_limit(usize_of(range.rows)?)
            .with_batch_size(usize_of(self.rows_per_chunk(range, wanted))?)
            .build()
            .map_err(|error| error.to_string())
    }

    fn rows_per_chunk(&self, range: &RowRange, wanted: &[usize]) -> u64 {
        const NUMBER_BYTES: u64 = 8;
        let groups = range.groups.iter().map(|group| &self.footer().row_groups()[*group]);
        let (bytes, rows) = groups.fold((0u64, 0u64), |(bytes, rows), group| {
            let is_wanted = |leaf: usize| {
                wanted.binary_search(&self.metadata.parquet_schema().get_column_root_idx(leaf)).is_ok()
            };
            let sizes = group.columns().iter().map(decoded_bytes);
            let wanted = sizes.enumerate().filter(|(leaf, _)| is_wanted(*leaf));
            (
                wanted.fold(bytes, |sum, (_, size)| sum.saturating_add(size)),
                rows + group.num_rows().unsigned_abs(),
            )
        });
        let row_bytes = (bytes / rows.max(1)).max(NUMBER_BYTES * wanted.len() as u64).max(1);
        (CHUNK_BYTES / row_bytes).clamp(1, CHUNK_ROWS)
    }

    /// The file's schema with strings as dictionaries if all pages of these row groups hold keys.
    fn schema_for(&self, groups: &[usize]) -> Arc<Schema> {
        let schema = self.metadata.schema();
        let mut leaf = 0;
        let mut fields = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let leaves = leaves_of(field.data_type());
            let is_text = leaves == 1 && kind_of(field.data_type()) == ColumnType::Text;
            let all_keys =
                || groups.iter().all(|group| is_all_keys(&self.footer().row_groups()[*group], leaf));
            fields.push(match is_text {
                true if all_keys() => retyped(field, dictionary_type()),
                true => retyped(field, DataType::Utf8),
                false => Arc::clone(field),
            });
            leaf += leaves;
        }
        Arc::new(Schema::new_with_metadata(Fields::from(fields), schema.metadata().clone()))
    }
}

impl Originals {
    /// Takes over a column as the file has it, which is read as this type.
    fn take_array(&mut self, column: usize, kind: ColumnType, array: ArrayRef) {
        let is_other = !matches!(kind_of(array.data_type()), ColumnType::Text | ColumnType::Null);
        if is_other && holds_strings(kind) {
            let rows = (0..array.len()).filter(|row| array.is_valid(*row));
            rows.for_each(|row| self.marks.add(row, column, b""));
        }
        self.columns.push(array);
    }
}

fn cut(group: usize, rows: u64, first_row: u64, bytes: u64) -> Vec<RowRange> {
    let pieces = rows.div_ceil(UNIT_ROWS).max(1);
    let piece = |index: u64| {
        // A damaged footer may claim numbers that have no room for a product.
        let part =
            |whole: u64, index: u64| (u128::from(whole) * u128::from(index) / u128::from(pieces)) as u64;
        let (from, to) = (part(rows, index), part(rows, index + 1));
        let bytes = part(bytes, index + 1) - part(bytes, index);
        RowRange { groups: vec![group], skip: from, rows: to - from, first_row: first_row + from, bytes }
    };
    (0..pieces).map(piece).collect()
}

fn retyped(field: &Arc<Field>, data_type: DataType) -> Arc<Field> {
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// About how many bytes the values of a column take when they are decoded. A few bytes can encode very many equal
/// values.
fn decoded_bytes(column: &ColumnChunkMetaData) -> u64 {
    let values = column.num_values().unsigned_abs();
    column.uncompressed_size().unsigned_abs().max(values.saturating_mul(DECODED_VALUE_BYTES))
}

/// Whether every data page of a column holds dictionary keys, and the dictionary is small.
fn is_all_keys(group: &RowGroupMetaData, leaf: usize) -> bool {
    let Some(column) = group.columns().get(leaf) else { return false };
    let (Some(from), data) = (column.dictionary_page_offset(), column.data_page_offset()) else {
        return false;
    };
    let only_keys = column.page_encoding_stats_mask().is_some_and(|mask| {
        mask.is_only(Encoding::RLE_DICTIONARY) || mask.is_only(Encoding::PLAIN_DICTIONARY)
    });
    only_keys && data - from <= MAX_DICTIONARY_BYTES
}

/// Parquet columns below a field.
fn leaves_of(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaves_of(field.data_type())).sum(),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => leaves_of(field.data_type()),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a build without the codecs names the feature that adds them, and only for them.
    #[test]
    fn codecs_of_other_builds_are_named_by_their_feature() {
        for codec in [CompressionCodec::BROTLI, CompressionCodec::LZ4, CompressionCodec::LZ4_RAW] {
            assert_eq!(missing_feature(codec, false), Some("parquet-extra"), "{codec}");
            assert_eq!(missing_feature(codec, true), None, "{codec}");
        }
        assert_eq!(missing_feature(CompressionCodec::SNAPPY, false), None);
    }
}
