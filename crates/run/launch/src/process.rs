//! The identity of a process: a pid alone is reused, a pid with its start time and boot is not.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use trackway_files::if_there;

/// A line of `/proc/PID/stat` is shorter.
const LINE_BYTES_MAX: usize = 2048;

/// A process, on one boot of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process number.
    pub pid: i32,
    /// When it started, in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub start_ticks: u64,
}

/// A machine, as far as processes on it are concerned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineIdentity {
    /// Its name.
    pub host: String,
    /// `/etc/machine-id`, where there is one.
    pub machine_id: Option<String>,
    /// The kernel's random id of this boot.
    pub boot_id: String,
    /// The pid namespace: pids of another container mean nothing here.
    pub pid_namespace: String,
}

/// How a machine relates to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// This machine, this boot, the same process numbers.
    Here,
    /// This machine, but it rebooted: every process of that time is gone.
    HereBeforeReboot,
    /// This machine and boot, in another container.
    OtherContainer,
    /// Another machine.
    Elsewhere,
}

impl MachineIdentity {
    /// This machine. It is read once: nothing of it that is compared changes while this process lives.
    pub fn current() -> io::Result<Self> {
        static CURRENT: OnceLock<MachineIdentity> = OnceLock::new();
        match CURRENT.get() {
            Some(known) => Ok(known.clone()),
            None => Self::read().map(|found| CURRENT.get_or_init(|| found).clone()),
        }
    }

    fn read() -> io::Result<Self> {
        let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
        Ok(Self {
            host: nix::unistd::gethostname()?.to_string_lossy().into_owned(),
            machine_id: read("/etc/machine-id").ok().filter(|id| !id.is_empty()),
            boot_id: read("/proc/sys/kernel/random/boot_id")?,
            pid_namespace: std::fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned(),
        })
    }

    /// Where this machine is, seen from `here`. Two machines with one name and no machine id are taken for two when
    /// their boots differ, because then nothing proves that they are one.
    #[must_use]
    pub fn seen_from(&self, here: &Self) -> Whereabouts {
        if self.boot_id == here.boot_id {
            let same = self.pid_namespace == here.pid_namespace;
            return if same { Whereabouts::Here } else { Whereabouts::OtherContainer };
        }
        let same_machine = self.machine_id.is_some() && self.machine_id == here.machine_id;
        if same_machine && self.host == here.host {
            Whereabouts::HereBeforeReboot
        } else {
            Whereabouts::Elsewhere
        }
    }
}

/// The contents of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub pid: i32,
    pub name: String,
    pub state: char,
    pub parent: i32,
    pub session: i32,
    pub start_ticks: u64,
    /// Time on processors, of all threads.
    pub cpu_ticks: u64,
    pub threads: u64,
    pub resident_pages: u64,
}

impl ProcessStat {
    /// Reads the line of `/proc/PID/stat`. The name may hold blanks and parentheses; the last `)` ends it.
    pub fn parse(line: &str) -> Option<Self> {
        let (pid, rest) = line.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        // The kernel numbers the fields from 1, and the state is the third. Every process of the machine is looked at:
        // they are read in their order, as far as they are needed.
        let (mut fields, mut next) = (rest.split_ascii_whitespace(), 3);
        let mut field = |number: usize| {
            let skipped = number.checked_sub(next)?;
            next = number + 1;
            fields.nth(skipped)
        };
        Some(Self {
            pid: pid.trim().parse().ok()?,
            name: name.to_owned(),
            state: field(3)?.chars().next()?,
            parent: field(4)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            cpu_ticks: field(14)?.parse::<u64>().ok()? + field(15)?.parse::<u64>().ok()?,
            threads: field(20)?.parse().ok()?,
            start_ticks: field(22)?.parse().ok()?,
            resident_pages: field(24)?.parse().ok()?,
        })
    }

    /// `None` when there is no such process.
    pub fn read(pid: i32) -> io::Result<Option<Self>> {
        match read_line(format!("/proc/{pid}/stat")) {
            Ok(bytes) => Self::parse(&String::from_utf8_lossy(&bytes))
                .map(Some)
                .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat has an unknown form"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_ticks: self.start_ticks }
    }

    /// The links to the files that it has open, as far as they can be seen.
    pub fn open_files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter().flatten();
        entries.flatten().map(|entry| entry.path())
    }

    /// A zombie has ended; only its status waits for its parent.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

impl ProcessIdentity {
    /// The process with this number now; `None` when there is none.
    pub fn of(pid: i32) -> io::Result<Option<Self>> {
        Ok(ProcessStat::read(pid)?.map(|stat| stat.identity()))
    }

    /// Whether exactly this process is alive. Another one that got its number does not count, nor does a zombie.
    pub fn is_alive(&self) -> io::Result<bool> {
        Ok(ProcessStat::read(self.pid)?.is_some_and(|stat| self.matches(&stat)))
    }

    /// Whether this signal was sent to the process and waits to be read by it.
    pub(crate) fn has_pending(&self, signal: Signal) -> io::Result<bool> {
        let status = match std::fs::read(format!("/proc/{}/status", self.pid)) {
            // It ended between the opening and the reading.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => None,
            read => if_there(read)?,
        };
        // Its name may be any bytes.
        let is_pending = |status: Vec<u8>| is_pending(&String::from_utf8_lossy(&status), signal);
        Ok(status.is_some_and(is_pending) && self.is_alive()?)
    }

    pub(crate) fn matches(&self, stat: &ProcessStat) -> bool {
        stat.pid == self.pid && stat.start_ticks == self.start_ticks && !stat.has_ended()
    }
}

/// Whether `/proc/PID/status` names a signal as one that the process as a whole has not read: bit n - 1 for signal n.
fn is_pending(status: &str, signal: Signal) -> bool {
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let bits = pending.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> (signal as i32 - 1) & 1 == 1)
}

/// A line of `/proc`, by one read: every process of the machine is looked at, and a read of a whole file takes five
/// calls of the kernel more.
fn read_line(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut line = vec![0; LINE_BYTES_MAX];
    loop {
        match file.read(&mut line) {
            Ok(length) => {
                line.truncate(length);
                return Ok(line);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Every process that can be seen.
pub(crate) fn all_processes() -> io::Result<Vec<ProcessStat>> {
    let mut processes = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let pid = entry?.file_name().to_string_lossy().parse::<i32>();
        if let Ok(pid) = pid
            && let Ok(Some(stat)) = ProcessStat::read(pid)
        {
            processes.push(stat);
        }
    }
    Ok(processes)
}

/// The processes below `ancestor`, zombies left out.
pub(crate) fn descendants(ancestor: i32, processes: &[ProcessStat]) -> Vec<ProcessStat> {
    let mut family = vec![ancestor];
    let mut at = 0;
    while at < family.len() {
        let parent = family[at];
        family.extend(
            processes.iter().filter(|stat| stat.parent == parent && stat.pid != parent).map(|stat| stat.pid),
        );
        at += 1;
    }
    processes
        .iter()
        .filter(|stat| stat.pid != ancestor && !stat.has_ended() && family.contains(&stat.pid))
        .cloned()
        .collect()
}

/// The living descendants of this process.
pub(crate) fn own_descendants() -> io::Result<Vec<ProcessStat>> {
    Ok(descendants(std::process::id() as i32, &all_processes()?))
}

/// The living processes whose environment names this attempt: what is left of it when its shim is gone.
pub(crate) fn processes_of_attempt(attempt_id: &str) -> io::Result<Vec<ProcessStat>> {
    let variable = format!("TRACKWAY_ATTEMPT={attempt_id}");
    let belongs = |stat: &ProcessStat| {
        std::fs::read(Path::new("/proc").join(stat.pid.to_string()).join("environ")).is_ok_and(
            |environment| environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes()),
        )
    };
    Ok(all_processes()?.into_iter().filter(|stat| !stat.has_ended() && belongs(stat)).collect())
}

/// A handle on one process that no other process can slip into.
#[derive(Debug)]
pub(crate) struct PidFd(OwnedFd);

impl PidFd {
    /// A handle on exactly this process; `None` when it has ended.
    pub fn open(identity: ProcessIdentity) -> io::Result<Option<Self>> {
        // SAFETY: pidfd_open takes a number and flags, and returns a new descriptor or an error.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, identity.pid, 0) };
        match Errno::result(fd) {
            Err(Errno::ESRCH) => return Ok(None),
            Err(errno) => return Err(errno.into()),
            Ok(_) => {}
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let handle = Self(unsafe { OwnedFd::from_raw_fd(fd as i32) });
        // The number may have been given to another process before it was opened; now it cannot change any more.
        Ok(identity.is_alive()?.then_some(handle))
    }

    /// Waits for the end of the process; `false` when the time was over first.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        use std::os::fd::AsFd;
        let millis = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Sends a signal by its number, since real-time signals have no names, with a value for a receiver that looks at it.
    pub fn signal(&self, signal: i32, value: Option<i32>) -> io::Result<()> {
        // SAFETY: siginfo_t is plain data for which all zeroes are valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let info_pointer = match value {
            None => std::ptr::null_mut(),
            Some(value) => {
                queued_signal(&mut info, signal, value);
                &raw mut info
            }
        };
        // SAFETY: the descriptor is open, and the pointer is null or points to a filled siginfo_t that outlives the
        // call.
        let result = unsafe {
            libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), signal, info_pointer, 0)
        };
        Errno::result(result).map(drop).map_err(io::Error::from)
    }
}

/// Fills in what `sigqueue(3)` would: libc offers no way to set the value of a `siginfo_t`.
fn queued_signal(info: &mut libc::siginfo_t, signal: i32, value: i32) {
    #[repr(C)]
    struct Queued {
        signo: i32,
        errno: i32,
        code: i32,
        padding: i32,
        pid: i32,
        uid: u32,
        value: libc::sigval,
    }
    let sigval = libc::sigval { sival_ptr: value as usize as *mut libc::c_void };
    let queued = Queued {
        signo: signal,
        errno: 0,
        code: libc::SI_QUEUE,
        padding: 0,
        pid: nix::unistd::getpid().as_raw(),
        uid: nix::unistd::getuid().as_raw(),
        value: sigval,
    };
    // SAFETY: on 64-bit Linux the sigqueue form of siginfo_t begins with exactly these fields (asm-generic/siginfo.h),
    // and it is larger than they are.
    unsafe { std::ptr::write(std::ptr::from_mut(info).cast::<Queued>(), queued) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(host: &str, machine_id: Option<&str>, boot_id: &str, pid_namespace: &str) -> MachineIdentity {
        MachineIdentity {
            host: host.into(),
            machine_id: machine_id.map(Into::into),
            boot_id: boot_id.into(),
            pid_namespace: pid_namespace.into(),
        }
    }

    /// Proves that a signal which a stopped process has not read is seen as pending, another one and one of an ended process are not.
    #[test]
    fn unread_signals_are_pending() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let send = |signal| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
        let process = ProcessIdentity::of(pid).unwrap().unwrap();
        let is_stopped = || ProcessStat::read(pid).unwrap().is_some_and(|stat| stat.state == 'T');
        send(Signal::SIGSTOP);
        while !is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!process.has_pending(Signal::SIGTERM).unwrap());
        send(Signal::SIGTERM);
        assert!(process.has_pending(Signal::SIGTERM).unwrap());
        assert!(!process.has_pending(Signal::SIGINT).unwrap());
        send(Signal::SIGCONT);
        child.wait().unwrap();
        assert!(!process.has_pending(Signal::SIGTERM).unwrap());
    }

    /// Proves that a name with blanks and parentheses does not shift the fields, and that garbage is refused.
    #[test]
    fn stat_lines_with_hostile_names_are_read() {
        let line = "42 (a) R 7 (b c) S 17 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!((stat.pid, stat.name.as_str(), stat.state, stat.parent), (42, "a) R 7 (b c", 'S', 17));
        assert_eq!(
            (stat.start_ticks, stat.cpu_ticks, stat.threads, stat.resident_pages),
            (987_654, 11, 1, 2)
        );
        assert_eq!(ProcessStat::parse("42 (x) S"), None);
        assert_eq!(ProcessStat::parse(""), None);
    }

    /// Proves that a process that got the number of an ended one is not taken for it, nor is a zombie.
    #[test]
    fn a_reused_number_is_another_process() {
        let mut stat = ProcessStat::read(std::process::id() as i32).unwrap().unwrap();
        let identity = ProcessIdentity { pid: stat.pid, start_ticks: stat.start_ticks };
        assert!(identity.matches(&stat) && identity.is_alive().unwrap());
        let former = ProcessIdentity { start_ticks: identity.start_ticks - 1, ..identity };
        assert!(!former.matches(&stat) && !former.is_alive().unwrap());
        assert!(PidFd::open(former).unwrap().is_none());
        stat.state = 'Z';
        assert!(!identity.matches(&stat));
    }

    /// Proves that only this very boot and namespace is here, and that a reboot is claimed only with proof.
    #[test]
    fn whereabouts_are_claimed_only_with_proof() {
        let here = machine("h", Some("m"), "b2", "pid:[1]");
        for (then, expected) in [
            (machine("h", Some("m"), "b2", "pid:[1]"), Whereabouts::Here),
            (machine("h", Some("m"), "b2", "pid:[2]"), Whereabouts::OtherContainer),
            (machine("h", Some("m"), "b1", "pid:[1]"), Whereabouts::HereBeforeReboot),
            (machine("h", None, "b1", "pid:[1]"), Whereabouts::Elsewhere),
            (machine("h", Some("n"), "b1", "pid:[1]"), Whereabouts::Elsewhere),
            (machine("g", Some("m"), "b1", "pid:[1]"), Whereabouts::Elsewhere),
        ] {
            assert_eq!(then.seen_from(&here), expected, "{then:?}");
        }
    }

    /// Proves that all descendants are found, wherever their parents are in the list.
    #[test]
    fn descendants_are_found_in_any_order() {
        let stat = |pid, parent, state| ProcessStat {
            pid,
            name: "x".into(),
            state,
            parent,
            session: 0,
            start_ticks: 0,
            cpu_ticks: 0,
            threads: 1,
            resident_pages: 0,
        };
        let all = [stat(9, 5, 'S'), stat(5, 3, 'Z'), stat(3, 1, 'S'), stat(4, 2, 'S'), stat(1, 0, 'S')];
        let pids: Vec<i32> = descendants(1, &all).iter().map(|stat| stat.pid).collect();
        assert_eq!(pids, [9, 3]);
    }
}
