//! What every process of an attempt does at present: the stacks that programs write on a signal, and the kernel call in
//! which each thread waits.
//!
//! A program that takes part (the Python package does so by itself) catches [`STACK_SIGNAL`] and appends its stacks to
//! `TRACKWAY_STACKS/PID.txt`. The signal goes only to a process that catches it and has such a file, or whose parent
//! has: it would end every other one. `kernel` reads `/proc`, `program` reads what programs write.

mod kernel;
mod program;
mod take;

use serde::{Deserialize, Serialize};

pub use kernel::KernelThread;
pub use program::ProgramThread;
pub(crate) use take::take;

/// The signal that requests stacks: a real-time one that nothing else is known to use (`SIGRTMIN + 7` with glibc).
pub const STACK_SIGNAL: i32 = 41;
/// Processes of an attempt that are looked at.
pub const PROCESSES_MAX: usize = 256;
/// Threads of a process that are kept.
pub const THREADS_MAX: usize = 64;
/// Frames of a thread that are kept, the innermost ones.
pub const FRAMES_MAX: usize = 64;
/// Bytes that are read of what a program wrote.
pub const PROGRAM_BYTES_MAX: u64 = 256 * 1024;
/// Bytes of a whole dump; processes beyond are counted.
pub const DUMP_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Frames that [`ProcessStack::told`] names.
const FRAMES_LISTED: usize = 3;

/// All processes of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackDump {
    /// The processes, in the order of rank and pid.
    pub processes: Vec<ProcessStack>,
    /// Processes for which there was no room or that could not be read.
    pub left_out: usize,
}

/// One process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStack {
    /// The process number.
    pub pid: i32,
    /// Its rank (`RANK`); none if it is not set.
    pub rank: Option<u32>,
    /// The name the kernel has for it.
    pub name: String,
    /// The stacks the program wrote; empty where it writes none.
    pub program: Vec<ProgramThread>,
    /// The threads as the kernel has them, the main one first.
    pub threads: Vec<KernelThread>,
    /// Threads for which there was no room.
    pub threads_left_out: usize,
}

impl ProcessStack {
    /// The innermost frames of the main thread and the call it waits in, in one line.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let rank = self.rank.map(|rank| format!("rank {rank}, ")).unwrap_or_default();
        let main = self.program.iter().find(|thread| thread.current).or(self.program.first());
        let frames: Vec<String> = main
            .into_iter()
            .flat_map(|thread| thread.frames.iter().take(FRAMES_LISTED).map(ToString::to_string))
            .collect();
        let kernel = self.threads.first().map(KernelThread::in_one_line);
        let parts: Vec<String> =
            (!frames.is_empty()).then(|| frames.join(" ← ")).into_iter().chain(kernel).collect();
        format!("{} ({rank}pid {}): {}", self.name, self.pid, parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that the line names rank, innermost frames and the kernel's call, and that what is not known is left out.
    #[test]
    fn a_process_is_reported_in_one_line() {
        let frame = |file: &str, line, function: &str| program::Frame {
            file: file.into(),
            line: Some(line),
            function: function.into(),
        };
        let thread = |current, frames| ProgramThread { current, frames };
        let stack = ProcessStack {
            pid: 7,
            rank: Some(2),
            name: "python3".into(),
            program: vec![
                thread(false, vec![frame("/x/pool.py", 1, "work")]),
                thread(true, vec![frame("/x/train.py", 12, "wait"), frame("/x/train.py", 30, "<module>")]),
            ],
            threads: vec![KernelThread {
                state: "S".into(),
                call: Some("futex".into()),
                ..Default::default()
            }],
            threads_left_out: 0,
        };
        assert_eq!(
            stack.in_one_line(),
            "python3 (rank 2, pid 7): wait (train.py:12) ← <module> (train.py:30); waits in futex"
        );
        let bare = ProcessStack { program: vec![], rank: None, ..stack };
        assert_eq!(bare.in_one_line(), "python3 (pid 7): waits in futex");
    }
}
