use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use nix::libc::{self, c_int, c_void, siginfo_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static SIGTERM_ARRIVED: AtomicBool = AtomicBool::new(false);

/// The process that asked for the handler. Children that it forks have the handler too.
static OWNER_PID: AtomicI32 = AtomicI32::new(0);

/// Remembers the signal. A child that its own parent ends (a worker pool that is closed) ends as it would without the
/// handler; one that is met because the whole process group is told to stop leaves it to the parent what to do.
///
/// Calls only what is async-signal-safe.
extern "C" fn remember(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    SIGTERM_ARRIVED.store(true, Ordering::Relaxed);
    // SAFETY: the kernel hands a valid `info` to a handler that was installed with SA_SIGINFO; the calls have no
    // preconditions.
    unsafe {
        let is_child = libc::getpid() != OWNER_PID.load(Ordering::Relaxed);
        if is_child && !info.is_null() && (*info).si_pid() == libc::getppid() {
            libc::signal(signal, libc::SIG_DFL);
            // It is blocked while this handler runs, and taken when it returns.
            libc::raise(signal);
        }
    }
}

/// Makes SIGTERM set a flag instead of ending the process.
pub(crate) fn install() -> nix::Result<()> {
    OWNER_PID.store(std::process::id() as i32, Ordering::Relaxed);
    handle()
}

/// Makes this process outlive a SIGTERM that does not come from its parent.
///
/// For worker processes that end themselves at SIGTERM otherwise: a stop is sent to the whole process group, and a
/// parent whose workers are gone cannot save what it has. Calls of it are not undone by anything but another handler.
///
/// # Errors
/// When the system refuses the handler.
pub fn outlive_sigterm_of_others() -> std::io::Result<()> {
    OWNER_PID.store(0, Ordering::Relaxed);
    handle().map_err(Into::into)
}

fn handle() -> nix::Result<()> {
    let flags = SaFlags::SA_RESTART | SaFlags::SA_SIGINFO;
    let action = SigAction::new(SigHandler::SigAction(remember), flags, SigSet::empty());
    // SAFETY: the handler does only what is async-signal-safe.
    unsafe { sigaction(Signal::SIGTERM, &action) }.map(|_| ())
}

/// Whether SIGTERM arrived since [`install`].
pub(crate) fn sigterm_arrived() -> bool {
    SIGTERM_ARRIVED.load(Ordering::Relaxed)
}
