//! The typed sections of a run file, with defaults filled in and units in the names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trackway_core::{Criticality, closed_list};

use super::checks::DataRole;
use super::resources::PlanEntry;

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunSection {
    /// What people call the run.
    pub name: String,
    /// The family under which runs are counted together.
    pub model_family: Option<String>,
    /// The project it belongs to; else the name of the folder of the run file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criticality: Option<Criticality>,
    /// The argument vector; never empty, never read by a shell.
    pub command: Vec<String>,
    /// The seed handed to the script as `TRACKWAY_SEED`.
    pub seed: Option<u64>,
    /// The script's working directory, relative to the run file's folder; that folder when absent.
    pub working_directory: Option<String>,
    /// Environment variables added to the script's.
    pub environment: BTreeMap<String, String>,
    /// Variables whose values may be recorded in the receipt, besides Trackway's own allow-list. Sorted.
    pub pass_environment: Vec<String>,
    /// The run, and after `@` its checkpoint, whose weights the script starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_from: Option<String>,
    /// Parameters to record, beside those of the command.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Tags to record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

impl RunSection {
    /// That of a stored plan, for its parameters and tags; the default one where the plan cannot be read.
    #[must_use]
    pub fn of_stored(plan: &serde_json::Value) -> Self {
        plan.get("run").and_then(|run| serde_json::from_value(run.clone()).ok()).unwrap_or_default()
    }
}

/// The image the run executes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSection {
    /// `repository@sha256:…`
    pub image: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// What starts it.
    #[serde(default)]
    pub engine: ContainerEngine,
}

/// What starts the container of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerEngine {
    /// Podman, else Docker.
    #[default]
    Auto,
    Podman,
    Docker,
    /// Something other than Trackway: the image is only recorded.
    None,
}

closed_list!(
    /// How a data file is read.
    DataFormat, "format of data", {
        /// Apache Parquet.
        Parquet = "parquet",
        /// Separated values with quotes.
        Csv = "csv",
        /// One JSON object per line.
        Jsonl = "jsonl",
        /// Anything else: size and hash only.
        Other = "other",
    }
);

closed_list!(
    /// What separates the decimals of a number in separated values.
    DecimalMark, "decimal mark", {
        /// A point.
        Point = ".",
        /// A comma; dots are between thousands.
        Comma = ",",
    }
);

/// One named data set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DataSpec {
    /// A file, a glob, a folder or a URL; relative to the run file's folder.
    pub path: String,
    /// How to read it; by the file's extension when absent.
    pub format: Option<DataFormat>,
    /// The column to be predicted.
    pub label: Option<String>,
    /// The column whose values must not be split over data sets.
    pub group: Option<String>,
    /// The column with the time of a row.
    pub time: Option<String>,
    /// Column names of CSV files that have no header; empty when the first row is the header.
    pub columns: Vec<String>,
    /// Whether the first row of CSV files is a header; detected when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// The separator of CSV files; detected when absent.
    pub delimiter: Option<char>,
    /// What begins a line of CSV files that is a comment; without it no line is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<char>,
    /// Lines at the beginning of CSV files that are left out, such as a title.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skip_lines: u64,
    /// Whether the rows of CSV files end with a separator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trailing_separator: bool,
    /// The decimal mark of numbers in CSV files; a point when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalMark>,
    /// Strings that mean a missing value, besides the empty one.
    pub missing: Vec<String>,
    /// Conditions in SQL that every row must obey.
    pub rules: Vec<String>,
    /// A schema file that every row is checked against; relative to the run file's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// What the data is compared with: a kept profile (`.json`), a snapshot, or files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Columns that group rows and label rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_by: Vec<String>,
    /// Columns that do not count when rows are compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Its purpose; derived from its name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<DataRole>,
    /// Of a folder of images: a mask or a file of labels for each, by the name without its extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masks: Option<String>,
    /// Of a folder of images or texts: a table with a column that names the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl DataSpec {
    /// The part that decides what is learned: without what is only checked.
    #[must_use]
    pub fn without_checks(&self) -> Self {
        Self {
            rules: Vec::new(),
            schema: None,
            reference: None,
            group_by: Vec::new(),
            ignore: Vec::new(),
            role: None,
            masks: None,
            labels: None,
            ..self.clone()
        }
    }
}

/// The data ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LadderSection {
    /// Fractions of the data, ascending, above 0 and up to 1.
    pub rungs: Vec<f64>,
    /// The rule that promotes from one rung to the next.
    pub promote: Option<String>,
    /// Start a rung from the checkpoint of the one before.
    pub warm_start: bool,
}

/// Checkpoint cadence and retention.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CheckpointSection {
    /// Save every this many steps.
    pub every_steps: Option<u64>,
    /// Save when this much time went by since the last save.
    pub every_seconds: Option<f64>,
    /// Save when this many epochs ended since the last save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_epochs: Option<u64>,
    /// Keep this many of the newest.
    pub keep_last: Option<u32>,
    /// Keep the first at or after every multiple of so many steps.
    pub keep_every_steps: Option<u64>,
    /// Keep the best by a metric.
    pub keep_best: Option<KeepBest>,
    /// An object store URL that holds the truth.
    pub remote: Option<String>,
    /// How long the end of a run waits for uploads.
    pub upload_wait_seconds: Option<f64>,
    /// Where the script itself writes checkpoints: globs, relative to its working directory or absolute. Empty: none of them counts.
    /// Without the key they are found by what they are, unless the script has a cadence for saves through Trackway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Vec<String>>,
    /// How the script learns which of them to continue from; none: it looks by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumeSection>,
    /// After so many recorded steps in a row with a good loss a checkpoint is safe again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_after: Option<u32>,
    /// What follows where the first steps of an attempt show that it does not continue from its checkpoint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_wrong_resume: OnWrongResume,
}

closed_list!(
    /// What follows where the first steps of an attempt show that it does not continue from its checkpoint.
    #[derive(Default)]
    OnWrongResume, "reaction to a wrong resume", {
        /// It is said at its first steps, and trains again what was trained.
        #[default]
        Note = "note",
        /// It is said and ended.
        Stop = "stop",
    }
);

/// The digest of a config that does not name the policy is what it was before there was one.
pub(super) fn is_default<T: Default + PartialEq>(policy: &T) -> bool {
    *policy == T::default()
}

impl CheckpointSection {
    /// Where a stored plan says that the script writes checkpoints; `None`: it does not.
    #[must_use]
    pub fn adopted(plan: &serde_json::Value) -> Option<Vec<String>> {
        serde_json::from_value(plan.get("checkpoint")?.get("adopt")?.clone()).ok()
    }

    /// Whether it is set when the script saves through Trackway.
    #[must_use]
    pub fn has_cadence(&self) -> bool {
        self.every_steps.is_some() || self.every_seconds.is_some() || self.every_epochs.is_some()
    }
}

/// How a script that writes its checkpoints itself learns where to continue. `{path}` is replaced by the checkpoint's path.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResumeSection {
    /// Words that are added to the command.
    pub args: Vec<String>,
    /// Variables that are added to the environment.
    pub environment: BTreeMap<String, String>,
}

/// What the path replaces in [`ResumeSection`].
pub const RESUME_PATH: &str = "{path}";

impl ResumeSection {
    /// The words and variables for a checkpoint at this path: its bytes, also where they are no text.
    #[must_use]
    pub fn at(&self, path: &Path) -> (Vec<OsString>, BTreeMap<String, OsString>) {
        let filled = |text: &String| {
            let mut parts = text.split(RESUME_PATH);
            let mut filled = OsString::from(parts.next().unwrap_or_default());
            for part in parts {
                filled.push(path);
                filled.push(part);
            }
            filled
        };
        let environment = self.environment.iter().map(|(name, value)| (name.clone(), filled(value)));
        (self.args.iter().map(filled).collect(), environment.collect())
    }
}

/// Which checkpoint counts as the best.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepBest {
    /// The metric's name.
    pub metric: String,
    /// Which end of it is good.
    pub goal: Goal,
}

/// Which end of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Less is better.
    Min,
    /// More is better.
    Max,
}

/// What retries may spend.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetrySection {
    /// Rules by termination reason, or by `infrastructure` for `node_failure`, `network_error` and
    /// `storage_error` together (the reason's own rule goes first).
    pub rules: BTreeMap<String, RetryRule>,
    /// The most that all attempts of the run may cost, in US dollars.
    pub max_usd: Option<f64>,
    /// The most GPU time that all attempts of the run may take, in hours.
    pub max_gpu_hours: Option<f64>,
    /// The most wall time that all attempts of the run may take, in hours.
    #[serde(default)]
    pub max_hours: Option<f64>,
}

/// The budget of one termination reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RetryRule {
    /// Retries for this reason; Trackway's default when absent, 0 forbids them.
    pub attempts: Option<u32>,
    /// Committed training that gives one retry back, in seconds; Trackway's default when absent, 0: nothing does.
    #[serde(default)]
    pub refill_seconds: Option<f64>,
    /// The shortest wait before a retry, in seconds.
    pub backoff_min_seconds: Option<f64>,
    /// The longest wait before a retry, in seconds.
    pub backoff_max_seconds: Option<f64>,
    /// Changes of the launch, one per retry, in order.
    pub plan: Vec<PlanEntry>,
    /// The most that retries for this reason may cost, in US dollars.
    pub max_usd: Option<f64>,
    /// The most GPU time that retries for this reason may take, in hours.
    pub max_gpu_hours: Option<f64>,
}

/// How an attempt is watched and ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuperviseSection {
    /// Time between SIGTERM and SIGKILL.
    pub grace_seconds: f64,
    /// An attempt that runs longer is ended; no limit when absent.
    pub timeout_seconds: Option<f64>,
    /// An attempt without progress for this long is ended as hung; off when absent.
    pub hang_after_seconds: Option<f64>,
    /// An attempt without a step for this long after its launch is ended as hung, whatever it prints; when absent, one
    /// that neither prints nor reports anything for `hang_after_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_within_seconds: Option<f64>,
    /// What a retry does when the data is not that of the attempt before.
    #[serde(default)]
    pub on_data_change: OnDataChange,
    /// What SIGTERM from outside means.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sigterm: SigtermMeaning,
}

closed_list!(
    /// What SIGTERM from outside means, to the supervisor or to the script.
    #[derive(Default)]
    SigtermMeaning, "meaning of SIGTERM", {
        /// To the supervisor: a person ends the run. To the script: who sent it is not known.
        #[default]
        Stop = "stop",
        /// The machine is taken away, as a spot instance is, or shut down: the run continues at another time.
        Preempted = "preempted",
    }
);

closed_list!(
    /// What a retry or a resume does when the data is not that of the attempt before.
    #[derive(Default)]
    OnDataChange, "reaction to changed data", {
        /// It is launched and says so; the receipt has the hash of the new data.
        #[default]
        Warn = "warn",
        /// It is not launched.
        Block = "block",
    }
);

/// The grace period when the run file names none.
pub const DEFAULT_GRACE_SECONDS: f64 = 30.0;

impl Default for SuperviseSection {
    fn default() -> Self {
        Self {
            grace_seconds: DEFAULT_GRACE_SECONDS,
            timeout_seconds: None,
            hang_after_seconds: None,
            start_within_seconds: None,
            on_data_change: OnDataChange::Warn,
            sigterm: SigtermMeaning::Stop,
        }
    }
}

/// Whose run it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OwnerSection {
    /// A person; taken from git or the login when absent.
    pub name: Option<String>,
    pub team: Option<String>,
}
