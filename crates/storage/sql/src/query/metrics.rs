//! `metrics`: every value that was ever recorded, from closed Parquet files and from segments still being written.
//! `effective_metrics`: without the steps that a later attempt trained again, or that a writer of event files made
//! void. `telemetry`: values of the machine.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, Scalar,
    StringArray, TimestampMicrosecondArray,
};
use arrow::compute::kernels::cmp;
use arrow::compute::{and, filter_record_batch};
use arrow::datatypes::{Int64Type, SchemaRef};
use arrow::error::ArrowError;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use trackway_core::boundary::contained;
use trackway_core::{LaunchKind, RunId};
use trackway_formats::record::OriginOfEach;
use trackway_ledger::scan::{Column, METRIC_COLUMNS, Record as _, TELEMETRY_COLUMNS, Value};
use trackway_ledger::{AttemptRow, LAUNCHES, Ledger, LedgerError};
use trackway_records::{OpenRecord, Points, schema_of};

use super::arrow_rows::each_batch;
use super::origins;
use super::restarts::{self, Restart};
use super::tables::{projected, pushed_down, scanned, usable};
use crate::filter::{Filter, FilterOperator, Test};
use crate::limits::is_cancelled;

/// Every value recorded.
pub(super) const METRICS: &str = "metrics";
/// Every value that counts.
pub(super) const EFFECTIVE_METRICS: &str = "effective_metrics";
/// What the machine did.
pub(super) const TELEMETRY: &str = "telemetry";

const STEP_COLUMN: usize = 8;

/// Where each column of `telemetry` is in the rows of a record.
const TELEMETRY_FROM: [usize; 9] = [0, 1, 2, 3, 4, 7, STEP_COLUMN, 9, 10];

/// Which rows of the records a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// `metrics`.
    All,
    /// `effective_metrics`.
    Effective,
    Telemetry,
}

impl Rows {
    fn columns(self) -> &'static [Column] {
        if self == Self::Telemetry { TELEMETRY_COLUMNS } else { METRIC_COLUMNS }
    }

    fn points(self) -> Points {
        if self == Self::Telemetry { Points::Telemetry } else { Points::Metrics }
    }

    /// Where a column of this table is in the rows of a record.
    fn place(self, column: usize) -> usize {
        if self == Self::Telemetry { TELEMETRY_FROM[column] } else { column }
    }
}

/// Takes rows; an error ends the reading.
pub type TakeBatch<'t> = dyn FnMut(RecordBatch) -> Result<(), ArrowError> + 't;

/// Columns of `effective_metrics` that only say how a value was recorded.
const NOT_VISITED: [&str; 3] = ["kind", "segment", "sequence"];

/// Calls `take` with the rows of `effective_metrics` of a run, batch by batch, attempt after attempt in the order of recording: for
/// curves that are too long for an [`crate::Answer`]. Every batch has the same columns: those of the table without `kind`,
/// `segment` and `sequence`.
///
/// # Errors
/// [`LedgerError`] when a record cannot be read, or `take` ended it.
pub fn visit_metrics(
    ledger: &Ledger,
    home: &Path,
    run_id: RunId,
    take: &mut TakeBatch<'_>,
) -> Result<(), LedgerError> {
    let table = MetricsTable::new(ledger.clone(), home, Rows::Effective);
    let of_run = Filter { column: "run_id", test: Test::In(vec![run_id.to_string()]) };
    let visited = |index: &usize| !NOT_VISITED.contains(&METRIC_COLUMNS[*index].name);
    let projection: Vec<usize> = (0..METRIC_COLUMNS.len()).filter(visited).collect();
    table.visit(&[of_run], Some(&projection), take)
}

/// The columns of a table that a query needs, in the table's order.
struct Needed {
    rows: Rows,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl Needed {
    /// The requested columns, those that the filters test, and those that identify void points.
    fn of(rows: Rows, projection: Option<&Vec<usize>>, filters: &[Filter<'_>], void: &Void) -> Self {
        let all = rows.columns();
        let asked = |index: &usize| {
            projection.is_none_or(|projection| projection.contains(index))
                || filters.iter().any(|filter| filter.column == all[*index].name)
                || (rows == Rows::Effective
                    && (*index == STEP_COLUMN || void.columns().any(|name| name == all[*index].name)))
        };
        let columns: Vec<usize> = (0..all.len()).filter(asked).collect();
        let fields: Vec<Column> = columns.iter().map(|&index| all[index]).collect();
        Self { rows, schema: schema_of(&fields), columns }
    }

    /// Their names in a record, in its order.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(|&column| METRIC_COLUMNS[self.rows.place(column)].name)
    }

    /// All columns of a record cut down to these.
    fn cut(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let places: Vec<usize> = self.columns.iter().map(|&column| self.rows.place(column)).collect();
        self.named(&batch.project(&places)?)
    }

    /// These columns of a record under the table's names.
    fn named(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), batch.columns().to_vec(), &options)
    }

    /// The requested columns of these.
    fn asked(&self, batch: &RecordBatch, projection: Option<&Vec<usize>>) -> Result<RecordBatch, ArrowError> {
        let Some(projection) = projection else { return Ok(batch.clone()) };
        let place = |index: &usize| self.columns.iter().position(|column| column == index);
        batch.project(&projection.iter().filter_map(place).collect::<Vec<usize>>())
    }
}

/// The table `metrics`, `effective_metrics` or `telemetry`.
#[derive(Debug)]
pub(super) struct MetricsTable {
    ledger: Ledger,
    home: PathBuf,
    rows: Rows,
    cancelled: Option<Arc<AtomicBool>>,
}

/// An attempt whose record is to be read.
struct Source {
    attempt: AttemptRow,
    /// Steps beyond this one were trained again by a later attempt; -1: all of them.
    last_effective_step: Option<i64>,
}

impl MetricsTable {
    pub(super) fn new(ledger: Ledger, home: &Path, rows: Rows) -> Self {
        Self { ledger, home: home.into(), rows, cancelled: None }
    }

    /// The same, whose reading ends when the flag is true.
    pub(super) fn until(self, cancelled: Option<Arc<AtomicBool>>) -> Self {
        Self { cancelled, ..self }
    }

    /// The attempts whose records may answer the query, oldest first.
    fn sources(&self, filters: &[Filter<'_>]) -> Result<Vec<Source>, LedgerError> {
        let runs = self.runs_asked_for(filters)?;
        let mut attempts: Vec<AttemptRow> = Vec::new();
        let mut backend = self.ledger.backend();
        for table in [AttemptRow::TABLE, LAUNCHES] {
            match &runs {
                None => attempts.extend(backend.select_from(table, "ORDER BY attempt_id", &[])?),
                Some(runs) => {
                    for run in runs {
                        let tail = "WHERE run_id = ? ORDER BY attempt_id";
                        attempts.extend(backend.select_from(table, tail, &[Value::Text(run.clone())])?);
                    }
                }
            }
        }
        let cut = if self.rows == Rows::Effective { cut_offs(&attempts) } else { HashMap::new() };
        let wanted =
            |attempt: &AttemptRow| texts_allow(filters, "attempt_id", &attempt.attempt_id.to_string());
        let source = |attempt: AttemptRow| Source {
            last_effective_step: cut.get(&attempt.attempt_id).copied(),
            attempt,
        };
        Ok(attempts.into_iter().filter(wanted).map(source).collect())
    }

    /// The runs that the filters name, directly or by one of their attempts; `None` when any run may match.
    fn runs_asked_for(&self, filters: &[Filter<'_>]) -> Result<Option<Vec<String>>, LedgerError> {
        if let Some(runs) = texts_of(filters, "run_id") {
            return Ok(Some(runs));
        }
        let Some(attempts) = texts_of(filters, "attempt_id") else { return Ok(None) };
        let mut runs = Vec::new();
        for attempt_id in attempts.iter().filter_map(|id| id.parse().ok()) {
            let attempt = self.ledger.attempt(attempt_id)?;
            runs.extend(attempt.map(|attempt| attempt.run_id.to_string()));
        }
        runs.sort_unstable();
        runs.dedup();
        Ok(Some(runs))
    }

    fn read(
        &self,
        filters: &[Filter<'_>],
        projection: Option<&Vec<usize>>,
    ) -> Result<Vec<RecordBatch>, LedgerError> {
        let mut batches = Vec::new();
        self.visit(filters, projection, &mut |batch| {
            batches.push(batch);
            Ok(())
        })?;
        Ok(batches)
    }

    /// Calls `take` with the rows of each batch of the records.
    fn visit(
        &self,
        filters: &[Filter<'_>],
        projection: Option<&Vec<usize>>,
        take: &mut TakeBatch<'_>,
    ) -> Result<(), LedgerError> {
        let sources = self.sources(filters)?;
        let filters = &left_to_rows(filters);
        for source in sources {
            let record = self.record_of(&source)?;
            let void = Void {
                after_step: source.last_effective_step,
                restarts: self.restarts(&source, &record)?,
                origins: self.origins(&record)?,
            };
            let needed = Needed::of(self.rows, projection, filters, &void);
            let mut admit = |batch: RecordBatch| -> Result<(), ArrowError> {
                if is_cancelled(self.cancelled.as_deref()) {
                    return Err(ArrowError::ExternalError("interrupted".into()));
                }
                let kept = keep(&batch, filters, &void)?;
                match kept.num_rows() {
                    0 => Ok(()),
                    _ => take(needed.asked(&kept, projection)?),
                }
            };
            match record {
                Record::Closed(path, file) => read_closed(file, &needed, &mut admit)
                    .map_err(|why| LedgerError::Parquet { doing: "read", path, why: why.into() })?,
                Record::Live(record) => {
                    record.each_batch(self.rows.points(), |batch| admit(needed.cut(&batch)?))?;
                }
            }
        }
        Ok(())
    }

    fn record_of(&self, source: &Source) -> Result<Record, LedgerError> {
        let path = self.rows.points().path(&self.home, source.attempt.attempt_id);
        match File::open(&path) {
            Ok(file) => Ok(Record::Closed(path, file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Record::Live(Box::new(OpenRecord::of(&self.home, &source.attempt)?)))
            }
            Err(source) => Err(LedgerError::File { doing: "read", path, source }),
        }
    }

    /// Of each metric the writer that counts, where there are several.
    fn origins(&self, record: &Record) -> Result<Option<OriginOfEach>, LedgerError> {
        match record {
            _ if self.rows != Rows::Effective => Ok(None),
            Record::Closed(path, file) => {
                let failed =
                    |why: String| LedgerError::Parquet { doing: "read", path: path.clone(), why: why.into() };
                let file = file.try_clone().map_err(|error| failed(error.to_string()))?;
                contained(|| origins::of_closed(file))
                    .map_err(|panic| failed(format!("decoding it failed: {panic}")))?
                    .map_err(failed)
            }
            Record::Live(record) => Ok((!record.origins.is_empty()).then(|| record.origins.clone())),
        }
    }

    fn restarts(&self, source: &Source, record: &Record) -> Result<Vec<Restart>, LedgerError> {
        match record {
            _ if self.rows != Rows::Effective => Ok(Vec::new()),
            Record::Closed(..) => Restart::of_attempt(&self.ledger, source.attempt.attempt_id),
            Record::Live(record) => Ok(Restart::of_events(&record.events)),
        }
    }
}

/// The record of an attempt.
enum Record {
    /// One Parquet file.
    Closed(PathBuf, File),
    /// Segments, some of them still written.
    Live(Box<OpenRecord>),
}

/// Which points of an attempt do not count.
struct Void {
    /// Those of later steps: another attempt trained them again.
    after_step: Option<i64>,
    /// Those that a writer took back.
    restarts: Vec<Restart>,
    /// Those of a writer that another one takes precedence over; none where there is one writer.
    origins: Option<OriginOfEach>,
}

impl Void {
    /// The columns that decide which points do not count, besides the step.
    fn columns(&self) -> impl Iterator<Item = &'static str> {
        let restarted = restarts::COLUMNS.iter().filter(|_| !self.restarts.is_empty());
        restarted.chain(origins::COLUMNS.iter().filter(|_| self.origins.is_some())).copied()
    }
}

#[async_trait]
impl TableProvider for MetricsTable {
    fn schema(&self) -> SchemaRef {
        schema_of(self.rows.columns())
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(pushed_down(filters, self.rows.columns()))
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let filters = usable(filters, self.rows.columns());
        let schema = schema_of(&projected(self.rows.columns(), projection));
        scanned("records", schema, || self.read(&filters, projection))
    }
}

/// For every attempt that a later one of the same run, kind and rung made partly void: the last step that counts.
/// A later attempt that never started voids nothing.
fn cut_offs(attempts: &[AttemptRow]) -> HashMap<trackway_core::AttemptId, i64> {
    type Line<'a> = (RunId, LaunchKind, &'a str);
    let mut lines: HashMap<Line<'_>, Vec<&AttemptRow>> = HashMap::new();
    for attempt in attempts {
        lines.entry((attempt.run_id, attempt.kind, &attempt.rung)).or_default().push(attempt);
    }
    let mut cut_offs = HashMap::new();
    for line in lines.values_mut() {
        line.sort_by_key(|attempt| std::cmp::Reverse(attempt.attempt_number));
        let mut lowest: Option<i64> = None;
        for attempt in line {
            if let Some(step) = lowest {
                cut_offs.insert(attempt.attempt_id, step);
            }
            if attempt.started_at.is_some() {
                // One that began again trained every step again, and evaluated before the first one again.
                let resumed = attempt
                    .resumed_from_step
                    .map_or(i64::MIN, |step| i64::try_from(step).unwrap_or(i64::MAX));
                lowest = Some(lowest.map_or(resumed, |lowest| lowest.min(resumed)));
            }
        }
    }
    cut_offs
}

/// The strings that the filters admit for a column; `None` when they admit any.
fn texts_of(filters: &[Filter<'_>], column: &str) -> Option<Vec<String>> {
    filters.iter().filter(|filter| filter.column == column).find_map(|filter| filter.test.texts())
}

/// The filters without those that the choice of the records has answered: a column that is the same in every row of one
/// need not be read for them.
fn left_to_rows<'c>(filters: &[Filter<'c>]) -> Vec<Filter<'c>> {
    let answered = |index: usize, filter: &Filter<'_>| {
        let of_same = |other: &&Filter<'_>| other.column == filter.column && other.test.texts().is_some();
        ["run_id", "attempt_id"].contains(&filter.column)
            && filter.test.texts().is_some()
            && !filters[..index].iter().any(|other| of_same(&other))
    };
    let left = filters.iter().enumerate().filter(|(index, filter)| !answered(*index, filter));
    left.map(|(_, filter)| filter.clone()).collect()
}

fn texts_allow(filters: &[Filter<'_>], column: &str, text: &str) -> bool {
    texts_of(filters, column).is_none_or(|texts| texts.iter().any(|allowed| allowed == text))
}

fn read_closed(
    file: File,
    needed: &Needed,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), ArrowError>,
) -> Result<(), String> {
    // What is decoded is checked as it is taken, so both are within the boundary.
    contained(|| decode_closed(file, needed, take)).map_err(|panic| format!("decoding it failed: {panic}"))?
}

fn decode_closed(
    file: File,
    needed: &Needed,
    take: &mut dyn FnMut(RecordBatch) -> Result<(), ArrowError>,
) -> Result<(), String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    each_batch(builder, needed.names(), |batch| needed.named(&batch).and_then(&mut *take))
}

/// The rows that the filters and the cut-off admit.
fn keep(batch: &RecordBatch, filters: &[Filter<'_>], void: &Void) -> Result<RecordBatch, ArrowError> {
    let mut masks = Vec::new();
    for filter in filters {
        masks.extend(admitted(batch, filter)?);
    }
    if let (Some(last_step), Some(steps)) = (void.after_step, batch.column_by_name("step")) {
        let steps = steps.as_primitive::<Int64Type>();
        masks.push(cmp::lt_eq(steps, &Int64Array::new_scalar(last_step))?);
    }
    masks.extend(restarts::counting(batch, &void.restarts));
    masks.extend(void.origins.as_ref().and_then(|origins| origins::counting(batch, origins)));
    let mask = masks.into_iter().map(Ok).reduce(|left, right| and(&left?, &right?)).transpose()?;
    mask.map_or_else(|| Ok(batch.clone()), |mask| filter_record_batch(batch, &mask))
}

fn admitted(batch: &RecordBatch, filter: &Filter<'_>) -> Result<Option<BooleanArray>, ArrowError> {
    let (Some(column), Test::Compare(comparison, value)) =
        (batch.column_by_name(filter.column), &filter.test)
    else {
        return Ok(None);
    };
    let Some(value) = scalar(value) else { return Ok(None) };
    let compare = match comparison {
        FilterOperator::Equal => cmp::eq,
        FilterOperator::Less => cmp::lt,
        FilterOperator::LessOrEqual => cmp::lt_eq,
        FilterOperator::Greater => cmp::gt,
        FilterOperator::GreaterOrEqual => cmp::gt_eq,
    };
    compare(column, &value).map(Some)
}

fn scalar(value: &Value) -> Option<Scalar<ArrayRef>> {
    let array: ArrayRef = match value {
        Value::Text(text) => Arc::new(StringArray::from_iter_values([text])),
        Value::Integer(number) => Arc::new(Int64Array::from_iter_values([*number])),
        Value::Real(number) => Arc::new(Float64Array::from_iter_values([*number])),
        Value::Timestamp(moment) => {
            Arc::new(TimestampMicrosecondArray::from_iter_values([moment.as_micros()]).with_timezone("UTC"))
        }
        Value::Null | Value::Boolean(_) => return None,
    };
    Some(Scalar::new(array))
}
