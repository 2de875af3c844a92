//! Why a table cannot be evaluated.

use trackway_data::model::Frame;

use crate::assessment::{Pairing, Task};
use crate::limits::{CLASSES_MAX, FAIRNESS_GROUPS_MAX};

/// Why a table cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssessError {
    /// Not in the table.
    #[error("there is no column `{name}`; there are {known}")]
    NoColumn {
        /// The requested name.
        name: String,
        /// The columns that there are.
        known: String,
    },
    /// No column is known to have this role.
    #[error("no {0} column found: name it with `--{0} COLUMN`")]
    NoColumnFor(&'static str),
    /// One column for what should be compared.
    #[error("`{0}` is both the label and the prediction column: a column always agrees with itself")]
    SameColumn(String),
    /// Strings where numbers are needed.
    #[error("`{0}` contains strings, but numbers are needed")]
    NoNumbers(String),
    /// Columns of no task.
    #[error(
        "the table shows no label with a prediction or score, no loss, no reference with a hypothesis, no query with a \
         relevance, no counts of pixels and no boxes: name the columns (`--label`, `--prediction`, `--score` …)"
    )]
    NoTask,
    /// More than [`CLASSES_MAX`].
    #[error(
        "`{column}` has {classes} classes, more than {CLASSES_MAX}: is it continuous (`--task regression`) or free text?"
    )]
    TooManyClasses {
        /// The label's column.
        column: String,
        /// How many.
        classes: usize,
    },
    /// A positive class that is not there.
    #[error("`{column}` has no class `{class}`; there are {classes}")]
    NoClass {
        /// The requested class.
        class: String,
        /// The label's column.
        column: String,
        /// What there is.
        classes: String,
    },
    /// A positive class of many.
    #[error("a positive class needs two classes, but there are {0}")]
    NotTwoClasses(usize),
    /// Scores of some classes.
    #[error("there are scores of other classes, but none of `{0}`")]
    NoScoreOf(String),
    /// Every row lacks something.
    #[error("no row has both a label and a prediction or score")]
    NoRows,
    /// Fairness of something else than classes and numbers.
    #[error("fairness needs predicted classes or numbers (classification or regression)")]
    NotFairly,
    /// More than [`FAIRNESS_GROUPS_MAX`].
    #[error(
        "`{column}` has {groups} values, more than the {FAIRNESS_GROUPS_MAX} groups that can be compared"
    )]
    TooManyGroups {
        /// The column.
        column: String,
        /// How many.
        groups: usize,
    },
    /// Costs of classes that are not there.
    #[error("the cost matrix has classes that the table lacks: {unknown}; the table has {classes}")]
    CostsOfUnknown {
        /// These classes.
        unknown: String,
        /// What there is.
        classes: String,
    },
    /// Costs of something else than classes.
    #[error("a cost matrix needs classification, but the task is {}", .0.as_str().replace('_', " "))]
    CostsWithoutClasses(Task),
    /// A treatment that is neither 0 nor 1.
    #[error("`{column}` is {value} in row {row}: a treatment is 1 (treated) or 0 (not treated)")]
    NotATreatment {
        /// The treatment's column.
        column: String,
        /// From 1.
        row: u64,
        /// What is there.
        value: String,
    },
    /// An experiment without a comparison.
    #[error("`{column}` is {value} in every row: uplift needs treated rows (1) and others (0)")]
    OneArm {
        /// The treatment's column.
        column: String,
        /// What all rows have.
        value: u8,
    },
    /// A row that is neither a label nor a prediction.
    #[error("`{column}` has the value `{value}`: a row of object detection is a `label` or a `prediction`")]
    NotAKind {
        /// The column.
        column: String,
        /// What is there.
        value: String,
    },
    /// A metric that this table does not give.
    #[error("there is no metric `{name}` here; there are {known}")]
    NoMetric {
        /// The requested name.
        name: String,
        /// What there is.
        known: String,
    },
    /// Sides that cannot be paired by order.
    #[error(
        "the baseline has {baseline} rows and the candidate {candidate}: name the column that pairs them (`--id COLUMN`)"
    )]
    DifferentRows {
        /// Rows there.
        baseline: u64,
        /// Rows here.
        candidate: u64,
    },
    /// Nothing in common.
    #[error(
        "no row of the baseline is a row of the candidate: {} ids only there, {} only here, {} repeated or missing, {} with \
         another label", .0.only_baseline, .0.only_candidate, .0.repeated_ids, .0.different_labels
    )]
    NoPairs(Box<Pairing>),
    /// A number out of range.
    #[error("{0}")]
    OutOfRange(String),
}

impl AssessError {
    pub(crate) fn no_column(frame: &Frame, name: &str) -> Self {
        let known: Vec<&str> = frame.columns().iter().map(|column| column.name.as_str()).collect();
        Self::NoColumn { name: name.to_owned(), known: known.join(", ") }
    }
}
