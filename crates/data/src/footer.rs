//! Parquet: rows and schema from the file's footer. The bytes are hashed like those of any other file.

use std::fs::File;

use parquet::basic::{LogicalType, Type as Physical};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::types::Type;

use crate::infer::{Column, ColumnType};
use crate::scan::Content;

/// Reads the footer. The error text says what is wrong with it.
pub(crate) fn read_footer(file: &File) -> Result<Content, String> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file).map_err(|error| error.to_string())?;
    let rows =
        u64::try_from(metadata.file_metadata().num_rows()).map_err(|_| "it claims a negative row count")?;
    let fields = metadata.file_metadata().schema().get_fields();
    let column =
        |field: &std::sync::Arc<Type>| Column { name: field.name().to_owned(), kind: kind_of(field) };
    Ok(Content { rows: Some(rows), schema: Some(fields.iter().map(column).collect()), ..Content::default() })
}

fn kind_of(field: &Type) -> ColumnType {
    if field.is_group() {
        let is_list = matches!(field.get_basic_info().logical_type_ref(), Some(LogicalType::List));
        return if is_list { ColumnType::List } else { ColumnType::Object };
    }
    match (field.get_basic_info().logical_type_ref(), field.get_physical_type()) {
        (Some(LogicalType::Timestamp { .. } | LogicalType::Date), _) | (_, Physical::INT96) => {
            ColumnType::Timestamp
        }
        (Some(LogicalType::String | LogicalType::Enum | LogicalType::Json | LogicalType::Uuid), _) => {
            ColumnType::Text
        }
        (Some(LogicalType::Decimal { .. }), _) | (_, Physical::FLOAT | Physical::DOUBLE) => ColumnType::Float,
        (_, Physical::BOOLEAN) => ColumnType::Bool,
        (_, Physical::INT32 | Physical::INT64) => ColumnType::Int,
        (_, Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY) => ColumnType::Binary,
    }
}
