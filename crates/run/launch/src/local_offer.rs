//! What the local launcher can give: this machine as it is, to one process.

use std::io;
use std::path::Path;

use crate::{Capacity, ContainerStart, Offer, RequestPart};

/// The name of the launcher.
pub(crate) const NAME: &str = "local";

/// What this machine has now; the attempt's folder need not exist yet.
///
/// # Errors
/// The machine's name cannot be read.
pub(crate) fn now(directory: &Path) -> io::Result<Offer> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let disk = directory.ancestors().find_map(|folder| nix::sys::statvfs::statvfs(folder).ok());
    let cpus = std::thread::available_parallelism().ok().and_then(|count| u64::try_from(count.get()).ok());
    Ok(Offer {
        host: Some(nix::unistd::gethostname()?.to_string_lossy().into_owned()),
        cpus: Capacity::found(cpus),
        memory_bytes: Capacity::found(memory_total(&meminfo)),
        disk_bytes: Capacity::found(disk.map(|disk| disk.blocks_available() * disk.fragment_size())),
        ..fixed()
    })
}

/// What holds on every machine.
pub(crate) fn fixed() -> Offer {
    use RequestPart as Part;
    Offer {
        launcher: NAME,
        host: None,
        cpus: Capacity::Unknown,
        memory_bytes: Capacity::Unknown,
        disk_bytes: Capacity::Unknown,
        refused: vec![
            (Part::Nodes, "it has one machine: request 1"),
            (
                Part::ProcessesPerNode,
                "it starts one process: let the command start the others, as `torchrun` does",
            ),
            (
                Part::GpuMemory,
                "it does not divide the GPUs of its machine: choose them with `CUDA_VISIBLE_DEVICES` in `run.environment`",
            ),
            (Part::TimeLimit, "the supervisor keeps the limit: set `supervise.timeout`"),
            (Part::Image, "it starts no containers: start Trackway inside of one"),
            (Part::Account, "it charges none: leave it out"),
            (Part::Queue, "it starts attempts at once: leave it out, or wait with `trackway run --queue`"),
            (Part::Priority, "start the command with `nice`"),
            (Part::Secrets, "it has no store of them: export the variables before the run is started"),
            (Part::Template, "it submits nothing that could be patched: leave it out"),
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
        let here = now(Path::new("/no/such/folder/yet")).unwrap();
        let is_found = |capacity| matches!(capacity, Capacity::UpTo(found) if found > 0);
        assert!(is_found(here.cpus) && is_found(here.memory_bytes) && here.host.is_some(), "{here:?}");
        assert!(matches!(here.disk_bytes, Capacity::UpTo(_)), "{here:?}");
    }
}
