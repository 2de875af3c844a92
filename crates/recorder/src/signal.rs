use std::sync::atomic::{AtomicI64, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use trackway_core::Clock as _;

use crate::system::SystemClock;

/// When SIGTERM first arrived.
#[derive(Debug)]
pub(crate) struct Arrival(AtomicI64);

/// The arrival in this process, on the monotonic clock of [`SystemClock`].
pub(crate) static SIGTERM: Arrival = Arrival::none();

const NOT_YET: i64 = i64::MIN;

impl Arrival {
    pub const fn none() -> Self {
        Self(AtomicI64::new(NOT_YET))
    }

    /// Remembers the first call only: the grace period does not begin anew.
    pub fn note(&self, now_micros: i64) {
        let _ = self.0.compare_exchange(NOT_YET, now_micros, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn at_micros(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at != NOT_YET)
    }
}

/// Reading a clock that was read before and storing to an atomic: both may be done in a signal handler.
extern "C" fn remember(_signal: nix::libc::c_int) {
    SIGTERM.note(SystemClock.monotonic_micros());
}

/// Makes SIGTERM be remembered instead of ending the process.
pub(crate) fn install() -> nix::Result<()> {
    // The clock's first reading sets it up, which must not happen inside the handler.
    SystemClock.monotonic_micros();
    let action = SigAction::new(SigHandler::Handler(remember), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler only does what is async-signal-safe, see there.
    unsafe { sigaction(Signal::SIGTERM, &action) }.map(|_| ())
}
