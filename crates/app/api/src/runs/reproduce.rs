//! What rebuilds an attempt, and whether it was rebuilt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{AttemptId, RunId, closed_list};

/// A folder that rebuilds an attempt.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Reproduction {
    pub attempt_id: AttemptId,
    pub run_id: RunId,
    /// The folder that was written.
    pub folder: String,
    /// What `reproduce.sh` in it rebuilds.
    pub rebuilt: Vec<RebuiltPart>,
    /// What cannot be rebuilt, and why.
    pub missing: Vec<String>,
}

/// A part of what an attempt was made from.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RebuiltPart {
    /// What: `code`, `changes`, `program`, `data NAME`, `command`, `seed`.
    pub what: String,
    /// From where, with its hash.
    pub from: String,
}

closed_list!(
    /// The result of comparing an attempt with its reproduction.
    ReproductionVerdict, "result of a reproduction", {
        /// Everything that both have is equal.
        Equal = "equal",
        /// Something differs.
        Different = "different",
        /// They have nothing in common that could be compared.
        CannotTell = "cannot_tell",
    }
);

/// An attempt and its reproduction, compared.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReproductionCheck {
    pub attempt_id: AttemptId,
    /// The run that reproduces it.
    pub run_id: RunId,
    /// The result.
    pub verdict: ReproductionVerdict,
    /// What was compared: digests of the training state at the steps that both saved, and the last values of metrics; and the
    /// environment lock, which may differ without a difference in the result, so that it does not count for the verdict.
    pub compared: Vec<ReproducedValue>,
}

/// A value of an attempt and of its reproduction.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReproducedValue {
    /// Which: `state at step 600`, `last val_loss`, `environment lock`.
    pub what: String,
    /// Of the attempt.
    pub original: String,
    /// Of the reproduction; null: it has none.
    pub reproduced: Option<String>,
    /// Whether they are equal, to the last bit.
    pub equal: bool,
}
