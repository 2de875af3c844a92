//! How many accelerators this machine has, as its device files show: without the library of a driver, which may hang.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Accelerators;

/// What is looked at.
#[derive(Debug, Default)]
struct DeviceFiles {
    /// The names below `/dev`, `/dev/dri` and `/dev/accel`, as paths below `/dev`; none where that cannot be read.
    devices: Option<BTreeSet<String>>,
    /// GPUs that the NVIDIA driver has.
    nvidia_count: usize,
    /// An NVIDIA GPU is divided into instances.
    has_instances: bool,
    /// GPUs that the AMD driver can compute on.
    amd_count: usize,
    /// The PCI bus has a device of NVIDIA or of AMD's GPUs, or an accelerator of another maker.
    is_on_bus: bool,
}

/// The accelerators of this machine.
pub(crate) fn accelerators() -> Accelerators {
    counted(&DeviceFiles::read(Path::new("/")))
}

impl DeviceFiles {
    fn read(root: &Path) -> Self {
        let proc_nvidia = root.join("proc/driver/nvidia");
        Self {
            devices: devices(&root.join("dev")),
            nvidia_count: names(&proc_nvidia.join("gpus")).len(),
            has_instances: has_instances(&proc_nvidia.join("capabilities")),
            amd_count: amd_count(&root.join("sys/class/kfd/kfd/topology/nodes")),
            is_on_bus: is_on_bus(&root.join("proc/bus/pci/devices"))
                || has_accelerator(&root.join("sys/bus/pci/devices")),
        }
    }
}

/// What the files show. Nothing is concluded from a device whose kind or number they do not show.
fn counted(files: &DeviceFiles) -> Accelerators {
    let unknown = |why: String| Accelerators::Unknown { why };
    let Some(devices) = &files.devices else { return unknown("`/dev` cannot be read".into()) };
    if files.has_instances {
        return unknown("an NVIDIA GPU is divided into instances (MIG)".into());
    }
    let nvidia_count = devices.iter().filter(|name| is_numbered(name, "nvidia")).count();
    if nvidia_count == 0 && files.nvidia_count > 0 {
        return unknown("the NVIDIA driver has GPUs, and `/dev` has no files of them".into());
    }
    let amd_count = if devices.contains("kfd") { files.amd_count } else { 0 };
    let count = nvidia_count + amd_count;
    // A GPU that is counted has such files too.
    let is_of_counted = |name: &str| count > 0 && (name == "kfd" || name.starts_with("dri/"));
    let other = devices.iter().find(|name| may_be_accelerator(name) && !is_of_counted(name));
    if let Some(name) = other {
        return unknown(format!("`/dev/{name}` may be one of them"));
    }
    if count > 0 {
        return Accelerators::UpTo(u32::try_from(count).unwrap_or(u32::MAX));
    }
    match files.is_on_bus {
        true => unknown("the PCI bus has a device that may be one of them".into()),
        false => Accelerators::UpTo(0),
    }
}

/// Devices of other makers, and those that say nothing of what they are: WSL's, Tegra's, and what is handed to a virtual machine.
fn may_be_accelerator(name: &str) -> bool {
    const NAMES: [&str; 4] = ["dxg", "nvmap", "nvgpu", "kfd"];
    const NUMBERED: [&str; 8] =
        ["dri/renderD", "accel/accel", "accel", "neuron", "hl", "davinci", "apex_", "vfio/"];
    NAMES.contains(&name) || NUMBERED.iter().any(|kind| is_numbered(name, kind))
}

fn is_numbered(name: &str, kind: &str) -> bool {
    let number = name.strip_prefix(kind);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn devices(dev: &Path) -> Option<BTreeSet<String>> {
    let mut found: BTreeSet<String> = names_in(dev)?.into_iter().collect();
    for folder in ["dri", "accel", "vfio"] {
        found.extend(names(&dev.join(folder)).into_iter().map(|name| format!("{folder}/{name}")));
    }
    Some(found)
}

/// The names in a folder; none where there is no such folder.
fn names(folder: &Path) -> Vec<String> {
    names_in(folder).unwrap_or_default()
}

fn names_in(folder: &Path) -> Option<Vec<String>> {
    let entries = fs::read_dir(folder).ok()?;
    Some(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// `capabilities/gpu0/mig/gi1` is an instance of a GPU.
fn has_instances(capabilities: &Path) -> bool {
    let of_gpu = |gpu: String| names(&capabilities.join(gpu).join("mig"));
    names(capabilities).into_iter().flat_map(of_gpu).any(|name| is_numbered(&name, "gi"))
}

/// The nodes of the topology that are GPUs: those of processors have the id 0.
fn amd_count(nodes: &Path) -> usize {
    let is_gpu = |node: &String| {
        let id = fs::read_to_string(nodes.join(node).join("gpu_id"));
        id.is_ok_and(|id| !matches!(id.trim(), "" | "0"))
    };
    names(nodes).iter().filter(|node| is_gpu(node)).count()
}

/// The second column of a line has the makers' number of a device in its first four digits.
fn is_on_bus(devices: &Path) -> bool {
    const MAKERS: [&str; 2] = ["10de", "1002"];
    let listed = fs::read_to_string(devices).unwrap_or_default();
    listed
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.get(..4))
        .any(|maker| MAKERS.contains(&maker))
}

/// A device of the class `0x12` is a processing accelerator.
fn has_accelerator(devices: &Path) -> bool {
    names(devices).iter().any(|device| {
        let class = fs::read_to_string(devices.join(device).join("class"));
        class.is_ok_and(|class| class.starts_with("0x12"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves what each kind of device file shows: a number only where it is certain, and else why it is not known, as
    /// beside a device of another maker.
    #[test]
    fn device_files_are_counted() {
        let files = |devices: &[&str]| DeviceFiles {
            devices: Some(devices.iter().map(|name| (*name).to_owned()).collect()),
            ..DeviceFiles::default()
        };
        let plain = ["null", "tty0", "nvidiactl", "nvidia-uvm", "dri/card0", "vfio/vfio"];
        assert_eq!(counted(&files(&plain)), Accelerators::UpTo(0));
        let two = files(&["nvidia0", "nvidia1", "nvidiactl", "dri/renderD128"]);
        assert_eq!(
            counted(&DeviceFiles { nvidia_count: 8, ..two }),
            Accelerators::UpTo(2),
            "a container has two of eight"
        );
        assert_eq!(counted(&DeviceFiles { amd_count: 4, ..files(&["kfd"]) }), Accelerators::UpTo(4));
        assert_eq!(
            counted(&DeviceFiles { amd_count: 4, ..files(&[]) }),
            Accelerators::UpTo(0),
            "a container has none"
        );
        let unknown = [
            (DeviceFiles::default(), "`/dev` cannot be read"),
            (DeviceFiles { has_instances: true, ..files(&["nvidia0"]) }, "(MIG)"),
            (DeviceFiles { nvidia_count: 1, ..files(&[]) }, "the NVIDIA driver has GPUs"),
            (files(&["nvidia0", "nvidiactl", "hl0"]), "`/dev/hl0` may be"),
            (DeviceFiles { amd_count: 1, ..files(&["kfd", "accel/accel0"]) }, "`/dev/accel/accel0` may be"),
            (files(&["dri/renderD128"]), "`/dev/dri/renderD128` may be"),
            (files(&["dxg"]), "`/dev/dxg` may be"),
            (files(&["neuron0"]), "`/dev/neuron0` may be"),
            (DeviceFiles { is_on_bus: true, ..files(&[]) }, "the PCI bus"),
        ];
        for (files, expected) in unknown {
            let Accelerators::Unknown { why } = counted(&files) else { panic!("{files:?} shows no number") };
            assert!(why.contains(expected), "{why}");
        }
    }

    /// Proves that the files of a machine are found where they are: devices, instances of a GPU, nodes of AMD's
    /// topology, and the bus with the classes of what is on it.
    #[test]
    fn device_files_are_found() {
        let machine = tempfile::tempdir().unwrap();
        let root = machine.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert!(matches!(counted(&DeviceFiles::read(root)), Accelerators::Unknown { .. }));
        write("dev/null", "");
        write("proc/bus/pci/devices", "0000\t80860d57\t0\n0008\t1af41045\t0\tvirtio-pci\n");
        assert_eq!(counted(&DeviceFiles::read(root)), Accelerators::UpTo(0));
        write("sys/bus/pci/devices/0000:3b:00.0/class", "0x120000\n");
        assert!(matches!(counted(&DeviceFiles::read(root)), Accelerators::Unknown { .. }));
        write("sys/bus/pci/devices/0000:3b:00.0/class", "0x030000\n");
        assert_eq!(counted(&DeviceFiles::read(root)), Accelerators::UpTo(0));
        write("proc/bus/pci/devices", "0000\t80860d57\t0\n0100\t10de2330\t0\n");
        assert!(matches!(counted(&DeviceFiles::read(root)), Accelerators::Unknown { .. }));
        write("dev/kfd", "");
        write("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
        write("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51140\n");
        assert_eq!(counted(&DeviceFiles::read(root)), Accelerators::UpTo(1));
        write("dev/nvidia0", "");
        write("proc/driver/nvidia/gpus/0000:01:00.0/information", "");
        write("proc/driver/nvidia/capabilities/gpu0/mig/config", "");
        assert_eq!(counted(&DeviceFiles::read(root)), Accelerators::UpTo(2));
        write("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "");
        assert!(matches!(counted(&DeviceFiles::read(root)), Accelerators::Unknown { .. }));
    }
}
