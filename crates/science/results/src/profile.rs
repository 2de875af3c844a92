//! A profile of the columns of a table: statistics as plain data, for people and for other programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::{CellFaults, ColumnType};

/// A value as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DataValue")]
#[serde(untagged)]
pub enum Value {
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number beyond the signed ones.
    Unsigned(u64),
    /// A number.
    Float(f64),
    /// A text, or a time as ISO 8601 in UTC.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(truth) => truth.fmt(formatter),
            Self::Int(number) => number.fmt(formatter),
            Self::Unsigned(number) => number.fmt(formatter),
            Self::Float(number) => number.fmt(formatter),
            Self::Text(text) => text.fmt(formatter),
        }
    }
}

/// A value and how often it occurs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueCount {
    pub value: Value,
    /// Rows; too low by at most `count_error` of the summary.
    pub count: u64,
}

/// How a measure was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssociationMeasure {
    /// Pearson's correlation.
    Pearson,
    /// Root of the fraction of a number's variance that is between groups.
    CorrelationRatio,
    /// Cramér's V, bias-corrected.
    CramersV,
}

/// How strongly a column is associated with the label.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Association {
    pub measure: AssociationMeasure,
    pub value: f64,
    /// Rows with both sides.
    pub rows: u64,
}

/// How often a column rises, falls and stays, from each value to the next one that is not missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ValueOrder")]
pub struct Order {
    /// Steps to a larger value.
    pub rises: u64,
    /// Steps to a smaller value.
    pub falls: u64,
    /// Steps to an equal value.
    pub ties: u64,
    /// The bits of the first and the last value: a string would not restore every float.
    pub first: Option<u64>,
    pub last: Option<u64>,
}

/// A quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantile {
    /// The fraction of values that are not larger, 0 to 1.
    pub fraction: f64,
    pub value: Value,
}

/// Counts between edges.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// One more than the bins, ascending, all bins equally wide. Times are microseconds since 1970.
    pub edges: Vec<f64>,
    /// Values per bin, from the quantile sketch.
    pub counts: Vec<u64>,
}

/// Lengths of strings, in characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LengthSummary {
    /// The shortest.
    pub min: u64,
    pub mean: f64,
    /// Half are not longer.
    pub median: u64,
    /// 99 % are not longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// Strings without a character.
    pub empty: u64,
}

/// Shapes of strings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatternSummary {
    /// The most frequent shapes: `A` an upper-case letter, `a` another one, `9` a digit, `+` more of the same.
    pub top: Vec<ValueCount>,
    /// How many strings were looked at; a sample if fewer than there are.
    pub rows: u64,
}

/// The statistics of one column. What a type does not have is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ColumnSummary {
    /// The column's name.
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ColumnType,
    pub rows: u64,
    /// Cells without a value.
    pub null_count: u64,
    /// Misfits, strings for missing values, rows of files without the column.
    pub faults: CellFaults,
    /// Different values; 0 where they are not counted: of bytes, lists and objects.
    pub distinct_estimate: u64,
    /// Whether that number, and every count of `top_values`, is exact; not where values were rounded or are not counted.
    pub distinct_is_exact: bool,
    /// Standard error of the number, as a fraction of it; 0 if exact.
    pub distinct_error: f64,
    /// The smallest value; of timestamps, ISO 8601; of strings the first by alphabet, if all are known.
    pub min: Option<Value>,
    /// The largest value.
    pub max: Option<Value>,
    /// Mean of the finite values; of booleans the fraction of `true`.
    pub mean: Option<f64>,
    /// Sample standard deviation.
    pub stddev: Option<f64>,
    pub skewness: Option<f64>,
    /// Kurtosis less 3.
    pub excess_kurtosis: Option<f64>,
    /// Quantiles at 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95 and 0.99.
    pub quantiles: Vec<Quantile>,
    /// By how much a quantile's fraction may be off, in 99 of 100 cases.
    pub quantile_rank_error: f64,
    /// Values between the smallest and the largest.
    pub histogram: Option<Histogram>,
    /// The most frequent values, at most 10.
    pub top_values: Vec<ValueCount>,
    /// By how much their counts may be too low; 0 where exact.
    pub count_error: u64,
    /// Numbers that are NaN.
    pub nan_count: u64,
    pub infinite_count: u64,
    pub zero_count: u64,
    /// Numbers below zero.
    pub negative_count: u64,
    /// Whether values ascend or descend in row order (equal neighbours allowed); of numbers and times.
    pub order: Option<Order>,
    /// Lengths of strings.
    pub lengths: Option<LengthSummary>,
    /// Shapes of strings.
    pub patterns: Option<PatternSummary>,
    /// The association of the column with the label.
    pub label_association: Option<Association>,
    /// Bytes in memory.
    pub size_bytes: u64,
}
