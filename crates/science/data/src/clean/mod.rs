//! A table without what makes it unfit: exact duplicates, rows that break a rule or cannot be read, personal data. Every row is
//! accounted for: it is written, a duplicate, or in the quarantine with the reasons. What is not cleaned is written as it was.
//!
//! A duplicate equals an earlier row in every cell as the files have it, not only in what was read of it: `1` and `1.0`, `01` and
//! `1`, or two numbers that a float rounds to one, are not equal. No row that differs is left out.
//!
//! The data is read twice: to find duplicates, and to write. Of more than [`DIGESTS_MAX`] rows, duplicates are looked for in
//! parts, one more reading each, so that memory stays bounded.

mod duplicates;
mod judge;
mod protect;
mod write;

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use trackway_results::clean::{Account, ReasonCount};
use trackway_tables::DataError;
use trackway_tables::pass::PassObserver;
use trackway_tables::read::{ReadNote, RejectKind, Source};
use trackway_tables::write::WriteError;

use crate::schema::{RowRule, Schema, SchemaError, SqlRule};
pub use duplicates::DIGESTS_MAX;
use judge::Judge;
pub use protect::{HashKey, KEY_BYTES_MIN, KeyError, Protection};

/// What becomes of a row that is equal to an earlier one in every cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// It is left out.
    Drop,
    /// It is written, and counted.
    Keep,
}

/// Makes a condition of a rule's SQL, or returns why it cannot; called from any thread.
pub type SharedCompiler<'s> = dyn Fn(&SqlRule) -> Result<Box<dyn RowRule>, String> + Sync + 's;

/// How to clean a table.
pub struct CleanPlan<'p> {
    /// What rows must be like; of its rules, those that a row alone can break.
    pub schema: Option<&'p Schema>,
    /// Makes a condition of a rule's SQL, or returns why it cannot.
    pub compile: &'p SharedCompiler<'p>,
    /// What becomes of duplicates.
    pub duplicates: Duplicates,
    /// What becomes of columns, by name.
    pub protected: Vec<(String, Protection)>,
    /// The key of hashed columns.
    pub key: Option<HashKey>,
    /// The cleaned table; its format is that of its name.
    pub out: PathBuf,
    /// The rows that were set aside.
    pub quarantine: PathBuf,
}

/// Why a table could not be cleaned. No output is there then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CleanError {
    /// The data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A rule that cannot be applied.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("{0}")]
    Rule(String),
    #[error(
        "hashing needs a key: name a file with --key-file or an environment variable with --key-variable"
    )]
    NoKey,
    #[error("every column is dropped: nothing would be written")]
    NoColumns,
    #[error(
        "the account does not add up: {rows} rows read, {written} written, {duplicates} duplicates, {quarantined} quarantined; \
         nothing was written, please report it"
    )]
    Account { rows: u64, written: u64, duplicates: u64, quarantined: u64 },
}

/// A table that was cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// What became of every row.
    pub account: Account,
    /// What reading did to what the files hold.
    pub reading: Vec<ReadNote>,
}

/// Cleans a table into two files, each there whole or not at all.
///
/// # Errors
/// [`CleanError`]. Neither file is there then, or is what it was.
pub fn clean(source: &Source, plan: &CleanPlan<'_>, watch: &PassObserver<'_>) -> Result<Cleaned, CleanError> {
    for (column, _) in &plan.protected {
        source.index_of(column, "protected")?;
    }
    let hashes = plan.protected.iter().any(|(_, how)| *how == Protection::Hash);
    if hashes && plan.key.is_none() {
        return Err(CleanError::NoKey);
    }
    let dropped = plan.protected.iter().filter(|(_, how)| *how == Protection::Drop);
    if dropped.count() >= source.columns().len() {
        return Err(CleanError::NoColumns);
    }
    let judge = Judge::new(source, plan)?;
    let mut source = judge.typed(source.clone().with_strings_as_misfits())?.with_originals();
    let found = duplicates::find(&mut source, &judge, watch)?;
    let reading = source.reading();
    // The types are known: with a guess, a wider value would begin the reading, and the files, again.
    let source = source.clone().with_columns(source.columns().to_vec())?;
    Ok(Cleaned { account: write::write(source, &judge, plan, &found, watch)?, reading })
}

/// Why a row cannot be read, as the quarantine says it.
fn reason_of(kind: RejectKind) -> &'static str {
    match kind {
        RejectKind::Ragged => "wrong number of fields",
        RejectKind::OpenQuote => "a quote that is never closed",
        RejectKind::BadJson => "not a JSON object",
    }
}
