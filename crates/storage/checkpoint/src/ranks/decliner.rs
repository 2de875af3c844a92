use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_core::Step;

/// The most steps that are remembered as declined; older ones are declined anyway when a later step is saved.
const MAX_DECLINED: usize = 64;

/// Declines a step for a rank, from any thread, so that the others need not wait for it.
#[derive(Debug, Clone, Default)]
pub struct Decliner(Arc<Mutex<BTreeSet<Step>>>);

impl Decliner {
    /// This rank will not save that step. Does not wait; rank 0 learns of it when this rank next looks into the log.
    pub fn decline(&self, step: Step) {
        let mut steps = self.steps();
        steps.insert(step);
        while steps.len() > MAX_DECLINED {
            steps.pop_first();
        }
    }

    pub(super) fn steps(&self) -> MutexGuard<'_, BTreeSet<Step>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
