//! Runs a command under ptrace, and kills it before its k-th system call that changes files.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How a traced command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this exit code.
    Exited(i32),
    /// By the kill.
    Killed,
}

/// Runs a command, and kills it with all its threads as it enters the call number `step`, counted from 0, of those that
/// change files. Processes that it starts are not followed.
#[expect(clippy::zombie_processes, reason = "the loop waits for it, as it does for each of its threads")]
pub fn kill_at(mut command: Command, step: usize) -> Ending {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(io::Error::from)) };
    let child = command.spawn().expect("the binary starts");
    let leader = Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD
        | ptrace::Options::PTRACE_O_TRACECLONE
        | ptrace::Options::PTRACE_O_EXITKILL;
    let mut calls = 0;
    // Other tests of this process have children too: only those of this thread are waited for.
    let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    loop {
        let (stopped, signal) = match waitpid(None, Some(flags)).expect("a traced process") {
            WaitStatus::Exited(pid, code) if pid == leader => return Ending::Exited(code),
            WaitStatus::Signaled(pid, _, _) if pid == leader => return Ending::Killed,
            WaitStatus::PtraceSyscall(pid) => {
                if changes_files(pid) {
                    if calls == step {
                        kill(leader, Signal::SIGKILL).expect("it is stopped");
                    }
                    calls += 1;
                }
                (pid, None)
            }
            WaitStatus::PtraceEvent(pid, _, _) => (pid, None),
            // The first stop of the command, and of each of its threads.
            WaitStatus::Stopped(pid, Signal::SIGTRAP) => {
                ptrace::setoptions(pid, options).expect("it is stopped");
                (pid, None)
            }
            WaitStatus::Stopped(pid, Signal::SIGSTOP) => (pid, None),
            WaitStatus::Stopped(pid, signal) => (pid, Some(signal)),
            _ => continue,
        };
        match ptrace::syscall(stopped, signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => panic!("cannot continue {stopped}: {error}"),
        }
    }
}

/// Whether a stopped thread is about to change a file. None of its calls is counted twice: a stop is at the begin or
/// the end.
fn changes_files(thread: Pid) -> bool {
    // A thread may be gone at any time.
    let Ok(info) = ptrace::syscall_info(thread) else { return false };
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return false;
    }
    // SAFETY: `op` shows which one the kernel filled.
    let entry = unsafe { info.u.entry };
    let Ok(number) = i64::try_from(entry.nr) else { return false };
    let may_make = |flags: u64| flags & u64::from((libc::O_CREAT | libc::O_TRUNC).unsigned_abs()) != 0;
    match number {
        libc::SYS_openat => may_make(entry.args[2]),
        libc::SYS_mkdirat
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_unlinkat
        | libc::SYS_linkat
        | libc::SYS_symlinkat
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_ftruncate
        | libc::SYS_fchmod
        | libc::SYS_fchmodat => true,
        // Printing and waking another thread does not change a file.
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_writev | libc::SYS_copy_file_range => {
            let file = if number == libc::SYS_copy_file_range { entry.args[2] } else { entry.args[0] };
            names_a_file(thread, file)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => may_make(entry.args[1]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat
        | libc::SYS_mkdir
        | libc::SYS_rename
        | libc::SYS_unlink
        | libc::SYS_rmdir
        | libc::SYS_link
        | libc::SYS_symlink
        | libc::SYS_chmod => true,
        _ => false,
    }
}

/// Whether a descriptor of a thread is of a file with a name, and not a pipe or the like.
fn names_a_file(thread: Pid, descriptor: u64) -> bool {
    let path = format!("/proc/{thread}/fd/{descriptor}");
    std::fs::read_link(path).is_ok_and(|path| path.is_absolute() && !path.starts_with("/dev"))
}
