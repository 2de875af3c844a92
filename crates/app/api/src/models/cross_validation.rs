//! Cross-validation: a run for each fold, and what they show together.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{GroupId, RunId, closed_list};
use trackway_ledger::{EvaluationState, RunState};
use trackway_results::split::{SplitMethod, SplitProof};
use trackway_statistics::Estimate;

/// What a cross-validation showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossValidation {
    /// The name of the run file's run; the runs of the folds are called `NAME-fold-1` …
    pub name: String,
    /// The group of the runs of the folds: the events `grouped` of the runs have it.
    pub group_id: GroupId,
    /// What the folds are made by.
    pub method: SplitMethod,
    /// The seed of the folds.
    pub seed: u64,
    /// What was proved of them.
    pub proof: SplitProof,
    /// The folder with the rows of the folds.
    pub folder: PathBuf,
    /// How the script got the rows of its fold; null: nothing shows that it did, and the numbers are of something else.
    pub rows_given_by: Option<FoldRows>,
    /// The folds that were launched, in order.
    pub folds: Vec<FoldResult>,
    /// How many folds there are.
    pub fold_count: usize,
    /// The metrics that every fold has; empty unless all were evaluated.
    pub metrics: BTreeMap<String, FoldedMetric>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

closed_list!(
    /// How a script gets the rows of its fold.
    FoldRows, "way in which rows of a fold are given", {
        /// A word of its command is the path.
        Command = "command",
        /// It took the path from Trackway (`run.data`).
        Taken = "taken",
    }
);

/// One fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoldResult {
    /// Its number, from 1.
    pub fold: usize,
    /// Rows that its run was trained on.
    pub rows_trained: u64,
    /// Rows that it was evaluated on.
    pub rows_held_out: u64,
    pub run_id: RunId,
    /// How the run ended.
    pub state: RunState,
    /// The evaluation on the held-out rows; null: there was none.
    pub evaluation_id: Option<String>,
    /// How that ended.
    pub evaluation_state: Option<EvaluationState>,
    pub metrics: BTreeMap<String, f64>,
    /// Why this fold does not count; null: it does.
    pub why_not: Option<String>,
}

/// A metric over the folds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoldedMetric {
    /// The mean, with its 95 % interval corrected for the training rows that folds share. Of a fraction it is computed on the scale of the
    /// logit, of a number that cannot be negative on that of the logarithm, so that it is within the range of the metric.
    pub mean: Estimate,
    /// The standard deviation over the folds.
    pub standard_deviation: f64,
    /// The least value.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}
