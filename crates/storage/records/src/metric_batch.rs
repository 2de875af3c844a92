use std::sync::Arc;

use arrow::array::PrimitiveArray;
use arrow::array::{
    ArrayRef, Float64Builder, Int64Builder, RecordBatch, StringArray, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;

use trackway_ledger::AttemptRow;

use crate::parts::Part;
use crate::schema::{UTC, metric_schema};

/// The metric points of a part as rows of `metrics`, in file order. Live and closed records are both read
/// through this, so closing changes no row.
pub(crate) fn metric_batch(attempt: &AttemptRow, part: &Part) -> Result<RecordBatch, ArrowError> {
    let mut names = StringBuilder::new();
    let mut steps = Int64Builder::new();
    let mut values = Float64Builder::new();
    let mut times = TimestampMicrosecondBuilder::new().with_timezone(UTC);
    let mut sequences = Int64Builder::new();
    for point in part.segment.metric_points_of_any_step() {
        names.append_value(&point.name);
        steps.append_value(point.step);
        values.append_value(point.value);
        times.append_value(point.at.as_micros());
        sequences.append_value(i64::from(point.sequence));
    }
    let steps: ArrayRef = Arc::new(steps.finish());
    let rows = steps.len();
    let same =
        |text: &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows))) };
    let number = PrimitiveArray::<Int64Type>::from_value(i64::from(attempt.attempt_number), rows);
    let origin = part.origin().map_or_else(|| "unknown".into(), |origin| origin.to_string());
    RecordBatch::try_new(
        metric_schema(),
        vec![
            same(&attempt.run_id.to_string()),
            same(&attempt.attempt_id.to_string()),
            Arc::new(number),
            same(attempt.kind.as_str()),
            same(&attempt.rung),
            same(&origin),
            same(&part.name),
            Arc::new(names.finish()),
            steps,
            Arc::new(values.finish()),
            Arc::new(times.finish()),
            Arc::new(sequences.finish()),
        ],
    )
}
