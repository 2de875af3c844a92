//! The second reading: each row into the table, into the quarantine, or left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use trackway_tables::Column;
use trackway_tables::pass::{Pass, PassObserver, scan};
use trackway_tables::read::{Chunk, RejectedRow, Source};
use trackway_tables::write::{Forms, TableFile, TableFormat, WriteError, fitted};

use super::duplicates::DuplicateRows;
use super::judge::{Judge, Reasons};
use super::protect::{HashKey, Protection};
use super::{Account, CleanError, CleanPlan, Duplicates, ReasonCount, reason_of};

pub(super) fn write(
    mut source: Source,
    judge: &Judge,
    plan: &CleanPlan<'_>,
    found: &DuplicateRows,
    watch: &PassObserver<'_>,
) -> Result<Account, CleanError> {
    let files: Vec<String> = source.files().iter().map(|file| file.path.clone()).collect();
    let columns = source.columns();
    let how = |name: &String| plan.protected.iter().find(|(column, _)| column == name).map(|(_, how)| *how);
    let forms = Forms::of(&source, TableFormat::of(&plan.out)?);
    let writer = Writer {
        forms: &forms,
        protections: columns.iter().map(|column| how(&column.name)).collect(),
        quarantine: TableFile::by_extension(&plan.quarantine, &quarantine_schema())?,
        out: None,
        schema: None,
        names: columns.iter().map(|column| column.name.clone()).collect(),
        files: &files,
        plan,
        found,
        counts: Counts::default(),
        failure: None,
    };
    let writer = Mutex::new(writer);
    let make = |_: &Source| Pending {
        judge,
        forms: &forms,
        waiting: Vec::new(),
        rejected: Vec::new(),
        failed: None,
        writer: &writer,
    };
    let (_, coverage) = scan(&mut source, &make, watch)?;
    let mut writer = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = writer.failure.take() {
        return Err(error);
    }
    let counts = std::mem::take(&mut writer.counts);
    let rows = coverage.rows_read + coverage.rows_rejected;
    let adds_up = rows == counts.written + counts.duplicates_dropped + counts.quarantined
        && counts.unreadable == coverage.rows_rejected;
    if !adds_up {
        return Err(CleanError::Account {
            rows,
            written: counts.written,
            duplicates: counts.duplicates_dropped,
            quarantined: counts.quarantined,
        });
    }
    writer.finish(&source)?;
    let mut reasons: Vec<ReasonCount> =
        counts.reasons.into_iter().map(|(reason, rows)| ReasonCount { reason, rows }).collect();
    reasons.sort_by(|one, other| other.rows.cmp(&one.rows).then_with(|| one.reason.cmp(&other.reason)));
    Ok(Account {
        rows,
        rows_written: counts.written,
        duplicates_dropped: counts.duplicates_dropped,
        duplicates_kept: counts.duplicates_kept,
        rows_quarantined: counts.quarantined,
        rows_unreadable: counts.unreadable,
        reasons,
        rules_not_applied: judge.not_applied.clone(),
        readings: found.readings + 1,
    })
}

/// `file`, `row` (the line of a text file, otherwise the row), `reason`, and the row itself as JSON, or as it is in the file if
/// it cannot be read.
fn quarantine_schema() -> Arc<Schema> {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        text("file"),
        Field::new("row", DataType::UInt64, true),
        text("reason"),
        text("record"),
    ]))
}

/// The rows of a unit, until they are merged, in the order of the rows, and with that written.
struct Pending<'b, 'w> {
    judge: &'b Judge,
    forms: &'b Forms,
    waiting: Vec<CheckedRows>,
    rejected: Vec<RejectedRow>,
    failed: Option<String>,
    writer: &'b Mutex<Writer<'w>>,
}

/// Rows, and those of them that are set aside, each with its place.
struct CheckedRows {
    /// As they were read.
    typed: RecordBatch,
    /// As they are in the file.
    originals: RecordBatch,
    /// As they are written.
    cells: RecordBatch,
    reasons: Reasons,
    places: BTreeMap<usize, (usize, u64)>,
}

impl Pass for Pending<'_, '_> {
    const WANTS_FAULTY: bool = true;

    fn observe(&mut self, chunk: &Chunk) {
        match self.judge.reasons(chunk) {
            Ok(reasons) => {
                let place = |row: &usize| (*row, (chunk.file, chunk.place(*row).row));
                let places = reasons.keys().map(place).collect();
                self.waiting.push(CheckedRows {
                    typed: chunk.batch.clone(),
                    originals: chunk.originals().clone(),
                    cells: self.forms.cells(chunk),
                    reasons,
                    places,
                });
            }
            Err(why) => self.failed = self.failed.take().or(Some(why)),
        }
    }

    fn rejected(&mut self, rows: Vec<RejectedRow>) {
        self.rejected.extend(rows);
    }

    fn merge(&mut self, later: Self) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.failure.is_none() {
            writer.failure = writer.take(later.waiting, later.rejected, later.failed).err();
        }
    }
}

#[derive(Default)]
struct Counts {
    rows_read: u64,
    written: u64,
    duplicates_dropped: u64,
    duplicates_kept: u64,
    quarantined: u64,
    unreadable: u64,
    reasons: BTreeMap<String, u64>,
}

struct Writer<'w> {
    forms: &'w Forms,
    protections: Vec<Option<Protection>>,
    names: Vec<String>,
    files: &'w [String],
    plan: &'w CleanPlan<'w>,
    found: &'w DuplicateRows,
    /// Of all files, from the first batch.
    schema: Option<Arc<Schema>>,
    out: Option<TableFile>,
    quarantine: TableFile,
    counts: Counts,
    failure: Option<CleanError>,
}

/// A row of the quarantine.
struct QuarantineRow {
    file: usize,
    row: u64,
    reason: String,
    record: Option<String>,
}

impl Writer<'_> {
    fn take(
        &mut self,
        judged: Vec<CheckedRows>,
        rejected: Vec<RejectedRow>,
        failed: Option<String>,
    ) -> Result<(), CleanError> {
        if let Some(why) = failed {
            return Err(CleanError::Rule(why));
        }
        judged.iter().try_for_each(|judged| self.rows(judged))?;
        self.unreadable(rejected)
    }

    fn rows(&mut self, judged: &CheckedRows) -> Result<(), CleanError> {
        let rows = judged.cells.num_rows();
        let first = self.counts.rows_read;
        self.counts.rows_read += rows as u64;
        let mut goes_out = vec![true; rows];
        for (row, goes_out) in goes_out.iter_mut().enumerate() {
            if judged.reasons.contains_key(&row) {
                *goes_out = false;
            } else if self.found.is_duplicate(first + row as u64) {
                match self.plan.duplicates {
                    Duplicates::Keep => self.counts.duplicates_kept += 1,
                    Duplicates::Drop => {
                        self.counts.duplicates_dropped += 1;
                        *goes_out = false;
                    }
                }
            }
        }
        let content =
            |error: ArrowError| WriteError::Content { path: self.plan.out.clone(), source: error.into() };
        let schema = Arc::clone(self.schema.get_or_insert_with(|| self.forms.schema(&judged.cells)));
        let cells = fitted(&judged.cells, &schema).map_err(content)?;
        let cells = self.protected(&cells, judged).map_err(content)?;
        let written = filter_record_batch(&cells, &BooleanArray::from(goes_out)).map_err(content)?;
        self.counts.written += written.num_rows() as u64;
        let out = match &mut self.out {
            Some(out) => out,
            none => none.insert(TableFile::by_extension(&self.plan.out, &written.schema())?),
        };
        out.write(&written)?;
        let mut set_aside = Vec::with_capacity(judged.reasons.len());
        for (row, reasons) in &judged.reasons {
            let (file, line) = judged.places[row];
            let record = self.record(&judged.originals, *row).map_err(content)?;
            let mut rules = reasons.clone();
            rules.dedup();
            for rule in &rules {
                *self.counts.reasons.entry(rule.clone()).or_default() += 1;
            }
            set_aside.push(QuarantineRow { file, row: line, reason: rules.join("; "), record: Some(record) });
        }
        self.counts.quarantined += set_aside.len() as u64;
        self.set_aside(&set_aside)
    }

    fn unreadable(&mut self, rejected: Vec<RejectedRow>) -> Result<(), CleanError> {
        // A row that cannot be read has no columns, so that what is personal in it is not known.
        let is_protected = !self.plan.protected.is_empty();
        let row = |rejected: RejectedRow| QuarantineRow {
            file: rejected.place.file,
            row: rejected.place.row,
            reason: format!("{}: {}", reason_of(rejected.kind), rejected.detail),
            record: (!is_protected).then_some(rejected.text),
        };
        for row in &rejected {
            *self.counts.reasons.entry(reason_of(row.kind).to_owned()).or_default() += 1;
        }
        self.counts.unreadable += rejected.len() as u64;
        self.counts.quarantined += rejected.len() as u64;
        let rows: Vec<QuarantineRow> = rejected.into_iter().map(row).collect();
        self.set_aside(&rows)
    }

    fn set_aside(&mut self, rows: &[QuarantineRow]) -> Result<(), CleanError> {
        if rows.is_empty() {
            return Ok(());
        }
        let texts = |text: fn(&QuarantineRow) -> Option<&str>| -> ArrayRef {
            Arc::new(rows.iter().map(text).collect::<StringArray>())
        };
        let files = rows.iter().map(|row| self.files.get(row.file).map(String::as_str));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(files.collect::<StringArray>()),
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.row))),
            texts(|row| Some(&row.reason)),
            texts(|row| row.record.as_deref()),
        ];
        let batch =
            RecordBatch::try_new(quarantine_schema(), columns).expect("columns according to the schema");
        Ok(self.quarantine.write(&batch)?)
    }

    /// The columns that are written, those with personal data as they may be.
    fn protected(&self, cells: &RecordBatch, judged: &CheckedRows) -> Result<RecordBatch, ArrowError> {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        let schema = cells.schema();
        let each = cells.columns().iter().zip(schema.fields()).zip(&self.protections);
        for (index, ((column, field), how)) in each.enumerate() {
            match how {
                None => {
                    fields.push(Arc::clone(field));
                    columns.push(Arc::clone(column));
                }
                Some(Protection::Drop) => {}
                Some(how) => {
                    fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
                    let (original, typed) = (judged.originals.column(index), judged.typed.column(index));
                    columns.push(how.column(original, typed, self.plan.key.as_ref())?);
                }
            }
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }

    /// A row as a JSON object of strings, as it may be written.
    fn record(&self, originals: &RecordBatch, row: usize) -> Result<String, ArrowError> {
        let options = FormatOptions::new();
        let mut record = serde_json::Map::new();
        let key: Option<&HashKey> = self.plan.key.as_ref();
        for (index, (column, how)) in originals.columns().iter().zip(&self.protections).enumerate() {
            let is_null = column.logical_nulls().is_some_and(|nulls| nulls.is_null(row));
            let text = match is_null {
                true => None,
                false => Some(ArrayFormatter::try_new(column, &options)?.value(row).to_string()),
            };
            let shown = match how {
                Some(Protection::Drop) => continue,
                Some(how) => text.and_then(|text| how.text(&text, key)),
                None => text,
            };
            record.insert(self.names[index].clone(), shown.into());
        }
        Ok(serde_json::Value::Object(record).to_string())
    }

    fn finish(mut self, source: &Source) -> Result<(), CleanError> {
        let out = match self.out.take() {
            Some(out) => out,
            None => {
                // No row was read: a table of the same columns without rows.
                let kept = self.protections.iter().zip(source.columns());
                let kept = kept.filter(|(how, _)| **how != Some(Protection::Drop));
                let field = |(how, column): (&Option<Protection>, &Column)| {
                    let stored = source.stored_type(&column.name).filter(|_| how.is_none());
                    Field::new(&column.name, stored.unwrap_or(DataType::Utf8), true)
                };
                let fields: Vec<Field> = kept.map(field).collect();
                TableFile::by_extension(&self.plan.out, &Arc::new(Schema::new(fields)))?
            }
        };
        // Where the table is, its quarantine is too.
        self.quarantine.finish()?;
        out.finish()?;
        Ok(())
    }
}
