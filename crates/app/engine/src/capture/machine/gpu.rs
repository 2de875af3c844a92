//! The GPUs of the machine, as its driver reports them.

use std::sync::mpsc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
pub use trackway_launch::Gpu;
use trackway_launch::GpuDriver;

use crate::capture::CaptureInputs;

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

impl GpuInventory {
    pub(in crate::capture) fn missing(why: impl Into<String>) -> Self {
        Self { why_missing: Some(why.into()), ..Self::default() }
    }
}

pub(in crate::capture) fn capture(inputs: &CaptureInputs<'_>) -> GpuInventory {
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
    let driver = GpuDriver::open()?;
    Ok(GpuInventory {
        gpus: driver.gpus()?,
        driver_version: driver.version(),
        cuda_version: driver.cuda_version(),
        ..GpuInventory::default()
    })
}
