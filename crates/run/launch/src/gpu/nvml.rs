//! NVIDIA's management library, where a driver is installed.

use std::ffi::OsStr;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use super::Gpu;

/// The library's name with its version, as drivers install it, and the one that development packages add.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// A session with the driver.
#[derive(Debug)]
pub struct GpuDriver(Nvml);

impl GpuDriver {
    /// Loads the library and begins a session with the driver, which may hang for good: call it where that does no harm.
    ///
    /// # Errors
    /// Why there is no session: no driver is installed, or what the driver answers.
    pub fn open() -> Result<Self, String> {
        let [installed, development] = LIBRARIES.map(OsStr::new);
        let opened = Nvml::builder().lib_path(installed).init().or_else(|error| match error {
            NvmlError::LibloadingError(_) => Nvml::builder().lib_path(development).init(),
            error => Err(error),
        });
        opened.map(Self).map_err(|error| match error {
            NvmlError::LibloadingError(_) => "no NVIDIA driver is installed".to_owned(),
            error => format!("the NVIDIA driver gives no answer: {error}"),
        })
    }

    /// Every GPU the driver shows, in its order.
    ///
    /// # Errors
    /// What the driver answers when it cannot count them.
    pub fn gpus(&self) -> Result<Vec<Gpu>, String> {
        let count =
            self.0.device_count().map_err(|error| format!("the NVIDIA driver counts no devices: {error}"))?;
        Ok((0..count).map(|index| self.gpu(index)).collect())
    }

    fn gpu(&self, index: u32) -> Gpu {
        let Ok(device) = self.0.device_by_index(index) else {
            return Gpu { index, name: None, uuid: None, memory_bytes: None };
        };
        Gpu {
            index,
            name: device.name().ok(),
            uuid: device.uuid().ok(),
            memory_bytes: device.memory_info().ok().map(|memory| memory.total),
        }
    }

    /// The driver's version.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.0.sys_driver_version().ok()
    }

    /// The CUDA version the driver supports, such as `12.8`.
    #[must_use]
    pub fn cuda_version(&self) -> Option<String> {
        let version = self.0.sys_cuda_driver_version().ok()?;
        Some(format!("{}.{}", version / 1000, version % 1000 / 10))
    }

    /// The values of a GPU now; what the driver does not report is absent.
    #[must_use]
    pub fn values(&self, index: u32) -> Vec<(&'static str, f64)> {
        let Ok(device) = self.0.device_by_index(index) else { return Vec::new() };
        values_of(&device).into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The processes that compute on a GPU now, by the driver's process id, with their bytes of its memory; 0 where it hides them.
    #[must_use]
    pub fn processes(&self, index: u32) -> Vec<(u32, u64)> {
        let Ok(device) = self.0.device_by_index(index) else { return Vec::new() };
        let bytes = |memory| match memory {
            UsedGpuMemory::Used(bytes) => bytes,
            UsedGpuMemory::Unavailable => 0,
        };
        let processes = device.running_compute_processes().unwrap_or_default();
        processes.into_iter().map(|process| (process.pid, bytes(process.used_gpu_memory))).collect()
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
