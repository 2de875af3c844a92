//! The sections about checks before a launch: `[preflight]`, `[governance]` and `[training]`.

pub(super) mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use trackway_core::checks::Severity;
use trackway_core::{SignOff, closed_list};

use super::training::{Attention, Loss, Master, Optimizer, Precision, Recompute, Strategy};

/// What is checked before the launch, beside everything that is cheap and applicable.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PreflightSection {
    /// Run the script with one batch first; where `None`, if it takes batches from Trackway and did not pass before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_batch: Option<bool>,
    /// Overfit this many batches first.
    pub overfit_batches: Option<u32>,
    /// Let a model look for wrong labels.
    pub label_noise: bool,
    /// Checks, or families of them (`leakage`), that block when they cannot run.
    pub require: Vec<String>,
    /// Checks that are left out, each with the reason.
    pub skip: Vec<SkippedCheck>,
    /// How bad it is what a check finds, by the check's name; a finding that is a mere note stays one.
    pub severity: BTreeMap<String, Severity>,
    /// How long one rehearsal may take.
    pub rehearsal_timeout_seconds: Option<f64>,
    /// The loss at which overfitting counts as reached.
    pub target_loss: Option<f64>,
}

/// A check that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedCheck {
    /// The check, or a family of them.
    pub check: String,
    /// Why; it is in the receipt.
    pub why: String,
}

/// Sign-offs and the people responsible.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GovernanceSection {
    /// Personal data that may be trained on.
    pub personal_data: Vec<SignOff>,
}

/// What the script will do, for the checks of settings, memory and cost. Nothing of it reaches the script. `None`: not
/// set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainingSection {
    /// Parameters of the model.
    pub parameters: Option<u64>,
    /// The model's `config.json` of Hugging Face, or a folder with one; relative to the run file's folder.
    pub model_config: Option<String>,
    /// The type of the matrix products.
    pub precision: Option<Precision>,
    /// fp16 gradients are scaled.
    pub loss_scaling: Option<bool>,
    /// The norm that gradients are cut to; 0: they are not.
    pub gradient_clip_norm: Option<f64>,
    /// Steps in which the learning rate rises.
    pub warmup_steps: Option<u64>,
    /// Steps in all.
    pub total_steps: Option<u64>,
    /// How it is spread over devices.
    pub strategy: Option<Strategy>,
    /// Machines.
    pub nodes: Option<u32>,
    /// The devices may be taken away.
    pub preemptible: Option<bool>,
    /// Samples that one device works on at a time.
    pub micro_batch: Option<u64>,
    /// Micro-batches added up before a step.
    pub accumulate: Option<u64>,
    /// Tokens of a sample.
    pub sequence_length: Option<u64>,
    /// What turns gradients into updates.
    pub optimizer: Option<Optimizer>,
    /// Where 32-bit weights are.
    pub master_weights: Option<Master>,
    /// Activations that are computed again.
    pub recompute: Option<Recompute>,
    /// How attention is computed.
    pub attention: Option<Attention>,
    /// How the loss is computed.
    pub loss: Option<Loss>,
    /// The rank of low-rank adapters; without it every parameter is trained.
    pub lora_rank: Option<u64>,
    /// How batches are loaded.
    pub loader: Option<LoaderFacts>,
    /// How long the devices are held, in hours.
    pub hours_expected: Option<f64>,
    /// What is kept, in GB (10⁹ bytes).
    pub stored_gb: Option<f64>,
    /// The price of keeping one GB.
    pub usd_per_stored_gb: Option<f64>,
    /// What is moved, in GB.
    pub moved_gb: Option<f64>,
    /// The price of moving one GB.
    pub usd_per_moved_gb: Option<f64>,
}

/// How batches are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LoaderFacts {
    /// Processes that load; 0: the training process itself.
    pub workers: Option<u32>,
    /// Batches are put into memory that the device can read by itself.
    pub pin_memory: Option<bool>,
    /// Batches each worker prepares ahead.
    pub prefetch: Option<u32>,
    /// Workers live through epochs.
    pub persistent_workers: Option<bool>,
}

closed_list!(
    /// What a data set is for.
    DataRole, "role of a data set", {
        /// It is learned from.
        Train = "train",
        /// It decides between models.
        Validation = "validation",
        /// It measures how good the final model is.
        Test = "test",
    }
);

impl DataRole {
    /// The role implied by the name of a data set: `train`, `training`; `validation`, `valid`, `val`, `dev`; `test`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "train" | "training" => Some(Self::Train),
            "validation" | "valid" | "val" | "dev" => Some(Self::Validation),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}
