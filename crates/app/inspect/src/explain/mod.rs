//! Explains an attempt from its receipt: gathers the rows, compares, and arranges. Nothing is decided here again.

mod attempts;
pub mod diff;
mod machine;
mod no_checkpoint;
mod parameters;
mod save_requests;
mod termination;
mod timeline;
mod way_back;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use trackway_api::checkpoints::{Checkpoint, CheckpointStanding, CheckpointState};
use trackway_api::diagnosis::AttemptDiagnosis;
use trackway_api::evaluations::EvaluationReceipt;
use trackway_api::explain::{
    AttemptArtifact, AttemptCost, AttemptInputs, AttemptPlacement, AttemptTag, CostBeside, Diff,
    ExplainedAttempt, ExplainedData, ExplainedDataSet, ExplainedRun, Explanation, MachineSummary,
    RecordedCheck, ResumeProofSummary, RetryDecision, SameInputsRun,
};
use trackway_core::checks::{Finding, Severity};
use trackway_core::{
    AttemptId, DiagnosisKind, DiagnosisVerdict, LaunchKind, RunId, Step, TerminationReason, with_fields_of,
};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::Stream;
use trackway_engine::rows::rung_of;
use trackway_engine::run::detect::detections_of;
use trackway_engine::run::remote::read_status;
use trackway_engine::stored::stored_plan;
use trackway_flows::amend::amendments_of;
use trackway_flows::cadence::cadence_advice;
use trackway_flows::checkpoints;
use trackway_flows::diagnose;
use trackway_flows::evaluate;
use trackway_flows::preflight::recorded;
use trackway_flows::registry;
use trackway_formats::record::{is_fingerprint, is_machine_metric};
use trackway_launch::{AttemptChannel, FolderChannel};
use trackway_ledger::{
    ArtifactRow, AttemptRow, AttemptState, DataSnapshotRow, EventRow, Found, MetricSummaryRow, RetryRow,
    RunCostRow, RunFilter, RunRow, RunState,
};
use trackway_tower::next_actions;

use self::attempts::{attempt_line, parent_diff, parent_of};
use self::diff::changes;
pub(crate) use self::diff::leaves;
use self::machine::machine_card;
pub(crate) use self::parameters::parameters_of;
pub(crate) use self::termination::termination;
use self::way_back::way_back_action;
use crate::curves::curves_of;
use crate::logs::{LogSelection, visit_lines};
use crate::progressive;

/// Lines of output shown on the page, per stream.
const LAST_LINES: usize = 8;
/// Longest line shown on the page, in characters.
const LINE_CHARS_MAX: usize = 200;
/// Runs with the same inputs that are compared.
const SAME_INPUTS_MAX: usize = 10;

/// Explains an attempt, or the last attempt of a run.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when the ledger cannot be read.
pub fn explain(context: &Context, subject: Found) -> Result<Explanation, AppError> {
    let (run, attempt) = match subject {
        Found::Attempt(attempt) => (context.run_by_id(attempt.run_id)?, *attempt),
        Found::Run(run) => match context.attempts_of_kind(run.run_id, run.kind)?.pop() {
            Some(attempt) => (*run, attempt),
            None => return page_without_attempt(context, &run),
        },
    };
    page(context, &run, &attempt)
}

/// The same with the curves of the run, for a page.
///
/// # Errors
/// As [`explain`].
pub fn explain_with_curves(context: &Context, subject: Found) -> Result<Explanation, AppError> {
    let mut page = explain(context, subject)?;
    if let Some(attempt) = &page.attempt {
        page.curves = curves_of(context, page.run.run_id, &attempt.rung)?;
    }
    Ok(page)
}

/// A run that was never launched: pre-flight forbade it, or a user stopped it before.
fn page_without_attempt(context: &Context, run: &RunRow) -> Result<Explanation, AppError> {
    let preflight = recorded(context, run.run_id)?;
    if preflight.is_empty() {
        let message = format!("run `{}` has no attempt to explain", run.name);
        return Err(AppError::new(ErrorKind::NotFound, message));
    }
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    let last_good = last_good_run(context, run)?;
    Ok(Explanation {
        run: run_card(context, run)?,
        attempt: None,
        attempts: Vec::new(),
        rungs: Vec::new(),
        config_diff: last_good.as_ref().map(|good| config_diff(good, run)),
        parent_diff: None,
        data: data_card(context, run.run_id)?,
        data_diff: last_good.as_ref().map(|good| data_diff(context, good, run)).transpose()?,
        next_actions: unlaunched_actions(&preflight),
        preflight,
        detections: Vec::new(),
        diagnoses: Vec::new(),
        placement: None,
        timeline: timeline::timeline(&[], &events, &[]),
        termination: None,
        no_checkpoint_why: None,
        save_requests: None,
        checkpoints: Vec::new(),
        remote: None,
        fall_back: None,
        resume_step: None,
        standing: CheckpointStanding::default(),
        resume_proof: None,
        cadence: None,
        retries: Vec::new(),
        evaluations: Vec::new(),
        versions: Vec::new(),
        metrics: Vec::new(),
        curves: Vec::new(),
        progressive: None,
        machine: MachineSummary::default(),
        parameters: Vec::new(),
        tags: Vec::new(),
        artifacts: Vec::new(),
        same_inputs: Vec::new(),
        cost: AttemptCost::default(),
        last_lines: Vec::new(),
    })
}

fn page(context: &Context, run: &RunRow, attempt: &AttemptRow) -> Result<Explanation, AppError> {
    let attempts = context.attempts_of_kind(run.run_id, attempt.kind)?;
    let retries = context.ledger_read(|ledger| ledger.retries_of_run(run.run_id))?;
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of(attempt.attempt_id))?;
    let last_good = last_good_run(context, run)?;
    let of_run = checkpoints::checkpoints_at(context, run.clone(), rung_of(attempt))?;
    let checkpoints = of_run.of_this_disk()?;
    let parent = parent_of(attempt, &attempts);
    let (machine, metrics) = machine_card(&summaries);
    let detections = detections_of(context, run.run_id)?;
    let estimate = progressive::progressive_of(context, run, attempt, &summaries)?;
    let diagnoses = diagnose::diagnoses_of(context, run.run_id)?;
    let diagnosis = proposed_diagnosis(context, attempt, &diagnoses)?;
    let evaluations = evaluate::evaluations_of(context, run.run_id)?;
    let way_back = way_back_action(context, run, attempt, &attempts, &detections)?;
    Ok(Explanation {
        run: run_card(context, run)?,
        attempt: Some(attempt_card(context, attempt)?),
        config_diff: last_good.as_ref().map(|good| config_diff(good, run)),
        parent_diff: parent.map(|parent| parent_diff(parent, attempt)),
        data: data_card(context, run.run_id)?,
        data_diff: last_good.as_ref().map(|good| data_diff(context, good, run)).transpose()?,
        preflight: recorded(context, run.run_id)?,
        progressive: progressive::card(estimate, &detections, attempt, &attempts),
        detections,
        placement: Some(placement(attempt)),
        timeline: timeline::timeline(&attempts, &events, &retries),
        termination: termination(attempt),
        resume_step: checkpoints
            .iter()
            .find(|line| line.state == CheckpointState::Committed)
            .map(|line| line.step),
        standing: of_run.standing_here()?,
        no_checkpoint_why: no_checkpoint_why(context, attempt, &checkpoints, &events)?,
        save_requests: save_requests::save_requests(attempt.attempt_id, &events),
        checkpoints,
        remote: read_status(&context.home.layout.run(run.run_id)),
        fall_back: of_run.fall_back_of(attempt)?,
        resume_proof: proof_card(context, run, attempt)?,
        cadence: cadence_advice(context, run, attempt, &attempts, &of_run.uploads()?)?,
        retries: retries.iter().map(|retry| retry_line(retry, &attempts)).collect(),
        versions: registry::versions_of_run(context, run.run_id)?,
        same_inputs: same_inputs(context, run, &summaries)?,
        metrics,
        curves: Vec::new(),
        machine,
        parameters: parameters_of(context, attempt)?,
        tags: tags(context, run.run_id, attempt.attempt_id)?,
        artifacts: artifacts(context, attempt.attempt_id)?,
        cost: cost(run, attempt, &attempts, context.ledger_read(|ledger| ledger.run_cost(run.run_id))?),
        last_lines: last_lines(context, attempt),
        next_actions: actions_for(run, attempt, &retries, &evaluations, diagnosis, way_back),
        evaluations,
        diagnoses,
        attempts: attempts.iter().map(|attempt| attempt_line(attempt, &attempts)).collect(),
        rungs: context.rungs_of(run.run_id)?,
    })
}

/// Why there is no checkpoint at all, where that is so.
fn no_checkpoint_why(
    context: &Context,
    attempt: &AttemptRow,
    checkpoints: &[Checkpoint],
    events: &[EventRow],
) -> Result<Option<String>, AppError> {
    if !checkpoints.is_empty() || attempt.kind != LaunchKind::Train {
        return Ok(None);
    }
    let segments = context.ledger_read(|ledger| ledger.segments_of(attempt.attempt_id))?;
    let uses_sdk = segments.iter().any(|segment| segment.origin.as_deref() == Some("sdk"));
    Ok(no_checkpoint::why_none(attempt, events, uses_sdk))
}

/// Those of the attempt, with what was amended since.
fn tags(context: &Context, run_id: RunId, attempt_id: AttemptId) -> Result<Vec<AttemptTag>, AppError> {
    let mut rows = context.ledger_read(|ledger| ledger.tags_of_runs(&[run_id]))?;
    rows.retain(|row| row.attempt_id.is_none_or(|of| of == attempt_id));
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(rows.into_iter().map(|row| AttemptTag { name: row.name, value: row.value }).collect())
}

fn artifacts(context: &Context, attempt_id: AttemptId) -> Result<Vec<AttemptArtifact>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.artifacts_of(attempt_id))?;
    let line = |row: ArtifactRow| AttemptArtifact {
        name: row.name,
        blake3: row.blake3,
        size_bytes: row.size_bytes,
        step: row.step,
    };
    Ok(rows.into_iter().map(line).collect())
}

/// The newest proof of this config, and what is not the same any more.
fn proof_card(
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

fn data_card(context: &Context, run_id: RunId) -> Result<ExplainedData, AppError> {
    let line = |(name, snapshot): (String, DataSnapshotRow)| ExplainedDataSet {
        name,
        data_sha256: snapshot.data_sha256,
        file_count: snapshot.file_count,
        rows: snapshot.rows,
        size_bytes: snapshot.size_bytes,
    };
    let sets = context.ledger_read(|ledger| ledger.data_snapshots_of_run(run_id))?;
    Ok(ExplainedData { sets: sets.into_iter().map(line).collect() })
}

/// The last completed run of the same name before this one.
fn last_good_run(context: &Context, run: &RunRow) -> Result<Option<RunRow>, AppError> {
    let filter = RunFilter {
        name: Some(run.name.clone()),
        state: Some(RunState::Completed),
        created_before: Some(run.created_at),
        limit: Some(1),
        ..RunFilter::default()
    };
    Ok(context.ledger_read(|ledger| ledger.list_runs(&filter))?.pop())
}

/// What differs in the data: sets, then files, rows and columns inside the sets that differ.
fn data_diff(context: &Context, good: &RunRow, run: &RunRow) -> Result<Diff, AppError> {
    let described = |run_id| -> Result<Value, AppError> {
        let mut sets = BTreeMap::new();
        for (name, snapshot) in context.ledger_read(|ledger| ledger.data_snapshots_of_run(run_id))? {
            let files = context.ledger_read(|ledger| ledger.data_snapshot_files(&snapshot.data_sha256))?;
            let files: BTreeMap<String, Value> = files
                .into_iter()
                .map(|file| (file.path, json!({ "blake3": file.blake3, "rows": file.rows })))
                .collect();
            let described = json!({ "rows": snapshot.rows, "schema": snapshot.schema_json, "files": files });
            sets.insert(name, described);
        }
        Ok(json!(sets))
    };
    let changes = if good.data_sha256 == run.data_sha256 {
        Vec::new()
    } else {
        changes(&described(good.run_id)?, &described(run.run_id)?)
    };
    Ok(Diff { against: good.run_id.to_string(), label: "the data of the last good run".into(), changes })
}

/// Other completed runs with the same config, data and seed, and where their last values differ from this one's.
fn same_inputs(
    context: &Context,
    run: &RunRow,
    here: &[MetricSummaryRow],
) -> Result<Vec<SameInputsRun>, AppError> {
    let others = context.ledger_read(|ledger| ledger.runs_with_inputs_of(run, SAME_INPUTS_MAX))?;
    let ids: Vec<RunId> = others.iter().map(|other| other.run_id).collect();
    let mut last = context.ledger_read(|ledger| ledger.last_attempts_of(&ids))?;
    last.retain(|attempt| attempt.state == AttemptState::Sealed);
    let completed = |attempt: &&AttemptRow| attempt.termination_reason == Some(TerminationReason::Completed);
    let ids: Vec<AttemptId> = last.iter().filter(completed).map(|attempt| attempt.attempt_id).collect();
    let there = context.ledger_read(|ledger| ledger.metric_summaries_of_all(&ids, &[]))?;
    let mut found = Vec::new();
    for other in others {
        let Some(last) = last.iter().find(|attempt| attempt.run_id == other.run_id) else { continue };
        let there: Vec<_> = there.iter().filter(|row| row.attempt_id == last.attempt_id).collect();
        let differing_metrics = differing(&there, here);
        found.push(SameInputsRun { run_id: other.run_id, state: other.state, differing_metrics });
    }
    Ok(found)
}

/// The end of what was printed, stderr first because causes are there.
fn last_lines(context: &Context, attempt: &AttemptRow) -> Vec<String> {
    let mut lines = Vec::new();
    let Ok(channel) = context.channel_of(attempt) else { return lines };
    for (stream, name) in [(Stream::Stderr, "stderr"), (Stream::Stdout, "stdout")] {
        let selection = LogSelection { stream: Some(stream), tail: Some(LAST_LINES) };
        // The page is shown without them: a log that cannot be read must not hide the rest.
        let _ = visit_lines(&*channel, selection, &mut |line| {
            let text = String::from_utf8_lossy(&line.bytes);
            let text = text.trim_end().rsplit('\r').next().unwrap_or_default();
            lines.push(format!("{name}  {}", text.chars().take(LINE_CHARS_MAX).collect::<String>()));
            Ok(())
        });
    }
    lines
}

/// Calls `visit` for each selected line of an attempt.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when a log cannot be read.
pub fn visit_logs(
    context: &Context,
    attempt: AttemptId,
    selection: LogSelection,
    visit: &mut dyn FnMut(crate::logs::LogLine) -> std::io::Result<()>,
) -> Result<(), AppError> {
    let files = context.home.layout.attempt(attempt);
    let folder = files.folder();
    let row = context.ledger_read(|ledger| ledger.attempt(attempt))?;
    if !folder.is_dir() {
        return Err(without_files(row.as_ref(), folder));
    }
    let channel: Arc<dyn AttemptChannel> = match &row {
        Some(row) => context.channel_of(row)?,
        None => Arc::new(FolderChannel::new(folder)),
    };
    visit_lines(&*channel, selection, visit)
        .map_err(|error| AppError::file("read the logs in", folder, &error))
}

/// A ledger may serve many homes: the files of an attempt are in the one that launched it.
fn without_files(row: Option<&AttemptRow>, folder: &Path) -> AppError {
    let elsewhere = row.filter(|row| Path::new(&row.log_directory) != folder);
    let message = match elsewhere {
        Some(row) => {
            let host = row.hosts.as_deref().unwrap_or("another machine");
            format!("the files of this attempt are in another home: `{}` on {host}", row.log_directory)
        }
        None => format!("the files of this attempt are gone: there is no `{}`", folder.display()),
    };
    AppError::new(ErrorKind::NotFound, message)
}

fn run_card(context: &Context, run: &RunRow) -> Result<ExplainedRun, AppError> {
    Ok(with_fields_of!(
        ExplainedRun,
        &run,
        [
            run_id, name, state, model_family, owner, team, config_sha256, data_sha256, seed, created_at,
            note, hidden_at,
        ],
        amendments: context.amendments_of_run(run.run_id)?,
    ))
}

fn attempt_card(context: &Context, attempt: &AttemptRow) -> Result<ExplainedAttempt, AppError> {
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

fn config_diff(good: &RunRow, run: &RunRow) -> Diff {
    Diff {
        against: good.run_id.to_string(),
        label: "the last good run".into(),
        changes: changes(&good.config_json, &run.config_json),
    }
}

fn placement(attempt: &AttemptRow) -> AttemptPlacement {
    AttemptPlacement {
        launcher: attempt.launcher.clone(),
        job_id: attempt.job_id.clone(),
        hosts: attempt.hosts.clone(),
        devices: attempt.devices.clone().or_else(|| attempt.gpu_names.clone()),
        queue: attempt.queue.clone(),
        cpu_count: attempt.host_cpu_count,
        memory_bytes: attempt.host_memory_bytes,
    }
}

fn retry_line(retry: &RetryRow, attempts: &[AttemptRow]) -> RetryDecision {
    let after = attempts.iter().find(|attempt| attempt.attempt_id == retry.attempt_id);
    with_fields_of!(
        RetryDecision,
        &retry,
        [decision, rule, why, delay_seconds, budget_name, budget_spent, budget_limit],
        after_attempt_number: after.map(|attempt| attempt.attempt_number),
        changes: retry.changes_json.clone(),
    )
}

/// Metrics of both whose last value differs. Metrics that measure the machine, not the model, always do.
fn differing(there: &[&MetricSummaryRow], here: &[MetricSummaryRow]) -> Vec<(String, f64, f64)> {
    const MACHINE: [&str; 5] = ["per_second", "seconds", "millis", "bytes", "/s"];
    let of_machine = |name: &str| {
        is_machine_metric(name) || is_fingerprint(name) || MACHINE.iter().any(|suffix| name.ends_with(suffix))
    };
    here.iter()
        .filter(|row| !of_machine(&row.name))
        .filter_map(|row| {
            let same = there.iter().find(|same| same.name == row.name && same.last_step == row.last_step)?;
            let (there, here) = (same.last_value?, row.last_value?);
            (there != here).then(|| (row.name.clone(), there, here))
        })
        .collect()
}

fn cost(
    run: &RunRow,
    attempt: &AttemptRow,
    attempts: &[AttemptRow],
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
        run_wall_seconds: attempts.iter().filter_map(|attempt| attempt.wall_seconds).sum(),
        lost_steps: lost_steps(attempt),
    }
}

/// Steps that were trained after the last committed checkpoint by an attempt that did not complete.
fn lost_steps(attempt: &AttemptRow) -> Option<Step> {
    let completed = attempt.termination_reason.is_some_and(TerminationReason::is_success);
    let kept = attempt.last_committed_step.or(attempt.resumed_from_step).unwrap_or(0);
    attempt
        .last_step
        .filter(|_| !completed && attempt.termination_reason.is_some())
        .map(|last| last.saturating_sub(kept))
}

/// What to do about each finding that forbade the launch, worst first.
fn unlaunched_actions(preflight: &[RecordedCheck]) -> Vec<String> {
    let blocking = preflight.iter().filter(|check| check.blocks);
    let findings = blocking.clone().flat_map(|check| &check.findings);
    let is_block = |finding: &&Finding| finding.severity == Severity::Block;
    let mut actions: Vec<String> =
        findings.filter(is_block).filter_map(|finding| finding.action.clone()).collect();
    if let Some(first) = blocking.map(|check| check.name.as_str()).next() {
        actions.push(format!("or launch anyway: trackway run FILE --skip {first} --why REASON"));
    }
    actions
}

/// What another launch would show the cause of, unless a diagnosis has found it or could not observe the script.
fn proposed_diagnosis(
    context: &Context,
    attempt: &AttemptRow,
    diagnoses: &[AttemptDiagnosis],
) -> Result<Option<DiagnosisKind>, AppError> {
    let of_attempt = diagnoses.iter().filter(|found| found.attempt_id == attempt.attempt_id);
    let is_done = |kind| {
        let of_kind = of_attempt.clone().filter(|found| found.kind == kind);
        of_kind
            .map(|found| found.verdict)
            .any(|verdict| matches!(verdict, DiagnosisVerdict::Found | DiagnosisVerdict::NotObserved))
    };
    Ok(diagnose::diagnosis_for(context, attempt)?.filter(|kind| !is_done(*kind)))
}

fn actions_for(
    run: &RunRow,
    attempt: &AttemptRow,
    retries: &[RetryRow],
    evaluations: &[EvaluationReceipt],
    diagnosis: Option<DiagnosisKind>,
    way_back: Option<String>,
) -> Vec<String> {
    let Some(reason) = attempt.termination_reason else {
        return vec![
            format!("follow it: trackway watch {}", run.run_id),
            format!("end it after a checkpoint: trackway stop {}", run.run_id),
        ];
    };
    let mut actions = Vec::new();
    if !run.state.is_final() && run.state != RunState::Running {
        actions.push(format!("resume the run: trackway resume {}", run.run_id));
    }
    let followed =
        retries.iter().any(|retry| retry.attempt_id == attempt.attempt_id && retry.next_attempt_id.is_some());
    if followed {
        actions.push(format!("see its result: trackway explain {}", run.run_id));
    }
    let diagnosis = diagnosis
        .map(|kind| format!("{}: trackway diagnose {}", diagnose::promise(kind), attempt.attempt_id));
    actions.extend(diagnosis);
    match unmet_action(evaluations).filter(|_| reason.is_success()) {
        Some(unmet) => actions.push(unmet),
        None => actions.extend(next_actions(reason).iter().map(|line| (*line).to_owned())),
    }
    actions.extend(resume_action(run, reason));
    actions.extend(way_back);
    actions.extend(run_file_action(run));
    actions
}

/// What to look at where the newest evaluation of the newest weights failed or does not pass its gates.
fn unmet_action(evaluations: &[EvaluationReceipt]) -> Option<String> {
    let candidates = evaluations.iter().filter(|evaluation| !evaluation.is_gate_test());
    let newest = candidates.max_by_key(|evaluation| evaluation.step)?;
    let id = &newest.evaluation_id;
    (!newest.passes())
        .then(|| format!("its evaluation failed, or a gate does not pass: trackway eval show {id}"))
}

/// A run that was started without a run file can have one; a run of another tool cannot.
fn run_file_action(run: &RunRow) -> Option<String> {
    let is_bare = run.run_file_path.is_none() && run.kind == LaunchKind::Train && run.state.is_final();
    let is_planned = is_bare && stored_plan(run).is_ok_and(|plan| plan.is_some());
    is_planned
        .then(|| format!("for retries and checks, write its run file: trackway init --from {}", run.run_id))
}

/// How to continue a run that has ended before its work was done, where something is left to continue from. The last checkpoint of a
/// training that diverged is one of what it became.
fn resume_action(run: &RunRow, reason: TerminationReason) -> Option<String> {
    let is_sound = !reason.is_success() && reason != TerminationReason::NumericDivergence;
    let has_ended = run.state.is_final() && run.state != RunState::Completed && is_sound;
    let step = run.last_committed_step.filter(|_| has_ended)?;
    Some(format!("to continue from the checkpoint of step {step}: trackway resume {}", run.run_id))
}
