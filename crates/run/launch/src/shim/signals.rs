//! Signals of the shim: they wait in a descriptor and are handled in the loop, never in a handler.

use std::io;

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What a signal means to the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// A child ended, or several.
    Reap,
    /// Stop the attempt, beginning with this signal; `grace_millis` when the sender set how long to wait.
    Stop { first: Signal, grace_millis: Option<i32> },
    /// Pass this on to the script.
    Forward(Signal),
}

const HANDLED: [Signal; 8] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCONT,
    Signal::SIGCHLD,
];

/// Blocks the signals that the shim handles and opens the descriptor they wait in. Ignores those that would end the
/// shim because a disk is full or a reader went away.
pub(super) fn open() -> io::Result<SignalFd> {
    for signal in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigIgn) }?;
    }
    let mask: SigSet = HANDLED.into_iter().collect();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

/// The next request; `None` when none waits.
pub(super) fn next(signals: &SignalFd) -> io::Result<Option<Request>> {
    let Some(info) = signals.read_signal()? else { return Ok(None) };
    let signal = Signal::try_from(info.ssi_signo as i32)?;
    Ok(Some(match signal {
        Signal::SIGCHLD => Request::Reap,
        Signal::SIGTERM | Signal::SIGINT => {
            let queued = info.ssi_code == libc::SI_QUEUE;
            Request::Stop { first: signal, grace_millis: queued.then_some(info.ssi_int) }
        }
        other => Request::Forward(other),
    }))
}

/// Gives the script the signals as a fresh process has them. Runs between fork and exec: async-signal-safe calls only.
pub(super) fn reset_for_script() -> io::Result<()> {
    // SAFETY: sigemptyset, sigprocmask and signal are async-signal-safe and get valid pointers; failures for SIGKILL,
    // SIGSTOP and numbers without a signal are of no interest.
    unsafe {
        for number in 1..=libc::SIGRTMAX() {
            libc::signal(number, libc::SIG_DFL);
        }
        let mut empty: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut empty);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const empty, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
