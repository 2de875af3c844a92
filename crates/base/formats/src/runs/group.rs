//! Groups of runs: runs that one request starts and whose results are read together.

use serde::{Deserialize, Serialize};
use trackway_core::{GroupId, closed_list};

closed_list!(
    /// What a group of runs is for.
    GroupKind, "kind of group", {
        /// The folds of a cross-validation.
        CrossValidation = "cross_validation",
    }
);

/// The place of a run in its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunGroup {
    pub group_id: GroupId,
    pub kind: GroupKind,
    /// The name of the run whose changes its members are.
    pub name: String,
    /// Which member the run is, from 1.
    pub member: usize,
    /// How many members are planned.
    pub size: usize,
}
