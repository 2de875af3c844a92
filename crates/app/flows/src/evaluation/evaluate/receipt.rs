//! A receipt as commands show it.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use trackway_api::models::evaluations::{
    EvaluationReceipt, Evaluator, EvaluatorLaunch, Judge, Metrics, RawOutputs, TaskSet, TestSetResult,
};
use trackway_core::{LaunchKind, RunId, with_fields_of};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::stored::read_stored;
use trackway_ledger::{AttemptRow, EvaluationRow, RunRow, TestSetRow};

use trackway_rules::gate::JudgedGate;
use trackway_rules::gate::worn::worn;

use crate::evaluation::baseline::{PROBES, TASKS_UNMATCHED, section_of};

/// The receipt of a row, with a note where the same weights were evaluated before by other code.
///
/// # Errors
/// When the ledger cannot be read, or an evaluation in it.
pub fn of(context: &Context, row: &EvaluationRow) -> Result<EvaluationReceipt, AppError> {
    let mut found = receipt(row, &LedgerContext::of(context, std::slice::from_ref(row))?)?;
    let manifest_sha256 = &row.checkpoint_manifest_sha256;
    let others = context.ledger_read(|ledger| ledger.evaluations_of_checkpoint(manifest_sha256))?;
    let beside = LedgerContext::of(context, &[])?;
    let others: Vec<EvaluationReceipt> =
        others.iter().map(|other| receipt(other, &beside)).collect::<Result<_, _>>()?;
    found.notes.extend(found.other_code(&others));
    Ok(found)
}

/// The receipts of rows, in their order, with a note where the same weights were evaluated before by other code.
///
/// # Errors
/// When the ledger cannot be read, or an evaluation in it.
pub fn of_all(context: &Context, rows: &[EvaluationRow]) -> Result<Vec<EvaluationReceipt>, AppError> {
    let beside = LedgerContext::of(context, rows)?;
    let mut found: Vec<EvaluationReceipt> =
        rows.iter().map(|row| receipt(row, &beside)).collect::<Result<_, _>>()?;
    let notes: Vec<Option<String>> = found.iter().map(|one| one.other_code(&found)).collect();
    for (one, note) in found.iter_mut().zip(notes) {
        one.notes.extend(note);
    }
    Ok(found)
}

/// What the ledger has beside the rows of evaluations.
struct LedgerContext {
    /// Runs whose checkpoints were evaluated.
    runs: Vec<RunRow>,
    /// How often their task sets were looked at.
    task_sets: Vec<TestSetRow>,
    /// Launches of evaluators.
    launches: Vec<AttemptRow>,
    /// Evaluations on further test sets, of the weights of those rows whose run file has some.
    on_test_sets: Vec<EvaluationRow>,
}

impl LedgerContext {
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
        let with_sets = rows.iter().filter(|row| has_test_sets(row));
        let mut weights: Vec<&str> = with_sets.map(|row| row.checkpoint_manifest_sha256.as_str()).collect();
        weights.sort_unstable();
        weights.dedup();
        context.ledger_read(|ledger| {
            let mut on_test_sets = Vec::new();
            for manifest_sha256 in &weights {
                on_test_sets.extend(ledger.evaluations_of_checkpoint(manifest_sha256)?);
            }
            on_test_sets.retain(|row| row.test_set.is_some());
            Ok(Self {
                on_test_sets,
                runs: ledger.runs_by_id(&run_ids)?,
                task_sets: ledger.test_sets(&task_sets)?,
                launches: ledger.launches_of_all(&launch_run_ids)?,
            })
        })
    }
}

fn has_test_sets(row: &EvaluationRow) -> bool {
    row.spec("test_sets").and_then(Json::as_object).is_some_and(|sets| !sets.is_empty())
}

fn test_sets(row: &EvaluationRow, beside: &LedgerContext) -> Result<Vec<TestSetResult>, AppError> {
    if !has_test_sets(row) {
        return Ok(Vec::new());
    }
    let result = |name: String| {
        let of_set = |other: &&EvaluationRow| {
            other.test_set.as_ref() == Some(&name)
                && other.checkpoint_manifest_sha256 == row.checkpoint_manifest_sha256
                && other.is_gate_test() == row.is_gate_test()
        };
        let newest = beside.on_test_sets.iter().rfind(of_set);
        let metrics: Option<Metrics> =
            newest.map(|it| stored(it, "metrics_json", it.metrics_json.as_ref())).transpose()?.flatten();
        let gates: Option<Vec<JudgedGate>> =
            newest.map(|it| stored(it, "gates_json", it.gates_json.as_ref())).transpose()?.flatten();
        let main_metric = newest.and_then(|it| it.assessment_json.as_ref()?.get("main_metric")?.as_str());
        Ok(TestSetResult {
            evaluation_id: newest.map(|it| it.evaluation_id.clone()),
            state: newest.map(|it| it.state),
            rows: newest.and_then(|it| it.raw_outputs_rows),
            main_metric: main_metric.map(str::to_owned),
            metrics: metrics.unwrap_or_default(),
            verdict: gates.unwrap_or_default().iter().map(|gate| gate.verdict).min(),
            name,
        })
    };
    section_of(row)?.test_sets.into_keys().map(result).collect()
}

fn receipt(row: &EvaluationRow, beside: &LedgerContext) -> Result<EvaluationReceipt, AppError> {
    let run = beside.runs.iter().find(|run| run.run_id == row.run_id);
    let judged = row.judge_model.is_some() || row.judge_rubric.is_some();
    let tasks_unmatched = row.assessment_json.as_ref().and_then(|it| it.get(TASKS_UNMATCHED));
    let tasks_unmatched = tasks_unmatched.and_then(Json::as_str).map(str::to_owned);
    // Without an assessment only the reason for that may be stored.
    let assessment = row.assessment_json.as_ref().filter(|it| it.get("task").is_some());
    Ok(with_fields_of!(
        EvaluationReceipt,
        &row,
        [
            evaluation_id, state, failure, run_id, attempt_id, step, checkpoint_manifest_sha256, origin,
            test_set, seed, baseline_evaluation_id, started_at, ended_at, receipt_sha256,
        ],
        name: run.map(|run| run.name.clone()).unwrap_or_default(),
        evaluator: evaluator(row)?,
        task_set: task_set(row, beside)?,
        decoding: stored(row, "decoding_json", row.decoding_json.as_ref())?,
        judge: judged.then(|| Judge { model: row.judge_model.clone(), rubric: row.judge_rubric.clone() }),
        raw_outputs: row.raw_outputs_location.clone().map(|path| RawOutputs {
            path,
            sha256: row.raw_outputs_sha256.clone(),
            rows: row.raw_outputs_rows,
        }),
        sampled_failures: stored(row, "sampled_failures_json", row.sampled_failures_json.as_ref())?,
        metrics: stored(row, "metrics_json", row.metrics_json.as_ref())?.unwrap_or_default(),
        slices: stored(row, "slices_json", row.slices_json.as_ref())?.unwrap_or_default(),
        fairness: stored(row, "fairness_json", row.fairness_json.as_ref())?.unwrap_or_default(),
        comparison: stored(row, "comparison_json", row.comparison_json.as_ref())?,
        assessment: stored(row, "assessment_json", assessment)?,
        tasks_unmatched,
        probes: stored(row, "assessment_json", row.assessment_json.as_ref().and_then(|it| it.get(PROBES)))?,
        test_sets: test_sets(row, beside)?,
        gates: stored(row, "gates_json", row.gates_json.as_ref())?.unwrap_or_default(),
        launches: launches(row, beside),
        notes: stored(row, "notes_json", row.notes_json.as_ref())?.unwrap_or_default(),
    ))
}

/// A column of the row, read; none where it is null.
fn stored<T: DeserializeOwned>(
    row: &EvaluationRow,
    column: &str,
    value: Option<&Json>,
) -> Result<Option<T>, AppError> {
    let owner = || format!("evaluation {}", row.evaluation_id);
    let value = value.filter(|value| !value.is_null());
    value.map(|value| read_stored(value, &format!("evaluations.{column}"), owner)).transpose()
}

fn evaluator(row: &EvaluationRow) -> Result<Evaluator, AppError> {
    Ok(Evaluator {
        name: row.evaluator_name.clone(),
        digest: row.evaluator_digest.clone(),
        files: stored(row, "spec_json", row.spec("files"))?.unwrap_or_default(),
        command: stored(row, "spec_json", row.spec("command"))?,
        environment_lock_sha256: row.environment_lock_sha256.clone(),
        container_digest: row.container_digest.clone(),
    })
}

fn task_set(row: &EvaluationRow, beside: &LedgerContext) -> Result<Option<TaskSet>, AppError> {
    if row.task_set_sha256.is_none() && row.task_set_version.is_none() {
        return Ok(None);
    }
    let counted =
        beside.task_sets.iter().find(|set| Some(&set.task_set_sha256) == row.task_set_sha256.as_ref());
    Ok(Some(TaskSet {
        path: stored(row, "spec_json", row.spec("task_set"))?,
        version: row.task_set_version.clone(),
        sha256: row.task_set_sha256.clone(),
        use_count: counted.map_or(0, |counted| counted.use_count),
        checkpoint_count: counted.map_or(0, |counted| counted.checkpoint_count),
        worn: counted.and_then(|counted| worn(counted.checkpoint_count)),
    }))
}

fn launches(row: &EvaluationRow, beside: &LedgerContext) -> Vec<EvaluatorLaunch> {
    let card = |attempt: &AttemptRow| EvaluatorLaunch {
        attempt_id: attempt.attempt_id,
        termination_reason: attempt.termination_reason,
        exit_code: attempt.exit_code,
        signal: attempt.signal,
        wall_seconds: attempt.wall_seconds,
    };
    let of_evaluator = |attempt: &&AttemptRow| {
        Some(attempt.run_id) == row.launch_run_id && attempt.kind == LaunchKind::Evaluate
    };
    beside.launches.iter().filter(of_evaluator).map(card).collect()
}
