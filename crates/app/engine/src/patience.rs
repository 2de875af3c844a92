//! The state of the ledger's server, and its errors as a use case reports them.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// Called with a sentence when a wait begins and when it ends.
pub type TellWait = Box<dyn Fn(&str) + Send + Sync>;

/// What is known of the ledger's server, and how long it is waited for.
#[derive(Default)]
pub(crate) struct Patience {
    pub(crate) supervisor_seconds: AtomicU64,
    pub(crate) outage: Mutex<Outage>,
    pub(crate) tell: Option<TellWait>,
}

/// An outage while it lasts; `failures` is 0 when there is none. Times are of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    pub(crate) failures: u32,
    pub(crate) since_micros: i64,
    pub(crate) next_try_micros: i64,
    pub(crate) reported: bool,
}
