//! What a process knows of the attempts of runs. A sealed attempt does not change, so that a process reads it once, however many follow it.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use trackway_core::{LaunchKind, RunId};

/// Folds that a process keeps: a supervisor has a few of its run, and of its evaluations.
const FOLDS_MAX: usize = 64;

/// The type of a fold, and the launches that it is over.
type Key = (TypeId, RunId, LaunchKind);

/// A fold of any type, and the number of the first attempt that is not in it.
type FoldState = (Arc<dyn Any + Send + Sync>, u32);

/// Folds over the sealed attempts of runs, each from the first attempt on and without a gap.
#[derive(Default)]
pub(crate) struct Folds(Mutex<FoldCache>);

#[derive(Default)]
struct FoldCache {
    /// Each with its turn: those that were kept later have greater ones.
    folds: BTreeMap<Key, (FoldState, u64)>,
    next_turn: u64,
}

impl FoldCache {
    /// Keeps a fold, in the place of the one that was kept longest ago where there are too many.
    fn keep(&mut self, key: Key, fold: FoldState) {
        self.folds.insert(key, (fold, self.next_turn));
        self.next_turn += 1;
        if self.folds.len() > FOLDS_MAX {
            let oldest = self.folds.iter().min_by_key(|(_, (_, turn))| *turn).map(|(key, _)| *key);
            if let Some(key) = oldest {
                self.folds.remove(&key);
            }
        }
    }
}

impl Folds {
    /// What is known of the launches of a run before the number `before`. It is the caller's to complete until it is kept again.
    pub fn take<F: Default + Any + Send + Sync>(
        &self,
        (run_id, kind): (RunId, LaunchKind),
        before: u32,
    ) -> (Arc<F>, u32) {
        let key = (TypeId::of::<F>(), run_id, kind);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).folds.remove(&key);
        let known = known.map(|(fold, _)| fold).filter(|(_, next)| *next <= before);
        let known = known.and_then(|(fold, next)| Some((fold.downcast().ok()?, next)));
        // The attempts of a run are numbered from 1.
        known.unwrap_or_else(|| (Arc::default(), 1))
    }

    /// Keeps what the next caller does not read again.
    pub fn keep<F: Any + Send + Sync>(
        &self,
        (run_id, kind): (RunId, LaunchKind),
        (fold, next): (Arc<F>, u32),
    ) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.keep((TypeId::of::<F>(), run_id, kind), (fold, next));
    }
}

#[cfg(test)]
mod tests {
    use trackway_core::SequentialIds;

    use super::*;

    /// Proves that where there are too many folds the one that was kept longest ago goes, and no other.
    #[test]
    fn the_oldest_fold_goes() {
        let (folds, ids) = (Folds::default(), SequentialIds::default());
        let runs: Vec<RunId> = (0..=FOLDS_MAX).map(|_| RunId::new(&ids)).collect();
        let keep = |run_id: RunId| folds.keep((run_id, LaunchKind::Train), (Arc::new(7_u64), 3));
        let (last, first) = runs.split_last().unwrap();
        first.iter().for_each(|run_id| keep(*run_id));
        // The first is used again, so that the second is the oldest.
        keep(runs[0]);
        keep(*last);
        let is_known = |run_id: &RunId| folds.take::<u64>((*run_id, LaunchKind::Train), 9).1 == 3;
        let gone: Vec<&RunId> = runs.iter().filter(|run_id| !is_known(run_id)).collect();
        assert_eq!(gone, [&runs[1]]);
    }
}
