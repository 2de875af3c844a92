//! Files of old runs that were deleted, or would be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::RunId;

/// What `trackway gc` deleted, or would delete.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GcReport {
    /// Whether this was a dry run: nothing was deleted.
    pub dry_run: bool,
    /// Runs whose logs and records are deleted. Receipts are kept.
    pub gone: Vec<DeletedRun>,
    /// Runs that are kept although the condition selects them.
    pub kept: Vec<KeptRun>,
    /// What was moved out of a script's way before a resume, of these runs: it is a user's own, and deleted only with `--quarantined`.
    pub set_aside: Vec<SetAside>,
    /// Files that belong to no run: incomplete ones that a killed process left, and statistics of data that no later run is
    /// compared with. Only searched without a condition.
    pub leftovers: Vec<Leftover>,
    pub freed_bytes: u64,
}

/// A run whose logs and records are deleted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DeletedRun {
    pub run_id: RunId,
    pub name: String,
    /// Bytes of its attempts' logs, records and Parquet files, of the files of its evaluators, and of the records and copied
    /// checkpoints of its diagnoses.
    pub size_bytes: u64,
}

/// Files of a script that were moved out of its way.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    pub run_id: RunId,
    pub name: String,
    /// Their folder below the home.
    pub path: String,
    pub size_bytes: u64,
    /// Whether they are deleted, or would be; else they are kept.
    pub goes: bool,
}

/// A run that is kept.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct KeptRun {
    pub run_id: RunId,
    pub name: String,
    pub why: String,
}

/// A file or folder that is not in use any more.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Leftover {
    /// Its path below the home.
    pub path: String,
    pub size_bytes: u64,
    /// Why it is not in use.
    pub why: String,
}
