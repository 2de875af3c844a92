//! The columns of rows as Arrow types.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use trackway_ledger::scan::{Column, ColumnKind, METRIC_COLUMNS};

/// The time zone of every timestamp.
pub const UTC: &str = "UTC";

/// The Arrow type of a column.
pub fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Text | ColumnKind::Word | ColumnKind::Json => DataType::Utf8,
        ColumnKind::Integer => DataType::Int64,
        ColumnKind::Real => DataType::Float64,
        ColumnKind::Boolean => DataType::Boolean,
        ColumnKind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
    }
}

/// The Arrow schema of columns.
pub fn schema_of<'c>(columns: impl IntoIterator<Item = &'c Column>) -> SchemaRef {
    let fields: Vec<Field> = columns
        .into_iter()
        .map(|column| Field::new(column.name, data_type(column.kind), column.nullable))
        .collect();
    Arc::new(Schema::new(fields))
}

/// The Arrow schema of `metrics`.
pub(crate) fn metric_schema() -> SchemaRef {
    schema_of(METRIC_COLUMNS)
}
