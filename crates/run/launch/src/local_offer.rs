//! What the local launcher can give of a request: this machine as it is, to one process.

use std::io;
use std::path::Path;

use trackway_core::text;

use crate::EngineRequest;

/// This machine, as far as requests are concerned. What cannot be read is none, and a request for it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalOffer {
    /// Its name.
    pub host: String,
    /// Processors that this process may use.
    pub cpus: Option<u32>,
    pub memory_bytes: Option<u64>,
    /// Free space on the disk of the attempt's folder.
    pub disk_bytes: Option<u64>,
}

impl LocalOffer {
    /// What this machine has now; the attempt's folder need not exist yet.
    ///
    /// # Errors
    /// The machine's name cannot be read.
    pub fn now(directory: &Path) -> io::Result<Self> {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let disk = directory.ancestors().find_map(|folder| nix::sys::statvfs::statvfs(folder).ok());
        Ok(Self {
            host: nix::unistd::gethostname()?.to_string_lossy().into_owned(),
            cpus: std::thread::available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok()),
            memory_bytes: memory_total(&meminfo),
            disk_bytes: disk.map(|disk| disk.blocks_available() * disk.fragment_size()),
        })
    }

    /// What of a request this machine cannot give, and what to do instead; none when it gives all of it.
    #[must_use]
    pub fn unmet(&self, request: &EngineRequest) -> Option<String> {
        let EngineRequest { resources, image, account, queue, priority, exclude_hosts, secrets, template } =
            request;
        let fixed = [
            (resources.nodes.is_some_and(|nodes| nodes != 1), "`nodes` (it has one machine: request 1)"),
            (
                resources.processes_per_node.is_some_and(|count| count != 1),
                "`processes_per_node` (it starts one process: let the command start the others, as `torchrun` does)",
            ),
            (
                resources.gpus.is_some(),
                "`gpus` (it does not divide those of its machine: choose them with `CUDA_VISIBLE_DEVICES` in `run.environment`)",
            ),
            (
                resources.time_limit_seconds.is_some(),
                "`time_limit_seconds` (the supervisor keeps the limit: set `supervise.timeout`)",
            ),
            (image.is_some(), "`image` (it starts no containers: start Trackway inside of one)"),
            (account.is_some(), "`account` (it charges none: leave it out)"),
            (queue.is_some(), "`queue` (it starts attempts at once: leave it out)"),
            (priority.is_some(), "`priority` (start the command with `nice`)"),
            (
                exclude_hosts.contains(&self.host),
                "`exclude_hosts` (it names this machine: launch from another one)",
            ),
            (
                !secrets.is_empty(),
                "`secrets` (it has no store of them: export the variables before the run is started)",
            ),
            (template.is_some(), "`template` (it submits nothing that could be patched: leave it out)"),
        ];
        let amounts = [
            ("cpus", resources.cpus.map(u64::from), self.cpus.map(u64::from)),
            ("memory_bytes", resources.memory_bytes, self.memory_bytes),
            ("disk_bytes", resources.disk_bytes, self.disk_bytes),
        ];
        let lacking = amounts.into_iter().filter_map(|(name, asked, has)| {
            let asked = asked.filter(|asked| has.is_none_or(|has| has < *asked))?;
            let shown = |amount: u64| match name.ends_with("_bytes") {
                true => text::bytes(amount),
                false => amount.to_string(),
            };
            let (asked, has) = (shown(asked), has.map_or_else(|| "an unknown number".to_owned(), shown));
            Some(format!("`{name}` of {asked} (`{}` has {has}: request less, or free some)", self.host))
        });
        let unmet: Vec<String> = fixed
            .into_iter()
            .filter(|(is_unmet, _)| *is_unmet)
            .map(|(_, why)| why.to_owned())
            .chain(lacking)
            .collect();
        (!unmet.is_empty()).then(|| format!("the local launcher cannot give {}", unmet.join(", ")))
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
    use crate::{EngineTemplate, GpuRequest, Resources, SecretReference, TemplateFormat};

    fn machine() -> LocalOffer {
        LocalOffer { host: "here".into(), cpus: Some(8), memory_bytes: Some(1 << 30), disk_bytes: None }
    }

    fn of(resources: Resources) -> EngineRequest {
        EngineRequest { resources, ..EngineRequest::default() }
    }

    /// Proves that a machine gives what it has, that an empty request needs nothing, and that other hosts may be
    /// excluded.
    #[test]
    fn what_the_machine_has_is_given() {
        let whole = Resources {
            nodes: Some(1),
            processes_per_node: Some(1),
            cpus: Some(8),
            memory_bytes: Some(1 << 30),
            ..Resources::default()
        };
        let elsewhere = EngineRequest { exclude_hosts: vec!["there".into()], ..EngineRequest::default() };
        for request in [EngineRequest::default(), of(whole), elsewhere] {
            assert_eq!(machine().unmet(&request), None, "{request:?}");
        }
        let here = LocalOffer::now(Path::new("/no/such/folder/yet")).unwrap();
        assert!(here.cpus.is_some() && here.memory_bytes.is_some() && here.disk_bytes.is_some(), "{here:?}");
    }

    /// Proves that each part of a request that the machine cannot give is named.
    #[test]
    fn what_the_machine_lacks_is_named() {
        let asked = |change: fn(&mut EngineRequest)| {
            let mut request = EngineRequest::default();
            change(&mut request);
            request
        };
        let gpus = GpuRequest { count: 1, kind: None, memory_bytes: None };
        let secret = SecretReference { name: "TOKEN".into(), from: "hub/token".into() };
        let template = EngineTemplate { format: TemplateFormat::Yaml, text: "spec: {}".into() };
        let table = [
            ("nodes", of(Resources { nodes: Some(2), ..Resources::default() })),
            ("processes_per_node", of(Resources { processes_per_node: Some(8), ..Resources::default() })),
            ("gpus", of(Resources { gpus: Some(gpus), ..Resources::default() })),
            ("cpus", of(Resources { cpus: Some(9), ..Resources::default() })),
            ("memory_bytes", of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() })),
            ("disk_bytes", of(Resources { disk_bytes: Some(1), ..Resources::default() })),
            ("time_limit_seconds", of(Resources { time_limit_seconds: Some(60.0), ..Resources::default() })),
            ("image", asked(|request| request.image = Some("python:3.12".into()))),
            ("account", asked(|request| request.account = Some("lab".into()))),
            ("queue", asked(|request| request.queue = Some("gpu".into()))),
            ("priority", asked(|request| request.priority = Some("high".into()))),
            ("exclude_hosts", asked(|request| request.exclude_hosts = vec!["here".into()])),
            ("secrets", EngineRequest { secrets: vec![secret], ..EngineRequest::default() }),
            ("template", EngineRequest { template: Some(template), ..EngineRequest::default() }),
        ];
        for (name, request) in table {
            let why = machine().unmet(&request).unwrap_or_default();
            assert!(why.contains(&format!("`{name}`")), "{name}: {why}");
        }
        let memory = machine().unmet(&of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() }));
        assert!(memory.unwrap().contains("`memory_bytes` of 2.0 GiB (`here` has 1.0 GiB: request less"));
    }
}
