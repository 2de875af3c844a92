//! Signals become requests to end what is being done.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level};
use trackway_system::Cancel;

/// A file that may not become larger (`ulimit -f`) is an error that is reported, and does not end this process without a word.
pub fn outlive_full_files() {
    // Not ignored: what this process starts would ignore it too.
    on(SIGXFSZ, || {});
}

/// What may be behind an error of a file: the system says only that it could not be written.
pub fn file_limit_hint(message: &str) -> Option<String> {
    let (bytes, _) = getrlimit(Resource::RLIMIT_FSIZE).ok().filter(|(bytes, _)| *bytes != RLIM_INFINITY)?;
    let is_write = ["disk I/O error", "File too large", "database or disk is full"]
        .iter()
        .any(|it| message.contains(it));
    is_write.then(|| {
        format!("no file of this process may become larger than {bytes} bytes: raise the limit with `ulimit -f unlimited`")
    })
}

/// SIGINT and SIGTERM request a stop, the second time a kill; SIGHUP (the terminal was closed) leaves the script
/// running without a supervisor.
pub fn supervise(cancel: &Cancel) {
    stopping(cancel);
    let cancel = cancel.clone();
    on(SIGHUP, move || cancel.detach());
}

/// The same for a supervisor without a terminal: SIGHUP does nothing to it.
pub fn supervise_detached(cancel: &Cancel) {
    stopping(cancel);
    // Not ignored: what this process starts would ignore it too.
    on(SIGHUP, || {});
}

/// For a command that only reads: the first SIGINT or SIGTERM requests its end, the second ends it at once.
pub fn interruptible(cancel: &Cancel) {
    for signal in [SIGINT, SIGTERM] {
        let registered = flag::register_conditional_default(signal, cancel.is_stopped().clone());
        debug_assert!(registered.is_ok(), "this signal may be handled");
        let cancel = cancel.clone();
        on(signal, move || cancel.end());
    }
}

fn stopping(cancel: &Cancel) {
    for signal in [SIGINT, SIGTERM] {
        let cancel = cancel.clone();
        on(signal, move || cancel.stop(signal));
    }
}

fn on(signal: i32, action: impl Fn() + Send + Sync + 'static) {
    // SAFETY: every action here only touches atomics, which is async-signal-safe.
    let registered = unsafe { low_level::register(signal, action) };
    debug_assert!(registered.is_ok(), "this signal may be handled");
}
