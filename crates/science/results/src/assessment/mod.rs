//! The results of an evaluation. All of it can be written as JSON and read back: no number here is NaN;
//! what could not be computed is absent and explained in [`Assessment::notes`].

mod columns;
mod numbers;
mod residuals;
mod tasks;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{RowCoverage, closed_list};
use trackway_statistics::Estimate;

use crate::search::BlindSpots;
use crate::spellings::MatchedClass;
pub use columns::Columns;
pub use numbers::Number;
pub use residuals::{CURVES_MAX, Depends, POINTS_MAX, ResidualBin, ResidualCurve, ResidualOf, Residuals};
pub use tasks::TaskCoverage;

/// Numbers by the name of the metric, each with its interval.
pub type Metrics = BTreeMap<String, Estimate>;

/// What a table of predictions shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assessment {
    /// What kind of predictions they are.
    pub task: Task,
    /// Which column was taken for what.
    pub columns: Columns,
    /// Rows that were evaluated.
    pub rows: u64,
    /// Rows that the table has: more than were evaluated if it is too large for memory, or if rows lack something.
    pub rows_seen: u64,
    /// Rows without a label or another value that the task needs. They are in no metric.
    pub rows_skipped: u64,
    /// Rows that were evaluated without a prediction: they count as wrong where predictions are right or wrong.
    #[serde(default)]
    pub rows_unanswered: u64,
    /// The evaluated rows, of those that should be: of the table, and of the task set where it is known.
    #[serde(default)]
    pub coverage: RowCoverage,
    /// How the rows cover the task set; absent if there is none.
    #[serde(default)]
    pub tasks: Option<TaskCoverage>,
    /// Metrics that decide nothing, and why: all labels are of one class.
    #[serde(default)]
    pub inconclusive: BTreeMap<String, String>,
    /// Different values of the group column; rows with the same value are resampled together.
    pub groups: Option<u64>,
    /// The confidence level of the intervals, such as 0.95.
    pub confidence: f64,
    /// The number of bootstrap resamples where an interval comes from them.
    pub resamples: u32,
    /// What the draws began with. The same seed gives the same numbers on any number of cores.
    pub seed: u64,
    /// The metric by which slices are compared.
    pub main_metric: String,
    /// The class that counts as positive, with two classes.
    pub positive_class: Option<String>,
    /// Predicted classes that are labels written differently, such as `1` for `true`: they count as those labels.
    #[serde(default)]
    pub matched_classes: Vec<MatchedClass>,
    /// How numbers of classes are averaged in `precision`, `recall` and `f1`.
    pub average: Option<Average>,
    /// All rows.
    pub metrics: Metrics,
    pub classes: Vec<ClassMetrics>,
    /// Rows by label and prediction.
    pub confusion: Option<Confusion>,
    /// Points to draw.
    pub curves: Curves,
    /// Residuals by prediction and by each column that is not a label or prediction, of regression and classification.
    /// Receipts of earlier versions have none.
    #[serde(default)]
    pub residuals: Option<Residuals>,
    /// Slices where the model is worst, if they were searched.
    #[serde(default)]
    pub blind_spots: Option<BlindSpots>,
    /// The requested slices, in the requested order.
    pub slices: Vec<Slice>,
    /// One for each requested column.
    pub fairness: Vec<Fairness>,
    /// Against a baseline on the same rows.
    pub comparison: Option<Comparison>,
    /// What was guessed, left out or could not be computed: sentences for people.
    pub notes: Vec<String>,
}

closed_list!(
    /// What kind of predictions a table holds.
    Task, "task", {
        /// One of a few classes; with a score of the positive class also detection.
        Classification = "classification",
        /// A continuous target.
        Regression = "regression",
        /// The loss of texts; predictions that match exactly or not; several completions of a task.
        LanguageModel = "language_model",
        /// Hypotheses of speech recognition against reference transcripts.
        Transcription = "transcription",
        /// Documents in an order for each query.
        Ranking = "ranking",
        /// The predicted effect of a treatment, in an experiment.
        Uplift = "uplift",
        /// Pixels of images, counted by the evaluator.
        Segmentation = "segmentation",
        /// Boxes in images.
        ObjectDetection = "object_detection",
    }
);

/// How numbers of classes become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ClassAverage")]
#[serde(rename_all = "snake_case")]
pub enum Average {
    /// They are the positive class's.
    Binary,
    /// The mean over the classes, each with the same weight.
    Macro,
}

/// One class against all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassMetrics {
    pub name: String,
    /// Rows with this label.
    pub support: u64,
    /// `precision`, `recall` and `f1`.
    pub metrics: Metrics,
}

/// Rows by label and prediction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confusion {
    /// Of rows and columns, sorted.
    pub classes: Vec<String>,
    /// `counts[label][prediction]`.
    pub counts: Vec<Vec<u64>>,
    /// For each label its rows without a prediction.
    #[serde(default)]
    pub unanswered: Vec<u64>,
}

/// Points to draw, at most 200 of each curve. Empty if there are no scores of two classes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AssessmentCurves")]
pub struct Curves {
    /// Predicted probability against what came true, by bins of the same width.
    pub calibration: Vec<CalibrationBin>,
    /// Fraction of negatives (x) and of positives (y) at or above a score, from (0, 0) to (1, 1).
    pub roc: Vec<Point>,
    /// Recall (x) and precision (y) at or above a score, from the highest score on.
    pub precision_recall: Vec<Point>,
}

/// The most points of a curve.
pub const CURVE_POINTS_MAX: usize = 200;

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CurvePoint")]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
}

/// Rows whose probability is in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationBin {
    /// Where the bin begins; it holds what is above this.
    pub from: f64,
    /// Where it ends, this included.
    pub to: f64,
    /// The mean of the probabilities in it.
    pub predicted: f64,
    /// The fraction of positives.
    pub observed: Estimate,
}

closed_list!(
    /// The result of a comparison.
    ComparisonVerdict, "verdict of a comparison", {
        /// The difference is real and to the good.
        Better = "better",
        /// The difference is real and to the bad.
        Worse = "worse",
        /// There are enough rows to show a difference that matters, and none is shown.
        NoDifferenceShown = "no_difference_shown",
        /// Too few rows: a difference that matters may be there or not.
        Inconclusive = "inconclusive",
    }
);

/// A part of the rows against the rest of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MetricSlice")]
pub struct Slice {
    pub name: String,
    /// The condition on columns that its rows meet.
    pub predicate: String,
    /// Its rows.
    pub support: u64,
    /// Against the rest of the rows, by the main metric.
    pub verdict: ComparisonVerdict,
    /// Why it is inconclusive.
    pub why: Option<String>,
    /// Its numbers.
    pub metrics: Metrics,
    /// The main metric here less that of the rest (of `bias` and `relative_bias` their absolute values). The interval is
    /// for this slice alone.
    pub difference: Option<Estimate>,
    /// The probability of such a difference if there is none, corrected for the number of slices (Holm).
    pub adjusted_p_value: Option<f64>,
    /// The metric by which it is compared, where that is not the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_by: Option<String>,
}

impl Slice {
    /// Its name, with the metric by which it is compared where that is not the main one.
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.name, self.compared_by.as_deref())
    }
}

/// How groups of rows fare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// The column whose values are the groups.
    pub column: String,
    /// `demographic_parity`, `equal_opportunity`, `equalized_odds`, `calibration` (the largest difference between two
    /// groups) and `demographic_parity_ratio`, `equal_opportunity_ratio`, `equalized_odds_ratio` (the least ratio). Of
    /// three or more classes all but `calibration`, each class against all others, the worst over classes; of numbers
    /// `mean_error_parity` and `mean_prediction_parity`, in the label's unit.
    pub measures: Metrics,
    /// Of three or more classes: for each measure the class in which groups differ most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worst_classes: BTreeMap<String, String>,
    /// Each group, the largest first.
    pub groups: Vec<FairnessGroup>,
    /// Rows whose group is missing: they are in no group.
    pub rows_without_group: u64,
}

/// One group of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FairnessGroup {
    /// The value of the column.
    pub name: String,
    /// Its rows.
    pub support: u64,
    /// Whether it is too small for a conclusion; the measures' intervals are wide because of it.
    pub inconclusive: bool,
    pub why: Option<String>,
    /// `accuracy`, `selection_rate`, `true_positive_rate`, `false_positive_rate`, and with probabilities
    /// `calibration_bias` (mean probability minus the fraction of positives) and `ece`. Of three or more classes
    /// `selection_rate_CLASS`, `true_positive_rate_CLASS` and `false_positive_rate_CLASS` of the classes in
    /// `worst_classes`; of numbers `mae`, `mean_prediction` and `bias`.
    pub metrics: Metrics,
}

/// A candidate against a baseline on the same rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BaselineComparison")]
pub struct Comparison {
    /// How rows found each other.
    pub pairing: Pairing,
    /// By the name of the metric.
    pub metrics: BTreeMap<String, Compared>,
    /// McNemar's test of which side is right more often; with labels of classes only.
    pub mcnemar: Option<McNemar>,
    /// The main metric of each slice.
    pub slices: Vec<SliceCompared>,
}

/// How the rows of two tables found each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RowPairing")]
pub struct Pairing {
    /// The column of ids; absent where rows were taken in their order.
    pub id: Option<String>,
    /// Rows on both sides, which are compared.
    pub pairs: u64,
    /// Rows of the baseline that the candidate lacks.
    pub only_baseline: u64,
    /// Rows of the candidate that the baseline lacks.
    pub only_candidate: u64,
    /// Rows whose id is there more than once on a side, or missing: they are not compared.
    pub repeated_ids: u64,
    /// Pairs whose labels are not the same: they are not compared.
    pub different_labels: u64,
}

/// One metric on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ComparedEstimate")]
pub struct Compared {
    /// Of the baseline, over the rows that are on both sides.
    pub baseline: f64,
    pub candidate: f64,
    /// Candidate less baseline; of `bias` and `relative_bias`, whose best value is 0, of their absolute values.
    pub difference: Estimate,
    /// The conclusion.
    pub verdict: ComparisonVerdict,
    /// A difference below this does not matter.
    pub margin: f64,
    /// About how many rows (or groups, if they are resampled) would show it: such a difference, or one of the margin if
    /// that is larger, with a power of 80 %. Only if the verdict is inconclusive.
    pub settles_at: Option<u64>,
}

/// Of the rows on which the sides differ, which is right?
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McNemar {
    /// Rows that only the baseline has right.
    pub only_baseline_right: u64,
    /// Rows that only the candidate has right.
    pub only_candidate_right: u64,
    /// The probability of this, or more, if both were right equally often.
    pub p_value: f64,
    /// Whether the binomial distribution itself was taken.
    pub exact: bool,
}

/// One slice on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ComparedSlice")]
pub struct SliceCompared {
    pub name: String,
    /// Its pairs.
    pub support: u64,
    /// The main metric in it. The verdict takes the corrected p-value.
    pub compared: Compared,
    /// The probability of such a difference if there is none, corrected for the number of slices (Holm).
    pub adjusted_p_value: f64,
    /// The metric by which it is compared, where that is not the main one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_by: Option<String>,
}

impl SliceCompared {
    /// As [`Slice::label`].
    #[must_use]
    pub fn label(&self) -> String {
        label(&self.name, self.compared_by.as_deref())
    }
}

fn label(name: &str, metric: Option<&str>) -> String {
    metric.map_or_else(|| name.to_owned(), |metric| format!("{name} ({metric})"))
}
