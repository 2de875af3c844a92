use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static SIGTERM_ARRIVED: AtomicBool = AtomicBool::new(false);

/// Storing to an atomic is all that a signal handler may safely do here.
extern "C" fn remember(_signal: nix::libc::c_int) {
    SIGTERM_ARRIVED.store(true, Ordering::Relaxed);
}

/// Makes SIGTERM set a flag instead of ending the process.
pub(crate) fn install() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(remember), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
    unsafe { sigaction(Signal::SIGTERM, &action) }.map(|_| ())
}

/// Whether SIGTERM arrived since [`install`].
pub(crate) fn sigterm_arrived() -> bool {
    SIGTERM_ARRIVED.load(Ordering::Relaxed)
}
