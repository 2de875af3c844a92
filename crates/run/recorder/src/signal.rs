use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use nix::libc::{self, c_int, c_void, siginfo_t};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use trackway_core::Clock as _;
use trackway_system::SystemClock;

/// When SIGTERM first arrived.
#[derive(Debug)]
pub(crate) struct Arrival(AtomicI64);

/// The arrival in this process, on the monotonic clock of [`SystemClock`].
pub(crate) static SIGTERM: Arrival = Arrival::none();

/// The process that installed the handler. Children that it forks have the handler too.
static OWNER_PID: AtomicI32 = AtomicI32::new(NO_PROCESS);

const NO_PROCESS: i32 = 0;
const NOT_YET: i64 = i64::MIN;

impl Arrival {
    pub const fn none() -> Self {
        Self(AtomicI64::new(NOT_YET))
    }

    /// Remembers the first call only: the grace period does not restart.
    pub fn note(&self, now_micros: i64) {
        let _ = self.0.compare_exchange(NOT_YET, now_micros, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub fn at_micros(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| *at != NOT_YET)
    }
}

/// Remembers the signal. A child that its parent ends (a worker pool that is closed) ends as it would without the
/// handler; one that gets the signal because the whole process group has to stop leaves the decision to the parent.
///
/// Reads a clock that was read before, stores to an atomic, and calls what is async-signal-safe.
extern "C" fn remember(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    SIGTERM.note(SystemClock.monotonic_micros());
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

/// Makes SIGTERM be remembered instead of ending the process.
pub(crate) fn install() -> nix::Result<()> {
    OWNER_PID.store(std::process::id() as i32, Ordering::Relaxed);
    handle()
}

/// Makes this process outlive a SIGTERM that does not come from its parent.
///
/// For worker processes that end themselves at SIGTERM otherwise: a stop is sent to the whole process group, and a
/// parent whose workers are gone cannot save what it has. Only another handler undoes it.
///
/// # Errors
/// When the system refuses the handler.
pub fn outlive_sigterm_of_others() -> std::io::Result<()> {
    OWNER_PID.store(NO_PROCESS, Ordering::Relaxed);
    handle().map_err(Into::into)
}

fn handle() -> nix::Result<()> {
    // The clock's first reading sets it up, which must not happen inside the handler.
    SystemClock.monotonic_micros();
    let flags = SaFlags::SA_RESTART | SaFlags::SA_SIGINFO;
    let action = SigAction::new(SigHandler::SigAction(remember), flags, SigSet::empty());
    // SAFETY: the handler does only what is async-signal-safe, see there.
    unsafe { sigaction(Signal::SIGTERM, &action) }.map(|_| ())
}
