//! The files that a run was exported to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::{RunId, closed_list};

closed_list!(
    /// The format of exported files.
    ExportFormat, "format", {
        /// Apache Parquet.
        Parquet = "parquet",
        /// Comma-separated values with a header.
        Csv = "csv",
    }
);

closed_list!(
    /// What an exported file contains.
    ExportedTable, "exported table", {
        /// The values of metrics that count, as in `effective_metrics`.
        Metrics = "metrics",
        /// Parameters of its attempts.
        Parameters = "parameters",
        /// Tags of its attempts.
        Tags = "tags",
        /// Its attempts, with all columns of their receipts.
        Attempts = "attempts",
        /// The data sets that each attempt was launched on.
        Data = "data",
        /// Its checkpoints.
        Checkpoints = "checkpoints",
        /// Its evaluations, oldest first.
        Evaluations = "evaluations",
        /// The stored rows of one evaluation.
        Predictions = "predictions",
    }
);

/// A run, exported.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunExport {
    pub run_id: RunId,
    pub name: String,
    /// The folder that was written.
    pub folder: String,
    /// The format of its files.
    pub format: ExportFormat,
    /// The files; a table without rows has none.
    pub files: Vec<ExportedFile>,
}

/// A file of an export.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ExportedFile {
    /// What it contains.
    pub table: ExportedTable,
    /// The evaluation whose rows it contains; null for other tables.
    pub evaluation_id: Option<String>,
    /// Its path below the folder.
    pub path: String,
    pub rows: u64,
    pub size_bytes: u64,
    /// SHA-256 of it.
    pub sha256: String,
}
