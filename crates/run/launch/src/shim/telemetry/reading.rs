//! Two looks at the counters of the kernel become the values of one sample. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use crate::process::ProcessIdentity;

/// The kernel's counters at one time. What could not be read is missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MachineSample {
    /// When, by a clock that never goes backwards.
    pub at_micros: i64,
    /// The processes of the attempt, the shim left out. The start time distinguishes a reused number.
    pub processes: BTreeMap<ProcessIdentity, Process>,
    /// Processor seconds of the machine since boot: busy, and in all.
    pub machine: Option<(f64, f64)>,
    /// Memory that the attempt's processes may still take, on the machine and in their control group.
    pub available_bytes: Option<u64>,
    /// Bytes over all network devices but loopback since boot: received, sent.
    pub network_bytes: Option<(u64, u64)>,
    /// Room on the file system of the attempt's folder.
    pub disk_free_bytes: Option<u64>,
}

impl MachineSample {
    /// The numbers of the attempt's processes.
    pub fn pids(&self) -> BTreeSet<u32> {
        self.processes.keys().filter_map(|identity| u32::try_from(identity.pid).ok()).collect()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Process {
    /// Processor seconds since its start.
    pub cpu_seconds: f64,
    /// Resident memory, shared memory included.
    pub resident_bytes: u64,
    pub threads: u64,
    /// Bytes read from and written to disks since its start, if the kernel reports them.
    pub disk_bytes: Option<(u64, u64)>,
}

/// The values of a sample: the levels of `now` and the rates since `before`.
pub(super) fn values(before: &MachineSample, now: &MachineSample) -> Vec<(String, f64)> {
    let seconds = (now.at_micros - before.at_micros) as f64 / 1e6;
    if seconds <= 0.0 {
        return Vec::new();
    }
    let mut sampled: Vec<(String, f64)> = Vec::new();
    let mut tell = |name: &str, value: f64| sampled.push((format!("system/{name}"), value));
    let processes = now.processes.iter().map(|(identity, process)| (before.processes.get(identity), process));
    let (mut cpu_seconds, mut resident_bytes, mut threads) = (0.0, 0, 0);
    let mut disk: Option<(u64, u64)> = None;
    for (then, process) in processes {
        // A process that was not there before began in between: all of its counters count.
        let then = then.copied().unwrap_or_default();
        cpu_seconds += (process.cpu_seconds - then.cpu_seconds).max(0.0);
        resident_bytes += process.resident_bytes;
        threads += process.threads;
        if let Some((read, written)) = process.disk_bytes {
            let (then_read, then_written) = then.disk_bytes.unwrap_or_default();
            let (sum_read, sum_written) = disk.unwrap_or_default();
            disk = Some((
                sum_read + read.saturating_sub(then_read),
                sum_written + written.saturating_sub(then_written),
            ));
        }
    }
    tell("cpu_cores", cpu_seconds / seconds);
    tell("rss_bytes", resident_bytes as f64);
    tell("process_count", now.processes.len() as f64);
    tell("thread_count", threads as f64);
    if let Some((read, written)) = disk {
        tell("disk_read_bytes_per_second", read as f64 / seconds);
        tell("disk_write_bytes_per_second", written as f64 / seconds);
    }
    if let (Some((then_busy, then_all)), Some((busy, all))) = (before.machine, now.machine)
        && all > then_all
    {
        tell("machine_cpu_share", ((busy - then_busy) / (all - then_all)).clamp(0.0, 1.0));
    }
    if let Some(bytes) = now.available_bytes {
        tell("machine_available_bytes", bytes as f64);
    }
    if let (Some(then), Some(bytes)) = (before.network_bytes, now.network_bytes) {
        tell("network_received_bytes_per_second", bytes.0.saturating_sub(then.0) as f64 / seconds);
        tell("network_sent_bytes_per_second", bytes.1.saturating_sub(then.1) as f64 / seconds);
    }
    if let Some(bytes) = now.disk_free_bytes {
        tell("disk_free_bytes", bytes as f64);
    }
    sampled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(cpu_seconds: f64, resident_bytes: u64, read: u64) -> Process {
        Process { cpu_seconds, resident_bytes, threads: 2, disk_bytes: Some((read, 0)) }
    }

    fn at(pid: i32, start_ticks: u64) -> ProcessIdentity {
        ProcessIdentity { pid, start_ticks }
    }

    fn value(sampled: &[(String, f64)], name: &str) -> Option<f64> {
        sampled.iter().find(|(found, _)| found == &format!("system/{name}")).map(|(_, value)| *value)
    }

    /// Proves that rates are differences over the time between two looks: of a process that stayed, of one that came,
    /// and that one which took the number of another is new.
    #[test]
    fn rates_are_differences_over_time() {
        let before = MachineSample {
            at_micros: 1_000_000,
            processes: [(at(7, 1), process(10.0, 100, 1000)), (at(8, 1), process(50.0, 100, 9000))].into(),
            machine: Some((100.0, 1000.0)),
            network_bytes: Some((10, 20)),
            ..MachineSample::default()
        };
        let now = MachineSample {
            at_micros: 3_000_000,
            processes: [(at(7, 1), process(12.0, 300, 5000)), (at(8, 9), process(1.0, 50, 500))].into(),
            machine: Some((103.0, 1004.0)),
            available_bytes: Some(4096),
            network_bytes: Some((30, 20)),
            disk_free_bytes: Some(77),
        };
        let sampled = values(&before, &now);
        let expected = [
            ("cpu_cores", 1.5),
            ("rss_bytes", 350.0),
            ("process_count", 2.0),
            ("thread_count", 4.0),
            ("disk_read_bytes_per_second", 2250.0),
            ("disk_write_bytes_per_second", 0.0),
            ("machine_cpu_share", 0.75),
            ("machine_available_bytes", 4096.0),
            ("network_received_bytes_per_second", 10.0),
            ("network_sent_bytes_per_second", 0.0),
            ("disk_free_bytes", 77.0),
        ];
        assert_eq!(sampled.len(), expected.len(), "{sampled:?}");
        for (name, expected) in expected {
            assert_eq!(value(&sampled, name), Some(expected), "{name}");
        }
    }

    /// Proves that what could not be read is not reported, and that no time between two readings gives no rate.
    #[test]
    fn what_is_unknown_is_not_reported() {
        let before = MachineSample::default();
        assert!(values(&before, &before).is_empty());
        let now =
            MachineSample { at_micros: 1_000_000, machine: Some((1.0, 2.0)), ..MachineSample::default() };
        let names: Vec<String> = values(&before, &now).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["system/cpu_cores", "system/rss_bytes", "system/process_count", "system/thread_count"]
        );
    }
}
