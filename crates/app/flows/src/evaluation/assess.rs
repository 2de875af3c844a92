//! A table of predictions, evaluated: read, cut into the requested slices, and compared with a baseline.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, UInt32Type};
use trackway_core::RowCoverage;
use trackway_data::model::{Cells, Frame, FrameColumn, MISSING_CODE};
use trackway_engine::error::{AppError, ErrorKind};
pub use trackway_evaluate::metrics::is_share as is_share_metric;
pub use trackway_evaluate::residuals::{Depends, ResidualBin, ResidualCurve, ResidualOf, Residuals};
use trackway_evaluate::search::SearchObserver;
use trackway_evaluate::{AssessError, Baseline, Number, SliceRows, assess_watched, complete_columns};
pub use trackway_evaluate::{
    Assessment, Average, CalibrationBin, ClassMetrics, Columns, Compared, Comparison, ComparisonVerdict,
    Confusion, Costs, Curves, Estimate, Fairness, FairnessGroup, McNemar, Method, Metrics, Pairing, Point,
    Slice, SliceCompared, SliceLimits, Spec, Task, TaskCoverage,
};
use trackway_sql::{Answer, RowPredicate};
use trackway_tables::ColumnType;

use crate::data::table::{ReadObserver, TableRequest, data_error};
use crate::evaluation::slices::SlicesObserver;

/// A named part of the rows.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPredicate {
    pub name: String,
    /// A condition on the table's columns in SQL.
    pub sql: String,
    /// The metric by which it is compared; that of all slices if absent.
    pub metric: Option<String>,
    /// When it is inconclusive, where that differs from all slices.
    pub limits: Option<SliceLimits>,
}

/// The request to evaluate a table of predictions.
#[derive(Debug, Clone)]
pub struct AssessRequest {
    /// The predictions.
    pub table: TableRequest,
    /// All but the slices.
    pub spec: Spec,
    pub slices: Vec<NamedPredicate>,
    /// Predictions of another model for the same rows.
    pub baseline: Option<TableRequest>,
    /// Pairs rows by their order, and not by the column of ids.
    pub by_order: bool,
}

/// Evaluates a table. Paths start at `base`.
///
/// # Errors
/// [`ErrorKind::NotFound`] for a path that names nothing; [`ErrorKind::Usage`] for data that is not a table, columns
/// that are not there, a predicate that cannot be evaluated, sides without a row in common; [`ErrorKind::Cancelled`].
pub fn assess(
    base: &Path,
    request: &AssessRequest,
    observer: &SlicesObserver<'_>,
) -> Result<Assessment, AppError> {
    let SlicesObserver { reading, searching } = observer;
    let watch = SearchObserver { progress: *searching, cancelled: reading.cancelled };
    let assessment = assess_with(base, request, reading, &watch)?;
    match reading.cancelled.load(Ordering::Relaxed) {
        true => Err(AppError::new(ErrorKind::Cancelled, "interrupted")),
        false => Ok(assessment),
    }
}

fn assess_with(
    base: &Path,
    request: &AssessRequest,
    observer: &ReadObserver<'_>,
    watch: &SearchObserver<'_>,
) -> Result<Assessment, AppError> {
    let frame = read(base, &request.table, "predictions", observer)?;
    let mut spec = request.spec.clone();
    spec.columns = complete_columns(spec.columns, &frame).map_err(refused)?;
    spec.slices = slices(&frame, &request.slices)?;
    let Some(baseline) = &request.baseline else {
        return assess_watched(&frame, &spec, None, watch).map_err(refused);
    };
    let baseline = read(base, baseline, "baseline", observer)?;
    let id = spec.columns.id.clone().filter(|_| !request.by_order);
    if id.is_none() && !request.by_order {
        let message = "no id column was found, so the rows of the baseline cannot be matched";
        return Err(AppError::new(ErrorKind::Usage, message)
            .hint("name it with --id COLUMN, or pair rows by their place with --by-order"));
    }
    let sides = Baseline { frame: &baseline, id: id.as_deref() };
    assess_watched(&frame, &spec, Some(sides), watch).map_err(refused)
}

fn read(
    base: &Path,
    table: &TableRequest,
    set: &str,
    observer: &ReadObserver<'_>,
) -> Result<Frame, AppError> {
    let mut source = table.open(base, set)?;
    let everything = (usize::MAX, 0);
    let (frame, coverage) =
        Frame::sample(&mut source, None, everything, &observer.watch()).map_err(data_error)?;
    if coverage.rows_rejected > 0 {
        let message = format!(
            "{} rows of the {set} cannot be read ({} can): numbers over the others would not be those of the table",
            coverage.rows_rejected, coverage.rows_read
        );
        return Err(AppError::new(ErrorKind::Usage, message).hint("`trackway data profile` lists them"));
    }
    Ok(frame)
}

fn refused(error: AssessError) -> AppError {
    AppError::of(ErrorKind::Usage, error)
}

/// The rows of each slice. A row for which a predicate is null, because a value is missing, is not in the slice.
///
/// # Errors
/// [`ErrorKind::Usage`] for a predicate that is not a condition on the table's columns.
pub fn slices(frame: &Frame, asked: &[NamedPredicate]) -> Result<Vec<SliceRows>, AppError> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let batch = batch_of(frame)?;
    let slice = |asked: &NamedPredicate| {
        let holds = RowPredicate::new(&asked.sql).holds(&batch).map_err(|why| {
            let why = why.to_string().replace('\n', " ");
            let message = format!("slice `{}`: `{}` cannot be evaluated: {why}", asked.name, asked.sql);
            AppError::new(ErrorKind::Usage, message)
        })?;
        let rows = holds.iter().map(|holds| holds == Some(true)).collect();
        let (name, predicate) = (asked.name.clone(), asked.sql.clone());
        Ok(SliceRows { name, predicate, rows, metric: asked.metric.clone(), limits: asked.limits })
    };
    asked.iter().map(slice).collect()
}

fn batch_of(frame: &Frame) -> Result<RecordBatch, AppError> {
    let columns: Vec<(Field, ArrayRef)> = frame.columns().iter().map(array_of).collect();
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| AppError::fault("cannot put the columns together", error))
}

fn array_of(column: &FrameColumn) -> (Field, ArrayRef) {
    let array: ArrayRef = match &column.cells {
        Cells::Categories { codes, names } => {
            let keys =
                codes.iter().map(|code| (*code != MISSING_CODE).then_some(*code)).collect::<UInt32Array>();
            let values = Arc::new(StringArray::from_iter_values(names));
            let texts = DictionaryArray::<UInt32Type>::try_new(keys, values).expect("each code has a name");
            Arc::new(texts)
        }
        Cells::Numbers(values) => {
            let known = values.iter().map(|value| Some(*value).filter(|value| !value.is_nan()));
            match column.kind {
                ColumnType::Bool => {
                    Arc::new(known.map(|it| it.map(|it| it != 0.0)).collect::<BooleanArray>())
                }
                ColumnType::Timestamp => {
                    let times = known.map(|it| it.map(|it| it as i64));
                    Arc::new(times.collect::<TimestampMicrosecondArray>())
                }
                _ => Arc::new(known.collect::<Float64Array>()),
            }
        }
    };
    let kind: DataType = array.data_type().clone();
    (Field::new(&column.name, kind, true), array)
}

/// Writes every number of an assessment as a row of a Parquet file: `part, name, metric, value, low, high, support, method,
/// verdict, baseline, candidate, rows_used, rows_expected`; the last two are null where they are unknown. A file that is there is replaced.
///
/// # Errors
/// [`ErrorKind::Fault`] where it cannot be written.
pub fn write_numbers(path: &Path, assessment: &Assessment) -> Result<(), AppError> {
    let numbers = assessment.numbers();
    let texts = |text: &dyn Fn(&Number) -> Option<String>| -> ArrayRef {
        Arc::new(numbers.iter().map(text).collect::<StringArray>())
    };
    let floats = |value: &dyn Fn(&Number) -> Option<f64>| -> ArrayRef {
        Arc::new(numbers.iter().map(value).collect::<Float64Array>())
    };
    let support: ArrayRef =
        Arc::new(numbers.iter().map(|it| Some(it.estimate.support)).collect::<UInt64Array>());
    let rows = |rows: &dyn Fn(RowCoverage) -> u64| -> ArrayRef {
        let known = |it: &Number| Some(it.estimate.coverage).filter(|coverage| coverage.is_known());
        Arc::new(numbers.iter().map(|it| known(it).map(rows)).collect::<UInt64Array>())
    };
    let columns = [
        ("part", texts(&|it| Some(it.part.to_owned()))),
        ("name", texts(&|it| Some(it.name.clone()))),
        ("metric", texts(&|it| Some(it.metric.clone()))),
        ("value", floats(&|it| Some(it.estimate.value))),
        ("low", floats(&|it| it.estimate.interval.known_low())),
        ("high", floats(&|it| it.estimate.interval.known_high())),
        ("support", support),
        ("method", texts(&|it| Some(it.estimate.method.as_str().to_owned()))),
        ("verdict", texts(&|it| it.verdict.map(|verdict| verdict.as_str().to_owned()))),
        ("baseline", floats(&|it| it.baseline)),
        ("candidate", floats(&|it| it.candidate)),
        ("rows_used", rows(&|coverage| coverage.rows_used)),
        ("rows_expected", rows(&|coverage| coverage.rows_expected)),
    ];
    let table = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .map_err(|error| AppError::fault("cannot put the numbers together", error))?;
    let written = Answer::of(table).write_parquet(path);
    written.map(|_| ()).map_err(|error| AppError::fault(format!("cannot write `{}`", path.display()), error))
}

#[cfg(test)]
mod tests {
    use trackway_core::visible::visible;

    use super::*;

    /// Proves that the error of a slice's condition is one line: a line break of the SQL parser would be shown as a broken character.
    #[test]
    fn the_error_of_a_condition_is_one_line() {
        let column = FrameColumn {
            name: "region".into(),
            kind: ColumnType::Float,
            cells: Cells::Numbers(vec![1.0, 2.0]),
        };
        let frame = Frame::of_columns(vec![column]);
        let asked =
            |sql: &str| NamedPredicate { name: "west".into(), sql: sql.into(), metric: None, limits: None };
        for sql in ["regio = 1", "region = ", "region ~ 1", "region in (", "nosuch(region)"] {
            let error = slices(&frame, &[asked(sql)]).unwrap_err().to_string();
            let shown = visible(&error);
            assert!(error.contains("cannot be evaluated") && !shown.contains('\u{FFFD}'), "{sql}: {shown}");
        }
    }
}
