//! Evaluations of checkpoints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trackway_core::registry::GateVerdict;
use trackway_core::{AttemptId, RowCoverage, RunId, Step, TerminationReason, Timestamp, with_fields_of};
pub use trackway_ledger::EvaluationState;
use trackway_ledger::GATE_TEST_ORIGIN;
pub use trackway_results::assessment::{
    Assessment, Average, ClassMetrics, Columns, Compared, Comparison, Confusion, Curves, Fairness, Metrics,
    Residuals, Slice, Task, TaskCoverage,
};
pub use trackway_results::failures::{FailureKind, Failures};
pub use trackway_results::probes::ProbeAnswer;
pub use trackway_results::search::BlindSpots;
pub use trackway_results::spellings::MatchedClass;
use trackway_rules::gate::JudgedGate;
pub use trackway_statistics::Estimate;

/// What a checkpoint was evaluated with, and the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluationReceipt {
    pub evaluation_id: String,
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
    pub ended_at: Option<Timestamp>,
    /// SHA-256 over everything that is stored of it, once it has ended.
    pub receipt_sha256: Option<String>,
}

/// An evaluation, as lists have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListedEvaluation {
    #[serde(flatten)]
    pub receipt: EvaluationReceipt,
    /// In the last evaluation of a page, if there are more evaluations: the value of `--after` for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl EvaluationReceipt {
    /// Whether its model is known to be bad, and was evaluated to test gates.
    #[must_use]
    pub fn is_gate_test(&self) -> bool {
        self.origin == GATE_TEST_ORIGIN
    }

    /// That other code evaluated the same weights before it: the newest of `among` on the same test set, and what differs.
    #[must_use]
    pub fn other_code(&self, among: &[Self]) -> Option<String> {
        let is_before = |other: &&Self| {
            other.checkpoint_manifest_sha256 == self.checkpoint_manifest_sha256
                && other.test_set == self.test_set
                && other.is_gate_test() == self.is_gate_test()
                && other.evaluator.digest.is_some()
                && other.age() < self.age()
        };
        let before = among.iter().filter(is_before).max_by(|one, other| one.age().cmp(&other.age()))?;
        let changes = self.evaluator.changes_since(&before.evaluator)?;
        Some(format!("by other code than {} of the same weights before it: {changes}", before.evaluation_id))
    }

    fn age(&self) -> (Timestamp, &str) {
        (self.started_at, &self.evaluation_id)
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
    pub name: String,
    /// The evaluation; null if these weights were not evaluated on it yet.
    pub evaluation_id: Option<String>,
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
    pub name: String,
    /// SHA-256 over the files of its command, the local modules that these import, the settings that they name, and the
    /// source files that it opened.
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

impl Evaluator {
    /// How its code differs from that of another one; none where it is the same, or one of them is not known.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Option<String> {
        /// So many files are named.
        const NAMED_MAX: usize = 3;
        let (now, then) = (self.digest.as_ref()?, before.digest.as_ref()?);
        if now == then {
            return None;
        }
        let of = |files: &[CodeFile], path: &str| {
            files.iter().find(|file| file.path == path).map(|file| file.sha256.clone())
        };
        let mut changes: Vec<String> = Vec::new();
        for file in &self.files {
            match of(&before.files, &file.path) {
                None => changes.push(format!("`{}` is new", file.path)),
                Some(sha256) if sha256 != file.sha256 => changes.push(format!("`{}` changed", file.path)),
                Some(_) => {}
            }
        }
        let gone = before.files.iter().filter(|file| of(&self.files, &file.path).is_none());
        changes.extend(gone.map(|file| format!("`{}` is gone", file.path)));
        let more = changes.len().saturating_sub(NAMED_MAX);
        changes.truncate(NAMED_MAX);
        if more > 0 {
            changes.push(format!("{more} more"));
        }
        Some(if changes.is_empty() { "its files have another order".to_owned() } else { changes.join(", ") })
    }
}

/// One file of an evaluator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeFile {
    /// As the command names it, else below the folder in which the command is started.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    pub size_bytes: u64,
}

/// The tasks of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSet {
    /// As the run file names it.
    pub path: Option<String>,
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
    pub model: Option<String>,
    pub rubric: Option<String>,
}

/// The stored predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RawOutputs {
    /// The Parquet file, below the home.
    pub path: String,
    /// SHA-256 of it.
    pub sha256: Option<String>,
    pub rows: Option<u64>,
}

/// One launch of the evaluator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EvaluatorLaunch {
    pub attempt_id: AttemptId,
    /// Why it ended; null while it runs.
    pub termination_reason: Option<TerminationReason>,
    /// The evaluator's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
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
    #[serde(flatten)]
    pub receipt: EvaluationReceipt,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that files of an evaluator that changed, are new or are gone are named, a few of many, and that the same
    /// code and code that is not known have no difference.
    #[test]
    fn other_code_is_named_by_its_files() {
        let evaluator = |digest: Option<&str>, files: &[(&str, &str)]| Evaluator {
            name: "eval.py".into(),
            digest: digest.map(Into::into),
            files: files
                .iter()
                .map(|(path, sha256)| CodeFile {
                    path: (*path).into(),
                    sha256: (*sha256).into(),
                    size_bytes: 1,
                })
                .collect(),
            command: None,
            environment_lock_sha256: None,
            container_digest: None,
        };
        let before = evaluator(Some("a"), &[("eval.py", "1"), ("helper.py", "1"), ("old.py", "1")]);
        let now = evaluator(Some("b"), &[("eval.py", "1"), ("helper.py", "2"), ("new.py", "1")]);
        let said = now.changes_since(&before);
        assert_eq!(said.as_deref(), Some("`helper.py` changed, `new.py` is new, `old.py` is gone"));
        let many = evaluator(Some("c"), &[("1.py", "1"), ("2.py", "1")]);
        let said = many.changes_since(&before);
        assert_eq!(said.as_deref(), Some("`1.py` is new, `2.py` is new, `eval.py` is gone, 2 more"));
        assert_eq!(now.changes_since(&now), None);
        assert_eq!(now.changes_since(&evaluator(None, &[])), None);
    }
}
