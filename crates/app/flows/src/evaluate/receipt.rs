//! A receipt as commands show it.

use serde::Serialize;
use serde_json::{Value as Json, json};
use trackway_core::registry::GateVerdict;
use trackway_core::{AttemptId, LaunchKind, RunId, Step, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_evaluate::Assessment;
use trackway_ledger::{AttemptRow, EvaluationRow, EvaluationState, RunRow, TestSetRow};

/// How a checkpoint was evaluated, and the result. Field names are the JSON contract of `trackway eval run`.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluationReceipt {
    /// Its id.
    pub evaluation_id: String,
    /// `running`, `completed` or `failed`.
    pub state: EvaluationState,
    /// Why it failed.
    pub failure: Option<String>,
    /// The run whose checkpoint was evaluated.
    pub run_id: RunId,
    /// Its name.
    pub name: String,
    /// The attempt that wrote the checkpoint.
    pub attempt_id: Option<AttemptId>,
    /// The step of the checkpoint.
    pub step: Option<Step>,
    /// SHA-256 of the checkpoint's manifest.
    pub checkpoint_manifest_sha256: String,
    /// `trackway`, or the tool it was imported from.
    pub origin: String,
    /// The code of the evaluator.
    pub evaluator: EvaluatorCard,
    /// The tasks it was evaluated on; none was named.
    pub task_set: Option<TaskSetCard>,
    /// How answers were drawn.
    pub decoding: Json,
    /// The judge; none besides the evaluator.
    pub judge: Option<JudgeCard>,
    /// The seed given to the evaluator.
    pub seed: Option<u64>,
    /// The predictions; the evaluator left none.
    pub raw_outputs: Option<RawOutputs>,
    /// Wrong rows to look at.
    pub sampled_failures: Json,
    /// Numbers of all rows, by name, with their intervals.
    pub metrics: Json,
    /// Numbers of parts of the rows.
    pub slices: Json,
    /// Fairness by measure and group.
    pub fairness: Json,
    /// Against the baseline.
    pub comparison: Json,
    /// The evaluation it was compared with.
    pub baseline_evaluation_id: Option<String>,
    /// The rest of what the rows show.
    pub assessment: Json,
    /// Verdicts of the gates.
    pub gates: Json,
    /// The evaluator's launches, oldest first.
    pub launches: Vec<LaunchCard>,
    /// Notes for a reader.
    pub notes: Json,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// SHA-256 over all of it, from its end on.
    pub receipt_sha256: Option<String>,
}

impl EvaluationReceipt {
    /// What was computed from its rows, put together again; none where nothing was.
    #[must_use]
    pub fn judged(&self) -> Option<Assessment> {
        let mut whole = self.assessment.as_object()?.clone();
        let parts = [
            ("metrics", &self.metrics),
            ("slices", &self.slices),
            ("fairness", &self.fairness),
            ("comparison", &self.comparison),
        ];
        whole.extend(parts.map(|(name, part)| (name.to_owned(), part.clone())));
        // They are shown with the receipt.
        whole.insert("notes".into(), json!([]));
        serde_json::from_value(whole.into()).ok()
    }

    /// Whether every gate that was applied passes.
    #[must_use]
    pub fn gates_pass(&self) -> bool {
        let passes = |gate: &Json| gate["verdict"] == GateVerdict::Pass.as_str();
        self.gates.as_array().is_none_or(|gates| gates.iter().all(passes))
    }
}

/// The code of an evaluator.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluatorCard {
    /// Its name.
    pub name: String,
    /// SHA-256 over the files of its command.
    pub digest: Option<String>,
    /// The files: path, sha256 and size_bytes.
    pub files: Json,
    /// Its command, without secrets.
    pub command: Json,
    /// SHA-256 of its environment.
    pub environment_lock_sha256: Option<String>,
    /// The digest of the image it ran in.
    pub container_digest: Option<String>,
}

/// A task set.
#[derive(Debug, Clone, Serialize)]
pub struct TaskSetCard {
    /// As the run file names it.
    pub path: Json,
    /// What people call it.
    pub version: Option<String>,
    /// SHA-256 of its content.
    pub sha256: Option<String>,
    /// Evaluations that looked at this content, up to now.
    pub use_count: u64,
    /// Different checkpoints among them.
    pub checkpoint_count: u64,
}

/// A judge model.
#[derive(Debug, Clone, Serialize)]
pub struct JudgeCard {
    /// The model.
    pub model: Option<String>,
    /// The rubric.
    pub rubric: Option<String>,
}

/// Predictions that are kept.
#[derive(Debug, Clone, Serialize)]
pub struct RawOutputs {
    /// The Parquet file, below the home.
    pub path: String,
    /// SHA-256 of it.
    pub sha256: Option<String>,
    /// Its rows.
    pub rows: Option<u64>,
}

/// One launch of the evaluator.
#[derive(Debug, Clone, Serialize)]
pub struct LaunchCard {
    /// The launch.
    pub attempt_id: AttemptId,
    /// Why it ended; none while it lives.
    pub termination_reason: Option<String>,
    /// The evaluator's own exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Wall seconds.
    pub wall_seconds: Option<f64>,
}

/// The receipt of a row.
///
/// # Errors
/// When the ledger cannot be read.
pub fn of(context: &Context, row: &EvaluationRow) -> Result<EvaluationReceipt, AppError> {
    Ok(receipt(row, &Beside::of(context, std::slice::from_ref(row))?))
}

/// The receipts of rows, in their order.
///
/// # Errors
/// When the ledger cannot be read.
pub fn of_all(context: &Context, rows: &[EvaluationRow]) -> Result<Vec<EvaluationReceipt>, AppError> {
    let beside = Beside::of(context, rows)?;
    Ok(rows.iter().map(|row| receipt(row, &beside)).collect())
}

/// What the ledger has beside the rows of evaluations.
struct Beside {
    /// Runs whose checkpoints were evaluated.
    runs: Vec<RunRow>,
    /// How often their task sets were looked at.
    task_sets: Vec<TestSetRow>,
    /// Launches of evaluators.
    launches: Vec<AttemptRow>,
}

impl Beside {
    fn of(context: &Context, rows: &[EvaluationRow]) -> Result<Self, AppError> {
        let mut run_ids: Vec<RunId> = rows.iter().map(|row| row.run_id).collect();
        let mut launch_run_ids: Vec<RunId> = rows.iter().filter_map(|row| row.launch_run_id).collect();
        let mut task_sets: Vec<&str> = rows.iter().filter_map(|row| row.task_set_sha256.as_deref()).collect();
        for ids in [&mut run_ids, &mut launch_run_ids] {
            ids.sort_unstable();
            ids.dedup();
        }
        task_sets.sort_unstable();
        task_sets.dedup();
        context.ledger_read(|ledger| {
            Ok(Self {
                runs: ledger.runs_by_id(&run_ids)?,
                task_sets: ledger.test_sets(&task_sets)?,
                launches: ledger.launches_of_all(&launch_run_ids)?,
            })
        })
    }
}

fn receipt(row: &EvaluationRow, beside: &Beside) -> EvaluationReceipt {
    let run = beside.runs.iter().find(|run| run.run_id == row.run_id);
    let spec = |member: &str| row.spec(member).cloned().unwrap_or_default();
    let given = |json: &Option<Json>, absent: Json| json.clone().unwrap_or(absent);
    let judged = row.judge_model.is_some() || row.judge_rubric.is_some();
    EvaluationReceipt {
        evaluation_id: row.evaluation_id.clone(),
        state: row.state,
        failure: row.failure.clone(),
        run_id: row.run_id,
        name: run.map(|run| run.name.clone()).unwrap_or_default(),
        attempt_id: row.attempt_id,
        step: row.step,
        checkpoint_manifest_sha256: row.checkpoint_manifest_sha256.clone(),
        origin: row.origin.clone(),
        evaluator: EvaluatorCard {
            name: row.evaluator_name.clone(),
            digest: row.evaluator_digest.clone(),
            files: row.spec("files").cloned().unwrap_or_else(|| json!([])),
            command: spec("command"),
            environment_lock_sha256: row.environment_lock_sha256.clone(),
            container_digest: row.container_digest.clone(),
        },
        task_set: task_set(row, beside),
        decoding: given(&row.decoding_json, Json::Null),
        judge: judged.then(|| JudgeCard { model: row.judge_model.clone(), rubric: row.judge_rubric.clone() }),
        seed: row.seed,
        raw_outputs: row.raw_outputs_location.clone().map(|path| RawOutputs {
            path,
            sha256: row.raw_outputs_sha256.clone(),
            rows: row.raw_outputs_rows,
        }),
        sampled_failures: given(&row.sampled_failures_json, Json::Null),
        metrics: given(&row.metrics_json, json!({})),
        slices: given(&row.slices_json, json!([])),
        fairness: given(&row.fairness_json, json!([])),
        comparison: given(&row.comparison_json, Json::Null),
        baseline_evaluation_id: row.baseline_evaluation_id.clone(),
        assessment: given(&row.assessment_json, Json::Null),
        gates: given(&row.gates_json, json!([])),
        launches: launches(row, beside),
        notes: given(&row.notes_json, json!([])),
        started_at: row.started_at,
        ended_at: row.ended_at,
        receipt_sha256: row.receipt_sha256.clone(),
    }
}

fn task_set(row: &EvaluationRow, beside: &Beside) -> Option<TaskSetCard> {
    if row.task_set_sha256.is_none() && row.task_set_version.is_none() {
        return None;
    }
    let counted =
        beside.task_sets.iter().find(|set| Some(&set.task_set_sha256) == row.task_set_sha256.as_ref());
    Some(TaskSetCard {
        path: row.spec("task_set").cloned().unwrap_or_default(),
        version: row.task_set_version.clone(),
        sha256: row.task_set_sha256.clone(),
        use_count: counted.map_or(0, |counted| counted.use_count),
        checkpoint_count: counted.map_or(0, |counted| counted.checkpoint_count),
    })
}

fn launches(row: &EvaluationRow, beside: &Beside) -> Vec<LaunchCard> {
    let card = |attempt: &AttemptRow| LaunchCard {
        attempt_id: attempt.attempt_id,
        termination_reason: attempt.termination_reason.map(|reason| reason.to_string()),
        exit_code: attempt.exit_code,
        signal: attempt.signal,
        wall_seconds: attempt.wall_seconds,
    };
    let of_evaluator = |attempt: &&AttemptRow| {
        Some(attempt.run_id) == row.launch_run_id && attempt.kind == LaunchKind::Evaluate
    };
    beside.launches.iter().filter(of_evaluator).map(card).collect()
}
