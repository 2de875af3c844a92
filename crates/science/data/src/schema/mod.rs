//! What a data set must be like: a file that `trackway data infer` writes, a person edits, and every later data set is
//! checked against.
//!
//! A rule is a sentence about a column, the table, or a row. Each has a severity; what does not hold is a
//! [`Finding`](trackway_core::checks::Finding) with its count and the first places. A rule that could not be checked is
//! reported as such, never skipped.

mod bounds;
mod check;
mod column;
mod examples;
mod infer;
mod keys;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_core::checks::Severity;
use trackway_tables::ColumnType;

pub use bounds::Bound;
pub use check::{RowRule, RuleCompiler, SchemaCheck, Surroundings, check};
pub(crate) use column::CompiledRules;
pub use infer::infer;

/// The version of the file.
pub const SCHEMA_VERSION: u32 = 1;

/// What a data set must be like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    pub version: u32,
    /// The table as a whole.
    #[serde(default)]
    pub table: TableRules,
    /// Columns by name.
    #[serde(default, rename = "column")]
    pub columns: Vec<ColumnRules>,
    /// Conditions on each row.
    #[serde(default, rename = "rule")]
    pub rules: Vec<SqlRule>,
}

/// Rules of the table as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TableRules {
    /// The fewest rows.
    pub rows_min: Option<u64>,
    pub rows_max: Option<u64>,
    /// The column with the time of a row.
    pub time: Option<String>,
    /// The newest row is at most so old.
    pub fresh_within_hours: Option<f64>,
    /// The largest fraction of rows that may be unreadable.
    pub rejected_share_max: f64,
    /// Whether there may be columns that the schema does not name.
    pub other_columns: OtherColumns,
    /// How bad it is when one of these does not hold; `block` when absent.
    pub severity: Option<Severity>,
}

/// What to do about a column that the schema does not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OtherColumns {
    /// Report it.
    #[default]
    Warn,
    /// Let it be.
    Allow,
    /// Refuse it.
    Block,
}

/// Rules of one column. What is absent is not checked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnRules {
    pub name: String,
    /// What its values are.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// Whether the column must be there.
    #[serde(default = "yes")]
    pub required: bool,
    /// In which data it is: `train`, `serve`; in all when empty. A label is in `train` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<String>,
    /// The largest fraction of missing values, NaN among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_share_max: Option<f64>,
    /// The smallest value; of a time as ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Bound>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Bound>,
    /// Every allowed value, as a string.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Allowed>,
    /// Whether no value comes twice.
    #[serde(default, skip_serializing_if = "is_no")]
    pub unique: bool,
    /// What a text must match, from its first to its last letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The fewest letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_min: Option<u64>,
    /// The most letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_max: Option<u64>,
    /// Whether a value is never below the one before it.
    #[serde(default, skip_serializing_if = "is_no")]
    pub increasing: bool,
    /// Another data set's column in which every value must occur.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references: Option<Reference>,
    /// How bad it is when one of these does not hold; `warn` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// A value that a column may have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Allowed {
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number beyond those with a sign.
    Unsigned(u64),
    /// A number.
    Float(f64),
    Text(String),
}

/// A column of another data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Its files, as in a run file's `[data.NAME]`; relative to the schema's folder.
    pub path: String,
    /// The column there.
    pub column: String,
}

/// A condition that every row must meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlRule {
    /// In SQL, such as `end >= start`. A row for which it is null meets it.
    pub sql: String,
    /// What to call it; the condition itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `warn` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
}

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    #[error("not a valid schema: {0}")]
    Unreadable(#[from] toml::de::Error),
    #[error("the schema has version {0}, this program reads {SCHEMA_VERSION}")]
    Version(u32),
    #[error("the schema names column `{0}` twice")]
    Twice(String),
    #[error("column `{column}`: {message}")]
    Rule { column: String, message: String },
}

impl Schema {
    /// Reads a schema and looks whether its rules make sense.
    pub fn from_toml(text: &str) -> Result<Self, SchemaError> {
        let schema: Self = toml::from_str(text)?;
        if schema.version != SCHEMA_VERSION {
            return Err(SchemaError::Version(schema.version));
        }
        let mut seen = BTreeMap::new();
        for column in &schema.columns {
            if seen.insert(&column.name, ()).is_some() {
                return Err(SchemaError::Twice(column.name.clone()));
            }
            column::CompiledRules::of(column)?;
        }
        Ok(schema)
    }

    /// A schema without requirements: a place for conditions on rows.
    #[must_use]
    pub fn of_rows() -> Self {
        let table = TableRules {
            rejected_share_max: 1.0,
            other_columns: OtherColumns::Allow,
            ..TableRules::default()
        };
        Self { version: SCHEMA_VERSION, table, columns: Vec::new(), rules: Vec::new() }
    }

    /// The rules of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnRules> {
        self.columns.iter().find(|column| column.name == name)
    }
}

fn yes() -> bool {
    true
}

fn is_no(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests;
