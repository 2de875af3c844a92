//! What a launcher can give, known before anything is launched. What is planned follows it, and a request for more is refused.

use std::fmt;

use trackway_core::text;

use crate::EngineRequest;

/// What a launcher can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// [`crate::Launcher::name`] of the launcher.
    pub launcher: &'static str,
    /// [`crate::Launcher::engine`] of the launcher.
    pub engine: Option<String>,
    /// The one machine that it has; none: it chooses from several, and a request may exclude some.
    pub host: Option<String>,
    /// Processors of its largest machine.
    pub cpus: Capacity,
    /// Memory of its largest machine, in bytes.
    pub memory_bytes: Capacity,
    /// Free space for the files of an attempt, in bytes.
    pub disk_bytes: Capacity,
    /// Accelerators of its largest machine.
    pub gpus: Accelerators,
    /// What it gives nothing of.
    pub refused: Vec<NotGiven>,
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

/// How many accelerators there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accelerators {
    /// Not more than this many.
    UpTo(u32),
    /// Only its engine knows: it refuses what it has not.
    Unlimited,
    /// It cannot be found out. A request is launched, and what it gets is shown by the script alone.
    Unknown {
        /// Why it cannot be found out.
        why: String,
    },
}

/// A part of a request that a launcher gives nothing of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotGiven {
    pub part: RequestPart,
    /// Why, as a clause about the launcher.
    pub why: &'static str,
    /// What to do instead, as a command.
    pub instead: &'static str,
}

/// A key of a request that a launcher does not give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its path in the run file, such as `launch.exclude_hosts`.
    pub key: String,
    /// What is requested, as it is shown.
    pub wanted: String,
    /// Why it is not given.
    pub why: String,
    /// What to do instead.
    pub instead: String,
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
    /// The key of the run file that requests it.
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
            Self::ExcludeHosts => "launch.exclude_hosts",
            Self::Secrets => "launch.secrets",
            Self::Template => "launch.template",
        }
    }

    /// What of it is requested, as it is shown; none where nothing is.
    fn wanted_by(self, request: &EngineRequest) -> Option<String> {
        let EngineRequest { resources, image, account, queue, priority, exclude_hosts, secrets, template } =
            request;
        let several = |count: Option<u32>| count.filter(|count| *count != 1).map(|count| count.to_string());
        let listed = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(", "));
        match self {
            Self::Nodes => several(resources.nodes),
            Self::ProcessesPerNode => several(resources.processes_per_node),
            Self::GpuMemory => resources.gpus.as_ref().and_then(|gpus| gpus.memory_bytes).map(text::bytes),
            Self::TimeLimit => resources.time_limit_seconds.map(text::duration),
            Self::Image => image.clone(),
            Self::Account => account.clone(),
            Self::Queue => queue.clone(),
            Self::Priority => priority.clone(),
            Self::ExcludeHosts => listed(exclude_hosts.iter().map(String::as_str).collect()),
            Self::Secrets => listed(secrets.iter().map(|secret| secret.name.as_str()).collect()),
            Self::Template => template.as_ref().map(|template| template.format.to_string()),
        }
    }
}

impl Refusal {
    /// What is refused and why, such as "`resources.memory` = 2.0 GiB: `here` has 1.0 GiB": without what to do instead.
    #[must_use]
    pub fn reason(&self) -> String {
        let Self { key, wanted, why, .. } = self;
        format!("`{key}` = {wanted}: {why}")
    }

    /// Several in a line.
    #[must_use]
    pub fn listed(refusals: &[Self]) -> String {
        refusals.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; {}", self.reason(), self.instead)
    }
}

impl Offer {
    /// What of a request the launcher does not give; empty when it gives all of it.
    #[must_use]
    pub fn unmet(&self, request: &EngineRequest) -> Vec<Refusal> {
        let refused = self.refused.iter().filter_map(|NotGiven { part, why, instead }| {
            let wanted = part.wanted_by(request)?;
            Some(refusal(part.key(), wanted, (*why).to_owned(), instead))
        });
        refused
            .chain(self.excluded(request))
            .chain(self.lacking(request))
            .chain(self.few_gpus(request))
            .collect()
    }

    /// What of a request cannot be compared with what the launcher has, and why.
    #[must_use]
    pub fn unknown(&self, request: &EngineRequest) -> Option<String> {
        let count = wanted_gpus(request)?;
        let Accelerators::Unknown { why } = &self.gpus else { return None };
        let place = self.place();
        Some(match request.resources.nodes.filter(|nodes| *nodes > 1) {
            Some(nodes) => format!(
                "`resources.gpus`: whether {place} has {count}, as each of {nodes} nodes is to have, is not known: {why}"
            ),
            None => format!("`resources.gpus` = {count}: whether {place} has as many is not known: {why}"),
        })
    }

    /// The keys of a request that are compared with what the launcher has.
    #[must_use]
    pub fn compared(&self, request: &EngineRequest) -> Vec<&'static str> {
        let resources = &request.resources;
        let is_known = |capacity: Capacity| matches!(capacity, Capacity::UpTo(_));
        let counts_gpus = matches!(self.gpus, Accelerators::UpTo(_));
        let keys = [
            ("resources.cpus", resources.cpus.is_some() && is_known(self.cpus)),
            ("resources.memory", resources.memory_bytes.is_some() && is_known(self.memory_bytes)),
            ("resources.disk", resources.disk_bytes.is_some() && is_known(self.disk_bytes)),
            ("resources.gpus", wanted_gpus(request).is_some() && counts_gpus),
        ];
        keys.into_iter().filter(|(_, is_compared)| *is_compared).map(|(key, _)| key).collect()
    }

    /// Whether it puts attempts on one of several machines: only then can some of them be excluded.
    #[must_use]
    pub fn chooses_hosts(&self) -> bool {
        self.host.is_none()
    }

    /// Its machine, as it is shown.
    #[must_use]
    pub fn place(&self) -> String {
        self.host.as_ref().map_or_else(|| "its largest machine".to_owned(), |host| format!("`{host}`"))
    }

    fn excluded(&self, request: &EngineRequest) -> Option<Refusal> {
        let host = self.host.as_ref().filter(|host| request.exclude_hosts.contains(host))?;
        let part = RequestPart::ExcludeHosts;
        let wanted = part.wanted_by(request)?;
        let why = format!("`{host}` is the only machine of the {} launcher", self.launcher);
        Some(refusal(part.key(), wanted, why, "launch it from another machine"))
    }

    fn few_gpus(&self, request: &EngineRequest) -> Option<Refusal> {
        let count = wanted_gpus(request)?;
        let Accelerators::UpTo(has) = self.gpus else { return None };
        let engine = self.engine.as_deref().unwrap_or(self.launcher);
        let place = self.place();
        let (why, less) = match has {
            0 => (format!("{place} has none"), "request none"),
            _ => (format!("{place} has {has}"), "request no more"),
        };
        let instead = format!("{less}, or set `engines.{engine}.gpus` of the settings if it has them");
        (count > has).then(|| refusal("resources.gpus", count.to_string(), why, &instead))
    }

    /// What it has less of than is requested.
    fn lacking(&self, request: &EngineRequest) -> impl Iterator<Item = Refusal> {
        let resources = &request.resources;
        let wanted = [
            ("cpus", resources.cpus.map(u64::from), self.cpus),
            ("memory", resources.memory_bytes, self.memory_bytes),
            ("disk", resources.disk_bytes, self.disk_bytes),
        ];
        let place = self.place();
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
            let key = format!("resources.{name}");
            // Processors and memory are counted whether they are free or not.
            let instead = if name == "disk" { "request less, or free some" } else { "request less" };
            Some(refusal(&key, shown(wanted), format!("{place} has {has}"), instead))
        })
    }
}

/// The accelerators of each machine.
fn wanted_gpus(request: &EngineRequest) -> Option<u32> {
    request.resources.gpus.as_ref().map(|gpus| gpus.count).filter(|count| *count > 0)
}

fn refusal(key: &str, wanted: String, why: String, instead: &str) -> Refusal {
    Refusal { key: key.to_owned(), wanted, why, instead: instead.to_owned() }
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

    fn gpus(count: u32) -> EngineRequest {
        of(Resources {
            gpus: Some(GpuRequest { count, kind: None, memory_bytes: None }),
            ..Resources::default()
        })
    }

    fn machine() -> Offer {
        Offer {
            host: Some("here".into()),
            cpus: Capacity::UpTo(8),
            memory_bytes: Capacity::UpTo(1 << 30),
            disk_bytes: Capacity::Unknown,
            gpus: Accelerators::UpTo(2),
            ..local_offer::fixed()
        }
    }

    fn lines(refused: Vec<Refusal>) -> Vec<String> {
        refused.iter().map(ToString::to_string).collect()
    }

    /// Proves that a machine gives what it has, that an empty request needs nothing, and that other hosts may be excluded.
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
            assert_eq!(lines(machine().unmet(&request)), [""; 0], "{request:?}");
        }
        assert!(!machine().chooses_hosts());
    }

    /// Proves that each part of a request that the machine cannot give is one refusal, with its key of the run file,
    /// what is requested, why it is refused and what to do instead.
    #[test]
    fn what_the_machine_lacks_is_named() {
        let asked = |change: fn(&mut EngineRequest)| {
            let mut request = EngineRequest::default();
            change(&mut request);
            request
        };
        let gpu_memory = GpuRequest { count: 1, kind: None, memory_bytes: Some(1 << 30) };
        let secret = SecretReference { name: "TOKEN".into(), from: "hub/token".into() };
        let template = EngineTemplate { format: TemplateFormat::Yaml, text: "spec: {}".into() };
        let table = [
            ("resources.nodes", "2", of(Resources { nodes: Some(2), ..Resources::default() })),
            (
                "resources.processes_per_node",
                "8",
                of(Resources { processes_per_node: Some(8), ..Resources::default() }),
            ),
            (
                "resources.gpu_memory",
                "1.0 GiB",
                of(Resources { gpus: Some(gpu_memory), ..Resources::default() }),
            ),
            ("resources.gpus", "3", gpus(3)),
            ("resources.cpus", "9", of(Resources { cpus: Some(9), ..Resources::default() })),
            (
                "resources.memory",
                "2.0 GiB",
                of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() }),
            ),
            ("resources.disk", "1 B", of(Resources { disk_bytes: Some(1), ..Resources::default() })),
            (
                "resources.time_limit",
                "",
                of(Resources { time_limit_seconds: Some(60.0), ..Resources::default() }),
            ),
            ("container.image", "python:3.12", asked(|request| request.image = Some("python:3.12".into()))),
            ("launch.account", "lab", asked(|request| request.account = Some("lab".into()))),
            ("launch.queue", "gpu", asked(|request| request.queue = Some("gpu".into()))),
            ("launch.priority", "high", asked(|request| request.priority = Some("high".into()))),
            ("launch.exclude_hosts", "here", asked(|request| request.exclude_hosts = vec!["here".into()])),
            ("launch.secrets", "TOKEN", EngineRequest { secrets: vec![secret], ..EngineRequest::default() }),
            (
                "launch.template",
                "yaml",
                EngineRequest { template: Some(template), ..EngineRequest::default() },
            ),
        ];
        for (key, wanted, request) in table {
            let refused = machine().unmet(&request);
            let [refusal] = refused.as_slice() else { panic!("{key}: {refused:?}") };
            assert_eq!(refusal.key, key);
            assert!(refusal.wanted.starts_with(wanted), "{refusal}");
            assert!(!refusal.why.is_empty() && !refusal.instead.is_empty(), "{refusal}");
        }
        let memory = machine().unmet(&of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() }));
        let expected = "`resources.memory` = 2.0 GiB: `here` has 1.0 GiB; request less";
        assert_eq!(lines(memory), [expected]);
        let disk = machine().unmet(&of(Resources { disk_bytes: Some(1), ..Resources::default() }));
        assert_eq!(disk[0].instead, "request less, or free some");
    }

    /// Proves that GPUs are refused only where the machine is known to have fewer, and that it is said where that is not known.
    #[test]
    fn gpus_are_refused_where_they_are_not_there() {
        let with = |gpus: Accelerators| Offer { gpus, ..machine() };
        let none = lines(with(Accelerators::UpTo(0)).unmet(&gpus(1)));
        let expected = "`resources.gpus` = 1: `here` has none; request none, or set `engines.local.gpus` of the settings if it has them";
        assert_eq!(none, [expected]);
        let unseen = with(Accelerators::Unknown { why: "`/dev/dxg` may be one of them".into() });
        assert_eq!(lines(unseen.unmet(&gpus(1))), [""; 0]);
        let expected =
            "`resources.gpus` = 1: whether `here` has as many is not known: `/dev/dxg` may be one of them";
        assert_eq!(unseen.unknown(&gpus(1)).as_deref(), Some(expected));
        assert_eq!((unseen.unknown(&gpus(0)), machine().unknown(&gpus(2))), (None, None));
        let shared = of(Resources { nodes: Some(2), ..gpus(1).resources });
        let expected =
            "`resources.gpus`: whether `here` has 1, as each of 2 nodes is to have, is not known: ";
        assert!(unseen.unknown(&shared).unwrap().starts_with(expected));
    }

    /// Proves that only what is requested and what the launcher has a known number of counts as compared, and the kind of a GPU never.
    #[test]
    fn what_is_compared_is_known() {
        let kind = GpuRequest { count: 0, kind: Some("a100".into()), memory_bytes: None };
        let of_kind = Resources { cpus: Some(1), gpus: Some(kind), ..Resources::default() };
        assert_eq!(machine().compared(&of(of_kind)), ["resources.cpus"]);
        let disk = Resources { disk_bytes: Some(1), memory_bytes: Some(1), ..gpus(1).resources };
        assert_eq!(machine().compared(&of(disk.clone())), ["resources.memory", "resources.gpus"]);
        let unseen = Offer { gpus: Accelerators::Unlimited, ..machine() };
        assert_eq!(unseen.compared(&of(disk)), ["resources.memory"]);
    }

    /// Proves that an engine with several machines gives what fits on the largest one, and leaves to itself what it does not say.
    #[test]
    fn an_engine_gives_what_its_largest_machine_has() {
        let offer = Offer {
            launcher: "fake",
            host: None,
            cpus: Capacity::Unlimited,
            gpus: Accelerators::Unlimited,
            refused: Vec::new(),
            ..machine()
        };
        let many = Resources { nodes: Some(64), cpus: Some(1 << 20), ..gpus(64).resources };
        let elsewhere = EngineRequest { exclude_hosts: vec!["here".into()], ..of(many) };
        assert_eq!(lines(offer.unmet(&elsewhere)), [""; 0]);
        let refused =
            lines(offer.unmet(&of(Resources { memory_bytes: Some(2 << 30), ..Resources::default() })));
        assert!(refused[0].contains("2.0 GiB: its largest machine has 1.0 GiB"), "{refused:?}");
        assert!(offer.chooses_hosts());
    }
}
