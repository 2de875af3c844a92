//! What is wrong with a table, beside the findings of its checks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_statistics::Interval;

use crate::personal::PersonalKind;

/// Rows with the same values of the grouping columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DataGroup")]
pub struct Group {
    pub columns: Vec<String>,
    /// Their values, in the order of the columns.
    pub values: Vec<String>,
    pub rows: u64,
    /// Their fraction of all rows.
    pub fraction: f64,
    /// The class whose rate is reported, or nothing for a continuous label.
    pub label_value: Option<String>,
    /// The fraction of rows with that class among those with a label, or the mean of the label. `None` without a label.
    pub label_rate: Option<f64>,
    /// The rate's 95 % interval (Wilson 1927; Student's t for a mean), as `low` and `high`.
    #[serde(flatten)]
    pub interval: Interval,
}

/// Personal data of one kind in one column; never a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PersonalColumn {
    pub column: String,
    pub kind: PersonalKind,
    /// How many were found.
    pub count: u64,
    /// Whether a sign-off that counts names this column and kind.
    pub signed_off: bool,
}

/// A label that seems to be wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SuspectLabel")]
pub struct Suspect {
    pub file: String,
    /// The row, as a person counts them in the file.
    pub row: u64,
    /// The label given.
    pub given: String,
    /// The label that is most likely.
    pub likely: String,
    /// The probability of the given label.
    pub given_probability: f64,
    /// The probability of the likely label.
    pub likely_probability: f64,
}

/// What was found about labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelNoise {
    /// The surest first, at most 10,000.
    pub suspects: Vec<Suspect>,
    /// How many there are.
    pub suspect_count: u64,
    /// The estimated fraction of wrong labels; rows where classes overlap count into it, so it is too high rather than
    /// too low.
    pub noise_fraction: f64,
    /// Labelled rows that were checked.
    pub rows_judged: u64,
    /// Rows of the table.
    pub rows: u64,
    /// The fraction of checked rows whose most likely class is the given one.
    pub accuracy: f64,
    /// The fraction of the most frequent class: the accuracy of always predicting it.
    pub majority_fraction: f64,
}
