//! The evaluation of a checkpoint.

use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::{record, words};

words!(
    /// The state of an evaluation.
    EvaluationState, "evaluation state", {
        /// The evaluator runs.
        Running = "running",
        /// It gave a complete answer.
        Completed = "completed",
        /// It did not; the training attempt stays good.
        Failed = "failed",
    }
);

record!(
    /// An evaluation of one checkpoint. Cannot change after it has completed or failed.
    EvaluationRow, "evaluations", key ["evaluation_id"], {
        /// `evl_` and a ULID in lower case.
        evaluation_id: String,
        /// The run whose checkpoint it evaluates.
        run_id: RunId,
        /// The attempt that wrote the checkpoint.
        attempt_id: Option<AttemptId>,
        /// SHA-256 of the checkpoint's manifest.
        checkpoint_manifest_sha256: String,
        /// running, completed or failed.
        state: EvaluationState,
        /// The evaluator.
        evaluator_name: String,
        /// SHA-256 over the files of its command, what they import and what it opened; for an import, what the other
        /// tool reports about its code.
        evaluator_digest: Option<String>,
        /// The version of the prompts or tasks.
        task_set_version: Option<String>,
        /// SHA-256 of the prompts or tasks.
        task_set_sha256: Option<String>,
        /// The judge model.
        judge_model: Option<String>,
        /// The judge's rubric: its version, and the SHA-256 of its file if it is a file.
        judge_rubric: Option<String>,
        /// Where the raw outputs are: a Parquet file below the home.
        raw_outputs_location: Option<String>,
        /// When it began.
        started_at: Timestamp,
        /// When it ended.
        ended_at: Option<Timestamp>,
        /// Decoding parameters.
        decoding_json: Option<Json>,
        /// A seeded random sample of wrong rows.
        sampled_failures_json: Option<Json>,
        /// Aggregate metrics with their intervals, by name.
        metrics_json: Option<Json>,
        /// Metrics by slice.
        slices_json: Option<Json>,
        /// Verdicts of the gates.
        gates_json: Option<Json>,
        /// Where it was run: `trackway`, or the tool it was imported from (`inspect`, `lm_eval`); `gate_test`: of a known-bad model.
        origin: String,
        /// The step of the checkpoint.
        step: Option<Step>,
        /// The run of kind `evaluate` that launched the evaluator; null for an import.
        launch_run_id: Option<RunId>,
        /// The last launch of the evaluator.
        launch_attempt_id: Option<AttemptId>,
        /// Number of launches of the evaluator.
        launch_count: u32,
        /// Why it failed.
        failure: Option<String>,
        /// The seed given to the evaluator.
        seed: Option<u64>,
        /// SHA-256 of the Parquet file with the raw outputs.
        raw_outputs_sha256: Option<String>,
        /// Number of rows in it.
        raw_outputs_rows: Option<u64>,
        /// SHA-256 of the evaluator's environment: installed packages, or a lock file.
        environment_lock_sha256: Option<String>,
        /// The digest of the image it ran in.
        container_digest: Option<String>,
        /// The evaluation that is its baseline; `comparison_json` is null when their rows could not be compared.
        baseline_evaluation_id: Option<String>,
        /// The request: command, code files, columns, slices, gates.
        spec_json: Option<Json>,
        /// Fairness metrics by group.
        fairness_json: Option<Json>,
        /// The comparison with the baseline, by metric.
        comparison_json: Option<Json>,
        /// Further results from the rows: task, columns, classes, confusion matrix, curves.
        assessment_json: Option<Json>,
        /// Notes, such as what could not be computed and why.
        notes_json: Option<Json>,
        /// SHA-256 over the canonical JSON of every other column, set when it ends.
        receipt_sha256: Option<String>,
        /// The name of a further test set; null: that of `[evaluate]` itself.
        test_set: Option<String>,
    }
);

record!(
    /// A metric of an evaluation, over all rows or a slice. Append-only, and only while the evaluation runs.
    EvaluationMetricRow, "evaluation_metrics", key ["evaluation_id", "slice", "metric"], {
        /// The evaluation.
        evaluation_id: String,
        /// The slice; empty for all rows.
        slice: String,
        /// The metric's name.
        metric: String,
        /// Its value; null when it is not a number.
        value: Option<f64>,
        /// The lower end of its interval.
        low: Option<f64>,
        /// The upper end.
        high: Option<f64>,
        /// The number of its rows; null when the evaluator did not report it.
        support: Option<u64>,
        /// Where the interval comes from: analytic, bootstrap, clustered or none.
        method: String,
        /// Rows included in the value; null when unknown.
        rows_used: Option<u64>,
        /// Rows that should be included; null when unknown.
        rows_expected: Option<u64>,
    }
);

record!(
    /// A slice of an evaluation. Append-only, and only while the evaluation runs.
    EvaluationSliceRow, "evaluation_slices", key ["evaluation_id", "slice"], {
        /// The evaluation.
        evaluation_id: String,
        /// Its name.
        slice: String,
        /// The condition that selects its rows.
        predicate: String,
        /// Number of rows.
        support: u64,
        /// A verdict on the slice, such as inconclusive when it is too small.
        verdict: Option<String>,
    }
);

record!(
    /// One use of a task set: one row per evaluation, from its launch on, whatever its outcome. Append-only.
    TestSetUseRow, "test_set_uses", key ["evaluation_id"], {
        /// The evaluation.
        evaluation_id: String,
        /// SHA-256 of the task set.
        task_set_sha256: String,
        /// Its version at that time.
        task_set_version: Option<String>,
        /// The run whose checkpoint was evaluated.
        run_id: RunId,
        /// The checkpoint.
        checkpoint_manifest_sha256: String,
        /// When it was used.
        at: Timestamp,
    }
);

record!(
    /// How often each task set was used: the more often, the weaker its evidence. A view over `test_set_uses`.
    TestSetRow, "test_sets", key ["task_set_sha256"], {
        /// SHA-256 of the task set.
        task_set_sha256: String,
        /// Its version; of several, the alphabetically last one.
        task_set_version: Option<String>,
        /// Number of evaluations on it.
        use_count: u64,
        /// Number of distinct checkpoints evaluated on it.
        checkpoint_count: u64,
        /// Number of distinct runs evaluated on it.
        run_count: u64,
        /// When it was first used.
        first_used_at: Timestamp,
        /// When it was last used.
        last_used_at: Timestamp,
    }
);
