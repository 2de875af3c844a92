//! What a person or the system asks of the supervisor by signal.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static STOP_REQUESTS: AtomicU32 = AtomicU32::new(0);
static LAST_STOP_SIGNAL: AtomicU32 = AtomicU32::new(0);
static DETACH_REQUESTS: AtomicU32 = AtomicU32::new(0);

static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_stop(signal: nix::libc::c_int) {
    LAST_STOP_SIGNAL.store(signal.unsigned_abs(), Ordering::SeqCst);
    STOP_REQUESTS.fetch_add(1, Ordering::SeqCst);
    STOPPED.store(true, Ordering::SeqCst);
}

extern "C" fn on_hangup(_: nix::libc::c_int) {
    DETACH_REQUESTS.fetch_add(1, Ordering::SeqCst);
}

/// Counts SIGINT and SIGTERM as requests to stop, and SIGHUP (the terminal closed) as a request to let go: the
/// script goes on without a supervisor.
pub fn install() {
    let stop = SigAction::new(SigHandler::Handler(on_stop), SaFlags::empty(), SigSet::empty());
    let hangup = SigAction::new(SigHandler::Handler(on_hangup), SaFlags::empty(), SigSet::empty());
    for (signal, action) in [(Signal::SIGINT, stop), (Signal::SIGTERM, stop), (Signal::SIGHUP, hangup)] {
        // SAFETY: the handlers only touch atomics, which is async-signal-safe.
        let installed = unsafe { sigaction(signal, &action) };
        debug_assert!(installed.is_ok(), "these three signals may be handled");
    }
}

/// For a command that only reads: the first SIGINT or SIGTERM asks it to end, the second ends it at once. What is given
/// becomes true when it was asked.
pub fn install_once() -> &'static AtomicBool {
    let stop = SigAction::new(SigHandler::Handler(on_stop), SaFlags::SA_RESETHAND, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler only touches atomics, which is async-signal-safe.
        let installed = unsafe { sigaction(signal, &stop) };
        debug_assert!(installed.is_ok(), "these two signals may be handled");
    }
    &STOPPED
}

/// How often a stop was asked for since the process began: 1 stops gracefully, 2 kills.
pub fn stop_requests() -> u32 {
    STOP_REQUESTS.load(Ordering::SeqCst)
}

/// The name of the signal that asked last.
pub fn last_stop_signal() -> &'static str {
    i32::try_from(LAST_STOP_SIGNAL.load(Ordering::SeqCst))
        .ok()
        .and_then(|number| Signal::try_from(number).ok())
        .map_or("a signal", Signal::as_str)
}

/// Whether the terminal is gone.
pub fn detach_requested() -> bool {
    DETACH_REQUESTS.load(Ordering::SeqCst) > 0
}
