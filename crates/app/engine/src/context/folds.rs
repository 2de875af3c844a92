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
type Kept = (Arc<dyn Any + Send + Sync>, u32);

/// Folds over the sealed attempts of runs, each from the first attempt on and without a gap.
#[derive(Default)]
pub(crate) struct Folds(Mutex<BTreeMap<Key, Kept>>);

impl Folds {
    /// What is known of the launches of a run before the number `before`. It is the caller's to complete until it is kept again.
    pub fn take<F: Default + Any + Send + Sync>(
        &self,
        (run_id, kind): (RunId, LaunchKind),
        before: u32,
    ) -> (Arc<F>, u32) {
        let key = (TypeId::of::<F>(), run_id, kind);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        let known = known.filter(|(_, next)| *next <= before);
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
        if known.len() >= FOLDS_MAX {
            known.clear();
        }
        known.insert((TypeId::of::<F>(), run_id, kind), (fold, next));
    }
}
