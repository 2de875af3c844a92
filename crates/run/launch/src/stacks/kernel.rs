//! A thread as `/proc` shows it. Which files can be read depends on the system: `wchan` needs the same user, `syscall` also the
//! right to trace, `stack` root. What cannot be read is left out.

use std::path::Path;

use nix::libc;
use serde::{Deserialize, Serialize};

use super::THREADS_MAX;

/// Frames of the kernel that are kept.
const KERNEL_FRAMES_MAX: usize = 8;

/// One thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Its number; that of the main thread is the pid.
    pub tid: i32,
    pub name: String,
    /// The letter of its state: `S` sleeps, `D` waits for a device and cannot be killed, `R` computes, `T` is stopped.
    pub state: String,
    /// The system call it is in, where that is known.
    pub call: Option<String>,
    /// The kernel function it sleeps in.
    pub sleeps_in: Option<String>,
    /// The kernel's stack, the innermost function first.
    pub kernel: Vec<String>,
}

impl KernelThread {
    /// A description of what it does.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let place = self.call.as_ref().or(self.sleeps_in.as_ref());
        match (self.state.as_str(), place) {
            ("R", _) => "computes".into(),
            ("T" | "t", _) => "is stopped".into(),
            ("D", Some(place)) => format!("waits for a device in {place}"),
            ("D", None) => "waits for a device".into(),
            (_, Some(place)) => format!("waits in {place}"),
            (_, None) => "sleeps".into(),
        }
    }
}

/// The threads of a process, the main one first, and how many more there are.
pub(super) fn threads(process: &Path, pid: i32) -> (Vec<KernelThread>, usize) {
    let mut tids: Vec<i32> = std::fs::read_dir(process.join("task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .collect();
    tids.sort_by_key(|tid| (*tid != pid, *tid));
    let left_out = tids.len().saturating_sub(THREADS_MAX);
    tids.truncate(THREADS_MAX);
    (tids.into_iter().map(|tid| read(&process.join("task").join(tid.to_string()), tid)).collect(), left_out)
}

fn read(folder: &Path, tid: i32) -> KernelThread {
    let text = |name: &str| {
        let bytes = std::fs::read(folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    parse(tid, &text("status"), &text("syscall"), &text("wchan"), &text("stack"))
}

/// Parses the four files of a thread; an empty string means a file that cannot be read.
fn parse(tid: i32, status: &str, syscall: &str, wchan: &str, stack: &str) -> KernelThread {
    let kernel: Vec<String> = stack.lines().filter_map(frame).take(KERNEL_FRAMES_MAX).collect();
    let by_stack = kernel.iter().find_map(|function| {
        let (_, name) = function.split_once("_sys_")?;
        function.starts_with("__").then(|| name.to_owned())
    });
    KernelThread {
        tid,
        name: field(status, "Name").unwrap_or_default().into(),
        state: field(status, "State").unwrap_or_default().chars().take(1).collect(),
        call: by_stack.or_else(|| call(syscall)),
        sleeps_in: Some(wchan.trim()).filter(|name| !name.is_empty() && *name != "0").map(Into::into),
        kernel,
    }
}

/// A field of `/proc/PID/status`.
pub(super) fn field<'t>(status: &'t str, name: &str) -> Option<&'t str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Whether a process has a handler for this signal, by its `status`.
pub(super) fn catches(status: &str, signal: i32) -> bool {
    let mask = field(status, "SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// `[<0>] hrtimer_nanosleep+0xb5/0x130`
fn frame(line: &str) -> Option<String> {
    let (_, function) = line.split_once("] ")?;
    Some(function.split('+').next().unwrap_or(function).trim().to_owned()).filter(|name| !name.is_empty())
}

/// The first field of `/proc/PID/syscall`: a number, `running`, or -1 outside of any call.
fn call(syscall: &str) -> Option<String> {
    let number: i64 = syscall.split_ascii_whitespace().next()?.parse().ok().filter(|number| *number >= 0)?;
    let known = WAITING.iter().chain(WAITING_OF_OLD).find(|(known, _)| *known == number);
    Some(known.map_or_else(|| format!("system call {number}"), |(_, name)| (*name).into()))
}

macro_rules! calls {
    ($($number:ident $name:literal),* $(,)?) => {
        &[$((libc::$number, $name)),*]
    };
}

/// System calls in which programs wait; others are shown by their number.
const WAITING: &[(i64, &str)] = calls![
    SYS_read "read", SYS_readv "readv", SYS_pread64 "pread64", SYS_write "write", SYS_writev "writev",
    SYS_pwrite64 "pwrite64", SYS_fsync "fsync", SYS_fdatasync "fdatasync", SYS_openat "openat", SYS_close "close",
    SYS_flock "flock", SYS_fcntl "fcntl", SYS_ioctl "ioctl", SYS_futex "futex", SYS_nanosleep "nanosleep",
    SYS_clock_nanosleep "clock_nanosleep", SYS_ppoll "ppoll", SYS_pselect6 "pselect6",
    SYS_epoll_pwait "epoll_pwait", SYS_wait4 "wait4", SYS_waitid "waitid", SYS_accept4 "accept4",
    SYS_connect "connect", SYS_recvfrom "recvfrom", SYS_recvmsg "recvmsg", SYS_sendto "sendto",
    SYS_sendmsg "sendmsg", SYS_rt_sigtimedwait "rt_sigtimedwait", SYS_rt_sigsuspend "rt_sigsuspend",
    SYS_semtimedop "semtimedop", SYS_msgrcv "msgrcv", SYS_io_getevents "io_getevents", SYS_munmap "munmap",
    SYS_io_uring_enter "io_uring_enter", SYS_restart_syscall "restart_syscall", SYS_exit_group "exit_group",
];

/// Calls that only some kinds of processors have.
#[cfg(target_arch = "x86_64")]
const WAITING_OF_OLD: &[(i64, &str)] = calls![
    SYS_poll "poll", SYS_select "select", SYS_epoll_wait "epoll_wait", SYS_accept "accept", SYS_pause "pause",
    SYS_open "open",
];
#[cfg(not(target_arch = "x86_64"))]
const WAITING_OF_OLD: &[(i64, &str)] = &[];

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;

    /// Proves each source of the call: the stack, else the number; and that hostile and empty strings give nothing.
    #[test]
    fn the_call_is_read_from_what_there_is() {
        let stack = "[<0>] hrtimer_nanosleep+0xb5/0x130\n[<0>] __x64_sys_clock_nanosleep+0xde/0x150\n[<0>] do_syscall_64+0x71/0x280\n";
        let status = "Name:\tpt_main_thread\nState:\tS (sleeping)\nSigCgt:\t0000010100000000\n";
        let thread = parse(7, status, "running\n", "0", stack);
        assert_eq!((thread.name.as_str(), thread.state.as_str()), ("pt_main_thread", "S"));
        assert_eq!((thread.call.as_deref(), &thread.sleeps_in), (Some("clock_nanosleep"), &None));
        assert_eq!(thread.kernel[0], "hrtimer_nanosleep");
        assert_eq!(thread.in_one_line(), "waits in clock_nanosleep");
        let numbered = format!("{} 0x1 0x2", libc::SYS_futex);
        assert_eq!(parse(7, status, &numbered, "", "").call.as_deref(), Some("futex"));
        assert_eq!(parse(7, status, "9999 0x0", "", "").call.as_deref(), Some("system call 9999"));
        assert_eq!(parse(7, status, "-1 0x0 0x0", "pipe_read", "").in_one_line(), "waits in pipe_read");
        assert_eq!(parse(7, "", "", "", ""), KernelThread { tid: 7, ..KernelThread::default() });
        assert_eq!(
            parse(7, "State:\tD (disk sleep)", "x", "nfs_wait", "a\n] \n").in_one_line(),
            "waits for a device in nfs_wait"
        );
        assert!(catches(status, 41) && catches(status, 33) && !catches(status, 40) && !catches("", 41));
    }

    /// Proves on the real `/proc` that a sleeping program is seen to sleep.
    #[test]
    fn a_real_process_is_read() {
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().unwrap();
        let pid = child.id() as i32;
        let folder = format!("/proc/{pid}");
        let mut found = Vec::new();
        for _ in 0..1000 {
            let (threads, left_out) = threads(Path::new(&folder), pid);
            assert_eq!((threads.len(), left_out), (1, 0));
            let asleep = threads[0].state == "S" && threads[0].name == "sleep";
            found = threads;
            if asleep {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let thread = &found[0];
        assert_eq!((thread.tid, thread.state.as_str()), (pid, "S"));
        // What may be read differs from system to system; where anything is, it must be the sleep.
        let place = thread.call.as_ref().or(thread.sleeps_in.as_ref());
        assert!(place.is_none_or(|place| place.contains("nanosleep")), "{thread:?}");
    }
}
