//! The GPUs of the machine, from NVIDIA's management library where it is installed.

use std::sync::mpsc;
use std::time::Duration;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use serde::{Deserialize, Serialize};

use super::CaptureInputs;

/// How long the driver may take; a broken one may never answer.
const LIMIT: Duration = Duration::from_secs(5);

/// The GPUs of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GpuInventory {
    /// Every GPU the driver shows, in its order, whether the script may see it or not.
    pub gpus: Vec<Gpu>,
    /// The driver's version.
    pub driver_version: Option<String>,
    /// The CUDA version the driver supports, such as `12.8`.
    pub cuda_version: Option<String>,
    /// `CUDA_VISIBLE_DEVICES` of the script, as set.
    pub cuda_visible_devices: Option<String>,
    /// Why nothing is known.
    pub why_missing: Option<String>,
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The driver's number for it.
    pub index: u32,
    /// The model.
    pub name: Option<String>,
    /// `GPU-…`; stays the same over reboots.
    pub uuid: Option<String>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
}

impl GpuInventory {
    pub(super) fn missing(why: impl Into<String>) -> Self {
        Self { why_missing: Some(why.into()), ..Self::default() }
    }
}

pub(super) fn capture(inputs: &CaptureInputs<'_>) -> GpuInventory {
    let (sender, receiver) = mpsc::channel();
    // A separate thread, left behind if the driver hangs: it cannot be cancelled.
    std::thread::spawn(move || sender.send(inventory()));
    let answer = match receiver.recv_timeout(LIMIT) {
        Ok(Ok(inventory)) => inventory,
        Ok(Err(why)) => GpuInventory::missing(why),
        Err(_) => {
            GpuInventory::missing(format!("the NVIDIA driver did not answer within {} s", LIMIT.as_secs()))
        }
    };
    let visible = inputs.environment.get("CUDA_VISIBLE_DEVICES").cloned();
    GpuInventory { cuda_visible_devices: visible, ..answer }
}

fn inventory() -> Result<GpuInventory, String> {
    let nvml = trackway_launch::open_nvml().map_err(|error| match error {
        NvmlError::LibloadingError(_) => "no NVIDIA driver is installed".to_owned(),
        error => format!("the NVIDIA driver gives no answer: {error}"),
    })?;
    let count =
        nvml.device_count().map_err(|error| format!("the NVIDIA driver counts no devices: {error}"))?;
    let cuda = nvml.sys_cuda_driver_version().ok();
    Ok(GpuInventory {
        gpus: (0..count).map(|index| gpu(&nvml, index)).collect(),
        driver_version: nvml.sys_driver_version().ok(),
        cuda_version: cuda.map(|version| format!("{}.{}", version / 1000, version % 1000 / 10)),
        ..GpuInventory::default()
    })
}

fn gpu(nvml: &Nvml, index: u32) -> Gpu {
    let Ok(device) = nvml.device_by_index(index) else {
        return Gpu { index, name: None, uuid: None, memory_bytes: None };
    };
    Gpu {
        index,
        name: device.name().ok(),
        uuid: device.uuid().ok(),
        memory_bytes: device.memory_info().ok().map(|memory| memory.total),
    }
}
