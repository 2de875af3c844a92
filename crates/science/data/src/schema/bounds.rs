//! The smallest and the largest value of a column.

use serde::{Deserialize, Serialize};

use crate::infer::ColumnType;
use crate::times::parse_timestamp;

/// A number, or a time as ISO 8601.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A time.
    Time(String),
}

impl Bound {
    /// As the values of a column of this type are compared: times in microseconds since 1970.
    pub(super) fn value(&self, kind: ColumnType) -> Result<f64, String> {
        match (self, kind) {
            (Self::Int(number), ColumnType::Int | ColumnType::Float) => Ok(*number as f64),
            (Self::Float(number), ColumnType::Int | ColumnType::Float) => Ok(*number),
            (Self::Time(text), ColumnType::Timestamp) => {
                parse_timestamp(text.as_bytes()).map(|micros| micros as f64).ok_or_else(|| {
                    format!("invalid time `{text}`; expected e.g. 2026-01-31 or 2026-01-31T12:00:00")
                })
            }
            (Self::Time(text), ColumnType::Int | ColumnType::Float) => {
                Err(format!("`{text}` is not a number, but the column is numeric"))
            }
            (_, ColumnType::Timestamp) => {
                Err("the column is a time; write the bound as \"2026-01-31\"".into())
            }
            (_, kind) => Err(format!("min and max are for numbers and times, and the column is {kind}")),
        }
    }
}
