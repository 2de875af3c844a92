//! Runs that were imported from other tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::RunId;

/// What an import did.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ImportReport {
    /// The tool: `mlflow`, `wandb` or `tensorboard`.
    pub tool: String,
    /// The runs of the store, in its order.
    pub runs: Vec<ImportedRun>,
    /// Number of runs that are new in the ledger.
    pub imported_count: u64,
    /// Number of runs that were imported before; they do not change.
    pub known_count: u64,
    /// Whether nothing was imported because of `--strict`: something would be left out or changed.
    pub is_refused: bool,
    /// What is not here as it is in the store, such as a name that was too long.
    pub changed: Vec<SkippedPath>,
    /// What was left out.
    pub skipped: Vec<SkippedPath>,
}

/// A run of the store.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportedRun {
    /// The run in the ledger.
    pub run_id: RunId,
    pub name: String,
    /// Its name in the tool, if that has another meaning here; null: the name was kept.
    pub renamed_from: Option<String>,
    /// The tool's own id.
    pub origin_id: String,
    /// Whether it is new in the ledger.
    pub is_new: bool,
    pub metric_count: u64,
    /// Number of their values.
    pub point_count: u64,
}

/// Something in the store that was not imported, or not as it is there.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SkippedPath {
    /// What it is: `run`, `folder`, `file`, `record` (of a file), `metric`, `value`, `parameter`, `tag`, `object` (an
    /// image, a text and the like), or `other` (more than are listed).
    pub kind: String,
    /// Where it is.
    pub path: String,
    /// How many there are.
    pub count: u64,
    /// Why it was left out, or how it was changed.
    pub why: String,
}
