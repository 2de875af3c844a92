//! A table that was cleaned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of every row. `rows = rows_written + duplicates_dropped + rows_quarantined`, always.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CleanAccount")]
pub struct Account {
    /// Rows of the files, with those that cannot be read.
    pub rows: u64,
    /// Rows in the cleaned table.
    pub rows_written: u64,
    /// Rows that equal an earlier one and were left out.
    pub duplicates_dropped: u64,
    /// Rows that equal an earlier one and were written.
    pub duplicates_kept: u64,
    /// Rows in the quarantine, with those that cannot be read.
    pub rows_quarantined: u64,
    /// Rows of them that cannot be read: too many or too few fields, an open quote, invalid JSON.
    pub rows_unreadable: u64,
    /// Rows of the quarantine by reason. A row with several reasons counts for each.
    pub reasons: Vec<ReasonCount>,
    /// Rules of the schema that are about more than one row, and were not applied.
    pub rules_not_applied: Vec<String>,
    /// How often the data was read.
    pub readings: u64,
}

/// Rows that were set aside for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "QuarantineReason")]
pub struct ReasonCount {
    pub reason: String,
    pub rows: u64,
}
