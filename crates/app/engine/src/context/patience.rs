//! The state of the ledger's server, which requests share, and how long each of them waits for it.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of the ledger's server while it does not answer; `failures` is 0 when it does. Times are of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    pub(crate) failures: u32,
    pub(crate) since_micros: i64,
    pub(crate) next_try_micros: i64,
}

/// How long a request waits for the ledger's server.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// That of a supervisor; 0: it supervises nothing.
    pub(crate) supervisor_seconds: AtomicU64,
    /// When the outage began that was reported, until its end is.
    reported_since_micros: Mutex<Option<i64>>,
}

impl Patience {
    pub(crate) fn reported(&self) -> MutexGuard<'_, Option<i64>> {
        self.reported_since_micros.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
