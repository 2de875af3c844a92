//! The machine: what it is called, what it runs, and how much of it this process may use.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The machine. Each field is absent if the system does not report it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub hostname: Option<String>,
    /// The system, such as `Debian GNU/Linux 12 (bookworm)`.
    pub os: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The processor architecture Trackway was built for.
    pub architecture: String,
    /// The processor's model.
    pub cpu_model: Option<String>,
    /// Processors of the machine.
    pub cpu_count: Option<u64>,
    /// Processors this process may use: affinity and cgroup quota taken into account, rounded up.
    pub cpu_count_usable: Option<u64>,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Memory this process may use by cgroup; absent without a limit.
    pub memory_limit_bytes: Option<u64>,
    /// Changes with every boot.
    pub boot_id: Option<String>,
}

pub(in crate::capture) fn capture() -> Host {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Host {
        hostname: nix::unistd::gethostname().ok().map(|name| name.to_string_lossy().into_owned()),
        os: os_name(),
        kernel: one_line("/proc/sys/kernel/osrelease"),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu_model: field(&cpuinfo, "model name"),
        cpu_count: Some(cpuinfo.lines().filter(|line| line.starts_with("processor")).count() as u64)
            .filter(|count| *count > 0),
        cpu_count_usable: std::thread::available_parallelism().ok().map(|count| count.get() as u64),
        memory_bytes: memory_total(),
        memory_limit_bytes: memory_limit(),
        boot_id: one_line("/proc/sys/kernel/random/boot_id"),
    }
}

fn one_line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn os_name() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned())
}

/// The value of `name : value` in `/proc/cpuinfo`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn memory_total() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes: u64 = field(&meminfo, "MemTotal")?.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The least limit on the way from this process's cgroup up to the root, in cgroup v2 or v1.
fn memory_limit() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    own.lines().filter_map(limit_file).filter_map(|(root, file, path)| least_limit(&root, &file, &path)).min()
}

/// Root folder, file name and path of one line of `/proc/self/cgroup` (`id:controllers:path`).
fn limit_file(line: &str) -> Option<(PathBuf, String, String)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    match controllers {
        "" => Some(("/sys/fs/cgroup".into(), "memory.max".into(), path.into())),
        _ if controllers.split(',').any(|it| it == "memory") => {
            Some(("/sys/fs/cgroup/memory".into(), "memory.limit_in_bytes".into(), path.into()))
        }
        _ => None,
    }
}

/// A limit at or above this is none: cgroup v1 writes the greatest page-aligned number.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Inside a container the path may not exist below the mounted root; its ancestors, the root included, do.
fn least_limit(root: &Path, file: &str, path: &str) -> Option<u64> {
    let folder = root.join(path.trim_start_matches('/'));
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(root));
    let limits =
        folders.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok());
    limits.filter(|limit| *limit < NO_LIMIT_BYTES).min()
}
