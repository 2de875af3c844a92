//! Splits as files: where each row goes, and the parts themselves.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, RecordBatch, StringArray, UInt8Array, UInt32Array,
    UInt64Array,
};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, Source};
use trackway_tables::write::{Forms, TableFile, TableFormat, WriteError, fitted};

use super::assign::Assignment;
use super::parts::Part;
use super::rows::SplitRows;

/// Rows of an assignment written at a time.
const ROWS_AT_A_TIME: usize = 64 << 10;

/// Writes where each row goes: `file` (its path), `row` (from 1: the line of a text file, else the row), `part`, and
/// `fold` and `rung` if there are any. Rows are in the order of the data.
///
/// # Errors
/// [`WriteError`]. The file is there whole or not at all.
pub fn write_assignment(
    path: &Path,
    files: &[String],
    rows: &SplitRows,
    assignment: &Assignment,
    part_names: &[String],
) -> Result<PathBuf, WriteError> {
    let text = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
    let mut fields = vec![
        Field::new("file", text.clone(), false),
        Field::new("row", DataType::UInt64, false),
        Field::new("part", text, true),
    ];
    if !assignment.folds.is_empty() {
        fields.push(Field::new("fold", DataType::UInt8, true));
    }
    if !assignment.rungs.is_empty() {
        fields.push(Field::new("rung", DataType::Float64, true));
    }
    let schema = Arc::new(Schema::new(fields));
    let mut output = TableFile::create(path, TableFormat::Parquet, &schema)?;
    let names = |texts: &[String]| Arc::new(StringArray::from_iter_values(texts)) as ArrayRef;
    let (files, parts) = (names(files), names(part_names));
    let words = |keys: UInt32Array, texts: &ArrayRef| -> ArrayRef {
        let words = DictionaryArray::<UInt32Type>::try_new(keys, Arc::clone(texts));
        Arc::new(words.expect("keys are indexes of the strings"))
    };
    for from in (0..rows.places.len()).step_by(ROWS_AT_A_TIME) {
        let range = from..(from + ROWS_AT_A_TIME).min(rows.places.len());
        let places = &rows.places[range.clone()];
        let mut columns = vec![
            words(UInt32Array::from_iter_values(places.iter().map(|place| place.file as u32)), &files),
            Arc::new(UInt64Array::from_iter_values(places.iter().map(|place| place.row))) as ArrayRef,
            words(assignment.parts[range.clone()].iter().map(|part| part.map(u32::from)).collect(), &parts),
        ];
        if !assignment.folds.is_empty() {
            columns.push(Arc::new(UInt8Array::from_iter(assignment.folds[range.clone()].iter().copied())));
        }
        if !assignment.rungs.is_empty() {
            columns.push(Arc::new(Float64Array::from_iter(assignment.rungs[range].iter().copied())));
        }
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns according to the schema");
        output.write(&batch)?;
    }
    output.finish()
}

/// Reads the data once more and writes each part into a separate Parquet file, `NAME.parquet`, rows in the order of the
/// data. A cell that does not fit its column's type is null there; rejected rows are in no part.
///
/// # Errors
/// [`WriteError`]. Every file is there whole or not at all.
pub fn write_parts(
    folder: &Path,
    source: &Source,
    parts: &[Option<Part>],
    part_names: &[String],
    watch: &PassObserver<'_>,
) -> Result<Vec<PathBuf>, WriteError> {
    let paths: Vec<PathBuf> = part_names.iter().map(|name| folder.join(format!("{name}.parquet"))).collect();
    write_forms(TableFormat::Parquet, Forms::typed, &paths, source, parts, watch)
}

/// The same into files of any format, each value as it is in the files of the source where the format can hold that: the strings of a
/// text file, the types of a Parquet file. A part has the path at its place.
///
/// # Errors
/// As [`write_parts`].
pub fn write_parts_as(
    format: TableFormat,
    paths: &[PathBuf],
    source: &Source,
    parts: &[Option<Part>],
    watch: &PassObserver<'_>,
) -> Result<Vec<PathBuf>, WriteError> {
    let source = source.clone().with_originals();
    write_forms(format, |source| Forms::of(source, format), paths, &source, parts, watch)
}

fn write_forms(
    format: TableFormat,
    forms: impl FnOnce(&Source) -> Forms,
    paths: &[PathBuf],
    source: &Source,
    parts: &[Option<Part>],
    watch: &PassObserver<'_>,
) -> Result<Vec<PathBuf>, WriteError> {
    // The types are known: with a guess, a wider value would begin the scan, and the files, again.
    let mut source = source.clone().with_columns(source.columns().to_vec())?;
    let forms = forms(&source);
    let writer =
        PartWriter { outputs: BTreeMap::new(), schema: None, parts, paths, format, row: 0, failure: None };
    let writer = Mutex::new(writer);
    let make = |_: &Source| Batches { waiting: Vec::new(), forms: &forms, writer: &writer };
    scan(&mut source, &make, watch)?;
    let writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
    match writer.failure {
        Some(error) => Err(error),
        None => writer.outputs.into_values().map(TableFile::finish).collect(),
    }
}

/// The batches of a unit, until they are merged, in the order of the rows, and with that written.
struct Batches<'b, 'w> {
    waiting: Vec<RecordBatch>,
    forms: &'b Forms,
    writer: &'b Mutex<PartWriter<'w>>,
}

impl Pass for Batches<'_, '_> {
    fn observe(&mut self, chunk: &Chunk) {
        self.waiting.push(self.forms.cells(chunk));
    }

    fn merge(&mut self, later: Self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        later.waiting.iter().for_each(|batch| writer.write(batch, self.forms));
    }
}

struct PartWriter<'w> {
    outputs: BTreeMap<Part, TableFile>,
    /// Of all files, from the first batch.
    schema: Option<Arc<Schema>>,
    parts: &'w [Option<Part>],
    paths: &'w [PathBuf],
    format: TableFormat,
    row: usize,
    failure: Option<WriteError>,
}

impl PartWriter<'_> {
    fn write(&mut self, batch: &RecordBatch, forms: &Forms) {
        if self.failure.is_none() {
            self.failure = self.try_write(batch, forms).err();
        }
    }

    fn try_write(&mut self, batch: &RecordBatch, forms: &Forms) -> Result<(), WriteError> {
        let schema = Arc::clone(self.schema.get_or_insert_with(|| forms.schema(batch)));
        let parts = &self.parts[self.row..self.row + batch.num_rows()];
        self.row += batch.num_rows();
        for (part, path) in (0..).zip(self.paths) {
            let mask: BooleanArray = parts.iter().map(|it| Some(*it == Some(part))).collect();
            if mask.true_count() == 0 {
                continue;
            }
            let wrong = |error: arrow::error::ArrowError| WriteError::Content {
                path: path.clone(),
                source: error.into(),
            };
            let rows = filter_record_batch(batch, &mask).map_err(wrong)?;
            let output = match self.outputs.entry(part) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(TableFile::create(path, self.format, &schema)?),
            };
            output.write(&fitted(&rows, &schema).map_err(wrong)?)?;
        }
        Ok(())
    }
}
