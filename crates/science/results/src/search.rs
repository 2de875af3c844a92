//! Slices of a table where a model is worse than it is on the whole.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::closed_list;
use trackway_statistics::Estimate;

use crate::spellings::MatchedClass;

/// A slice as people write it: the value of each column, `None` where it is missing.
pub type Predicate = BTreeMap<String, Option<String>>;

/// Such as `age [25, 31) · sector Private`.
#[must_use]
pub fn shown_predicate(predicate: &Predicate) -> String {
    let part = |(name, value): (&String, &Option<String>)| {
        format!("{name} {}", value.as_deref().unwrap_or("missing"))
    };
    predicate.iter().map(part).collect::<Vec<_>>().join(" · ")
}

/// The blind spots of a table of errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SliceSearch")]
pub struct Answer {
    /// Slices by score, the highest first.
    pub slices: Vec<ErrorSlice>,
    /// Slices of an earlier answer that are no longer among the best.
    pub resolved: Vec<ErrorSlice>,
    /// The rows that were searched.
    pub searched: Side,
    /// The rows that slices were measured with; `None` where none were kept.
    pub held_out: Option<Side>,
    /// Rows that were left out because their error is not known.
    pub rows_without_error: u64,
    /// How errors were computed, where they were.
    pub loss: Option<Loss>,
    /// Predicted classes that are labels written differently: they count as those labels.
    #[serde(default)]
    pub matched_classes: Vec<MatchedClass>,
    /// Whether errors are how much the candidate's exceed the baseline's.
    pub is_paired: bool,
    /// The weight of error against size.
    pub alpha: f64,
    /// The fewest searched rows of a slice.
    pub min_support: u32,
    /// The most predicates of a slice.
    pub max_level: usize,
    /// The fraction of false ones among confirmed slices stays within this.
    pub false_discovery_rate: f64,
    /// Decides which rows are held out.
    pub seed: u64,
    /// The columns that slices are made of.
    pub features: Vec<FeatureAccount>,
    /// What was looked at, by number of predicates.
    pub levels: Vec<LevelAccount>,
    /// Slices whose rows were counted.
    pub evaluated: u64,
    /// Slices left out because they could not be among the best.
    pub pruned: u64,
    /// Whether the search reached its depth: always, unless a level does not fit into memory.
    pub is_complete: bool,
}

/// Rows, and how far off they are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SearchedRows")]
pub struct Side {
    pub rows: u64,
    /// Their mean error; where candidate and baseline are compared, of held-out rows the mean difference.
    pub average_error: f64,
}

/// One slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorSlice {
    /// Which rows it has.
    pub predicate: Predicate,
    /// Searched rows.
    pub size: u64,
    /// The mean error of these. Chosen for being large, it is larger than what comes again: see `held_out`.
    pub average_error: f64,
    /// SliceLine's score.
    pub score: f64,
    /// What held-out rows show.
    pub held_out: Option<HeldOutSlice>,
    /// The probability that held-out rows show as much without a cause.
    pub p_value: Option<f64>,
    /// The same, corrected for the number of slices in the answer.
    pub adjusted_p_value: Option<f64>,
    /// Where the p-value comes from.
    pub test: Option<Test>,
    /// The place in the answer, from 0, of the first slice with the same searched rows, if that is another one.
    pub same_rows_as: Option<usize>,
    /// Other slices that name the same rows: one finding with this one.
    #[serde(default)]
    pub also_described_by: Vec<AlikeSlice>,
    /// What that means.
    pub verdict: SliceVerdict,
    /// What became of it since the earlier answer.
    pub change: Option<SliceChange>,
    /// Its mean error in the earlier result: on held-out rows, or on searched ones if none were held out.
    pub earlier_average_error: Option<f64>,
}

impl ErrorSlice {
    /// Whether it is of this predicate, or another description of the same rows is.
    #[must_use]
    pub fn is_described_by(&self, predicate: &Predicate) -> bool {
        self.predicate == *predicate || self.also_described_by.iter().any(|it| it.predicate == *predicate)
    }
}

/// Another description of the rows of a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlikeSlice {
    /// Which rows it has.
    pub predicate: Predicate,
    /// Searched rows.
    pub size: u64,
    /// Searched rows of both, as a fraction of those of either: at least 0.95.
    pub overlap: f64,
}

closed_list!(
    /// Whether a slice is real.
    SliceVerdict, "verdict of a slice", {
        /// Held-out rows show it too.
        Confirmed = "confirmed",
        /// They do not show it; it may be random.
        NotConfirmed = "not_confirmed",
        /// No rows were held out, or none of them has a known error.
        Inconclusive = "inconclusive",
    }
);

closed_list!(
    /// What became of a slice since an earlier answer.
    SliceChange, "change of a slice", {
        /// It was not among the best.
        New = "new",
        /// Its error is above what the earlier interval allows, and the earlier error below what this one allows.
        Worse = "worse",
        /// The other way round.
        Better = "better",
        /// No difference is shown.
        Same = "same",
        /// It is no longer among the best.
        Resolved = "resolved",
    }
);

/// What held-out rows show of a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldOutSlice {
    /// Rows of the slice.
    pub size: u64,
    /// Their mean error, or the mean difference of candidate and baseline; `None` without a row.
    pub average_error: Option<Estimate>,
}

/// Where a p-value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SignificanceTest")]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Errors of 0 and 1: the permutation test with every permutation made, which is Fisher's exact test.
    Hypergeometric,
    /// Random permutations of the errors among the rows.
    Permutation,
    /// Differences of −1, 0 and 1: the sign test, which is McNemar's exact test.
    Sign,
    /// Candidate and baseline changed places at random, many times.
    SignFlips,
    /// The signs of whole groups drawn at random, many times: a wild cluster bootstrap with the null hypothesis imposed
    /// (Cameron, Gelbach and Miller 2008). Needs some tens of groups to be right.
    GroupSignFlips,
}

/// How far off a prediction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ErrorLoss")]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// 0 where it is right, else 1.
    ZeroOne,
    /// The square of the difference.
    Squared,
    /// The difference without its sign.
    Absolute,
}

/// A feature as it is reported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SearchedFeature")]
pub struct FeatureAccount {
    /// The column.
    pub name: String,
    /// Where each bin of numbers begins; `None` for a column whose values are taken as they are.
    pub edges: Option<Vec<f64>>,
    /// Values that enough rows have to be searched, missing included.
    pub values: usize,
}

/// What was looked at of one number of predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SearchedLevel")]
pub struct LevelAccount {
    /// Predicates of each slice.
    pub level: usize,
    /// Slices that could be made of those before.
    pub candidates: u64,
    /// Slices whose rows were counted.
    pub evaluated: u64,
    /// Slices left out because they cannot be among the best, or because a parent was.
    pub pruned: u64,
}

/// Where a model is worse than it is on the whole, found in the rows of its evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlindSpots {
    /// What the error of a row is.
    pub loss: Loss,
    /// The mean error of all rows.
    pub error: Estimate,
    /// The rows that were searched.
    pub searched: Side,
    /// The rows that slices were measured with.
    pub held_out: Option<Side>,
    /// The fewest searched rows of a slice.
    pub min_support: u32,
    /// The most predicates of a slice.
    pub max_level: usize,
    /// Whether the search reached its depth.
    pub is_complete: bool,
    /// The worst slices for their size, the highest score first; those that held-out rows confirm are blind spots.
    pub slices: Vec<ErrorSlice>,
}

impl BlindSpots {
    /// The slices that held-out rows show too.
    pub fn confirmed(&self) -> impl Iterator<Item = &ErrorSlice> {
        self.slices.iter().filter(|slice| slice.verdict == SliceVerdict::Confirmed)
    }
}
