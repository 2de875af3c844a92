//! The specification of an evaluation.

use trackway_core::MissingPredictions;
use trackway_results::assessment::{Columns, Task};

use super::tasks::TaskMatch;
use crate::documents::costs::Costs;
use crate::slices::{SliceLimits, SliceRows};

/// The specification of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Columns that are known; the others are found by their names.
    pub columns: Columns,
    /// Guessed from the columns where absent.
    pub task: Option<Task>,
    /// The positive one of two classes; the last one where absent.
    pub positive: Option<String>,
    /// The confidence level of intervals.
    pub confidence: f64,
    /// The number of bootstrap resamples.
    pub resamples: u32,
    /// What the draws begin with.
    pub seed: u64,
    /// Bootstrap even where a formula gives the interval.
    pub always_resample: bool,
    /// The recall at which precision is taken for `precision_at_recall`.
    pub recall: f64,
    /// What each kind of error costs; without it there is no metric `cost`.
    pub costs: Option<Costs>,
    /// The metric by which slices are compared; the task's default if absent.
    pub main_metric: Option<String>,
    /// Parts of the rows.
    pub slices: Vec<SliceRows>,
    /// Columns whose values are groups to be treated alike.
    pub fairness: Vec<String>,
    /// When a slice or group is too small.
    pub limits: SliceLimits,
    /// A difference from the baseline below this does not matter.
    pub margin: Option<f64>,
    /// Whether to search the rows for slices where the model is worst.
    pub blind_spots: bool,
    /// How rows without a prediction count.
    pub missing: MissingPredictions,
    /// How the rows cover the task set; absent if there is none.
    pub tasks: Option<TaskMatch>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            columns: Columns::default(),
            task: None,
            positive: None,
            confidence: 0.95,
            resamples: 1_000,
            seed: 0,
            always_resample: false,
            recall: 0.9,
            costs: None,
            main_metric: None,
            slices: Vec::new(),
            fairness: Vec::new(),
            limits: SliceLimits::default(),
            margin: None,
            blind_spots: false,
            missing: MissingPredictions::default(),
            tasks: None,
        }
    }
}
