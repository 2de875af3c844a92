//! The time by the database's clock.

use trackway_core::Timestamp;

use super::Backend;
use crate::error::LedgerError;
use crate::value::{ColumnKind, Value};

/// The database's clock: that of a host may be wrong.
pub(crate) fn now(backend: &mut Backend) -> Result<Timestamp, LedgerError> {
    let sql = match backend {
        Backend::Sqlite(_) => "SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        // `now()` is when the transaction began, which may have waited for a lock since.
        Backend::Postgres(_) => "SELECT clock_timestamp()",
    };
    let found = backend.rows("reading the time", sql, &[], &[ColumnKind::Timestamp])?;
    match found.concat().as_slice() {
        [Value::Timestamp(now)] => Ok(*now),
        _ => Err(backend.refuse("reading the time", "the database has no clock")),
    }
}

pub(crate) fn in_seconds(now: Timestamp, seconds: f64) -> Timestamp {
    Timestamp::from_micros(now.as_micros().saturating_add((seconds * 1e6) as i64))
}
