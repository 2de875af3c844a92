//! Two tables side by side by a key: features as they were known at the time of a label ([`as_of`]), and the same features as
//! training and serving have them ([`skew`]).
//!
//! The right side is held in memory, up to [`RIGHT_BYTES_MAX`]; the left side is streamed.

use trackway_core::BoxError;
use trackway_tables::pass::{PassObserver, scan};
use trackway_tables::read::{Source, agree};
use trackway_tables::write::WriteError;
use trackway_tables::{ColumnType, DataError};

pub mod as_of;
mod keys;
mod right;
pub mod skew;

#[cfg(test)]
mod tests;

/// The most bytes of the side that is held in memory, decoded.
pub const RIGHT_BYTES_MAX: usize = 1 << 30;

/// Why two tables cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A side cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The result cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(
        "the {side} side takes more than {} MiB in memory: select the columns and rows that are needed first", RIGHT_BYTES_MAX >> 20
    )]
    TooLarge { side: &'static str },
    #[error("`{column}` is {left} on the one side and {right} on the other: they cannot be compared")]
    Types { column: String, left: ColumnType, right: ColumnType },
    #[error("`{column}` is {kind}: a time is a timestamp or a whole number")]
    NotATime { column: String, kind: ColumnType },
    #[error("{0}")]
    Tolerance(&'static str),
    #[error("the result would have two columns `{0}`: rename one of them")]
    TwoColumns(String),
    #[error("cannot join: {0}")]
    Content(#[source] BoxError),
}

/// The sources with the types that all their rows need, so that no later reading begins again, and with one type of each key
/// on both sides.
fn settled(
    mut one: Source,
    mut other: Source,
    keys: &[String],
    watch: &PassObserver<'_>,
) -> Result<(Source, Source), DataError> {
    for source in [&mut one, &mut other] {
        if source.may_widen() {
            scan(source, &|_| (), watch)?;
        }
    }
    agree(&mut one, &mut other, &|name| keys.iter().any(|key| key == name));
    let fixed = |source: Source| {
        let columns = source.columns().to_vec();
        source.with_columns(columns)
    };
    Ok((fixed(one)?, fixed(other)?))
}

fn content(error: arrow::error::ArrowError) -> JoinError {
    JoinError::Content(error.into())
}

/// The types of a source's columns.
fn kinds(source: &Source) -> Vec<ColumnType> {
    source.columns().iter().map(|column| column.kind).collect()
}
