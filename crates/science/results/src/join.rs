//! Two tables side by side: joined by time, and compared between training and serving.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::ReadNote;

/// What was joined, and what a plain join would have leaked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AsOfReport {
    /// Rows of the left side, all of which are written.
    pub left_rows: u64,
    /// Rows of the left side that could not be read.
    pub left_rows_rejected: u64,
    /// Rows of the right side.
    pub right_rows: u64,
    /// Rows of the right side that could not be read.
    pub right_rows_rejected: u64,
    /// Left rows with a right row.
    pub matched: u64,
    /// Left rows whose key the right side does not have.
    pub unmatched_key: u64,
    /// Left rows whose key the right side has, but not early enough, or not within the tolerance.
    pub unmatched_time: u64,
    /// Left rows without a key or a time.
    pub left_without_key_or_time: u64,
    /// Right rows without a key or a time, which match nothing.
    pub right_without_key_or_time: u64,
    /// Right rows with the key and time of another one; of those the last one counts.
    pub right_rows_tied: u64,
    /// Left rows to which a join with the latest right row of the key would have given one from after their time.
    pub leaking_rows: u64,
    /// Columns of the right side, with what would have leaked.
    pub columns: Vec<ColumnLeak>,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    #[serde(default)]
    pub reading: Vec<ReadNote>,
}

/// What a plain join would have leaked in a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnLeak {
    /// The column, as the result has it.
    pub column: String,
    /// Left rows to which a plain join would have given another value, from after their time; null for nested values, which
    /// are not compared.
    pub rows_leaking: Option<u64>,
}

/// The same keys on both sides, compared column by column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkewReport {
    /// Rows of the training side.
    pub train_rows: u64,
    /// Rows of the serving side.
    pub serve_rows: u64,
    /// Rows of the training side whose key the serving side has once: those that are compared.
    pub rows_compared: u64,
    /// Rows of the training side whose key the serving side does not have.
    pub only_in_train: u64,
    /// Rows of the training side whose key the serving side has several times; they are not compared.
    pub ambiguous: u64,
    /// Rows of the training side without a key.
    pub without_key: u64,
    /// Columns of both sides, the most different first.
    pub columns: Vec<ColumnSkew>,
    /// Columns that only the training side has.
    pub columns_only_in_train: Vec<String>,
    /// Columns that only the serving side has.
    pub columns_only_in_serve: Vec<String>,
    /// Columns of types that cannot be compared.
    pub not_compared: Vec<String>,
    /// What reading did to what the files hold: left out, cut, renamed or read as something else.
    #[serde(default)]
    pub reading: Vec<ReadNote>,
}

impl SkewReport {
    /// Whether a column is skewed, or nothing could be compared.
    #[must_use]
    pub fn blocks(&self) -> bool {
        self.rows_compared == 0 || self.columns.iter().any(|column| column.skewed)
    }
}

/// A column on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnSkew {
    pub column: String,
    /// Rows compared.
    pub rows: u64,
    /// Rows with the same value, or with none on both sides.
    pub equal: u64,
    /// Their fraction; null without rows.
    pub equal_fraction: Option<f64>,
    /// Rows with a value on the training side only.
    pub only_in_train: u64,
    /// Rows with a value on the serving side only.
    pub only_in_serve: u64,
    /// The largest difference of numbers; null for other columns.
    pub difference_max: Option<f64>,
    /// Whether fewer rows are equal than required.
    pub skewed: bool,
}
