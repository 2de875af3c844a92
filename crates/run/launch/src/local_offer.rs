//! What the local launcher can give: this machine as it is, to one process.

use std::io;
use std::path::Path;

use crate::gpu::seen;
use crate::{Accelerators, Capacity, ContainerStart, NotGiven, Offer, RequestPart};

/// The name of the launcher.
pub(crate) const NAME: &str = "local";

/// What this machine has now; the attempt's folder need not exist yet. `gpus`: how many it has, where its device files are not looked at.
///
/// # Errors
/// The machine's name cannot be read.
pub(crate) fn now(directory: &Path, gpus: Option<u32>) -> io::Result<Offer> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let disk = directory.ancestors().find_map(|folder| nix::sys::statvfs::statvfs(folder).ok());
    let cpus = std::thread::available_parallelism().ok().and_then(|count| u64::try_from(count.get()).ok());
    Ok(Offer {
        host: Some(nix::unistd::gethostname()?.to_string_lossy().into_owned()),
        cpus: Capacity::found(cpus),
        memory_bytes: Capacity::found(memory_total(&meminfo)),
        disk_bytes: Capacity::found(disk.map(|disk| disk.blocks_available() * disk.fragment_size())),
        gpus: gpus.map_or_else(seen::accelerators, Accelerators::UpTo),
        ..fixed()
    })
}

/// What holds on every machine.
pub(crate) fn fixed() -> Offer {
    use RequestPart as Part;
    let not_given = |part, why, instead| NotGiven { part, why, instead };
    Offer {
        launcher: NAME,
        engine: None,
        host: None,
        cpus: Capacity::Unknown,
        memory_bytes: Capacity::Unknown,
        disk_bytes: Capacity::Unknown,
        gpus: Accelerators::UpTo(0),
        refused: vec![
            not_given(Part::Nodes, "the local launcher has one machine", "request 1"),
            not_given(
                Part::ProcessesPerNode,
                "the local launcher starts one process",
                "let the command start the others, as `torchrun` does",
            ),
            not_given(
                Part::GpuMemory,
                "the local launcher does not divide the GPUs of its machine",
                "choose them with `CUDA_VISIBLE_DEVICES` in `run.environment`",
            ),
            not_given(Part::TimeLimit, "the supervisor keeps the limit", "set `supervise.timeout`"),
            not_given(
                Part::Image,
                "the local launcher does not start containers from a request",
                "start Trackway inside of one",
            ),
            not_given(Part::Account, "the local launcher charges no account", "leave it out"),
            not_given(
                Part::Queue,
                "the local launcher starts attempts at once",
                "leave it out, or wait with `trackway run --queue`",
            ),
            not_given(
                Part::Priority,
                "the local launcher has no priorities",
                "start the command with `nice`",
            ),
            not_given(
                Part::Secrets,
                "the local launcher has no store of them",
                "export the variables before the run is started",
            ),
            not_given(
                Part::Template,
                "the local launcher submits nothing that could be patched",
                "leave it out",
            ),
        ],
        isolates: true,
        container: ContainerStart::ByCommand,
    }
}

/// `/proc/meminfo`: `MemTotal` in KiB.
fn memory_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that this machine is looked at, also for a folder that is not there yet.
    #[test]
    fn this_machine_is_looked_at() {
        let here = now(Path::new("/no/such/folder/yet"), None).unwrap();
        let is_found = |capacity| matches!(capacity, Capacity::UpTo(found) if found > 0);
        assert!(is_found(here.cpus) && is_found(here.memory_bytes) && here.host.is_some(), "{here:?}");
        assert!(matches!(here.disk_bytes, Capacity::UpTo(_)), "{here:?}");
        assert_ne!(here.gpus, Accelerators::Unlimited);
        assert_eq!(now(Path::new("/"), Some(3)).unwrap().gpus, Accelerators::UpTo(3));
    }
}
