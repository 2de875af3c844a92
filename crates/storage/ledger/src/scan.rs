//! What a query engine reads a ledger by: its connections, and the kinds of its columns.

pub use crate::backend::{Backend, marks};
pub use crate::catalogue::schema::{METRIC_COLUMNS, TELEMETRY_COLUMNS};
pub use crate::error::nearest;
pub use crate::value::{Column, ColumnKind, Field, Record, Table, Value};
