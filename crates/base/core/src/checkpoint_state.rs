//! The states of checkpoints, what a checkpoint may be used for, and why one is unsafe.

use serde::{Deserialize, Serialize};

use crate::{Step, closed_list};

closed_list!(
    /// The state of a checkpoint.
    CheckpointState, "state of a checkpoint", {
        /// Bytes may exist; no reader uses them.
        Writing = "writing",
        /// Writing given up, or by a writer that is fenced since: it can never be committed.
        Abandoned = "abandoned",
        /// The newest committed one: what a resume takes.
        Committed = "committed",
        /// Committed, and a newer one is too.
        Superseded = "superseded",
        /// Committed, and found not to verify, or not to be loadable.
        Suspect = "suspect",
        /// Committed and whole, and what it holds is most likely lost: NaN or infinite values, or a training that diverged.
        Unsafe = "unsafe",
        /// Its files are deleted.
        Retired = "retired",
    }
);

closed_list!(
    /// What a checkpoint shall be used for.
    CheckpointUse, "use of a checkpoint", {
        /// An attempt continues from it: a retry, `resume`, a roll back.
        Resume = "resume",
        /// Another training begins with its weights.
        Start = "start",
        /// It is kept, or chosen, as the best by a metric.
        Best = "best",
        /// It counts as the newest good copy, here or at the remote.
        Keep = "keep",
        /// An evaluator reads it.
        Evaluate = "evaluate",
        /// It becomes a version of a model.
        Register = "register",
        /// A version with its weights goes to a stage, or is copied to where it is served.
        Release = "release",
    }
);

impl CheckpointState {
    /// Whether the bytes are there and are what was committed.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Committed | Self::Superseded | Self::Unsafe)
    }
}

/// Why a checkpoint is unsafe.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnsafeEvidence {
    /// In one sentence.
    pub why: String,
    /// The detector that found it; `tensors`: the checkpoint's own values.
    pub found_by: String,
    /// The first bad step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_step: Option<Step>,
    /// The value there, such as `NaN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The metric, or the tensor, that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}
