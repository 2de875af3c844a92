//! Evaluations of checkpoints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trackway_core::registry::GateVerdict;
use trackway_core::{AttemptId, RowCoverage, RunId, Step, TerminationReason, Timestamp, with_fields_of};
pub use trackway_evaluate::debug::ProbeAnswer;
pub use trackway_evaluate::failures::{FailureKind, Failures};
pub use trackway_evaluate::residuals::Residuals;
pub use trackway_evaluate::search::BlindSpots;
pub use trackway_evaluate::{
    Assessment, Average, ClassMetrics, Columns, Compared, Comparison, Confusion, Curves, Estimate, Fairness,
    MatchedClass, Metrics, Slice, Task, TaskCoverage,
};
pub use trackway_ledger::EvaluationState;
use trackway_ledger::GATE_TEST_ORIGIN;
use trackway_tower::gate::JudgedGate;

/// What a checkpoint was evaluated with, and the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationReceipt {
    /// Its id.
    pub evaluation_id: String,
    /// Its state.
    pub state: EvaluationState,
    /// Why it failed.
    pub failure: Option<String>,
    /// The run whose checkpoint was evaluated.
    pub run_id: RunId,
    /// The name of that run.
    pub name: String,
    /// The attempt that wrote the checkpoint.
    pub attempt_id: Option<AttemptId>,
    /// The step of the checkpoint.
    pub step: Option<Step>,
    /// SHA-256 of the checkpoint's manifest.
    pub checkpoint_manifest_sha256: String,
    /// `trackway`, the tool it was imported from, or `gate_test`: of a known-bad model, to test gates; never chosen by default.
    pub origin: String,
    /// The evaluator.
    pub evaluator: Evaluator,
    /// The name of a further test set; null: that of `[evaluate]` itself.
    pub test_set: Option<String>,
    /// The tasks; null if none were named.
    pub task_set: Option<TaskSet>,
    /// Decoding parameters, as they were given.
    pub decoding: Option<Map<String, Value>>,
    /// The judge model; null without one.
    pub judge: Option<Judge>,
    /// The seed given to the evaluator.
    pub seed: Option<u64>,
    /// The predictions; null if the evaluator wrote none.
    pub raw_outputs: Option<RawOutputs>,
    /// A sample of wrong rows.
    pub sampled_failures: Option<Failures>,
    /// Metrics of all rows, by name, with their intervals.
    pub metrics: Metrics,
    /// Metrics of parts of the rows.
    pub slices: Vec<Slice>,
    /// Fairness by measure and group.
    pub fairness: Vec<Fairness>,
    /// The comparison with the baseline.
    pub comparison: Option<Comparison>,
    /// The evaluation it was compared with.
    pub baseline_evaluation_id: Option<String>,
    /// The other results from the rows; null if nothing was computed from them.
    pub assessment: Option<AssessmentDetails>,
    /// Why the rows were not matched with the task set, if they were not.
    pub tasks_unmatched: Option<String>,
    /// What changed inputs do to the predictions; null if the model was not probed.
    pub probes: Option<ProbeAnswer>,
    /// The newest evaluation of the same weights on each further test set of the run file, by name.
    pub test_sets: Vec<TestSetResult>,
    /// Verdicts of the gates.
    pub gates: Vec<JudgedGate>,
    /// The launches of the evaluator, oldest first.
    pub launches: Vec<EvaluatorLaunch>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// SHA-256 over everything that is stored of it, once it has ended.
    pub receipt_sha256: Option<String>,
}

impl EvaluationReceipt {
    /// Whether its model is known to be bad, and was evaluated to test gates.
    #[must_use]
    pub fn is_gate_test(&self) -> bool {
        self.origin == GATE_TEST_ORIGIN
    }

    /// What was computed from its rows, in one piece; none if nothing was.
    #[must_use]
    pub fn assessed(&self) -> Option<Assessment> {
        let details = self.assessment.clone()?;
        Some(with_fields_of!(
            Assessment,
            details,
            [
                task, columns, rows, rows_seen, rows_skipped, rows_unanswered, coverage, tasks, inconclusive,
                groups, confidence, resamples, seed, main_metric, positive_class, matched_classes, average,
                classes, confusion, curves, residuals, blind_spots,
            ],
            metrics: self.metrics.clone(),
            slices: self.slices.clone(),
            fairness: self.fairness.clone(),
            comparison: self.comparison.clone(),
            // They are shown with the receipt.
            notes: Vec::new(),
        ))
    }

    /// Whether every gate passes.
    #[must_use]
    pub fn gates_pass(&self) -> bool {
        self.gates.iter().all(|gate| gate.verdict == GateVerdict::Pass)
    }

    /// Whether it completed, its gates pass, and so do those of the further test sets.
    #[must_use]
    pub fn passes(&self) -> bool {
        let own = self.state == EvaluationState::Completed && self.gates_pass();
        own && self.test_sets.iter().all(TestSetResult::passes)
    }
}

/// The result on a further test set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestSetResult {
    /// Its name.
    pub name: String,
    /// The evaluation; null if these weights were not evaluated on it yet.
    pub evaluation_id: Option<String>,
    /// The state of the evaluation.
    pub state: Option<EvaluationState>,
    /// Rows of predictions.
    pub rows: Option<u64>,
    /// The metric by which its slices are compared.
    pub main_metric: Option<String>,
    /// The metrics of all its rows.
    pub metrics: Metrics,
    /// The worst verdict of its gates; null without gates.
    pub verdict: Option<GateVerdict>,
}

impl TestSetResult {
    /// Whether it was evaluated, and its gates pass.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.state == Some(EvaluationState::Completed)
            && self.verdict.is_none_or(|it| it == GateVerdict::Pass)
    }
}

/// The program that evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluator {
    /// Its name.
    pub name: String,
    /// SHA-256 over the files of its command, the local modules that these import, and the source files that it opened.
    pub digest: Option<String>,
    /// Those files.
    pub files: Vec<CodeFile>,
    /// Its command, without secrets; null for an import.
    pub command: Option<Vec<String>>,
    /// SHA-256 of its environment.
    pub environment_lock_sha256: Option<String>,
    /// The digest of the image it ran in.
    pub container_digest: Option<String>,
}

/// One file of an evaluator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeFile {
    /// As the command names it, else below the folder in which the command is started.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Its size.
    pub size_bytes: u64,
}

/// The tasks of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSet {
    /// As the run file names it.
    pub path: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// SHA-256 of its content.
    pub sha256: Option<String>,
    /// Number of evaluations on this content up to now.
    pub use_count: u64,
    /// Number of distinct checkpoints among them.
    pub checkpoint_count: u64,
    /// What to know if very many checkpoints were compared on it.
    #[serde(default)]
    pub worn: Option<String>,
}

/// A judge model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judge {
    /// The model.
    pub model: Option<String>,
    /// The rubric.
    pub rubric: Option<String>,
}

/// The stored predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RawOutputs {
    /// The Parquet file, below the home.
    pub path: String,
    /// SHA-256 of it.
    pub sha256: Option<String>,
    /// Its rows.
    pub rows: Option<u64>,
}

/// One launch of the evaluator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluatorLaunch {
    /// The launch.
    pub attempt_id: AttemptId,
    /// Why it ended; null while it runs.
    pub termination_reason: Option<TerminationReason>,
    /// The evaluator's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Wall seconds.
    pub wall_seconds: Option<f64>,
}

/// What the rows of an evaluation show besides metrics, slices, fairness and comparison, which the receipt has itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssessmentDetails {
    /// The kind of the predictions.
    pub task: Task,
    /// The column for each role.
    pub columns: Columns,
    /// Rows that were judged.
    pub rows: u64,
    /// Rows that the table has.
    pub rows_seen: u64,
    /// Rows that lack a label or another value that the task needs. They are in no metric.
    pub rows_skipped: u64,
    /// Rows that were judged without a prediction.
    pub rows_unanswered: u64,
    /// The rows that are judged, of those that should be.
    pub coverage: RowCoverage,
    /// How the rows answer the task set; null without one.
    pub tasks: Option<TaskCoverage>,
    /// Metrics that decide no gate, and why.
    pub inconclusive: BTreeMap<String, String>,
    /// Number of distinct values of the group column.
    pub groups: Option<u64>,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// Number of bootstrap resamples.
    pub resamples: u32,
    /// The seed of the bootstrap.
    pub seed: u64,
    /// The metric by which slices are judged.
    pub main_metric: String,
    /// The positive class, with two classes.
    pub positive_class: Option<String>,
    /// Predicted classes that are labels written differently, such as `1` for `true`: they count as those labels.
    #[serde(default)]
    pub matched_classes: Vec<MatchedClass>,
    /// How metrics of classes are averaged.
    pub average: Option<Average>,
    /// Each class.
    pub classes: Vec<ClassMetrics>,
    /// Rows by label and prediction.
    pub confusion: Option<Confusion>,
    /// Points of curves.
    pub curves: Curves,
    /// Residuals by prediction and by column.
    pub residuals: Option<Residuals>,
    /// Slices where the model is worst; null if they were not searched.
    #[serde(default)]
    pub blind_spots: Option<BlindSpots>,
}

/// An evaluation that was imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedEvaluation {
    /// False: it was imported before.
    pub is_new: bool,
    /// Its receipt.
    #[serde(flatten)]
    pub receipt: EvaluationReceipt,
}
