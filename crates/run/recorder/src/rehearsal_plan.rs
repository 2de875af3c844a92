//! The plan of a rehearsal for the training loop, and the losses that show that the target is reached.

use std::collections::VecDeque;

use trackway_core::{LaunchKind, Step};
use trackway_formats::rehearsal::loss_rank;

/// Losses that are averaged at most, whatever the number of batches.
const LOSSES_MAX: u64 = 1024;

/// The plan of a rehearsal for the training loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RehearsalPlan {
    /// [`LaunchKind::OneBatch`] or [`LaunchKind::Overfit`].
    pub kind: LaunchKind,
    /// How many batches are repeated; at least 1.
    pub batches: u64,
    /// The loop ends when the mean loss over these batches is at most this fraction of what it was over the first of
    /// them.
    pub target_share: Option<f64>,
    /// The same as a loss; it takes precedence over the fraction.
    pub target_loss: Option<f64>,
}

impl RehearsalPlan {
    /// The step whose batch a step must train on: steps 1 to [`Self::batches`], over and over.
    #[must_use]
    pub fn step_of_batch(&self, step: Step) -> Step {
        step.saturating_sub(1) % self.batches.max(1) + 1
    }
}

/// The losses of the first and of the last pass through the repeated batches.
#[derive(Debug, Default)]
pub(crate) struct LossWatch {
    rank: u8,
    first: Vec<f64>,
    last: VecDeque<f64>,
    pub baseline: Option<f64>,
    pub reported: bool,
}

impl LossWatch {
    pub fn take(&mut self, plan: &RehearsalPlan, name: &str, loss: f64) {
        let rank = loss_rank(name);
        if rank == 0 || rank < self.rank {
            return;
        }
        if rank > self.rank {
            (self.rank, self.first, self.last) = (rank, Vec::new(), VecDeque::new());
        }
        let count = plan.batches.min(LOSSES_MAX) as usize;
        if self.first.len() < count {
            self.first.push(loss);
        }
        if self.last.len() == count {
            self.last.pop_front();
        }
        self.last.push_back(loss);
    }

    /// The mean loss and the target that it is at.
    pub fn reached(&self, plan: &RehearsalPlan) -> Option<(f64, f64)> {
        let count = plan.batches.min(LOSSES_MAX) as usize;
        if self.last.len() < count {
            return None;
        }
        let mean = |sum: f64| sum / count as f64;
        let first = mean(self.first.iter().sum());
        let reference = self.baseline.map_or(first, |baseline| baseline.min(first));
        let now = mean(self.last.iter().sum());
        let target = plan.target_loss.or_else(|| Some(reference * plan.target_share?))?;
        (now <= target).then_some((now, target))
    }
}
