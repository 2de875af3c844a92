//! Goes through the processes of an attempt, signals those that write stacks, and reads `/proc`.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use trackway_core::Clock as _;
use trackway_system::SystemClock;

use super::{
    DUMP_BYTES_MAX, PROCESSES_MAX, PROGRAM_BYTES_MAX, ProcessStack, STACK_SIGNAL, StackDump, kernel, program,
};
use crate::process::{PidFd, ProcessStat};

/// How long a program may take to write its stacks.
const ANSWER_MICROS_MAX: i64 = 500_000;
/// How long all of them may take together; those that were not signalled by then are read from `/proc` only.
const ANSWERS_MICROS_MAX: i64 = 5_000_000;
/// How long a file must not have grown for its dump to be whole.
const QUIET_MICROS: i64 = 30_000;
const NAP: Duration = Duration::from_millis(5);
/// Forks between a program that has a file and its child.
const ANCESTORS_MAX: usize = 8;

/// The stacks of these processes; `folder` is where programs write theirs. One process after the other is signalled,
/// because a forked child writes into the file of its parent.
pub(crate) fn take(processes: &[ProcessStat], folder: &Path) -> StackDump {
    let until_micros = SystemClock.monotonic_micros() + ANSWERS_MICROS_MAX;
    let mut dump =
        StackDump { left_out: processes.len().saturating_sub(PROCESSES_MAX), ..StackDump::default() };
    let mut size_bytes = 0;
    for process in processes.iter().take(PROCESSES_MAX) {
        let stack = stack_of(process, folder, until_micros);
        size_bytes += serde_json::to_vec(&stack).map_or(0, |bytes| bytes.len());
        if size_bytes > DUMP_BYTES_MAX {
            dump.left_out += 1;
        } else {
            dump.processes.push(stack);
        }
    }
    dump.processes.sort_by_key(|process| (process.rank.unwrap_or(u32::MAX), process.pid));
    dump
}

fn stack_of(process: &ProcessStat, folder: &Path, until_micros: i64) -> ProcessStack {
    let proc_folder = PathBuf::from(format!("/proc/{}", process.pid));
    // Before the signal: a handler may interrupt the call that it waits in.
    let (threads, threads_left_out) = kernel::threads(&proc_folder, process.pid);
    let in_time = SystemClock.monotonic_micros() < until_micros;
    let program = if in_time { ask(process, folder).unwrap_or_default() } else { Vec::new() };
    ProcessStack {
        pid: process.pid,
        rank: rank_of(&proc_folder),
        name: process.name.clone(),
        program,
        threads,
        threads_left_out,
    }
}

fn rank_of(proc_folder: &Path) -> Option<u32> {
    let environment = std::fs::read(proc_folder.join("environ")).ok()?;
    let rank = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"RANK="))?;
    std::str::from_utf8(rank).ok()?.parse().ok()
}

/// Makes a program write its stacks; none if it is not known to do so.
fn ask(process: &ProcessStat, folder: &Path) -> io::Result<Vec<program::ProgramThread>> {
    let Some(path) = file_of(process, folder) else { return Ok(Vec::new()) };
    let Some(handle) = PidFd::open(process.identity())? else { return Ok(Vec::new()) };
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid))?;
    if !kernel::catches(&status, STACK_SIGNAL) {
        return Ok(Vec::new());
    }
    let before = std::fs::metadata(&path)?.len();
    handle.signal(STACK_SIGNAL, None)?;
    wait_for_growth(&path, before)?;
    let mut file = File::open(&path)?;
    file.seek(SeekFrom::Start(before))?;
    let mut bytes = Vec::new();
    file.take(PROGRAM_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(program::threads(&String::from_utf8_lossy(&bytes)))
}

/// The file that this process writes to: its own, or that of the process it was forked from.
fn file_of(process: &ProcessStat, folder: &Path) -> Option<PathBuf> {
    let (mut pid, mut parent) = (process.pid, process.parent);
    for _ in 0..ANCESTORS_MAX {
        let path = folder.join(format!("{pid}.txt"));
        if path.is_file() {
            return Some(path);
        }
        (pid, parent) = (parent, ProcessStat::read(parent).ok()??.parent);
    }
    None
}

fn wait_for_growth(path: &Path, before: u64) -> io::Result<()> {
    let asked_micros = SystemClock.monotonic_micros();
    let (mut length, mut grew_micros) = (before, asked_micros);
    loop {
        let (now, now_micros) = (std::fs::metadata(path)?.len(), SystemClock.monotonic_micros());
        if now > length {
            (length, grew_micros) = (now, now_micros);
        }
        let whole = length > before && now_micros - grew_micros >= QUIET_MICROS;
        if whole || now_micros - asked_micros >= ANSWER_MICROS_MAX {
            return Ok(());
        }
        std::thread::sleep(NAP);
    }
}
