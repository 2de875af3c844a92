//! Why a table cannot be evaluated.

use trackway_data::model::Frame;
use trackway_results::assessment::{Pairing, Task};

use crate::limits::{CLASSES_MAX, FAIRNESS_GROUPS_MAX};

pub(crate) type Result<T, E = AssessError> = std::result::Result<T, E>;

/// Why a table cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssessError {
    #[error("there is no column `{name}`; there are {known}")]
    NoColumn { name: String, known: String },
    /// A column of lists or objects.
    #[error("{0}: each row must have one value; write lists of labels as a row for each, or as one text")]
    NotValues(String),
    #[error("no {0} column found: name it with `--{0} COLUMN`")]
    NoColumnFor(&'static str),
    #[error("`{0}` is both the label and the prediction column: a column always agrees with itself")]
    SameColumn(String),
    #[error("`{0}` contains strings, but numbers are needed")]
    NoNumbers(String),
    #[error(
        "the table shows no label with a prediction or score, no loss, no reference with a hypothesis, no query with a \
         relevance, no counts of pixels and no boxes: name the columns (`--label`, `--prediction`, `--score` …)"
    )]
    NoTask,
    /// More than [`CLASSES_MAX`].
    #[error(
        "`{column}` has {classes} classes, more than {CLASSES_MAX}: is it continuous (`--task regression`) or free text?"
    )]
    TooManyClasses { column: String, classes: usize },
    #[error("`{column}` has no class `{class}`; there are {classes}")]
    NoClass { class: String, column: String, classes: String },
    #[error(
        "`{label}` and `{prediction}` have no class in common, so no prediction can be right: labels {labels}; predictions \
         {predictions}. Name the right columns, or write both alike; free text is evaluated with `--task language_model`"
    )]
    NoCommonClass { label: String, prediction: String, labels: String, predictions: String },
    #[error("a positive class needs two classes, but there are {0}")]
    NotTwoClasses(usize),
    #[error("there are scores of other classes, but none of `{0}`")]
    NoScoreOf(String),
    #[error("no row has both a label and a prediction or score")]
    NoRows,
    #[error("fairness needs predicted classes or numbers (classification or regression)")]
    NotFairly,
    /// More than [`FAIRNESS_GROUPS_MAX`].
    #[error(
        "`{column}` has {groups} values, more than the {FAIRNESS_GROUPS_MAX} groups that can be compared"
    )]
    TooManyGroups { column: String, groups: usize },
    #[error("the cost matrix has classes that the table lacks: {unknown}; the table has {classes}")]
    CostsOfUnknown { unknown: String, classes: String },
    #[error("a cost matrix needs classification, but the task is {}", .0.as_str().replace('_', " "))]
    CostsWithoutClasses(Task),
    #[error("`{column}` is {value} in row {row}: a treatment is 1 (treated) or 0 (not treated)")]
    NotATreatment { column: String, row: u64, value: String },
    #[error("`{column}` is {value} in every row: uplift needs treated rows (1) and others (0)")]
    OneArm { column: String, value: u8 },
    #[error("`{column}` has the value `{value}`: a row of object detection is a `label` or a `prediction`")]
    NotAKind { column: String, value: String },
    #[error("there is no metric `{name}` here; there are {known}")]
    NoMetric { name: String, known: String },
    #[error(
        "the baseline has {baseline} rows and the candidate {candidate}: name the column that pairs them (`--id COLUMN`)"
    )]
    DifferentRows { baseline: u64, candidate: u64 },
    #[error(
        "no row of the baseline is a row of the candidate: {} ids only there, {} only here, {} repeated or missing, {} with \
         another label", .0.only_baseline, .0.only_candidate, .0.repeated_ids, .0.different_labels
    )]
    NoPairs(Box<Pairing>),
    #[error("{0}")]
    OutOfRange(String),
}

impl AssessError {
    pub(crate) fn no_column(frame: &Frame, name: &str) -> Self {
        let unreadable = frame.left_out().iter().find(|why| why.starts_with(&format!("`{name}` ")));
        if let Some(why) = unreadable {
            return Self::NotValues(why.clone());
        }
        let known: Vec<&str> = frame.columns().iter().map(|column| column.name.as_str()).collect();
        Self::NoColumn { name: name.to_owned(), known: known.join(", ") }
    }
}
