//! Rows as a scoring command reads them.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use trackway_core::text::csv_field;
use trackway_data::model::{Cells, FrameColumn};
use trackway_evaluate::search::shown_value;
use trackway_tables::ColumnType;

use super::BatchFormat;

/// What a process got about its rows' form: a restarted process gets it again.
pub(super) enum Encoder {
    Csv,
    Arrow(Box<StreamWriter<Vec<u8>>>),
}

impl Encoder {
    /// How the input begins, and what writes its batches.
    pub(super) fn start(format: BatchFormat, columns: &[FrameColumn]) -> Result<(Self, Vec<u8>), ArrowError> {
        match format {
            BatchFormat::Csv => {
                let header: Vec<_> = columns.iter().map(|column| csv_field(&column.name, ',')).collect();
                Ok((Self::Csv, (header.join(",") + "\n").into_bytes()))
            }
            BatchFormat::Arrow => {
                let mut writer = Box::new(StreamWriter::try_new(Vec::new(), &schema(columns))?);
                let head = std::mem::take(writer.get_mut());
                Ok((Self::Arrow(writer), head))
            }
        }
    }

    /// A batch with its end.
    pub(super) fn batch(
        &mut self,
        columns: &[FrameColumn],
        rows: Range<usize>,
    ) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Csv => Ok(text_of(columns, rows).into_bytes()),
            Self::Arrow(writer) => {
                let arrays = columns.iter().map(|column| array(column, rows.clone())).collect();
                writer.write(&RecordBatch::try_new(Arc::new(schema(columns)), arrays)?)?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }
}

/// Whole numbers are float64 too: a model is also called with a tenth of one.
fn schema(columns: &[FrameColumn]) -> Schema {
    let of = |column: &FrameColumn| match (&column.cells, column.kind) {
        (Cells::Categories { .. }, _) => DataType::Utf8,
        (_, ColumnType::Bool) => DataType::Boolean,
        (_, ColumnType::Timestamp) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => DataType::Float64,
    };
    let fields: Vec<Field> =
        columns.iter().map(|column| Field::new(&column.name, of(column), true)).collect();
    Schema::new(fields)
}

fn array(column: &FrameColumn, rows: Range<usize>) -> ArrayRef {
    let numbers = match &column.cells {
        Cells::Categories { codes, names } => {
            let text = |code: &u32| names.get(*code as usize).map(String::as_str);
            return Arc::new(codes[rows].iter().map(text).collect::<StringArray>());
        }
        Cells::Numbers(numbers) => numbers[rows].iter().map(|number| Some(*number).filter(|it| !it.is_nan())),
    };
    match column.kind {
        ColumnType::Bool => Arc::new(numbers.map(|it| it.map(|it| it != 0.0)).collect::<BooleanArray>()),
        ColumnType::Timestamp => {
            let micros: TimestampMicrosecondArray = numbers.map(|it| it.map(|it| it as i64)).collect();
            Arc::new(micros.with_timezone("UTC"))
        }
        _ => Arc::new(numbers.collect::<Float64Array>()),
    }
}

/// Rows as CSV, and the empty line that ends a batch.
fn text_of(columns: &[FrameColumn], rows: Range<usize>) -> String {
    let mut text = String::new();
    for row in rows {
        for (index, column) in columns.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let shown = shown_value(column, &column.cells, row);
            // A table of one column has an empty line for no row: a missing value is a pair of quotes there.
            let missing = if columns.len() == 1 { "\"\"" } else { "" };
            text.push_str(separator);
            text.push_str(&shown.as_deref().map_or(missing.into(), |shown| csv_field(shown, ',')));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Float64Type;
    use arrow::ipc::reader::StreamReader;

    use super::*;

    fn numbers(values: impl Iterator<Item = f64>) -> Vec<FrameColumn> {
        vec![FrameColumn {
            name: "x".to_owned(),
            kind: ColumnType::Float,
            cells: Cells::Numbers(values.collect()),
        }]
    }

    /// Proves that fields are quoted where they must be, and that a missing value of a single column is not an empty
    /// line.
    #[test]
    fn rows_as_csv() {
        let cells = Cells::of_texts([Some("a,b"), Some("say \"no\""), None, Some(" x")]);
        let text = FrameColumn { name: "t".to_owned(), kind: ColumnType::Text, cells };
        assert_eq!(
            text_of(std::slice::from_ref(&text), 0..4),
            "\"a,b\"\n\"say \"\"no\"\"\"\n\"\"\n\" x\"\n\n"
        );
        let both = [numbers([1.0, 2.5, f64::NAN, 4.0].into_iter()).remove(0), text];
        assert_eq!(text_of(&both, 1..3), "2.5,\"say \"\"no\"\"\"\n,\n\n");
    }

    /// Proves that a stream of batches, read as Arrow's own reader does, holds the rows with their types, and that missing values
    /// are null.
    #[test]
    fn rows_as_arrow() {
        let text = Cells::of_texts([Some("a,b"), None, Some("")]);
        let columns = [
            numbers([1.5, f64::NAN, 3.0].into_iter()).remove(0),
            FrameColumn { name: "t".to_owned(), kind: ColumnType::Text, cells: text },
            FrameColumn {
                name: "b".to_owned(),
                kind: ColumnType::Bool,
                cells: Cells::Numbers(vec![1.0, f64::NAN, 0.0]),
            },
            FrameColumn {
                name: "at".to_owned(),
                kind: ColumnType::Timestamp,
                cells: Cells::Numbers(vec![5e6, f64::NAN, 0.0]),
            },
        ];
        let (mut encoder, mut stream) = Encoder::start(BatchFormat::Arrow, &columns).unwrap();
        stream.extend(encoder.batch(&columns, 0..2).unwrap());
        stream.extend(encoder.batch(&columns, 2..3).unwrap());
        let reader = StreamReader::try_new(stream.as_slice(), None).unwrap();
        let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
        let first = &batches[0];
        assert_eq!(first.column(0).as_primitive::<Float64Type>().value(0), 1.5);
        assert_eq!(first.column(1).as_string::<i32>().value(0), "a,b");
        assert!(first.column(2).as_boolean().value(0) && !batches[1].column(2).as_boolean().value(0));
        assert!((0..4).all(|column| first.column(column).is_null(1)), "missing values are null");
        assert_eq!(batches[1].column(1).as_string::<i32>().value(0), "");
        let kind = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(first.schema().field(3).data_type(), &kind);
    }
}
