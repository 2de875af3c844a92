//! Rows to look at: a sample of those that are wrong.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// How failures were chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// A sample of all rows that are wrong.
    #[default]
    Wrong,
    /// The rows with the largest errors.
    Farthest,
}

/// The sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SampledFailures")]
pub struct Failures {
    /// How they were chosen.
    pub kind: FailureKind,
    /// How many rows are wrong, of all rows; for regression, all of them.
    pub wrong: u64,
    /// How many were looked at.
    pub rows: u64,
    /// What drew them.
    pub seed: u64,
    /// The rows, in the order of the table.
    pub sample: Vec<Failure>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SampledFailure")]
pub struct Failure {
    /// The line of a text file, else the row; from 1.
    pub row: u64,
    /// Its cells, by column; missing ones are null, long strings are cut.
    pub cells: Map<String, Json>,
}
