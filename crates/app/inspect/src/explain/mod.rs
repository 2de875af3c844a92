//! Explains an attempt from its receipt: gathers the rows, compares, and arranges. Nothing is decided here again.

mod attempts;
mod machine;
pub mod next;
mod no_checkpoint;
mod ranks;
mod reading;
mod same_inputs;
mod save_requests;
mod short;
mod signs;
mod suspects;
mod termination;
mod timeline;
mod warnings;
mod way_back;

use std::path::Path;
use std::sync::Arc;

use trackway_api::checkpoints::{Checkpoint, CheckpointStanding, CheckpointState};
use trackway_api::models::evaluations::{EvaluationReceipt, EvaluationState};
use trackway_api::runs::detections::Detection;
use trackway_api::runs::diagnosis::AttemptDiagnosis;
use trackway_api::runs::explain::{
    AttemptArtifact, AttemptCost, AttemptInputs, AttemptPlacement, AttemptSummary, AttemptTag, CostBeside,
    Diff, ExplainedAttempt, ExplainedData, ExplainedDataSet, ExplainedHealth, ExplainedRun, Explanation,
    MachineSummary, RecordedCheck, ResumeProofSummary, RetryDecision,
};
use trackway_core::checks::{Finding, Severity};
use trackway_core::text::shortened;
use trackway_core::{
    AttemptId, Clock as _, DiagnosisKind, DiagnosisVerdict, LaunchKind, RunId, Step, with_fields_of,
};
use trackway_engine::Context;
use trackway_engine::attempt_data::SetsRead;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::good_runs::{blessed_because, good_runs};
use trackway_engine::json_file::read_if_sound;
use trackway_engine::reporter::Stream;
use trackway_engine::rows::{health_report, rung_of};
use trackway_engine::run::detect::detections_of;
use trackway_engine::run::queue::{Waiting, waiting};
use trackway_engine::run::remote::read_status;
use trackway_engine::run::{StoredJob, refused_by_budget};
use trackway_engine::stored::stored_plan;
use trackway_flows::checkpoints;
use trackway_flows::data::ReadNote;
use trackway_flows::evaluation::evaluate;
use trackway_flows::registry;
use trackway_flows::runs::amend::amendments_of;
use trackway_flows::runs::diagnose;
use trackway_flows::training::cadence::cadence_advice;
use trackway_flows::training::init::{resume_arguments_of, what_had_secret};
use trackway_flows::training::preflight::recorded;
use trackway_formats::EventKind;
use trackway_formats::runfile::Plan;
use trackway_formats::shell::quoted;
use trackway_launch::shim::steps_are;
use trackway_launch::{AttemptChannel, FolderChannel};
use trackway_ledger::{
    ArtifactRow, AttemptRow, AttemptState, DataSnapshotRow, EventRow, Found, RetryRow, RunCostRow,
    RunDataRow, RunFilter, RunRow, RunState,
};

use self::attempts::{attempt_line, parent_diffs};
use self::machine::machine_card;
use self::next::{NextFacts, RefusedLaunch};
use self::signs::{Known, signs, with_evidence};
use self::termination::advised_reason;
pub(crate) use self::termination::termination;
use self::way_back::way_back_action;
use crate::curves::curves_of;
use crate::inputs::{Inputs, compared};
use crate::logs::{LogSelection, visit_lines};
use crate::parameters::parameters_of;
use crate::progressive;

/// Lines of output shown on the page, per stream.
const LAST_LINES: usize = 8;
/// Earlier runs that are searched for what a skipped check had found.
const CHECKED_RUNS_MAX: usize = 20;
/// Longest line shown on the page, in characters.
const LINE_CHARS_MAX: usize = 200;

/// Explains an attempt, or the last attempt of a run.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when the ledger cannot be read.
pub fn explain(context: &Context, subject: Found) -> Result<Explanation, AppError> {
    let (run, attempt) = match subject {
        Found::Attempt(attempt) => (context.run_by_id(attempt.run_id)?, *attempt),
        Found::Run(run) => match context.attempts_of_kind(run.run_id, run.kind)?.pop() {
            Some(attempt) => (*run, attempt),
            None => {
                return page_without_attempt(context, &run).map(|page| short::with_short(page, &[], None));
            }
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

/// A run that was never launched: it waits for a place in its queue, lost its supervisor or was stopped while it did,
/// pre-flight forbade it, or it ended before for a reason of which nothing more may be kept.
fn page_without_attempt(context: &Context, run: &RunRow) -> Result<Explanation, AppError> {
    let preflight = recorded(context, run.run_id)?;
    let events = context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?;
    let waiting = waiting(context, run)?;
    let left = left_queue(run, &events);
    let waits = waiting.queue.is_some() || waiting.unsupervised;
    if preflight.is_empty() && !waits && !run.state.is_final() {
        let message = format!("run `{}` has no attempt to explain", run.name);
        return Err(AppError::new(ErrorKind::NotFound, message));
    }
    Ok(Explanation {
        next_actions: match left {
            _ if waits => waiting_actions(run, &waiting, needs_full_command(context, run.run_id)),
            Some(queue) => vec![rejoin_action(run, queue, needs_full_command(context, run.run_id))],
            None => unlaunched_actions(run, &preflight),
        },
        run: run_card(context, run, waiting)?,
        short: Vec::new(),
        since_last_good: since_last_good(context, run, None)?,
        attempt: None,
        attempts: Vec::new(),
        rungs: Vec::new(),
        parent_diff: None,
        data: data_card(context, run, None)?,
        preflight,
        detections: Vec::new(),
        diagnoses: Vec::new(),
        placement: None,
        timeline: timeline::timeline(&[], &events, &[], None),
        termination: None,
        health: None,
        no_checkpoint_why: None,
        save_requests: None,
        reading: Vec::new(),
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
    let of_run = checkpoints::checkpoints_at(context, run.clone(), rung_of(attempt))?;
    let checkpoints = of_run.of_this_disk()?;
    let mut diffs = parent_diffs(context, run, &attempts)?;
    let standing = of_run.standing_here()?;
    let lines: Vec<AttemptSummary> = attempts
        .iter()
        .map(|attempt| attempt_line(attempt, &attempts, &diffs, (&standing, &events)))
        .collect();
    let (machine, metrics) = machine_card(&summaries);
    let detections = detections_of(context, run.run_id)?;
    let estimate = progressive::progressive_of(context, run, attempt, &summaries)?;
    let diagnoses = diagnose::diagnoses_of(context, run.run_id)?;
    let diagnosis = proposed_diagnosis(context, attempt, &diagnoses)?;
    let evaluations = evaluate::evaluations_of(context, run.run_id)?;
    let way_back = way_back_action(context, run, attempt, &attempts, &detections)?;
    let facts = next_facts(context, (run, attempt), &retries, &events, &evaluations)?;
    let waiting = waiting(context, run)?;
    let health = health_card(context, run, attempt)?;
    let failure = suspects::failure(attempt, health.as_ref());
    let since_last_good = since_last_good(context, run, Some(attempt))?;
    let since_last_good = since_last_good.map(|diff| suspects::ranked(diff, &failure));
    let first_look = since_last_good.as_ref().and_then(suspects::first_look);
    let committed_step = next::continues_from(facts.committed_step, &standing);
    let data = data_card(context, run, Some(attempt))?;
    let (preflight, parameters) = (recorded(context, run.run_id)?, parameters_of(context, attempt)?);
    let signs = signs(&Known {
        checks: &with_skipped(context, run, &preflight)?,
        diff: since_last_good.as_ref(),
        detections: &detections
            .iter()
            .filter(|found| found.attempt_id == attempt.attempt_id)
            .collect::<Vec<_>>(),
        parameters: &parameters,
    });
    let facts = NextFacts {
        committed_step,
        is_evaluated: has_evaluation(&evaluations, committed_step),
        diagnosis,
        way_back,
        first_look,
        health: health.clone(),
        has_snapshots: facts.last_good.is_some() && !data.sets.is_empty(),
        nothing_changed: since_last_good.as_ref().is_some_and(|diff| diff.changes.is_empty()),
        reads_checkpoints: attempts.iter().any(|attempt| attempt.resumed_from_step.is_some()),
        warnings: warnings::warnings(attempt.attempt_id, &events),
        signs,
        is_unsupervised: waiting.unsupervised,
        ..facts
    };
    let evident = |found: Detection| match found.attempt_id == attempt.attempt_id {
        true => with_evidence(found, &facts.signs, |need| next::is_there(need, &facts)),
        false => found,
    };
    let highest = attempts.iter().flat_map(|it| [it.last_step, it.last_committed_step]).flatten().max();
    let steps = steps_are(&context.home.layout.run(run.run_id), highest);
    let page = Explanation {
        run: run_card(context, run, waiting)?,
        short: Vec::new(),
        since_last_good,
        attempt: Some(attempt_card(context, attempt)?),
        parent_diff: diffs.remove(&attempt.attempt_id),
        data,
        preflight,
        progressive: progressive::card(estimate, &detections, attempt, &attempts),
        detections: detections.into_iter().map(evident).collect(),
        placement: Some(placement(attempt)),
        timeline: timeline::timeline(&attempts, &events, &retries, steps),
        termination: termination(attempt),
        health: health.clone(),
        resume_step: checkpoints
            .iter()
            .find(|line| line.state == CheckpointState::Committed)
            .map(|line| line.step),
        standing,
        no_checkpoint_why: no_checkpoint_why(context, attempt, &checkpoints, &events)?,
        save_requests: save_requests::save_requests(attempt.attempt_id, &events),
        reading: reading::reading(attempt, &events),
        checkpoints,
        remote: read_status(&context.home.layout.run(run.run_id)),
        fall_back: of_run.fall_back_of(attempt)?,
        resume_proof: proof_card(context, run, attempt)?,
        cadence: cadence_advice(context, run, attempt, &attempts, &of_run.uploads()?)?,
        retries: retries.iter().map(|retry| retry_line(retry, &attempts)).collect(),
        versions: registry::versions_of_run(context, run.run_id)?,
        same_inputs: same_inputs::same_inputs(context, run, attempt, &summaries)?,
        metrics,
        curves: Vec::new(),
        machine,
        parameters,
        tags: tags(context, run.run_id, attempt.attempt_id)?,
        artifacts: artifacts(context, attempt.attempt_id)?,
        cost: cost(
            (run, running_seconds(context, attempt)),
            attempt,
            (&attempts, &lines),
            context.ledger_read(|ledger| ledger.run_cost(run.run_id))?,
        ),
        last_lines: last_lines(context, attempt),
        next_actions: next::next(&facts),
        evaluations,
        diagnoses,
        attempts: lines,
        rungs: context.rungs_of(run.run_id)?,
    };
    Ok(short::with_short(page, &facts.warnings, steps))
}

/// The health of a training that has ended.
fn health_card(
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
    Ok(no_checkpoint::why_none(attempt, events, uses_sdk(context, attempt)?))
}

/// Whether the script recorded with Trackway's package.
fn uses_sdk(context: &Context, attempt: &AttemptRow) -> Result<bool, AppError> {
    let segments = context.ledger_read(|ledger| ledger.segments_of(attempt.attempt_id))?;
    Ok(segments.iter().any(|segment| segment.origin.as_deref() == Some("sdk")))
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
    let line = |row: ArtifactRow| with_fields_of!(AttemptArtifact, row, [name, blake3, size_bytes, step]);
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

fn data_card(
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
fn since_last_good(
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

/// The checks of a run: in the place of one that was skipped what it had found on the same data in the newest run of the name that ran it.
fn with_skipped(
    context: &Context,
    run: &RunRow,
    checks: &[RecordedCheck],
) -> Result<Vec<RecordedCheck>, AppError> {
    let mut checks = checks.to_vec();
    let is_open = |check: &RecordedCheck| check.skipped_why.is_some() && check.findings.is_empty();
    if run.data_sha256.is_none() || !checks.iter().any(is_open) {
        return Ok(checks);
    }
    let filter = RunFilter {
        name: Some(run.name.clone()),
        data_sha256: run.data_sha256.clone(),
        created_before: Some(run.created_at),
        limit: Some(CHECKED_RUNS_MAX),
        ..RunFilter::default()
    };
    for earlier in context.ledger_read(|ledger| ledger.list_runs(&filter))? {
        let found = recorded(context, earlier.run_id)?;
        for check in checks.iter_mut().filter(|check| is_open(check)) {
            let same = found.iter().find(|other| other.name == check.name);
            check.findings = same.map(|other| other.findings.clone()).unwrap_or_default();
        }
    }
    Ok(checks)
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
            lines.push(format!("{name}  {}", shortened(text, LINE_CHARS_MAX)));
            Ok(())
        });
    }
    lines
}

/// What was left out between the script of an attempt and its log and record; none before that is known, at its end.
///
/// # Errors
/// When the ledger cannot be read.
pub fn reading_of(context: &Context, attempt: AttemptId) -> Result<Option<Vec<ReadNote>>, AppError> {
    let row = context.ledger_read(|ledger| ledger.attempt(attempt))?;
    let Some(row) = row.filter(|row| row.state == AttemptState::Sealed) else { return Ok(None) };
    let events = context.ledger_read(|ledger| ledger.events_of_attempt(attempt))?;
    Ok(Some(reading::reading(&row, &events)))
}

/// Calls `visit` for each selected line of an attempt. How many bytes of the selected streams are before the first one.
///
/// # Errors
/// [`ErrorKind::NotFound`]; when a log cannot be read.
pub fn visit_logs(
    context: &Context,
    attempt: AttemptId,
    selection: LogSelection,
    visit: &mut dyn FnMut(crate::logs::LogLine) -> std::io::Result<()>,
) -> Result<u64, AppError> {
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

fn run_card(context: &Context, run: &RunRow, waiting: Waiting) -> Result<ExplainedRun, AppError> {
    let Waiting { queue, unsupervised } = waiting;
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

fn placement(attempt: &AttemptRow) -> AttemptPlacement {
    with_fields_of!(
        AttemptPlacement,
        &attempt,
        [launcher, job_id, hosts, queue, submitted_at, queued_seconds, engine_instance, completeness],
        devices: attempt.devices.clone().or_else(|| attempt.gpu_names.clone()),
        cpu_count: attempt.host_cpu_count,
        memory_bytes: attempt.host_memory_bytes,
    )
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

fn cost(
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
fn running_seconds(context: &Context, attempt: &AttemptRow) -> Option<f64> {
    let started = attempt.started_at.filter(|_| attempt.ended_at.is_none())?;
    Some(context.clock.now().seconds_since(started).max(0.0))
}

/// What a person does about a run that was not launched yet. `has_secret`: its command has one, and is not stored.
fn waiting_actions(run: &RunRow, waiting: &Waiting, has_secret: bool) -> Vec<String> {
    let [first, end] = next::while_it_waits(run.run_id, waiting.unsupervised);
    let first = if waiting.unsupervised && has_secret { next::AGAIN.to_owned() } else { first };
    match run.state {
        RunState::Waiting => vec![first, end],
        _ => vec![first],
    }
}

/// The queue of a run that was never launched, since it was stopped while it waited there.
fn left_queue<'e>(run: &RunRow, events: &'e [EventRow]) -> Option<&'e str> {
    let joined = events.iter().filter(|event| EventKind::QueueJoined.is(&event.kind));
    let last = joined.max_by_key(|event| event.at).filter(|_| run.state == RunState::Stopped)?;
    last.field("queue")
}

/// How a run waits again that was stopped while it waited. `has_secret`: its command has one, and is not stored.
fn rejoin_action(run: &RunRow, queue: &str, has_secret: bool) -> String {
    match has_secret {
        true => next::AGAIN.to_owned(),
        false => format!("let it wait in queue {queue} again: trackway resume {}", run.run_id),
    }
}

/// What to do about each finding that forbade the launch, worst first.
fn unlaunched_actions(run: &RunRow, preflight: &[RecordedCheck]) -> Vec<String> {
    let blocking = preflight.iter().filter(|check| check.blocks);
    let findings = blocking.clone().flat_map(|check| &check.findings);
    let is_block = |finding: &&Finding| finding.severity == Severity::Block;
    let mut actions: Vec<String> =
        findings.filter(is_block).filter_map(|finding| finding.action.clone()).collect();
    if let Some(first) = blocking.map(|check| check.name.as_str()).next() {
        let (before, behind) = match &run.run_file_path {
            Some(path) => (quoted(path), ""),
            None => (format!("--name {}", quoted(&run.name)), " -- COMMAND"),
        };
        actions.push(format!("or launch anyway: trackway run {before} --skip {first} --why REASON{behind}"));
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
    // Without Trackway's recorder in the script only stacks are seen.
    let is_seen = uses_sdk(context, attempt)?;
    let kind = diagnose::diagnosis_for(context, attempt)?;
    Ok(kind.filter(|kind| (is_seen || *kind == DiagnosisKind::Hang) && !is_done(*kind)))
}

/// What the advice about an attempt depends on.
fn next_facts(
    context: &Context,
    (run, attempt): (&RunRow, &AttemptRow),
    retries: &[RetryRow],
    events: &[EventRow],
    evaluations: &[EvaluationReceipt],
) -> Result<NextFacts, AppError> {
    let is_followed =
        retries.iter().any(|retry| retry.attempt_id == attempt.attempt_id && retry.next_attempt_id.is_some());
    let plan = stored_plan(run).ok().flatten();
    let read_none = |event: &&EventRow| {
        event.attempt_id == Some(attempt.attempt_id)
            && EventKind::CheckpointOtherResume.is(&event.kind)
            && event.field("read") == Some("none")
    };
    let reads_none = events.iter().any(|event| read_none(&event));
    let last_good = good_runs(context, &run.name, Some(run.created_at))?.into_iter().next();
    Ok(NextFacts {
        run_id: run.run_id,
        subject_run_id: run.for_run_id.unwrap_or(run.run_id),
        attempt_id: attempt.attempt_id,
        state: run.state,
        kind: attempt.kind,
        reason: attempt.termination_reason.map(|reason| advised_reason(attempt, reason)),
        rule: attempt.termination_rule.clone(),
        is_followed,
        refused: refused_launch(attempt, events).filter(|_| !is_followed),
        committed_step: run.last_committed_step,
        last_step: attempt.last_step,
        asks_to_save: save_requests::save_requests(attempt.attempt_id, events).is_some(),
        signs: Vec::new(),
        data_path: plan.as_ref().and_then(|plan| data_path(run, plan)),
        run_file: run.run_file_path.as_deref().map(quoted),
        may_have_ranks: ranks::may_have_several(attempt, plan.as_ref().map_or(0, |plan| plan.resources.gpus)),
        uses_sdk: uses_sdk(context, attempt)?,
        reads_none,
        resume_arguments: match &plan {
            Some(plan) if reads_none => {
                resume_arguments_of(&plan.run.command, Path::new(&attempt.working_directory))
            }
            _ => Vec::new(),
        },
        has_evaluate: plan.as_ref().is_some_and(|plan| plan.evaluate.is_some()),
        is_evaluated: false,
        unmet_evaluation: unmet(evaluations),
        last_good: last_good.map(|good| good.run_id),
        diagnosis: None,
        first_look: None,
        way_back: None,
        warnings: Vec::new(),
        has_snapshots: false,
        nothing_changed: false,
        reads_checkpoints: false,
        health: None,
        lacks_run_file: run.run_file_path.is_none()
            && run.kind == LaunchKind::Train
            && plan.as_ref().is_some_and(|plan| what_had_secret(&plan.run).is_none()),
        needs_full_command: needs_full_command(context, run.run_id),
        // What cannot be read is not known to be spent.
        instead_of_resume: refused_by_budget(context, run)
            .ok()
            .flatten()
            .and_then(|refused| refused.hints.into_iter().next()),
        is_unsupervised: false,
    })
}

/// Whether a launch of what is stored is refused since the command held secrets, as `Job::restore` decides it.
fn needs_full_command(context: &Context, run_id: RunId) -> bool {
    let stored: Option<StoredJob> = read_if_sound(&context.home.layout.run(run_id).plan_json());
    stored.is_some_and(|job| job.has_secrets && job.run_file.is_none())
}

/// Where data of the run are, as a word of a command: those called `train`, else the first.
fn data_path(run: &RunRow, plan: &Plan) -> Option<String> {
    let path = &plan.data.get("train").or_else(|| plan.data.values().next())?.path;
    let folder = run.run_file_path.as_deref().and_then(|file| Path::new(file).parent());
    match folder.filter(|_| !path.contains("://")) {
        Some(folder) => Some(quoted(&folder.join(path).to_string_lossy())),
        None => Some(quoted(path)),
    }
}

/// The newest refusal of a launch after this attempt.
fn refused_launch(attempt: &AttemptRow, events: &[EventRow]) -> Option<RefusedLaunch> {
    let refusals = events.iter().filter(|event| EventKind::LaunchRefused.is(&event.kind));
    let event = refusals.max_by_key(|event| event.at)?;
    let is_after = attempt.ended_at.is_some_and(|ended_at| event.at >= ended_at);
    let repair = event.field("next").unwrap_or_default().to_owned();
    is_after.then(|| RefusedLaunch { why: event.message.clone(), repair })
}

/// Whether the checkpoint of a step has a completed evaluation.
fn has_evaluation(evaluations: &[EvaluationReceipt], committed: Option<Step>) -> bool {
    evaluations.iter().any(|evaluation| {
        let is_completed = evaluation.state == EvaluationState::Completed && !evaluation.is_gate_test();
        is_completed && committed.is_some() && evaluation.step == committed
    })
}

/// The newest evaluation of the newest weights, where it failed or does not pass its gates.
fn unmet(evaluations: &[EvaluationReceipt]) -> Option<String> {
    let candidates = evaluations.iter().filter(|evaluation| !evaluation.is_gate_test());
    let newest = candidates.max_by_key(|evaluation| evaluation.step)?;
    (!newest.passes()).then(|| newest.evaluation_id.to_string())
}
