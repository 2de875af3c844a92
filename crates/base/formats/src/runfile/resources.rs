//! What a launch is given and where it goes, and what an entry of a retry plan changes of that.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use trackway_core::closed_list;

use super::patch::{ChangeOrigin, KeyPath, PatchValue, PlanChange, PlanPatch};
use crate::runs::queue::{NAME_BYTES_MAX, is_plain_name};

/// What the run is given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ResourcesSection {
    /// GPUs per attempt.
    pub gpus: u32,
    /// The kind of GPU, as the user writes it.
    pub gpu: Option<String>,
    /// The price of one GPU for an hour, in US dollars.
    pub usd_per_gpu_hour: Option<f64>,
    /// Processor cores per attempt.
    pub cpus: Option<u32>,
    /// Memory per attempt, or of each of its machines.
    pub memory_bytes: Option<u64>,
    /// Machines; the GPUs are divided among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Processes that the engine starts on each machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes_per_node: Option<u32>,
    /// Memory of each GPU, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_memory_bytes: Option<u64>,
    /// Free space for the attempt's files on each machine, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// The longest that the engine lets an attempt run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<f64>,
}

/// Where the run is launched, and what its engine is given beside resources.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LaunchSection {
    /// The launcher: the default engine of a kind.
    pub on: LaunchOn,
    /// The engine, by its name in the settings; none: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineName>,
    /// The account that is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The queue or partition of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The engine's name or number of a priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Machines that no attempt must run on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_hosts: Vec<String>,
    /// Variables that the engine fills from its store of secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretReference>,
    /// A patch in the engine's terms, applied to what the launcher submits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<EngineTemplate>,
}

/// A secret by reference; its value never passes through Trackway.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SecretReference {
    /// The variable that the script finds it in.
    pub name: String,
    /// Where the engine has it, in the engine's terms, such as `hub-credentials/token`.
    pub from: String,
}

/// A patch of what is submitted, as the engine itself writes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EngineTemplate {
    /// How the text is written.
    pub format: TemplateFormat,
    /// The patch.
    pub text: String,
}

closed_list!(
    /// How a template is written.
    #[derive(Default)]
    TemplateFormat, "format of a template", {
        Json = "json",
        Toml = "toml",
        #[default]
        Yaml = "yaml",
    }
);

closed_list!(
    /// Where the run is launched.
    #[derive(Default)]
    LaunchOn, "launcher", {
        /// On this machine.
        #[default]
        Local = "local",
        /// On a Slurm cluster.
        Slurm = "slurm",
        /// As a Kubernetes Job.
        Kubernetes = "kubernetes",
        /// As a Ray Job.
        Ray = "ray",
    }
);

/// The name of an engine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EngineName(String);

/// Why a text is not the name of an engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be the name of an engine: use 1 to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`, the first a letter or a digit"
)]
pub struct EngineNameError(String);

impl EngineName {
    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EngineName {
    type Err = EngineNameError;

    fn from_str(text: &str) -> Result<Self, EngineNameError> {
        match is_plain_name(text) {
            true => Ok(Self(text.to_owned())),
            false => Err(EngineNameError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for EngineName {
    type Error = EngineNameError;

    fn try_from(text: String) -> Result<Self, EngineNameError> {
        text.parse()
    }
}

impl From<EngineName> for String {
    fn from(name: EngineName) -> Self {
        name.0
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl LaunchSection {
    /// The engine that starts an attempt with these changes: a name of the settings, or a kind, which is the name of its default engine.
    #[must_use]
    pub fn engine_with(&self, in_force: &PlanEntry) -> &str {
        match (in_force.launcher, &self.engine) {
            (Some(kind), _) => kind.as_str(),
            (None, Some(engine)) => engine.as_str(),
            (None, None) => self.on.as_str(),
        }
    }
}

/// What a launch changes against the run file: one entry of a retry plan, or everything that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "StoredEntry")]
pub struct PlanEntry {
    /// Environment variables and their values.
    pub set: BTreeMap<String, String>,
    /// Other resources than those of the run file.
    #[serde(default, skip_serializing_if = "ResourcesChange::is_empty")]
    pub resources: ResourcesChange,
    /// Other machines.
    #[serde(default, skip_serializing_if = "PlacementChange::is_empty")]
    pub placement: PlacementChange,
    /// Another launcher than that of the run file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<LaunchOn>,
}

impl PlanEntry {
    /// Adds the changes of `entry`, which go before those that are in force.
    pub fn add(&mut self, entry: &Self) {
        self.set.extend(entry.set.clone());
        let ResourcesChange { gpus, gpu, cpus, memory_bytes } = &entry.resources;
        self.resources.gpus = gpus.or(self.resources.gpus);
        self.resources.gpu = gpu.clone().or(self.resources.gpu.take());
        self.resources.cpus = cpus.or(self.resources.cpus);
        self.resources.memory_bytes = memory_bytes.or(self.resources.memory_bytes);
        for host in &entry.placement.exclude_hosts {
            if !self.placement.exclude_hosts.contains(host) {
                self.placement.exclude_hosts.push(host.clone());
            }
        }
        self.launcher = entry.launcher.or(self.launcher);
    }

    /// The same as changes of the run file. Machines that are excluded are left out: no key of it names them.
    #[must_use]
    pub fn patch(&self) -> PlanPatch {
        let ResourcesChange { gpus, gpu, cpus, memory_bytes } = &self.resources;
        let resource =
            |key: &str, value: Option<PatchValue>| Some((KeyPath::from(["resources", key]), value?));
        let memory = memory_bytes.and_then(|bytes| i64::try_from(bytes).ok());
        let resources = [
            resource("gpus", gpus.map(Into::into)),
            resource("gpu", gpu.as_deref().map(Into::into)),
            resource("cpus", cpus.map(Into::into)),
            resource("memory", memory.map(Into::into)),
        ];
        let variables = self.set.iter().map(|(name, value)| {
            (KeyPath::from(["run", "environment", name]), PatchValue::from(value.as_str()))
        });
        // A kind is the name of its default engine, and that goes before what the run file names.
        let launcher = self
            .launcher
            .map(|launcher| (KeyPath::from(["launch", "engine"]), PatchValue::from(launcher.as_str())));
        let all = variables.chain(resources.into_iter().flatten()).chain(launcher);
        all.map(|(key, value)| PlanChange::new(key, value, ChangeOrigin::RetryPlan)).collect()
    }
}

/// An entry as plans hold it. Those of before there were resources hold the variables alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredEntry {
    Changes(StoredChanges),
    Variables(BTreeMap<String, String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredChanges {
    #[serde(default)]
    set: BTreeMap<String, String>,
    #[serde(default)]
    resources: ResourcesChange,
    #[serde(default)]
    placement: PlacementChange,
    #[serde(default)]
    launcher: Option<LaunchOn>,
}

impl From<StoredEntry> for PlanEntry {
    fn from(stored: StoredEntry) -> Self {
        match stored {
            StoredEntry::Changes(StoredChanges { set, resources, placement, launcher }) => {
                Self { set, resources, placement, launcher }
            }
            StoredEntry::Variables(set) => Self { set, ..Self::default() },
        }
    }
}

/// `BATCH=16 memory=64.0 GiB`, as a sentence about the entry lists it.
impl fmt::Display for PlanEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResourcesChange { gpus, gpu, cpus, memory_bytes } = &self.resources;
        let hosts = &self.placement.exclude_hosts;
        let named = [
            ("gpus", gpus.map(|gpus| gpus.to_string())),
            ("gpu", gpu.clone()),
            ("cpus", cpus.map(|cpus| cpus.to_string())),
            ("memory", memory_bytes.map(trackway_core::text::bytes)),
            ("exclude_hosts", (!hosts.is_empty()).then(|| hosts.join(","))),
            ("launcher", self.launcher.map(|launcher| launcher.to_string())),
        ];
        let set = self.set.iter().map(|(name, value)| format!("{name}={value}"));
        let named = named.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        f.write_str(&set.chain(named).collect::<Vec<_>>().join(" "))
    }
}

/// The resources that an entry of a retry plan changes; what is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResourcesChange {
    /// GPUs per attempt.
    pub gpus: Option<u32>,
    /// The kind of GPU.
    pub gpu: Option<String>,
    /// Processor cores per attempt.
    pub cpus: Option<u32>,
    /// Memory per attempt.
    pub memory_bytes: Option<u64>,
}

impl ResourcesChange {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The machines that an entry of a retry plan leaves to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PlacementChange {
    /// Machines that the attempt must not run on, by name.
    pub exclude_hosts: Vec<String>,
}

impl PlacementChange {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exclude_hosts.is_empty()
    }
}

impl ResourcesSection {
    /// The same with the changes of a retry plan.
    #[must_use]
    pub fn changed(&self, change: &ResourcesChange) -> Self {
        Self {
            gpus: change.gpus.unwrap_or(self.gpus),
            gpu: change.gpu.clone().or_else(|| self.gpu.clone()),
            cpus: change.cpus.or(self.cpus),
            memory_bytes: change.memory_bytes.or(self.memory_bytes),
            ..self.clone()
        }
    }
}
