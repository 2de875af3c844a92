use serde::Serialize;
use trackway_core::Step;

use super::fall_back::{FallBackCost, Pace};
use super::reading::{Watch, watched_view};
use super::{CheckpointEntry, Checkpoints};
use crate::error::AppError;

/// The answer to `trackway checkpoint resume-target`.
#[derive(Debug, Clone, Serialize)]
pub struct ResumeTarget {
    /// The one checkpoint, verified.
    pub checkpoints: Vec<CheckpointEntry>,
    /// Newer ones that may not be resumed from, newest first.
    pub passed_over: Vec<PassedOver>,
    /// What that costs.
    pub cost: FallBackCost,
}

/// A checkpoint that was passed over.
#[derive(Debug, Clone, Serialize)]
pub struct PassedOver {
    /// Its step; none when even the log entry that names it cannot be read.
    pub step: Option<Step>,
    /// Why.
    pub why: String,
}

impl Checkpoints {
    /// The checkpoint a resume would take, every byte of it read, what was passed over, and what that costs.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::NotFound`] when nothing was committed, `Integrity` when nothing verifies.
    pub fn resume_target(&self, watch: &Watch) -> Result<ResumeTarget, AppError> {
        let infos = self.view()?.list();
        let newest = infos.iter().rev().find(|info| info.on_branch);
        let total_bytes = newest.and_then(|info| info.size_bytes).unwrap_or(0);
        let view = watched_view(&self.root, watch, total_bytes)?;
        let found = view.resume_target().map_err(|error| self.error(&error))?;
        let target = found.ok_or_else(|| self.nothing_committed())?;
        let passed = target.fallbacks.into_iter().map(|it| PassedOver { step: it.step, why: it.why });
        let mut entry = self.entry(&view, target.info);
        entry.verified = Some(true);
        Ok(ResumeTarget {
            checkpoints: vec![entry],
            passed_over: passed.collect(),
            cost: FallBackCost::of(target.lost_steps, Pace::measured(self.attempts())),
        })
    }
}
