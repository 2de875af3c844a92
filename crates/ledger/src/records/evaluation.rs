//! What is known of a checkpoint once it was judged.

use serde_json::Value as Json;
use trackway_core::{AttemptId, RunId, Step, Timestamp};

use crate::value::{record, words};

words!(
    /// Where an evaluation stands.
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
    /// An evaluation of one checkpoint. Can no longer change once it completed or failed.
    EvaluationRow, "evaluations", key ["evaluation_id"], {
        /// `evl_` and a ULID in lower case.
        evaluation_id: String,
        /// The run whose checkpoint it judges.
        run_id: RunId,
        /// The attempt that wrote the checkpoint.
        attempt_id: Option<AttemptId>,
        /// SHA-256 of the checkpoint's manifest.
        checkpoint_manifest_sha256: String,
        /// running, completed or failed.
        state: EvaluationState,
        /// The evaluator.
        evaluator_name: String,
        /// SHA-256 over the files of its command; of an import what the other tool says of its code.
        evaluator_digest: Option<String>,
        /// The version of the prompts or tasks.
        task_set_version: Option<String>,
        /// SHA-256 of the prompts or tasks.
        task_set_sha256: Option<String>,
        /// The judge model.
        judge_model: Option<String>,
        /// The judge's rubric: its version, and the SHA-256 of its file where it is one.
        judge_rubric: Option<String>,
        /// Where the raw outputs are: a Parquet file below the home.
        raw_outputs_location: Option<String>,
        /// When it began.
        started_at: Timestamp,
        /// When it ended.
        ended_at: Option<Timestamp>,
        /// Decoding parameters.
        decoding_json: Option<Json>,
        /// Failures to look at: a seeded sample of wrong rows.
        sampled_failures_json: Option<Json>,
        /// Aggregate metrics with their intervals, by name.
        metrics_json: Option<Json>,
        /// Metrics by slice.
        slices_json: Option<Json>,
        /// Verdicts of the gates.
        gates_json: Option<Json>,
        /// Who evaluated: `trackway`, or the tool it was imported from (`inspect`, `lm_eval`).
        origin: String,
        /// The step of the checkpoint.
        step: Option<Step>,
        /// The run of kind `evaluate` whose launches are the evaluator's; null for an import.
        launch_run_id: Option<RunId>,
        /// The launch that it ended with.
        launch_attempt_id: Option<AttemptId>,
        /// How often the evaluator was launched.
        launch_count: u32,
        /// Why it failed, in words.
        failure: Option<String>,
        /// The seed given to the evaluator.
        seed: Option<u64>,
        /// SHA-256 of the Parquet file with the raw outputs.
        raw_outputs_sha256: Option<String>,
        /// Rows in it.
        raw_outputs_rows: Option<u64>,
        /// SHA-256 of the evaluator's environment: installed packages, or a lock file.
        environment_lock_sha256: Option<String>,
        /// The digest of the image it ran in.
        container_digest: Option<String>,
        /// The evaluation that is its baseline; `comparison_json` is null where their rows could not be compared.
        baseline_evaluation_id: Option<String>,
        /// What it was asked for: command, files of the code, columns, slices, gates.
        spec_json: Option<Json>,
        /// Fairness by measure and group.
        fairness_json: Option<Json>,
        /// The comparison with the baseline, by metric.
        comparison_json: Option<Json>,
        /// The rest of what the rows show: task, columns, classes, confusion, curves.
        assessment_json: Option<Json>,
        /// What a reader should know, such as what could not be computed and why.
        notes_json: Option<Json>,
        /// SHA-256 over the canonical JSON of every other column, from its end on.
        receipt_sha256: Option<String>,
    }
);

record!(
    /// A metric of an evaluation, of all rows or of a slice. Append-only, and only while the evaluation runs.
    EvaluationMetricRow, "evaluation_metrics", key ["evaluation_id", "slice", "metric"], {
        /// The evaluation.
        evaluation_id: String,
        /// The slice; empty for all rows.
        slice: String,
        /// The metric's name.
        metric: String,
        /// Its value; null where it is no number.
        value: Option<f64>,
        /// The lower end of its interval.
        low: Option<f64>,
        /// The upper end.
        high: Option<f64>,
        /// The rows behind it; null where the evaluator did not say it.
        support: Option<u64>,
        /// Where the interval comes from: analytic, bootstrap, clustered or none.
        method: String,
    }
);

record!(
    /// A slice of an evaluation. Append-only, and only while the evaluation runs.
    EvaluationSliceRow, "evaluation_slices", key ["evaluation_id", "slice"], {
        /// The evaluation.
        evaluation_id: String,
        /// Its name.
        slice: String,
        /// The condition that its rows meet.
        predicate: String,
        /// How many rows that are.
        support: u64,
        /// What is to be thought of it, such as inconclusive where it is too small.
        verdict: Option<String>,
    }
);

record!(
    /// That a task set was looked at: one row for each evaluation, from its launch on, whatever became of it. Append-only.
    TestSetUseRow, "test_set_uses", key ["evaluation_id"], {
        /// The evaluation.
        evaluation_id: String,
        /// The content.
        task_set_sha256: String,
        /// What it was called.
        task_set_version: Option<String>,
        /// The run whose checkpoint was judged.
        run_id: RunId,
        /// The checkpoint.
        checkpoint_manifest_sha256: String,
        /// When.
        at: Timestamp,
    }
);

record!(
    /// How often each task set was looked at: the more often, the less it says. A view over `test_set_uses`.
    TestSetRow, "test_sets", key ["task_set_sha256"], {
        /// The content.
        task_set_sha256: String,
        /// What it was called last, in order of the alphabet.
        task_set_version: Option<String>,
        /// Evaluations on it.
        use_count: u64,
        /// Different checkpoints judged by it.
        checkpoint_count: u64,
        /// Different runs judged by it.
        run_count: u64,
        /// The first time.
        first_used_at: Timestamp,
        /// The last time.
        last_used_at: Timestamp,
    }
);
