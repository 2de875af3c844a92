//! What a launcher can give, known before anything is launched. What is planned follows it, and a request for more is refused.

use trackway_core::text;

use crate::EngineRequest;

/// What a launcher can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// [`crate::Launcher::name`] of the launcher.
    pub launcher: &'static str,
    /// The one machine that it has; none: it chooses from several, and a request may exclude some.
    pub host: Option<String>,
    /// Processors of its largest machine.
    pub cpus: Capacity,
    /// Memory of its largest machine, in bytes.
    pub memory_bytes: Capacity,
    /// Free space for the files of an attempt, in bytes.
    pub disk_bytes: Capacity,
    /// What it gives nothing of, each with what to do instead.
    pub refused: Vec<(RequestPart, &'static str)>,
    /// Whether the changes to the working directory of a launch can go elsewhere ([`crate::Isolation`]).
    pub isolates: bool,
    /// How an attempt gets into its container.
    pub container: ContainerStart,
}

/// How much of something there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// This much.
    UpTo(u64),
    /// Only its engine knows: it refuses what it has not.
    Unlimited,
    /// It cannot be found out, and nothing of it is promised.
    Unknown,
}

/// How an attempt gets into its container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerStart {
    /// The command that is launched starts it, as a client of Podman or Docker.
    ByCommand,
    /// The engine starts it, from [`EngineRequest::image`].
    ByEngine,
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestPart {
    /// More machines than one.
    Nodes,
    /// More processes than one that the engine starts on a machine.
    ProcessesPerNode,
    /// Accelerators with so much memory.
    GpuMemory,
    TimeLimit,
    Image,
    Account,
    Queue,
    Priority,
    /// Machines to choose from without some of them.
    ExcludeHosts,
    Secrets,
    Template,
}

impl RequestPart {
    /// The key of the run file that requests it. Machines are excluded in `[launch]` and by entries of retry plans.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Nodes => "resources.nodes",
            Self::ProcessesPerNode => "resources.processes_per_node",
            Self::GpuMemory => "resources.gpu_memory",
            Self::TimeLimit => "resources.time_limit",
            Self::Image => "container.image",
            Self::Account => "launch.account",
            Self::Queue => "launch.queue",
            Self::Priority => "launch.priority",
            Self::ExcludeHosts => "exclude_hosts",
            Self::Secrets => "launch.secrets",
            Self::Template => "launch.template",
        }
    }

    /// Whether the request has it.
    fn is_in(self, request: &EngineRequest) -> bool {
        let EngineRequest { resources, image, account, queue, priority, exclude_hosts, secrets, template } =
            request;
        match self {
            Self::Nodes => resources.nodes.is_some_and(|nodes| nodes != 1),
            Self::ProcessesPerNode => resources.processes_per_node.is_some_and(|count| count != 1),
            Self::GpuMemory => resources.gpus.as_ref().is_some_and(|gpus| gpus.memory_bytes.is_some()),
            Self::TimeLimit => resources.time_limit_seconds.is_some(),
            Self::Image => image.is_some(),
            Self::Account => account.is_some(),
            Self::Queue => queue.is_some(),
            Self::Priority => priority.is_some(),
            Self::ExcludeHosts => !exclude_hosts.is_empty(),
            Self::Secrets => !secrets.is_empty(),
            Self::Template => template.is_some(),
        }
    }
}

impl Offer {
    /// What of a request the launcher cannot give, and what to do instead; none when it gives all of it.
    #[must_use]
    pub fn unmet(&self, request: &EngineRequest) -> Option<String> {
        let refused = self.refused.iter().filter(|(part, _)| part.is_in(request));
        let refused = refused.map(|(part, instead)| format!("`{}` ({instead})", part.key()));
        let unmet: Vec<String> = refused.chain(self.excluded(request)).chain(self.lacking(request)).collect();
        (!unmet.is_empty())
            .then(|| format!("the {} launcher cannot give {}", self.launcher, unmet.join(", ")))
    }

    /// Whether it puts attempts on one of several machines: only then can some of them be excluded.
    #[must_use]
    pub fn chooses_hosts(&self) -> bool {
        self.host.is_none()
    }

    fn excluded(&self, request: &EngineRequest) -> Option<String> {
        let host = self.host.as_ref().filter(|host| request.exclude_hosts.contains(host))?;
        let key = RequestPart::ExcludeHosts.key();
        Some(format!("`{key}` (it names `{host}`, its only machine: launch from another one)"))
    }

    /// What it has less of than is requested.
    fn lacking(&self, request: &EngineRequest) -> impl Iterator<Item = String> {
        let resources = &request.resources;
        let wanted = [
            ("cpus", resources.cpus.map(u64::from), self.cpus),
            ("memory", resources.memory_bytes, self.memory_bytes),
            ("disk", resources.disk_bytes, self.disk_bytes),
        ];
        let place = self.host.as_deref().unwrap_or("its largest machine").to_owned();
        wanted.into_iter().filter_map(move |(name, wanted, has)| {
            let wanted = wanted.filter(|wanted| !has.suffices_for(*wanted))?;
            let shown = |count: u64| match name {
                "cpus" => count.to_string(),
                _ => text::bytes(count),
            };
            let has = match has {
                Capacity::UpTo(has) => shown(has),
                Capacity::Unlimited | Capacity::Unknown => "an unknown number".to_owned(),
            };
            let wanted = shown(wanted);
            Some(format!("`resources.{name}` of {wanted} (`{place}` has {has}: request less, or free some)"))
        })
    }
}

impl Capacity {
    /// What was found, if anything was.
    #[must_use]
    pub fn found(count: Option<u64>) -> Self {
        count.map_or(Self::Unknown, Self::UpTo)
    }

    fn suffices_for(self, wanted: u64) -> bool {
        match self {
            Self::UpTo(has) => has >= wanted,
            Self::Unlimited => true,
            Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use trackway_formats::runfile::{EngineTemplate, SecretReference, TemplateFormat};

    use super::*;
    use crate::{GpuRequest, Resources, local_offer};

    fn of(resources: Resources) -> EngineRequest {
        EngineRequest { resources, ..EngineRequest::default() }
    }

    fn machine() -> Offer {
        Offer {
            host: Some("here".into()),
            cpus: Capacity::UpTo(8),
            memory_bytes: Capacity::UpTo(1 << 30),
            disk_bytes: Capacity::Unknown,
            ..local_offer::fixed()
        }
    }

    /// Proves that a machine gives what it has, that an empty request needs nothing, that GPUs are those of the machine, and that other hosts
    /// may be excluded.
    #[test]
    fn what_the_machine_has_is_given() {
        let whole = Resources {
            nodes: Some(1),
            processes_per_node: Some(1),
            cpus: Some(8),
            memory_bytes: Some(1 << 30),
            gpus: Some(GpuRequest { count: 2, kind: Some("a100".into()), memory_bytes: None }),
            ..Resources::default()
        };
        let elsewhere = EngineRequest { exclude_hosts: vec!["there".into()], ..EngineRequest::default() };
        for request in [EngineRequest::default(), of(whole), elsewhere] {
            assert_eq!(machine().unmet(&request), None, "{request:?}");
        }
        assert!(!machine().chooses_hosts());
    }

    /// Proves that each part of a request that the machine cannot give is named by its key of the run file.
    #[test]
    fn what_the_machine_lacks_is_named() {
        let asked = |change: fn(&mut EngineRequest)| {
            let mut request = EngineRequest::default();
            change(&mut request);
            request
        };
        let gpus = GpuRequest { count: 1, kind: None, memory_bytes: Some(1 << 30) };
        let secret = SecretReference { name: "TOKEN".into(), from: "hub/token".into() };
        let template = EngineTemplate { format: TemplateFormat::Yaml, text: "spec: {}".into() };
        let table = [
            ("resources.nodes", of(Resources { nodes: Some(2), ..Resources::default() })),
            (
                "resources.processes_per_node",
                of(Resources { processes_per_node: Some(8), ..Resources::default() }),
            ),
            ("resources.gpu_memory", of(Resources { gpus: Some(gpus), ..Resources::default() })),
            ("resources.cpus", of(Resources { cpus: Some(9), ..Resources::default() })),
            ("resources.memory", of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() })),
            ("resources.disk", of(Resources { disk_bytes: Some(1), ..Resources::default() })),
            (
                "resources.time_limit",
                of(Resources { time_limit_seconds: Some(60.0), ..Resources::default() }),
            ),
            ("container.image", asked(|request| request.image = Some("python:3.12".into()))),
            ("launch.account", asked(|request| request.account = Some("lab".into()))),
            ("launch.queue", asked(|request| request.queue = Some("gpu".into()))),
            ("launch.priority", asked(|request| request.priority = Some("high".into()))),
            ("exclude_hosts", asked(|request| request.exclude_hosts = vec!["here".into()])),
            ("launch.secrets", EngineRequest { secrets: vec![secret], ..EngineRequest::default() }),
            ("launch.template", EngineRequest { template: Some(template), ..EngineRequest::default() }),
        ];
        for (name, request) in table {
            let why = machine().unmet(&request).unwrap_or_default();
            assert!(why.contains(&format!("`{name}`")), "{name}: {why}");
        }
        let memory = machine().unmet(&of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() }));
        assert!(memory.unwrap().contains("`resources.memory` of 2.0 GiB (`here` has 1.0 GiB: request less"));
    }

    /// Proves that an engine with several machines gives what fits on the largest one, and leaves to itself what it does not say.
    #[test]
    fn an_engine_gives_what_its_largest_machine_has() {
        let offer = Offer {
            launcher: "fake",
            host: None,
            cpus: Capacity::Unlimited,
            refused: Vec::new(),
            ..machine()
        };
        let many = Resources { nodes: Some(64), cpus: Some(1 << 20), ..Resources::default() };
        let elsewhere = EngineRequest { exclude_hosts: vec!["here".into()], ..of(many) };
        assert_eq!(offer.unmet(&elsewhere), None);
        let why = offer.unmet(&of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() }));
        assert!(why.unwrap().starts_with("the fake launcher cannot give `resources.memory` of 2.0 GiB"));
        assert!(offer.chooses_hosts());
    }
}
