//! The GPUs of this machine, from NVIDIA's management library where a driver is installed. With feature `nvml`; without it
//! [`GpuDriver::open`] says so.

#[cfg(not(feature = "nvml"))]
mod absent;
#[cfg(feature = "nvml")]
mod nvml;
pub(crate) mod seen;

use serde::{Deserialize, Serialize};

#[cfg(not(feature = "nvml"))]
pub use absent::GpuDriver;
#[cfg(feature = "nvml")]
pub use nvml::GpuDriver;

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The driver's number for it.
    pub index: u32,
    /// The model.
    pub name: Option<String>,
    /// `GPU-…`; stays the same over reboots.
    pub uuid: Option<String>,
    pub memory_bytes: Option<u64>,
}
