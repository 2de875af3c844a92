//! The GPUs of the attempt, by NVIDIA's management library.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::{Device, Nvml};

/// A session with the driver, where there is one.
pub(super) struct Gpus {
    nvml: Option<Nvml>,
    /// The driver's numbers of the attempt's GPUs.
    indexes: Vec<u32>,
}

impl Gpus {
    /// The GPUs that `devices` names by number or UUID; where it names none of them, those that the script may see.
    pub fn of(devices: &[String]) -> Self {
        let nvml = crate::open_nvml().ok();
        let count = nvml.as_ref().and_then(|nvml| nvml.device_count().ok()).unwrap_or(0);
        let uuid = |index: u32| nvml.as_ref()?.device_by_index(index).ok()?.uuid().ok();
        let known: Vec<(u32, Option<String>)> = (0..count).map(|index| (index, uuid(index))).collect();
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        Self { indexes: chosen(&known, devices, visible.as_deref()), nvml }
    }

    /// The values of each GPU now; what the driver does not report is left out.
    pub fn values(&self) -> Vec<(String, f64)> {
        let Some(nvml) = &self.nvml else { return Vec::new() };
        let mut told = Vec::new();
        for index in &self.indexes {
            let Ok(device) = nvml.device_by_index(*index) else { continue };
            told.extend(
                values_of(&device)
                    .into_iter()
                    .filter_map(|(name, value)| Some((format!("system/gpu/{index}/{name}"), value?))),
            );
        }
        told
    }
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

fn values_of(device: &Device<'_>) -> [(&'static str, Option<f64>); 8] {
    let memory = device.memory_info().ok();
    let slowed = ThrottleReasons::HW_SLOWDOWN
        | ThrottleReasons::HW_THERMAL_SLOWDOWN
        | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN
        | ThrottleReasons::SW_THERMAL_SLOWDOWN;
    let shares = device.utilization_rates().ok();
    [
        // The fraction of the driver's last period in which any kernel ran: not how much of the device it used.
        ("kernel_share", shares.as_ref().map(|shares| f64::from(shares.gpu) / 100.0)),
        ("memory_traffic_share", shares.map(|shares| f64::from(shares.memory) / 100.0)),
        ("memory_used_bytes", memory.as_ref().map(|memory| memory.used as f64)),
        ("memory_free_bytes", memory.map(|memory| memory.free as f64)),
        ("power_watts", device.power_usage().ok().map(|milliwatts| f64::from(milliwatts) / 1e3)),
        ("temperature_celsius", device.temperature(TemperatureSensor::Gpu).ok().map(f64::from)),
        ("sm_clock_mhz", device.clock_info(Clock::SM).ok().map(f64::from)),
        (
            "slowed_by_hardware",
            device.current_throttle_reasons().ok().map(|reasons| f64::from(reasons.intersects(slowed))),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
