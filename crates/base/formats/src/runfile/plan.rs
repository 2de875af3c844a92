use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::checks::{GovernanceSection, PreflightSection, TrainingSection};
use super::detect::DetectSection;
use super::early_stop::EarlyStopSection;
use super::evaluate::EvaluateSection;
use super::notify::NotifySection;
use super::resources::{LaunchSection, ResourcesSection};
use super::sections::{
    CheckpointSection, ContainerSection, DataSpec, LadderSection, OwnerSection, RetrySection, RunSection,
    SuperviseSection,
};

/// The version of the plan's layout.
pub const PLAN_VERSION: u32 = 1;

/// The immutable intent of a run: every value the run file decided, defaults filled in, maps in key order.
///
/// A plan holds values as the user wrote them; redact it before it is stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_VERSION`] of the writer.
    pub version: u32,
    pub run: RunSection,
    /// What it is given.
    pub resources: ResourcesSection,
    /// The image it executes in.
    pub container: Option<ContainerSection>,
    /// The data sets by name.
    pub data: BTreeMap<String, DataSpec>,
    /// What is checked before the launch.
    pub preflight: Option<PreflightSection>,
    /// The people responsible.
    #[serde(default)]
    pub governance: GovernanceSection,
    /// What the script will do, for checks.
    #[serde(default)]
    pub training: Option<TrainingSection>,
    /// The data ladder.
    pub ladder: Option<LadderSection>,
    /// Checkpoint cadence and retention.
    pub checkpoint: CheckpointSection,
    /// What retries may spend.
    pub retry: RetrySection,
    /// How an attempt is watched and ended.
    pub supervise: SuperviseSection,
    /// What is done about what the detectors find.
    #[serde(default)]
    pub detect: DetectSection,
    /// When more training is worth nothing.
    #[serde(default)]
    pub early_stop: Option<EarlyStopSection>,
    /// The evaluation.
    pub evaluate: Option<EvaluateSection>,
    /// What of the run is sent to a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifySection>,
    /// Whose run it is.
    pub owner: OwnerSection,
    /// Where it is launched.
    pub launch: LaunchSection,
}

impl Plan {
    /// The plan of `trackway run -- COMMAND …`: the command, everything else by default. The run is named after
    /// the script: the first argument with a `.py`, `.sh` … extension, else the program.
    #[must_use]
    pub fn for_command(argv: &[String]) -> Self {
        let run = RunSection { name: name_of(argv), command: argv.to_vec(), ..RunSection::default() };
        Self { version: PLAN_VERSION, run, ..Self::default() }
    }

    /// What [`Self::config_sha256`] hashes: the values that decide the trained result.
    ///
    /// In: command, seed, working directory, environment additions, what it starts from; GPU count and kind, machines
    /// and the processes on each, if set (they decide the world size and the arithmetic); the image's digest; data sets
    /// but for what is only checked; rungs; checkpoint cadence (it decides where an interrupted run resumes); when a
    /// run stops early, if set. Out: names, family, owner, prices and budgets, other resources, retries, supervision,
    /// detectors, retention, checks before the launch, evaluation, notifications, launcher, `pass_environment`,
    /// `parameters` and `tags` (they decide what is recorded). What a retry's `set` changed is recorded with that
    /// attempt.
    #[must_use]
    pub fn config(&self) -> Value {
        let data: BTreeMap<&String, DataSpec> =
            self.data.iter().map(|(name, set)| (name, set.without_checks())).collect();
        let mut config = json!({
            "version": self.version,
            "command": self.run.command,
            "seed": self.run.seed,
            "working_directory": self.run.working_directory,
            "environment": self.run.environment,
            "gpus": self.resources.gpus,
            "gpu": self.resources.gpu,
            "container_digest": self.container.as_ref().map(|container| &container.digest),
            "data": data,
            "ladder": self.ladder,
            "checkpoint": {
                "every_steps": self.checkpoint.every_steps,
                "every_seconds": self.checkpoint.every_seconds,
            },
        });
        // Runs without it keep the hash that they had before there was such a thing, as do those below.
        if let Some(epochs) = self.checkpoint.every_epochs {
            config["checkpoint"]["every_epochs"] = json!(epochs);
        }
        if let Some(nodes) = self.resources.nodes {
            config["nodes"] = json!(nodes);
        }
        if let Some(processes) = self.resources.processes_per_node {
            config["processes_per_node"] = json!(processes);
        }
        // Runs that do not stop early keep the hash that they had before there was such a thing.
        if let Some(early_stop) = &self.early_stop {
            config["early_stop"] = json!(early_stop);
        }
        // The same holds for runs that start with random weights.
        if let Some(start_from) = &self.run.start_from {
            config["start_from"] = json!(start_from);
        }
        config
    }

    /// SHA-256, in hexadecimal, of the canonical JSON of [`Self::config`]: keys sorted, no blanks.
    #[must_use]
    pub fn config_sha256(&self) -> String {
        crate::sha256_hex(canonical_json(&self.config()).as_bytes())
    }
}

fn name_of(argv: &[String]) -> String {
    let is_script = |argument: &&String| {
        [".py", ".sh", ".R", ".jl", ".rb", ".js"].iter().any(|extension| argument.ends_with(extension))
    };
    let program = argv.iter().find(is_script).or(argv.first()).map_or("run", String::as_str);
    let file_name = program.rsplit('/').find(|part| !part.is_empty()).unwrap_or(program);
    file_name
        .rsplit_once('.')
        .map_or(file_name, |(stem, _)| if stem.is_empty() { file_name } else { stem })
        .to_owned()
}

/// JSON with sorted keys and no blanks, so that equal values have equal bytes whatever the map type was.
#[must_use]
pub fn canonical_json(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            let fields: Vec<String> = sorted
                .into_iter()
                .map(|(key, value)| format!("{}:{}", json!(key), canonical_json(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical_json).collect();
            format!("[{}]", items.join(","))
        }
        scalar => scalar.to_string(),
    }
}
