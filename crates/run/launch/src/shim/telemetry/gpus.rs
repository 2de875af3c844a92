//! The GPUs of the attempt.

use std::collections::BTreeSet;

use crate::gpu::{Gpu, GpuDriver};

/// A session with the driver, where there is one.
pub(super) struct Gpus {
    driver: Option<GpuDriver>,
    /// The driver's numbers of the attempt's GPUs.
    indexes: Vec<u32>,
}

impl Gpus {
    /// The GPUs that `devices` names by number or UUID; where it names none of them, those that the script may see.
    pub fn of(devices: &[String]) -> Self {
        let driver = GpuDriver::open().ok();
        let known = driver.as_ref().and_then(|driver| driver.gpus().ok()).unwrap_or_default();
        let known: Vec<_> = known.into_iter().map(|Gpu { index, uuid, .. }| (index, uuid)).collect();
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        Self { indexes: chosen(&known, devices, visible.as_deref()), driver }
    }

    /// The values of each GPU now; what the driver does not report is absent. `pids`: the processes of the attempt.
    pub fn values(&self, pids: &BTreeSet<u32>) -> Vec<(String, f64)> {
        let Some(driver) = &self.driver else { return Vec::new() };
        let named = |index: u32| {
            let own = own_bytes(&driver.processes(index), pids).map(|bytes| ("attempt_memory_bytes", bytes));
            let values = driver.values(index).into_iter().chain(own);
            values.map(move |(name, value)| (format!("system/gpu/{index}/{name}"), value))
        };
        self.indexes.iter().copied().flat_map(named).collect()
    }
}

/// The memory of a GPU that the attempt's processes have, at least one byte if they are on it; none if they are not.
fn own_bytes(processes: &[(u32, u64)], pids: &BTreeSet<u32>) -> Option<f64> {
    let own: Vec<u64> =
        processes.iter().filter(|(pid, _)| pids.contains(pid)).map(|(_, bytes)| *bytes).collect();
    (!own.is_empty()).then(|| own.iter().sum::<u64>().max(1) as f64)
}

/// Which GPUs are the attempt's.
fn chosen(known: &[(u32, Option<String>)], devices: &[String], visible: Option<&str>) -> Vec<u32> {
    let named = |name: &str| {
        let name = name.trim();
        let by_uuid = |uuid: &Option<String>| {
            uuid.as_deref()
                .is_some_and(|uuid| !name.is_empty() && name.starts_with("GPU-") && uuid.starts_with(name))
        };
        known.iter().find(|(index, uuid)| name == index.to_string() || by_uuid(uuid)).map(|(index, _)| *index)
    };
    let granted: Vec<u32> = devices.iter().filter_map(|device| named(device)).collect();
    match visible {
        _ if !granted.is_empty() => granted,
        Some(visible) => visible.split(',').map_while(named).collect(),
        None => known.iter().map(|(index, _)| *index).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a GPU counts as used where a process of the attempt is on it, even if the driver hides how much it has.
    #[test]
    fn a_gpu_is_used_by_the_attempts_processes_only() {
        let pids = BTreeSet::from([7, 8]);
        assert_eq!(own_bytes(&[(7, 100), (8, 50), (9, 1_000)], &pids), Some(150.0));
        assert_eq!(own_bytes(&[(8, 0)], &pids), Some(1.0));
        assert_eq!(own_bytes(&[(9, 1_000)], &pids), None);
    }

    /// Proves which GPUs are followed: the granted ones, else those the script may see (CUDA ends the list at the first
    /// unknown one), else all.
    #[test]
    fn the_attempts_gpus_are_followed() {
        let known = [(0, Some("GPU-aa".to_owned())), (1, Some("GPU-ab".to_owned())), (2, None)];
        let of = |devices: &[&str], visible| {
            let devices: Vec<String> = devices.iter().map(|device| (*device).to_owned()).collect();
            chosen(&known, &devices, visible)
        };
        assert_eq!(of(&[], None), [0, 1, 2]);
        assert_eq!(of(&["1"], Some("0")), [1]);
        assert_eq!(of(&["GPU-ab", "cpu"], None), [1]);
        assert_eq!(of(&[], Some("2, GPU-aa")), [2, 0]);
        assert_eq!(of(&[], Some("1,9,0")), [1]);
        assert!(of(&[], Some("")).is_empty());
    }
}
