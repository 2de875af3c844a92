//! Reads the kernel's counters.

use std::path::Path;

use nix::unistd::{SysconfVar, sysconf};
use trackway_checkpoint::bulk::available_bytes;

use super::reading::{MachineSample, Process};
use crate::process::{ProcessIdentity, ProcessStat, own_descendants};

/// The counters now. What cannot be read is left out.
pub(super) fn read(directory: &Path, at_micros: i64) -> MachineSample {
    let units = Units::of_this_machine();
    let own = own_descendants().unwrap_or_default();
    MachineSample {
        at_micros,
        processes: own.iter().map(|stat| process(stat, &units)).collect(),
        machine: text("/proc/stat").and_then(|text| machine(&text, &units)),
        available_bytes: available_bytes().map(|bytes| bytes as u64),
        network_bytes: text("/proc/net/dev").map(|text| network(&text)),
        disk_free_bytes: nix::sys::statvfs::statvfs(directory)
            .ok()
            .map(|room| room.blocks_available() * room.fragment_size()),
    }
}

fn text(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// What the kernel counts in.
struct Units {
    ticks_per_second: f64,
    page_bytes: u64,
}

impl Units {
    fn of_this_machine() -> Self {
        let ask = |what| sysconf(what).ok().flatten();
        Self {
            ticks_per_second: ask(SysconfVar::CLK_TCK).unwrap_or(100) as f64,
            page_bytes: ask(SysconfVar::PAGE_SIZE)
                .and_then(|bytes| u64::try_from(bytes).ok())
                .unwrap_or(4096),
        }
    }
}

fn process(stat: &ProcessStat, units: &Units) -> (ProcessIdentity, Process) {
    let process = Process {
        cpu_seconds: stat.cpu_ticks as f64 / units.ticks_per_second,
        resident_bytes: stat.resident_pages * units.page_bytes,
        threads: stat.threads,
        disk_bytes: text(&format!("/proc/{}/io", stat.pid)).and_then(|text| disk(&text)),
    };
    (stat.identity(), process)
}

/// `/proc/stat`, first line: user, nice, system, idle, iowait, irq, softirq, steal, and guests that are in user
/// already.
fn machine(text: &str, units: &Units) -> Option<(f64, f64)> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().take(8).map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let idle: u64 = ticks.get(3..5)?.iter().sum();
    let all: u64 = ticks.iter().sum();
    Some(((all - idle) as f64 / units.ticks_per_second, all as f64 / units.ticks_per_second))
}

/// `/proc/net/dev`: after a device's name the first number is the bytes received, the ninth the bytes sent.
fn network(text: &str) -> (u64, u64) {
    let devices = text.lines().filter_map(|line| line.split_once(':'));
    devices.filter(|(name, _)| name.trim() != "lo").fold((0, 0), |(received, sent), (_, counters)| {
        let mut counters = counters.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0));
        (received + counters.next().unwrap_or(0), sent + counters.nth(7).unwrap_or(0))
    })
}

/// `/proc/PID/io`: what went through to a disk, not what the page cache served.
fn disk(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some((field("read_bytes:")?, field("write_bytes:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: Units = Units { ticks_per_second: 100.0, page_bytes: 4096 };

    /// Proves that each file is read as the kernel writes it, and that garbage is unknown, not zero.
    #[test]
    fn the_kernels_files_are_read() {
        let stat = "cpu  100 10 50 700 40 5 5 10 90 0\ncpu0 1 1 1 1\n";
        assert_eq!(machine(stat, &UNITS), Some((1.8, 9.2)));
        assert_eq!(machine("cpu  1 x", &UNITS), None);
        let devices = "Inter-| Receive\n face |bytes\n    lo: 9 9 9 9 9 9 9 9 9 9\n  eth0: 100 1 0 0 0 0 0 0 7 1 0\n eth1:1 0 0 0 0 0 0 0 2";
        assert_eq!(network(devices), (101, 9));
        assert_eq!(disk("rchar: 5\nread_bytes: 3\nwrite_bytes: 4\ncancelled_write_bytes: 1\n"), Some((3, 4)));
        assert_eq!(disk("rchar: 5\n"), None);
    }

    /// Proves that this machine answers: a child that is alive is seen with its memory, the machine with its counters.
    #[test]
    fn this_machine_answers() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let pid = child.id() as i32;
        let resident_bytes = |reading: &MachineSample| {
            let found = reading.processes.iter().find(|(identity, _)| identity.pid == pid);
            found.map_or(0, |found| found.1.resident_bytes)
        };
        // Between fork and exec a process briefly has no memory.
        let mut reading = read(Path::new("/"), 1);
        for _ in 0..1000 {
            if resident_bytes(&reading) > 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            reading = read(Path::new("/"), 1);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = reading.processes.iter().find(|(identity, _)| identity.pid == pid).unwrap().1;
        assert!(found.resident_bytes > 0 && found.threads == 1, "{found:?}");
        let (busy, all) = reading.machine.unwrap();
        assert!(0.0 < busy && busy < all);
        assert!(reading.available_bytes.unwrap() > 0 && reading.disk_free_bytes.unwrap() > 0);
        assert!(reading.network_bytes.is_some());
    }
}
