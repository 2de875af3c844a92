//! The state of the ledger's server, and its errors as a use case reports them.

use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use trackway_ledger::LedgerError;

use crate::error::{AppError, ErrorKind};

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
    pub(crate) told: bool,
}

/// An error of the ledger as one of a use case.
#[must_use]
pub fn ledger_error(error: &LedgerError) -> AppError {
    let kind = match error.kind() {
        trackway_ledger::ErrorKind::NotFound => ErrorKind::NotFound,
        trackway_ledger::ErrorKind::Usage => ErrorKind::Usage,
        trackway_ledger::ErrorKind::Integrity => ErrorKind::Integrity,
        trackway_ledger::ErrorKind::Locked => ErrorKind::Locked,
        trackway_ledger::ErrorKind::Unavailable => ErrorKind::Unavailable,
        trackway_ledger::ErrorKind::Changed => ErrorKind::Changed,
        trackway_ledger::ErrorKind::Newer | trackway_ledger::ErrorKind::Fault => ErrorKind::Fault,
    };
    let shown = AppError::new(kind, error.to_string());
    match error {
        LedgerError::Ambiguous { .. } => shown.hint("use the full id"),
        _ => shown,
    }
}
