//! Whether what is stored still is what was sealed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{RunId, closed_list};

closed_list!(
    /// What has a digest.
    SealedKind, "kind of what is sealed", {
        /// The receipt of an attempt, with its metrics, parameters, tags, artifacts, segments and costs.
        Receipt = "receipt",
        /// An evaluation, with its metrics and slices.
        Evaluation = "evaluation",
        /// The verdicts of gates and their inputs.
        Gates = "gates",
        /// The manifest of a checkpoint.
        Manifest = "manifest",
        /// The ledger's rows of checkpoints, against the log of their root.
        Mirror = "mirror",
        /// Every file of a checkpoint, by its manifest.
        Weights = "weights",
        /// Logs, exit records, flight records and Parquet files of sealed attempts.
        Files = "files",
        /// The rows that an evaluator wrote.
        Outputs = "outputs",
        /// A file that the script gave as an artifact.
        Artifact = "artifact",
        /// What an attempt was made from beside its commit.
        Source = "source",
        /// A snapshot of data, and the bytes it keeps.
        Snapshot = "snapshot",
        /// The rows of the ledger of which the home keeps a copy.
        Kept = "kept",
    }
);

impl SealedKind {
    /// Several of it, as text.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Receipt => "receipts",
            Self::Evaluation => "evaluations",
            Self::Gates => "receipts of gates",
            Self::Manifest => "manifests of checkpoints",
            Self::Mirror => "checkpoint logs against the ledger",
            Self::Weights => "checkpoints with every file",
            Self::Files => "files of sealed attempts",
            Self::Outputs => "outputs of evaluators",
            Self::Artifact => "artifacts",
            Self::Source => "sources",
            Self::Snapshot => "snapshots of data",
            Self::Kept => "kept copies against the ledger",
        }
    }
}

/// What `trackway verify` recomputed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct VerifyReport {
    /// The run; null: all.
    pub run_id: Option<RunId>,
    /// Whether nothing differs.
    pub holds: bool,
    /// One for each kind.
    pub kinds: Vec<VerifiedKind>,
    /// What differs; the first 1,000.
    pub differs: Vec<Differing>,
    /// What was not looked at: tables without a digest or a kept copy of their rows, and files without a hash.
    pub not_covered: Vec<String>,
    /// How long it took.
    pub seconds: f64,
}

/// One kind of what is sealed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedKind {
    pub kind: SealedKind,
    /// How many are what was sealed.
    pub hold_count: u64,
    pub differ_count: u64,
    /// How many are not sealed yet.
    pub open_count: u64,
    /// How many cannot be looked at from here, such as the files of another machine.
    pub unknown_count: u64,
}

/// Something that differs from what was sealed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Differing {
    pub kind: SealedKind,
    /// Its run; null: it has none, or it cannot be read.
    pub run_id: Option<RunId>,
    /// Its id; of a checkpoint its folder, of a file its path below the home.
    pub id: String,
    pub why: String,
}
