//! Checkpoints for supervision: the state of a log, what is kept, and the cost of falling back to an older one.

mod fall_back;
mod mirror;
mod policy;

use std::path::Path;

use trackway_checkpoint::CheckpointView;

use crate::error::AppError;
pub(crate) use fall_back::PaceSums;
pub use fall_back::{Pace, fall_back_cost, notice as fall_back_notice, skipped_newer};
pub(crate) use mirror::{RungCheckpoints, mirror_now, with_values_at_steps};
pub use mirror::{mirror_run, one_per_prefix, stale_rows};
pub use policy::{keep_variables, policy_of};

/// The log of a run's checkpoint root; empty when nothing was ever begun.
pub fn view(root: &Path) -> Result<CheckpointView, AppError> {
    CheckpointView::open(root).map_err(|error| AppError::fault("the checkpoints could not be read", error))
}
