//! Accelerators and what of their memory a process can use.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// What a process needs on a device before its first tensor: context, loaded kernels, workspaces of libraries.
/// Hugging Face measured 1.3 GiB on a V100 in 2022; since CUDA 11.7 kernels are loaded when they are first used.
pub(super) const CONTEXT_BYTES: f64 = 600.0 * 1_048_576.0;

const GIB: f64 = 1_073_741_824.0;

/// An accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Device {
    /// As it is typed: `h100-80gb`.
    pub name: &'static str,
    /// As its maker writes it.
    pub title: &'static str,
    /// The memory according to the driver, in GiB; it is less than the number in the name.
    pub usable_gib: f64,
}

impl Device {
    /// What a process can use, its context included, in bytes.
    #[must_use]
    pub fn usable_bytes(&self) -> u64 {
        (self.usable_gib * GIB) as u64
    }

    /// The device of that name; case, blanks and underscores do not matter, and the size may be left out: the last of
    /// that name is then taken.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain = |name: &str| name.to_lowercase().replace([' ', '_', '-'], "");
        let wanted = plain(name);
        DEVICES.iter().find(|device| plain(device.name) == wanted).or_else(|| {
            DEVICES.iter().rev().find(|device| !wanted.is_empty() && plain(device.name).starts_with(&wanted))
        })
    }
}

/// Reads a device by its name: what it has is known here.
impl<'de> Deserialize<'de> for Device {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct DeviceName {
            name: String,
        }
        let DeviceName { name } = DeviceName::deserialize(deserializer)?;
        Self::named(&name).copied().ok_or_else(|| D::Error::custom(format!("there is no device `{name}`")))
    }
}

const fn device(name: &'static str, title: &'static str, usable_gib: f64) -> Device {
    Device { name, title, usable_gib }
}

/// The devices that are known by name. Sizes are those that drivers and out-of-memory messages print as total capacity.
pub const DEVICES: [Device; 24] = [
    device("t4-16gb", "NVIDIA T4", 14.56),
    device("p100-16gb", "NVIDIA P100", 15.89),
    device("v100-16gb", "NVIDIA V100 16 GB", 15.77),
    device("v100-32gb", "NVIDIA V100 32 GB", 31.73),
    device("a10-24gb", "NVIDIA A10 and A10G", 21.98),
    device("a30-24gb", "NVIDIA A30", 23.50),
    device("l4-24gb", "NVIDIA L4", 22.03),
    device("l40s-48gb", "NVIDIA L40S", 44.39),
    device("a6000-48gb", "NVIDIA RTX A6000", 47.40),
    device("a100-40gb", "NVIDIA A100 40 GB", 39.38),
    device("a100-80gb", "NVIDIA A100 80 GB", 79.14),
    device("h100-94gb", "NVIDIA H100 NVL", 93.10),
    device("h100-80gb", "NVIDIA H100 80 GB", 79.10),
    device("h200-141gb", "NVIDIA H200", 139.80),
    device("b200-180gb", "NVIDIA B200", 178.30),
    device("rtx2080ti-11gb", "NVIDIA RTX 2080 Ti", 10.75),
    device("rtx3090-24gb", "NVIDIA RTX 3090", 23.68),
    device("rtx4080-16gb", "NVIDIA RTX 4080", 15.69),
    device("rtx4090-24gb", "NVIDIA RTX 4090", 23.64),
    device("rtx5090-32gb", "NVIDIA RTX 5090", 31.36),
    device("mi250x-64gb", "AMD MI250X, one of its two halves", 63.98),
    device("mi300x-192gb", "AMD MI300X", 191.98),
    device("mi325x-256gb", "AMD MI325X", 255.98),
    device("gaudi2-96gb", "Intel Gaudi 2", 94.60),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that devices are found as people write them, the larger one where the size is left out.
    #[test]
    fn devices_are_found_by_name() {
        let found = |name| Device::named(name).map(|device| device.name);
        assert_eq!(found("H100-80GB"), Some("h100-80gb"));
        assert_eq!(found("rtx 4090"), Some("rtx4090-24gb"));
        assert_eq!((found("a100"), found("h100")), (Some("a100-80gb"), Some("h100-80gb")));
        assert_eq!((found("z80"), found("")), (None, None));
    }
}
