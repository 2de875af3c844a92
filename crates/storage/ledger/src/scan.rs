//! What a query engine reads a ledger by: its connections, the kinds of its columns, and the metrics of attempts,
//! closed and live.

pub use crate::backend::{Backend, marks};
pub use crate::close::{
    NamedSegment, Points, live_summaries, metric_batch, origins_of, parquet_properties, read_segments,
    write_whole,
};
pub use crate::error::nearest;
pub use crate::schema::{METRIC_COLUMNS, TELEMETRY_COLUMNS, UTC, data_type, schema_of};
pub use crate::value::{Column, ColumnKind, Field, Record, Table, Value};
