//! The shim: a tiny process between the supervisor and the script that outlives the former.
//!
//! What it guarantees:
//! - The script starts at most once per attempt folder (`shim.lock` is held, `shim.json` is written before).
//! - Its outputs are open before it starts, are always drained, and reach the disk without secrets. The script never
//!   blocks or dies because a disk is full.
//! - The attempt ends when the main process has ended *and* nothing of its process tree is left (`end/ending.rs` decides
//!   which may continue for how long). Descendants that leave their parents stay with the shim (it is their subreaper).
//! - `exit.json` then appears at once, complete, and survives a power cut; its space was reserved at the start.
//!
//! What may crash when: the supervisor at any time, without effect. The shim before `shim.json` exists: nothing was
//! started, the launch may be repeated. The shim later: its lock is free and there is no exit record, which proves that
//! the end was not seen; [`crate::LocalLauncher`] then looks for what is left of the script by its environment.

mod attempt;
mod checkpoints;
mod end;
mod metrics;
mod opened;
mod output;
mod script;
mod side;
mod signals;
mod telemetry;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use serde::{Deserialize, Serialize};
use trackway_core::{Clock, Timestamp};
use trackway_files::{TempFile, open_own};
use trackway_formats::layout::AttemptLayout;
use trackway_redact::Redactor;
use trackway_system::SystemClock;

use crate::StoredLaunch;
use crate::files::read_json;
use crate::process::{MachineIdentity, ProcessIdentity};
use crate::terminal::ShimSide;
use attempt::Attempt;
pub use metrics::course::{printed_course, steps_are};
pub use output::log::BACKLOG_BYTES_MAX;
pub use output::times::{LineTime, MARK_EVERY_BYTES, TIME_RECORD_BYTES};

/// The version of `shim.json` that this crate writes.
pub const SHIM_VERSION: u32 = 1;

/// The processes of an attempt: `shim.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShimRecord {
    pub version: u32,
    pub shim: ProcessIdentity,
    /// The machine it runs on.
    pub machine: MachineIdentity,
    /// The script's main process; absent before it starts, and when it could not be started.
    pub child: Option<ProcessIdentity>,
    /// When the shim began.
    pub started_at: Timestamp,
    /// When the main process ended while others continued with its output.
    pub main_ended_at: Option<Timestamp>,
}

impl ShimRecord {
    /// Reads `shim.json`; `None` when the attempt never began.
    ///
    /// # Errors
    /// The file cannot be read or is not a shim record.
    pub fn read(directory: &Path) -> io::Result<Option<Self>> {
        read_json(&AttemptLayout::new(directory).shim_json())
    }

    fn write(&self, files: &AttemptLayout) -> io::Result<()> {
        TempFile::write_cache(&files.shim_json(), &serde_json::to_vec_pretty(self)?)
    }
}

/// What the shim writes to its standard output, one line, as soon as the attempt has begun.
pub const READY_LINE: &str = "ready";

/// Why a shim gave up before the script could start. Its text goes to the launcher.
#[derive(Debug, thiserror::Error)]
enum ShimError {
    #[error("another shim holds `shim.lock`")]
    Locked,
    #[error("the attempt was started before")]
    StartedBefore,
    #[error("there is no launch.json in the attempt's folder")]
    NoLaunch,
    #[error("cannot {what}: {source}{}", what_to_do(.source))]
    Io { what: &'static str, source: io::Error },
}

fn what_to_do(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space",
        _ => "",
    }
}

trait Doing<T> {
    fn doing(self, what: &'static str) -> Result<T, ShimError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: &'static str) -> Result<T, ShimError> {
        self.map_err(|source| ShimError::Io { what, source: source.into() })
    }
}

/// Runs one attempt to its end: what `trackway __shim <attempt folder> -- argv…` does. `argv` is the true command; it
/// is stored nowhere. The process's environment must be the script's. Standard output takes one line for the launcher
/// ([`READY_LINE`], or why not) and is closed then.
///
/// Must be called before the process opens any file or starts any thread: every descriptor above 2 is closed.
///
/// Returns the exit code for the shim itself: 0 when the exit record was written, whatever its content; 1 otherwise.
#[must_use]
pub fn run(directory: &Path, argv: &[OsString]) -> i32 {
    match run_attempt(directory, argv) {
        Ok(()) => 0,
        Err(error) => {
            report_launcher(&error.to_string());
            1
        }
    }
}

fn run_attempt(directory: &Path, argv: &[OsString]) -> Result<(), ShimError> {
    close_inherited();
    let terminal = take_terminal();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let signals = signals::open().doing("block signals")?;
    // A terminal's Ctrl-C and its end must not reach the attempt. A session leader already is what it should be.
    nix::unistd::setsid().ok();
    nix::sys::prctl::set_child_subreaper(true).doing("become the subreaper")?;
    let files = AttemptLayout::new(directory);
    let _lock = lock(&files)?;
    let launch = StoredLaunch::read(directory).doing("read launch.json")?.ok_or(ShimError::NoLaunch)?;
    if ShimRecord::read(directory).doing("read shim.json")?.is_some() {
        return Err(ShimError::StartedBefore);
    }
    let machine = MachineIdentity::current().doing("identify this machine")?;
    let shim = ProcessIdentity::of(std::process::id() as i32).doing("read /proc")?.ok_or(ShimError::Io {
        what: "find this process in /proc",
        source: io::Error::from(io::ErrorKind::NotFound),
    })?;
    let record = ShimRecord {
        version: SHIM_VERSION,
        shim,
        machine,
        child: None,
        started_at: clock.now(),
        main_ended_at: None,
    };
    let redactor = Redactor::of_this_process();
    let mut attempt = Attempt::prepare(clock, files, launch, record, signals, &redactor)?;
    attempt.start(argv, terminal);
    report_launcher(READY_LINE);
    attempt.supervise();
    attempt.finish()
}

/// Closes the descriptors that the launching process had inherited without knowing: a lock of the shell, the pipe of a
/// command substitution, a job server. The shim outlives it, and would hold them for as long as it lives.
fn close_inherited() {
    // SAFETY: this process has opened nothing yet but its standard descriptors (the contract of `run`), so no
    // descriptor in use is closed. A kernel without the call (before 5.9) leaves them open, as before.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Takes the terminals of the script, where the launcher has any for it. Standard input is empty from then on.
fn take_terminal() -> ShimSide {
    let terminal = ShimSide::receive(io::stdin().as_fd());
    if let Ok(null) = OpenOptions::new().read(true).open("/dev/null") {
        nix::unistd::dup2_stdin(&null).ok();
    }
    terminal
}

fn lock(files: &AttemptLayout) -> Result<Flock<File>, ShimError> {
    let path = files.shim_lock();
    let file = open_own(OpenOptions::new().write(true).create(true).truncate(false), &path);
    Flock::lock(file.doing("open shim.lock")?, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        match errno {
            nix::errno::Errno::EWOULDBLOCK => ShimError::Locked,
            errno => ShimError::Io { what: "lock shim.lock", source: errno.into() },
        }
    })
}

/// Writes one line to the launcher and closes the connection, so that the launcher never waits for more. It may be
/// gone; that changes nothing.
fn report_launcher(line: &str) {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").ok();
    stdout.flush().ok();
    if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        nix::unistd::dup2_stdout(&null).ok();
    }
}
