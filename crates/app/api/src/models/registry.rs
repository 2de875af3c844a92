//! The registry: models, their versions, what changed them and who approved.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trackway_core::registry::{GateVerdict, ModelChange, ModelStage};
use trackway_core::{AttemptId, Health, RunId, Step, Timestamp};
use trackway_rules::registry::{Policy, Refusal, Version};

/// A model, as the list has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// Its name.
    pub model: String,
    /// The project it belongs to: that of the run of its first version that had one; null: it is not known.
    pub project: Option<String>,
    /// When its first version was registered.
    pub created_at: Timestamp,
    /// The number of its newest change.
    pub change_number: u64,
    pub version_count: u32,
    /// The version in production.
    pub production_version: Option<Version>,
    pub production_since: Option<Timestamp>,
    pub stages: BTreeMap<Version, ModelStage>,
    /// The version that each alias points to.
    pub aliases: BTreeMap<String, Version>,
    /// What a promotion to production requires besides evaluation and gates.
    pub policy: Policy,
}

/// A model with its versions.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelDetails {
    /// Its name.
    pub model: String,
    /// The project it belongs to; null: it is not known.
    pub project: Option<String>,
    /// The version in production.
    pub production_version: Option<Version>,
    /// The version that each alias points to.
    pub aliases: BTreeMap<String, Version>,
    /// What a promotion to production requires besides evaluation and gates.
    pub policy: Policy,
    /// Newest first.
    pub versions: Vec<ModelVersion>,
    /// If there are more versions: the value of `--after` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Version>,
}

/// A version of a model: exactly these weights, where they came from, and what is known about them now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelVersion {
    pub model: String,
    /// Its number, from 1.
    pub version: Version,
    /// The run that trained it.
    pub run_id: RunId,
    /// The attempt that wrote the checkpoint.
    pub attempt_id: Option<AttemptId>,
    /// The health of the attempt that wrote the checkpoint; null: it is not known, or the receipt is older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// What speaks against its weights, whatever the policy requires: an unsafe checkpoint, a broken attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The rung of the data it was trained on, such as `100%`.
    pub rung: String,
    /// The step of the checkpoint.
    pub step: Option<Step>,
    /// Where the checkpoint is in the run's checkpoints.
    pub object_prefix: String,
    /// SHA-256 of the checkpoint's manifest, which names every file with its hash.
    pub checkpoint_manifest_sha256: String,
    /// Bytes of its files.
    pub size_bytes: u64,
    /// SHA-256 of the lineage: run, attempt, rung, step, manifest, config, code, environment and data.
    pub lineage_sha256: String,
    /// SHA-256 of the run's config.
    pub config_sha256: String,
    pub code_commit: Option<String>,
    /// SHA-256 of the environment's packages or lock file.
    pub environment_sha256: Option<String>,
    /// The container image's digest.
    pub container_digest: Option<String>,
    /// The content hash of each data set, by name; null if it is not known.
    pub data: BTreeMap<String, Option<String>>,
    /// The signature of the model, as it was given: `inputs` and `outputs`.
    pub signature: Option<Value>,
    /// A description by a person.
    pub description: Option<String>,
    pub registered_at: Timestamp,
    /// Who registered it; null: the login is unknown.
    pub registered_by: Option<String>,
    /// The lowest version with the same weights, if this one is a duplicate.
    pub duplicate_of: Option<Version>,
    /// The pin that keeps its checkpoint.
    pub pin: String,
    pub stage: ModelStage,
    /// The aliases that point to it.
    pub aliases: Vec<String>,
    /// Its newest evaluation.
    pub evaluation_id: Option<String>,
    /// The newest gate receipt of that evaluation.
    pub gate_receipt_id: Option<String>,
    pub gates: Option<GateVerdict>,
    /// Its approvals, valid or not.
    pub approvals: Vec<Approval>,
    /// What prevents its promotion to production; its files are not read for this.
    pub refusals: Vec<Refusal>,
}

/// A checkpoint was registered as a version.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// Whether it is a new version; false: exactly these weights were registered before, and nothing was added.
    pub is_new: bool,
    #[serde(flatten)]
    pub version: ModelVersion,
}

/// The approval of a version with the evidence it had at that time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub approval_id: String,
    pub model: String,
    pub version: Version,
    /// SHA-256 of model, version, weights and gate receipt: other evidence needs another approval.
    pub digest: String,
    /// The gate receipt that was approved.
    pub gate_receipt_id: String,
    /// Who approved it.
    pub approver: String,
    pub at: Timestamp,
    pub expires_at: Timestamp,
    /// The reason given by that person.
    pub why: Option<String>,
}

/// A version was approved.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    #[serde(flatten)]
    pub approval: Approval,
    /// What still prevents a promotion to production.
    pub refusals: Vec<Refusal>,
}

/// The result of a promotion, a rollback or a change of an alias.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModelChanged {
    pub model: String,
    pub version: Option<Version>,
    /// The stage it is in now.
    pub stage: Option<ModelStage>,
    /// The version that was there before.
    pub was_version: Option<Version>,
    /// SHA-256 of the manifest of the version.
    pub manifest_sha256: Option<String>,
    /// The number of the change; null: nothing changed, because it was so already or was refused.
    pub change_number: Option<u64>,
    /// The gates that allowed it.
    pub gate_receipt_id: Option<String>,
    /// The ids of the approvals that allowed it.
    pub approvals: Vec<String>,
    /// What prevents it; then nothing changed.
    pub refusals: Vec<Refusal>,
    /// The copy of its files.
    pub deployed: Option<Deployed>,
    /// Where another version is served still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Seconds that reading and verifying every byte of the files took.
    pub verify_seconds: f64,
    /// Seconds of everything else but copying.
    pub control_seconds: f64,
}

/// A copy of a version's files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deployed {
    /// The folder of this version.
    pub folder: PathBuf,
    /// Bytes that were copied; 0: a copy that verifies existed.
    pub copied_bytes: u64,
    /// Seconds of copying, or of verifying the existing copy.
    pub copy_seconds: f64,
    /// Whether `current` points to it.
    pub is_current: bool,
    /// The version that `current` points to; another one if a newer change of the registry came first.
    pub current_version: Option<Version>,
    /// What speaks against its weights, whatever the policy requires: an unsafe checkpoint, a broken attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A change of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChangeEntry {
    pub model: String,
    /// Its place in the history of the model, from 1, without gaps.
    pub number: u64,
    pub at: Timestamp,
    /// What was done.
    pub kind: ModelChange,
    /// The version it is about.
    pub version: Option<Version>,
    /// The stage it moved to.
    pub stage: Option<ModelStage>,
    /// The alias that was set or dropped.
    pub alias: Option<String>,
    /// The previous version: in production, or of the alias.
    pub was_version: Option<Version>,
    /// The gates that allowed it.
    pub gate_receipt_id: Option<String>,
    /// The ids of the approvals that allowed it.
    pub approvals: Vec<String>,
    /// The new policy.
    pub policy: Option<Policy>,
    /// Who did it; null: the login is unknown.
    pub person: Option<String>,
    /// The reason given by that person.
    pub why: Option<String>,
    /// The change as text.
    pub summary: String,
    /// In the last change of a page, if there are more changes: the value of `--after` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A model at a given time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelAt {
    pub model: String,
    pub at: Timestamp,
    /// The version that was in production.
    pub production_version: Option<Version>,
    /// SHA-256 of the manifest of that version.
    pub manifest_sha256: Option<String>,
    pub stages: BTreeMap<Version, ModelStage>,
    /// The version that each alias pointed to.
    pub aliases: BTreeMap<String, Version>,
}

/// The card of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCard {
    /// Markdown.
    pub card: String,
}
