//! The parts of a page that are rows of the ledger, arranged.

use trackway_api::runs::explain::{
    AttemptArtifact, AttemptCost, AttemptInputs, AttemptPlacement, AttemptSummary, AttemptTag, CostBeside,
    Diff, ExplainedAttempt, ExplainedData, ExplainedDataSet, ExplainedHealth, ExplainedRun,
    ResumeProofSummary, RetryDecision,
};
use trackway_core::text::shortened;
use trackway_core::{AttemptId, Clock as _, LaunchKind, RunId, with_fields_of};
use trackway_engine::Context;
use trackway_engine::attempt_data::SetsRead;
use trackway_engine::error::AppError;
use trackway_engine::good_runs::{blessed_because, good_runs};
use trackway_engine::reporter::Stream;
use trackway_engine::rows::{engine_report, health_report};
use trackway_engine::run::queue::Waiting;
use trackway_flows::runs::amend::amendments_of;
use trackway_ledger::{
    ArtifactRow, AttemptRow, AttemptState, DataSnapshotRow, RetryRow, RunCostRow, RunDataRow, RunRow,
};

use crate::inputs::{Inputs, compared};
use crate::logs::{LogSelection, visit_lines};

/// Lines of output shown on the page, per stream.
const LAST_LINES: usize = 8;
/// Longest line shown on the page, in characters.
const LINE_CHARS_MAX: usize = 200;

pub(super) fn run_card(context: &Context, run: &RunRow, waiting: Waiting) -> Result<ExplainedRun, AppError> {
    let Waiting { queue, unsupervised, resume_refused } = waiting;
    Ok(with_fields_of!(
        ExplainedRun,
        &run,
        [
            run_id, name, state, model_family, owner, team, config_sha256, data_sha256, seed, created_at,
            note, hidden_at,
        ],
        amendments: context.amendments_of_run(run.run_id)?,
        queue,
        unsupervised,
        resume_refused,
    ))
}

pub(super) fn attempt_card(context: &Context, attempt: &AttemptRow) -> Result<ExplainedAttempt, AppError> {
    let versions = attempt.evaluator_versions.clone();
    Ok(with_fields_of!(
        ExplainedAttempt,
        &attempt,
        [
            attempt_id, attempt_number, rung, parent_attempt_id, state, command, working_directory,
            git_commit, git_dirty, environment_lock_sha256, environment_lock_source, container_digest,
            started_at, ended_at, resumed_from_step, resumed_from_manifest_sha256, last_step,
            last_committed_step, exit_code, signal,
        ],
        folder: attempt.log_directory.clone(),
        inputs: inputs(attempt),
        evaluators: versions.and_then(|stored| serde_json::from_value(stored).ok()).unwrap_or_default(),
        amendments: amendments_of(context, attempt.attempt_id)?,
    ))
}

fn inputs(attempt: &AttemptRow) -> AttemptInputs {
    with_fields_of!(
        AttemptInputs,
        &attempt,
        [
            seed, seed_seen, rung_rows, rung_rows_total, skip_batches, skipped_batch_count,
            warm_start_run_id, warm_start_rung, warm_start_step, warm_start_manifest_sha256, effective_batch,
        ],
        data_opened: names(attempt.data_opened.as_deref()),
        data_not_opened: names(attempt.data_not_opened.as_deref()),
    )
}

/// The names in one column.
fn names(listed: Option<&str>) -> Vec<String> {
    listed.unwrap_or_default().split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

pub(super) fn placement(attempt: &AttemptRow) -> AttemptPlacement {
    with_fields_of!(
        AttemptPlacement,
        &attempt,
        [launcher, job_id, hosts, queue],
        engine: engine_report(attempt),
        devices: attempt.devices.clone().or_else(|| attempt.gpu_names.clone()),
        cpu_count: attempt.host_cpu_count,
        memory_bytes: attempt.host_memory_bytes,
    )
}

pub(super) fn retry_line(retry: &RetryRow, attempts: &[AttemptRow]) -> RetryDecision {
    let after = attempts.iter().find(|attempt| attempt.attempt_id == retry.attempt_id);
    with_fields_of!(
        RetryDecision,
        &retry,
        [decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit],
        after_attempt_number: after.map(|attempt| attempt.attempt_number),
        changes: retry.changes_json.clone(),
    )
}

pub(super) fn cost(
    (run, running): (&RunRow, Option<f64>),
    attempt: &AttemptRow,
    (attempts, lines): (&[AttemptRow], &[AttemptSummary]),
    beside: Option<RunCostRow>,
) -> AttemptCost {
    AttemptCost {
        beside: beside.filter(|row| row.run_count_beside > 0).map(|row| CostBeside {
            runs: row.run_count_beside,
            wall_seconds: row.wall_seconds_beside,
            gpu_seconds: row.gpu_seconds_beside,
            cost_usd: row.cost_usd_beside,
        }),
        wall_seconds: attempt.wall_seconds,
        gpu_seconds: attempt.gpu_seconds,
        cpu_seconds: attempt.cpu_seconds,
        cost_usd: attempt.cost_usd,
        run_cost_usd: run.cost_usd,
        run_gpu_seconds: run.gpu_seconds,
        run_wall_seconds: attempts
            .iter()
            .filter_map(|attempt| attempt.wall_seconds)
            .fold(running.unwrap_or(0.0), |sum, seconds| sum + seconds),
        lost_steps: lines
            .iter()
            .find(|line| line.attempt_id == attempt.attempt_id)
            .and_then(|line| line.lost_steps),
        run_lost_steps: lines.iter().filter_map(|line| line.lost_steps).reduce(u64::saturating_add),
        running_seconds: running,
    }
}

/// How long an attempt that has not ended runs so far.
#[must_use]
pub fn running_seconds(context: &Context, attempt: &AttemptRow) -> Option<f64> {
    let started = attempt.started_at.filter(|_| attempt.ended_at.is_none())?;
    Some(context.clock.now().seconds_since(started).max(0.0))
}

/// The health of a training that has ended.
pub(super) fn health_card(
    context: &Context,
    run: &RunRow,
    attempt: &AttemptRow,
) -> Result<Option<ExplainedHealth>, AppError> {
    if attempt.kind != LaunchKind::Train || attempt.state != AttemptState::Sealed {
        return Ok(None);
    }
    Ok(Some(ExplainedHealth {
        health: attempt.health,
        report: health_report(attempt).unwrap_or_default(),
        blessed_because: blessed_because(context, run)?,
    }))
}

/// The newest proof of this config, and what is not the same any more.
pub(super) fn proof_card(
    context: &Context,
    run: &RunRow,
    attempt: &AttemptRow,
) -> Result<Option<ResumeProofSummary>, AppError> {
    let proof = context.ledger_read(|ledger| ledger.newest_resume_proof(&run.config_sha256))?;
    let Some(proof) = proof else { return Ok(None) };
    let code_changed =
        proof.git_commit != attempt.git_commit || proof.git_diff_blake3 != attempt.git_diff_blake3;
    let changes = [
        ("code", code_changed),
        ("data", proof.data_sha256 != run.data_sha256),
        ("environment", proof.environment_lock_sha256 != attempt.environment_lock_sha256),
        ("seed", proof.seed != run.seed),
    ];
    Ok(Some(with_fields_of!(
        ResumeProofSummary,
        proof,
        [proof_id, verdict, why, steps, killed_at_step, resumed_from_step],
        at: proof.ended_at,
        changed_since: changes
            .iter()
            .filter(|(_, changed)| *changed)
            .map(|(what, _)| (*what).into())
            .collect(),
    )))
}

pub(super) fn data_card(
    context: &Context,
    run: &RunRow,
    attempt: Option<&AttemptRow>,
) -> Result<ExplainedData, AppError> {
    let line = |(set, snapshot): (RunDataRow, DataSnapshotRow)| {
        let name = set.name;
        with_fields_of!(ExplainedDataSet, snapshot, [data_sha256, file_count, rows, size_bytes], name)
    };
    let SetsRead { sets, doubt } = context.sets_read(run, attempt)?;
    Ok(ExplainedData { sets: sets.into_iter().map(line).collect(), doubt })
}

/// What changed since the last good run of the same name before this one.
pub(super) fn since_last_good(
    context: &Context,
    run: &RunRow,
    attempt: Option<&AttemptRow>,
) -> Result<Option<Diff>, AppError> {
    let good = match run.kind {
        LaunchKind::Train => good_runs(context, &run.name, Some(run.created_at))?.into_iter().next(),
        _ => None,
    };
    let Some(good) = good else { return Ok(None) };
    let last = context.attempts_of_kind(good.run_id, good.kind)?.pop();
    let (before, after) = (Inputs::of(context, &good, last.as_ref())?, Inputs::of(context, run, attempt)?);
    let named = (good.run_id.to_string(), "the last good run".into());
    Ok(Some(compared(context, &before, &after, named)))
}

/// Those of the attempt, with what was amended since.
pub(super) fn tags(
    context: &Context,
    run_id: RunId,
    attempt_id: AttemptId,
) -> Result<Vec<AttemptTag>, AppError> {
    let mut rows = context.ledger_read(|ledger| ledger.tags_of_runs(&[run_id]))?;
    rows.retain(|row| row.attempt_id.is_none_or(|of| of == attempt_id));
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(rows.into_iter().map(|row| AttemptTag { name: row.name, value: row.value }).collect())
}

pub(super) fn artifacts(context: &Context, attempt_id: AttemptId) -> Result<Vec<AttemptArtifact>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.artifacts_of(attempt_id))?;
    let line = |row: ArtifactRow| with_fields_of!(AttemptArtifact, row, [name, blake3, size_bytes, step]);
    Ok(rows.into_iter().map(line).collect())
}

/// The end of what was printed, stderr first because causes are there.
pub(super) fn last_lines(context: &Context, attempt: &AttemptRow) -> Vec<String> {
    let mut lines = Vec::new();
    let Ok(channel) = context.channel_of(attempt) else { return lines };
    for (stream, name) in [(Stream::Stderr, "stderr"), (Stream::Stdout, "stdout")] {
        let selection = LogSelection { stream: Some(stream), tail: Some(LAST_LINES) };
        // The page is shown without them: a log that cannot be read must not hide the rest.
        let _ = visit_lines(&*channel, selection, &mut |line| {
            let text = String::from_utf8_lossy(&line.bytes);
            let text = text.trim_end().rsplit('\r').next().unwrap_or_default();
            lines.push(format!("{name}  {}", shortened(text, LINE_CHARS_MAX)));
            Ok(())
        });
    }
    lines
}
