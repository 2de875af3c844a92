use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, BoxError, Clock as _};
use trackway_files::{TempFile, if_there};
use trackway_formats::layout::AttemptLayout;
use trackway_redact::Redactor;
use trackway_system::SystemClock;

use crate::local_offer::{self, NAME};
use crate::process::{
    MachineIdentity, PidFd, ProcessIdentity, ProcessStat, Whereabouts, processes_of_attempt,
};
use crate::shim::{READY_LINE, ShimRecord};
use crate::{
    AttemptChannel, EngineRequest, ExitRecord, FolderChannel, Instance, LaunchError, LaunchSpec, Launcher,
    Observation, ObservedAttempt, Offer, Placement, Refusal, Resources, Running, StackDump, StopMode,
    StoredLaunch, stacks,
};

/// A shim that has not begun after so long is not waited for any longer.
pub const START_MILLIS_MAX: u16 = 30_000;
/// The subcommand under which the binary runs [`crate::shim::run`].
pub const SHIM_COMMAND: &str = "__shim";

/// A look costs a few reads in `/proc`, and [`Launcher::wait`] returns as soon as the shim ends.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// So long a second stop waits for the shim to read the first one, looking so often.
const REQUEST_MILLIS_MAX: u64 = 5_000;
const REQUEST_NAP_MILLIS: u64 = 5;

/// Starts attempts as processes of this machine, each with a shim.
#[derive(Debug, Clone)]
pub struct LocalLauncher {
    binary: PathBuf,
    /// Its name in the settings.
    engine: Option<String>,
    /// The accelerators of its machine, where its device files are not looked at.
    gpus: Option<u32>,
}

/// How a local attempt is found again: [`Placement::extra`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LocalPlace {
    directory: PathBuf,
    attempt_id: String,
    shim: ProcessIdentity,
    machine: MachineIdentity,
    #[serde(default)]
    devices: Vec<String>,
}

impl LocalLauncher {
    /// `binary` is started as `binary __shim <attempt folder> -- argv…` and must then call [`crate::shim::run`] before
    /// it does anything else; normally it is `std::env::current_exe()`.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self { binary: binary.into(), engine: None, gpus: None }
    }

    /// The same as an engine of the settings.
    #[must_use]
    pub fn named(self, engine: impl Into<String>) -> Self {
        Self { engine: Some(engine.into()), ..self }
    }

    /// The same on a machine that has so many accelerators; none: as many as its device files show.
    #[must_use]
    pub fn with_gpus(self, gpus: Option<u32>) -> Self {
        Self { gpus, ..self }
    }

    fn found(&self, directory: &Path) -> Result<Option<Placement>, LaunchError> {
        let placement = find(directory)?;
        Ok(placement.map(|placement| Placement { engine: self.engine.clone(), ..placement }))
    }

    /// The machine is looked at only where something of it is requested.
    fn check_request(&self, spec: &LaunchSpec) -> Result<(), LaunchError> {
        if spec.request == EngineRequest::default() {
            return Ok(());
        }
        // Attempts before this one may have filled what was free: before the first one it was looked at.
        let resources = Resources { disk_bytes: None, ..spec.request.resources.clone() };
        let request = EngineRequest { resources, ..spec.request.clone() };
        let unmet = self.offer(&spec.directory)?.unmet(&request);
        if unmet.is_empty() { Ok(()) } else { Err(refused(spec, Refusal::listed(&unmet))) }
    }

    fn start_shim(&self, spec: &LaunchSpec) -> Result<(), LaunchError> {
        let terminal = spec.terminal.as_ref().map(|terminal| terminal.hand_over()).transpose();
        let terminal = terminal.map_err(|error| unavailable("hand a terminal to the shim", error))?.flatten();
        let mut shim = Command::new(&self.binary);
        trackway_files::restore_umask(&mut shim);
        let mut shim = shim
            .arg(SHIM_COMMAND)
            .arg(&spec.directory)
            .arg("--")
            .args(&spec.argv)
            .envs(spec.script_environment())
            .stdin(terminal.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| unavailable("start the shim", error))?;
        let answer =
            read_answer(&mut shim).map_err(|error| unavailable("get a reply from the shim", error))?;
        if answer.trim() == READY_LINE {
            return Ok(());
        }
        // It gave up before the script began; its status is taken so that it leaves nothing behind.
        shim.wait().ok();
        if began_elsewhere(&spec.directory) {
            return Ok(());
        }
        let why =
            if answer.is_empty() { "it exited without a message; is the disk full?" } else { answer.trim() };
        Err(unavailable("start the shim", why))
    }
}

/// Whether another launch of the same attempt was faster: then that one is the launch. While its shim holds the lock
/// and has not written its identity, it is about to.
fn began_elsewhere(directory: &Path) -> bool {
    const NAP_MILLIS: u16 = 5;
    for _ in 0..START_MILLIS_MAX / NAP_MILLIS {
        if ShimRecord::read(directory).is_ok_and(|shim| shim.is_some()) {
            return true;
        }
        if !lock_is_held(directory).unwrap_or(false) {
            break;
        }
        std::thread::sleep(Duration::from_millis(NAP_MILLIS.into()));
    }
    ShimRecord::read(directory).is_ok_and(|shim| shim.is_some())
}

/// The shim's one line; empty when it ended without one.
fn read_answer(shim: &mut Child) -> io::Result<String> {
    let Some(stdout) = shim.stdout.take() else { return Ok(String::new()) };
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)];
    loop {
        match poll(&mut fds, PollTimeout::from(START_MILLIS_MAX)) {
            // A Ctrl-C that is handled elsewhere, or a child that ended.
            Err(Errno::EINTR) => {}
            Ok(0) => return Err(io::Error::from(io::ErrorKind::TimedOut)),
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut line = String::new();
    BufReader::new(stdout.take(4096)).read_line(&mut line)?;
    Ok(line)
}

impl Launcher for LocalLauncher {
    fn name(&self) -> &'static str {
        NAME
    }

    fn engine(&self) -> Option<&str> {
        self.engine.as_deref()
    }

    fn offer(&self, directory: &Path) -> Result<Offer, LaunchError> {
        let offer = local_offer::now(directory, self.gpus);
        let offer = offer.map_err(|error| unavailable("look at its machine", error))?;
        Ok(Offer { engine: self.engine.clone(), ..offer })
    }

    fn launch(&self, spec: &LaunchSpec, redactor: &Redactor) -> Result<Placement, LaunchError> {
        check(spec)?;
        if let Some(placement) = self.found(&spec.directory)? {
            return Ok(placement);
        }
        self.check_request(spec)?;
        let files = AttemptLayout::new(&spec.directory);
        trackway_files::make_folders(&spec.directory)
            .map_err(|error| file_error("make the folder", spec.directory.clone(), error))?;
        let stored = serde_json::to_vec_pretty(&spec.stored(redactor)).map_err(io::Error::from);
        stored
            .and_then(|bytes| TempFile::write_cache(&files.launch_json(), &bytes))
            .map_err(|error| file_error("write", files.launch_json(), error))?;
        self.start_shim(spec)?;
        self.found(&spec.directory)?
            .ok_or_else(|| unavailable("find the shim", io::Error::from(io::ErrorKind::NotFound)))
    }

    fn find(&self, _attempt_id: AttemptId, directory: &Path) -> Result<Option<Placement>, LaunchError> {
        self.found(directory)
    }

    fn observe(&self, placement: &Placement) -> Result<ObservedAttempt, LaunchError> {
        let place = place_of(placement)?;
        let seen_at = SystemClock.now();
        let state = look(&place)
            .unwrap_or_else(|error| Observation::CannotTell { why: error.to_string(), is_lasting: false });
        let ProcessIdentity { pid, start_ticks } = place.shim;
        Ok(ObservedAttempt {
            state,
            seen_at,
            engine_state: None,
            submitted_at: None,
            started_at: None,
            instance: Some(Instance(format!("{}/{pid}/{start_ticks}", place.machine.boot_id))),
            hosts: vec![place.machine.host],
            devices: place.devices,
        })
    }

    fn wait(&self, placement: &Placement, timeout: Duration) -> Result<ObservedAttempt, LaunchError> {
        let place = place_of(placement)?;
        match here(&place).and_then(|here| if here { PidFd::open(place.shim) } else { Ok(None) }) {
            Ok(Some(shim)) => {
                let ended = shim.wait(timeout).unwrap_or(false);
                if ended {
                    // If the shim is this process's child its status is waiting; otherwise there is nothing to take.
                    waitpid(Pid::from_raw(place.shim.pid), Some(WaitPidFlag::WNOHANG)).ok();
                }
            }
            _ => {
                let seen = self.observe(placement)?;
                if seen.is_final() {
                    return Ok(seen);
                }
                // No handle to wait on (another machine, or a script without its shim): a bounded nap.
                std::thread::sleep(timeout.min(Duration::from_secs(1)));
            }
        }
        self.observe(placement)
    }

    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL
    }

    fn stop(&self, placement: &Placement, mode: StopMode) -> Result<(), LaunchError> {
        let place = place_of(placement)?;
        let seen = self.observe(placement)?.state;
        if !seen.is_final() && !here(&place).unwrap_or(false) {
            let why =
                format!("its processes belong to `{}` and cannot be reached from here", place.machine.host);
            return Err(unavailable("stop the attempt", why));
        }
        let stopped = match seen {
            Observation::Running(Running { unsupervised: true, .. }) => stop_unsupervised(&place, mode),
            Observation::CannotTell { why, .. } => Err(io::Error::other(why)),
            ended if ended.is_final() => Ok(()),
            _ => stop_through_shim(&place, mode),
        };
        stopped.map_err(|error| unavailable("stop the attempt", error))
    }

    fn channel(&self, placement: &Placement) -> Result<Arc<dyn AttemptChannel>, LaunchError> {
        Ok(Arc::new(FolderChannel::new(place_of(placement)?.directory)))
    }

    fn stacks(&self, placement: &Placement) -> Result<StackDump, LaunchError> {
        const WHAT: &str = "read the stacks";
        let place = place_of(placement)?;
        if !here(&place).unwrap_or(false) {
            let why =
                format!("its processes belong to `{}` and cannot be seen from here", place.machine.host);
            return Err(unavailable(WHAT, why));
        }
        let mut processes =
            processes_of_attempt(&place.attempt_id).map_err(|error| unavailable(WHAT, error))?;
        processes.retain(|process| process.pid != place.shim.pid);
        Ok(stacks::take(&processes, &AttemptLayout::new(&place.directory).stacks()))
    }
}

fn check(spec: &LaunchSpec) -> Result<(), LaunchError> {
    let refuse = |why: &str| Err(refused(spec, why.to_owned()));
    let has_nul = |text: &OsStr| text.as_bytes().contains(&0);
    if spec.argv.first().is_none_or(|program| program.is_empty()) {
        refuse("the command is empty; give a program and its arguments")
    } else if spec.argv.iter().any(|word| has_nul(word))
        || spec.environment.iter().any(|(name, value)| has_nul(name.as_ref()) || has_nul(value))
    {
        refuse("the command or the environment holds a NUL byte, which cannot be passed to a process")
    } else if spec.environment.keys().any(|name| name.is_empty() || name.contains('=')) {
        refuse("a variable of the environment has an empty name or a `=` in its name")
    } else if !spec.directory.is_absolute() || !spec.working_directory.is_absolute() {
        refuse("the attempt's folder and the working directory must be absolute paths")
    } else {
        Ok(())
    }
}

fn refused(spec: &LaunchSpec, why: String) -> LaunchError {
    LaunchError::Refused { attempt: spec.attempt_id.to_string(), why }
}

/// The attempt in a folder, by what its shim wrote there.
fn find(directory: &Path) -> Result<Option<Placement>, LaunchError> {
    let files = AttemptLayout::new(directory);
    let shim = ShimRecord::read(directory).map_err(|error| file_error("read", files.shim_json(), error))?;
    let launch =
        StoredLaunch::read(directory).map_err(|error| file_error("read", files.launch_json(), error))?;
    let (Some(shim), Some(launch)) = (shim, launch) else { return Ok(None) };
    let place = LocalPlace {
        directory: directory.to_owned(),
        attempt_id: launch.attempt_id.to_string(),
        shim: shim.shim,
        machine: shim.machine,
        devices: launch.details.devices,
    };
    Ok(Some(Placement {
        launcher: NAME.to_owned(),
        engine: None,
        job_id: place.shim.pid.to_string(),
        queue: None,
        extra: serde_json::to_value(place).expect("a struct of strings and numbers becomes JSON"),
    }))
}

fn place_of(placement: &Placement) -> Result<LocalPlace, LaunchError> {
    let foreign = || LaunchError::ForeignPlacement { expected: NAME, found: placement.launcher.clone() };
    if placement.launcher != NAME {
        return Err(foreign());
    }
    serde_json::from_value(placement.extra.clone()).map_err(|_| foreign())
}

fn here(place: &LocalPlace) -> io::Result<bool> {
    Ok(place.machine.seen_from(&MachineIdentity::current()?) == Whereabouts::Here)
}

/// The state according to the files, the lock and the processes. An error means: unknown.
///
/// As long as the shim lives the attempt has not ended, whatever the folder says: the script can write there, too. The shim's own record is
/// the last thing it writes and replaces any other.
fn look(place: &LocalPlace) -> io::Result<Observation> {
    let machine = MachineIdentity::current()?;
    let then = &place.machine;
    let whereabouts = then.seen_from(&machine);
    if is_shim_seen(place, whereabouts)? {
        return Ok(running(place, false));
    }
    if let Some(exit) = readable_record(place)? {
        return Ok(Observation::Exited(Box::new(exit)));
    }
    match whereabouts {
        Whereabouts::Elsewhere => Ok(Observation::CannotTell {
            why: format!("it was started on `{}`, but this is `{}`", then.host, machine.host),
            is_lasting: true,
        }),
        Whereabouts::HereBeforeReboot => Ok(Observation::Gone {
            why: format!("`{}` rebooted since the launch, and there is no exit record", then.host),
            rebooted: true,
        }),
        Whereabouts::OtherContainer => Ok(Observation::CannotTell {
            why: "it was started in another container of this machine, whose processes cannot be seen"
                .to_owned(),
            is_lasting: true,
        }),
        Whereabouts::Here => without_shim(place),
    }
}

/// Whether the shim is alive, as far as this can be seen from here.
fn is_shim_seen(place: &LocalPlace, whereabouts: Whereabouts) -> io::Result<bool> {
    match whereabouts {
        Whereabouts::Here => Ok(place.shim.is_alive()? || lock_is_held(&place.directory)?),
        Whereabouts::OtherContainer => lock_is_held(&place.directory),
        Whereabouts::Elsewhere | Whereabouts::HereBeforeReboot => Ok(false),
    }
}

/// The exit record. One that is there and cannot be parsed (a damaged disk) is as good as none: its lock and its
/// processes then show whether the attempt ended.
fn readable_record(place: &LocalPlace) -> io::Result<Option<ExitRecord>> {
    match ExitRecord::read(&place.directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
            Ok(None)
        }
        read => read,
    }
}

/// The shim is proved gone. It may have just ended normally, or it was killed.
fn without_shim(place: &LocalPlace) -> io::Result<Observation> {
    if let Some(exit) = readable_record(place)? {
        return Ok(Observation::Exited(Box::new(exit)));
    }
    let left = survivors(place)?;
    if !left.is_empty() {
        return Ok(running(place, true));
    }
    let full = if is_full(&place.directory) { "; the disk of its folder is full" } else { "" };
    let why = format!(
        "the shim (process {}) ended without a readable exit record, its lock is free, and no process of the attempt is left{full}",
        place.shim.pid
    );
    Ok(Observation::Gone { why, rebooted: false })
}

/// Whether there is no room for one file more. A file system that counts no blocks says nothing of that.
fn is_full(directory: &Path) -> bool {
    nix::sys::statvfs::statvfs(directory).is_ok_and(|disk| disk.blocks() > 0 && disk.blocks_available() == 0)
}

fn running(place: &LocalPlace, unsupervised: bool) -> Observation {
    let shim = ShimRecord::read(&place.directory).ok().flatten();
    Observation::Running(Running {
        pid: shim.as_ref().and_then(|shim| shim.child).map(|child| child.pid),
        main_ended_at: shim.and_then(|shim| shim.main_ended_at),
        unsupervised,
    })
}

/// Processes of the attempt that outlived its shim: the main one by identity, all others by their environment.
fn survivors(place: &LocalPlace) -> io::Result<Vec<ProcessStat>> {
    let mut left = processes_of_attempt(&place.attempt_id)?;
    if let Some(child) = ShimRecord::read(&place.directory)?.and_then(|shim| shim.child)
        && let Some(stat) = ProcessStat::read(child.pid)?.filter(|stat| child.matches(stat))
        && !left.contains(&stat)
    {
        left.push(stat);
    }
    Ok(left)
}

/// Whether some process holds the shim's lock. Tried shared, so that two observers do not see each other.
fn lock_is_held(directory: &Path) -> io::Result<bool> {
    let path = AttemptLayout::new(directory).shim_lock();
    let Some(file) = if_there(File::open(path))? else { return Ok(false) };
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(false),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(true),
        Err((_, errno)) => Err(errno.into()),
    }
}

fn stop_through_shim(place: &LocalPlace, mode: StopMode) -> io::Result<()> {
    let (first, grace_seconds) = mode.first_signal();
    let grace_millis = (grace_seconds.clamp(0.0, 1e6) * 1000.0) as i32;
    // The shim kills by itself once there is no grace left.
    let asked = if first == Signal::SIGKILL { Signal::SIGTERM } else { first };
    match PidFd::open(place.shim)? {
        Some(shim) => {
            // The kernel keeps one of each signal: a second request that meets the first one unread is lost, and with it that it is a kill.
            wait_until_read(place, &shim, asked)?;
            send(&shim, asked, Some(grace_millis))?;
            continue_stopped(place, &shim)
        }
        None => Ok(()),
    }
}

/// Waits until the shim has read a request, at most for `REQUEST_MILLIS_MAX`: it answers whatever it does within milliseconds.
fn wait_until_read(place: &LocalPlace, shim: &PidFd, request: Signal) -> io::Result<()> {
    for _ in 0..REQUEST_MILLIS_MAX / REQUEST_NAP_MILLIS {
        if !place.shim.has_pending(request)? {
            break;
        }
        continue_stopped(place, shim)?;
        std::thread::sleep(Duration::from_millis(REQUEST_NAP_MILLIS));
    }
    Ok(())
}

/// A stopped shim would not see a request. It passes this signal on, so it is sent only where it is needed.
fn continue_stopped(place: &LocalPlace, shim: &PidFd) -> io::Result<()> {
    let stat = ProcessStat::read(place.shim.pid)?;
    match stat.is_some_and(|stat| place.shim.matches(&stat) && matches!(stat.state, 'T' | 't')) {
        true => send(shim, Signal::SIGCONT, None),
        false => Ok(()),
    }
}

/// Sends a signal to a process. One that has ended meanwhile has nothing left to stop.
fn send(shim: &PidFd, signal: Signal, value: Option<i32>) -> io::Result<()> {
    match shim.signal(signal as i32, value) {
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(()),
        sent => sent,
    }
}

/// Without a shim the grace period is not measured: the caller stops again with [`StopMode::Kill`].
fn stop_unsupervised(place: &LocalPlace, mode: StopMode) -> io::Result<()> {
    let (signal, _) = mode.first_signal();
    for process in survivors(place)? {
        if let Some(handle) = PidFd::open(process.identity())? {
            send(&handle, signal, None)?;
        }
    }
    Ok(())
}

fn unavailable(what: &'static str, why: impl Into<BoxError>) -> LaunchError {
    LaunchError::Unavailable { launcher: NAME, what, why: why.into() }
}

fn file_error(what: &'static str, path: PathBuf, source: io::Error) -> LaunchError {
    LaunchError::File { what, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a request to a shim that ended while it was waited for does not fail.
    #[test]
    fn a_request_to_an_ended_shim_is_done() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let identity = ProcessIdentity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        let shim = PidFd::open(identity).unwrap().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(shim.signal(Signal::SIGTERM as i32, None).is_err());
        send(&shim, Signal::SIGTERM, Some(1)).unwrap();
    }
}
