//! What a model predicts, where it is wrong, and what it needs. Evaluations, cross-validation, gates and the registry
//! have one module each.

pub mod cross_validation;
pub mod evaluations;
pub mod gates;
pub mod registry;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trackway_core::closed_list;
use trackway_results::assessment::Metrics;
use trackway_results::probes::ProbeAnswer;
use trackway_results::search::Answer;
use trackway_rules::preflight::memory::MemoryReport;

/// The slices in which a model performs badly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlicesReport {
    /// The search and its result.
    #[serde(flatten)]
    pub found: Answer,
    /// Rows read.
    pub rows: u64,
    /// Rows that could not be read.
    pub rows_rejected: u64,
    /// Rows that were searched: a random sample if all of them do not fit into memory.
    pub rows_sampled: u64,
    /// Columns that hold what a model said of a row, by their names: slices are made of them only on request.
    #[serde(default)]
    pub predicted_columns: Vec<String>,
    /// Seconds of reading, searching and measuring.
    pub seconds: f64,
}

closed_list!(
    /// What a model predicts.
    PredictionKind, "kind of predictions", {
        /// Numbers.
        Numbers = "numbers",
        /// Classes.
        Classes = "classes",
        /// Probabilities of the positive class.
        Probabilities = "probabilities",
    }
);

/// A table that was scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreReport {
    /// The table with the predictions.
    pub out: String,
    pub rows: u64,
    /// Rows that could not be read and were not scored.
    pub rows_rejected: u64,
    /// The columns that the model was given, in this order.
    pub features: Vec<String>,
    /// What it predicts.
    pub predictions: PredictionKind,
    /// Number of batches it answered.
    pub batches: u64,
    /// Rows of a full batch.
    pub batch_rows: usize,
    /// Its speed: `latency_seconds`, `latency_p95_seconds` and `rows_per_second`; empty for too few batches.
    pub metrics: Metrics,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Seconds of reading and scoring, with the start of the model and, in an evaluation, its probes.
    pub seconds: f64,
}

/// What probing a model showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeReport {
    #[serde(flatten)]
    pub found: ProbeAnswer,
    /// Rows of the table.
    pub rows_read: u64,
    /// Seconds of reading and scoring.
    pub seconds: f64,
}

/// The device memory that a training run needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryAnswer {
    /// The estimate.
    #[serde(flatten)]
    pub report: MemoryReport,
    /// What was assumed about the model.
    pub notes: Vec<String>,
}
