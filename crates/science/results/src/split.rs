//! A table that was split into parts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// By what rows are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SplitMethod {
    /// By the hash of the row's key.
    Hash,
    /// By the hash of the row's group, which stays whole.
    Group,
    /// By hash within each class, so that every part has every class's fraction to the row.
    Stratified,
    /// Groups stay whole, and every part has about the same fraction of every class.
    StratifiedGroup,
    /// By time: later parts hold later rows.
    Time,
}

/// What was found when the assignment was looked at from scratch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SplitProof {
    /// Different rows (by key) that are in two parts. By hash and stratified it must be 0.
    pub rows_shared: u64,
    /// Groups that are in two parts; `None` without groups. By group it must be 0.
    pub groups_shared: Option<u64>,
    /// Different rows or groups that are in two folds. It must be 0, but for time.
    pub folds_shared: Option<u64>,
    /// Pairs of neighbouring parts of which the later does not begin after the earlier ends; `None` without a time.
    pub times_overlapping: Option<u64>,
    /// Rows of a rung that a larger one lacks; `None` without rungs. It must be 0.
    pub rungs_not_nested: Option<u64>,
    /// Rows that have no part, because they have no time.
    pub rows_without_part: u64,
}

impl SplitProof {
    /// Whether what the method promises holds.
    #[must_use]
    pub fn holds(&self, method: SplitMethod) -> bool {
        let none = |count: Option<u64>| count.unwrap_or(0) == 0;
        let promised = match method {
            SplitMethod::Hash | SplitMethod::Stratified => self.rows_shared == 0,
            SplitMethod::Group | SplitMethod::StratifiedGroup => none(self.groups_shared),
            SplitMethod::Time => none(self.times_overlapping),
        };
        promised && none(self.rungs_not_nested) && (method == SplitMethod::Time || none(self.folds_shared))
    }
}
