//! What a page is arranged from: what the ledger has of an attempt, and what the advice depends on.

use std::path::Path;

use trackway_api::checkpoints::{Checkpoint, CheckpointStanding};
use trackway_api::models::evaluations::{EvaluationReceipt, EvaluationState};
use trackway_api::runs::detections::Detection;
use trackway_api::runs::diagnosis::AttemptDiagnosis;
use trackway_api::runs::explain::{AttemptParameter, Diff, ExplainedData, ExplainedHealth, RecordedCheck};
use trackway_core::{DiagnosisKind, DiagnosisVerdict, LaunchKind, RunId, Step, Timestamp};
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_engine::good_runs::good_runs;
use trackway_engine::json_file::read_if_sound;
use trackway_engine::run::detect::detections_of;
use trackway_engine::run::queue::{Waiting, waiting};
use trackway_engine::run::{StoredJob, reason_alone, refused_by_budget};
use trackway_engine::stored::stored_plan;
use trackway_flows::checkpoints::Checkpoints;
use trackway_flows::evaluation::evaluate;
use trackway_flows::runs::diagnose;
use trackway_flows::training::init::{resume_arguments_of, what_had_secret};
use trackway_flows::training::preflight::recorded;
use trackway_formats::EventKind;
use trackway_formats::runfile::Plan;
use trackway_formats::shell::quoted;
use trackway_ledger::{AttemptRow, EventRow, MetricSummaryRow, RetryRow, RunFilter, RunRow};
use trackway_rules::Sign;

use super::cards::{data_card, health_card, since_last_good};
use super::next::{self, NextFacts, RefusedLaunch};
use super::signs::{SignEvidence, signs};
use super::termination::advised_reason;
use super::unended::Unended;
use super::way_back::way_back_action;
use super::{no_checkpoint, ranks, save_requests, suspects, warnings};
use crate::parameters::parameters_of;

/// Earlier runs that are searched for what a skipped check had found.
const CHECKED_RUNS_MAX: usize = 20;

/// What the ledger has of a run and one of its attempts.
pub(super) struct Rows {
    /// Those of the attempt's kind, in order.
    pub attempts: Vec<AttemptRow>,
    pub retries: Vec<RetryRow>,
    pub events: Vec<EventRow>,
    /// Those of the attempt.
    pub summaries: Vec<MetricSummaryRow>,
    pub detections: Vec<Detection>,
    pub diagnoses: Vec<AttemptDiagnosis>,
    pub evaluations: Vec<EvaluationReceipt>,
}

impl Rows {
    fn read(context: &Context, run: &RunRow, attempt: &AttemptRow) -> Result<Self, AppError> {
        Ok(Self {
            attempts: context.attempts_of_kind(run.run_id, attempt.kind)?,
            retries: context.ledger_read(|ledger| ledger.retries_of_run(run.run_id))?,
            events: context.ledger_read(|ledger| ledger.events_of_run(run.run_id))?,
            summaries: context.ledger_read(|ledger| ledger.metric_summaries_of(attempt.attempt_id))?,
            detections: detections_of(context, run.run_id)?,
            diagnoses: diagnose::diagnoses_of(context, run.run_id)?,
            evaluations: evaluate::evaluations_of(context, run.run_id)?,
        })
    }
}

/// What is known of an attempt, from which its page is arranged.
pub(super) struct PageEvidence {
    pub rows: Rows,
    pub standing: CheckpointStanding,
    pub waiting: Waiting,
    pub since_last_good: Option<Diff>,
    pub data: ExplainedData,
    pub preflight: Vec<RecordedCheck>,
    pub parameters: Vec<AttemptParameter>,
    /// What the advice depends on.
    pub facts: NextFacts,
}

impl PageEvidence {
    pub(super) fn gather(
        context: &Context,
        run: &RunRow,
        attempt: &AttemptRow,
        of_run: &Checkpoints,
    ) -> Result<Self, AppError> {
        let rows = Rows::read(context, run, attempt)?;
        let standing = of_run.standing_here()?;
        let waiting = waiting(context, run)?;
        let health = health_card(context, run, attempt)?;
        let failure = suspects::failure(attempt, health.as_ref());
        let since_last_good = since_last_good(context, run, Some(attempt))?;
        let since_last_good = since_last_good.map(|diff| suspects::ranked(diff, &failure));
        let data = data_card(context, run, Some(attempt))?;
        let (preflight, parameters) = (recorded(context, run.run_id)?, parameters_of(context, attempt)?);
        let of_attempt = rows.detections.iter().filter(|found| found.attempt_id == attempt.attempt_id);
        let signs = signs(&SignEvidence {
            checks: &with_skipped(context, run, &preflight)?,
            diff: since_last_good.as_ref(),
            detections: &of_attempt.collect::<Vec<_>>(),
            parameters: &parameters,
        });
        let seen = SeenFacts {
            standing: &standing,
            since_last_good: since_last_good.as_ref(),
            signs,
            health,
            has_data: !data.sets.is_empty(),
            is_unsupervised: waiting.unsupervised,
        };
        let facts = next_facts(context, (run, attempt), &rows, seen)?;
        Ok(Self { rows, standing, waiting, since_last_good, data, preflight, parameters, facts })
    }
}

/// What the advice depends on beside the rows.
struct SeenFacts<'a> {
    standing: &'a CheckpointStanding,
    since_last_good: Option<&'a Diff>,
    signs: Vec<(Sign, String)>,
    health: Option<ExplainedHealth>,
    has_data: bool,
    is_unsupervised: bool,
}

/// What the advice about an attempt depends on.
fn next_facts(
    context: &Context,
    (run, attempt): (&RunRow, &AttemptRow),
    rows: &Rows,
    seen: SeenFacts<'_>,
) -> Result<NextFacts, AppError> {
    let Rows { attempts, retries, events, detections, diagnoses, evaluations, .. } = rows;
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
    let committed_step = next::continues_from(run.last_committed_step, seen.standing);
    let diff = seen.since_last_good;
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
        committed_step,
        last_step: attempt.last_step,
        unended: Unended::of(context, attempt)?,
        asks_to_save: save_requests::save_requests(attempt.attempt_id, events).is_some(),
        signs: seen.signs,
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
        is_evaluated: has_evaluation(evaluations, committed_step),
        unmet_evaluation: unmet(evaluations),
        has_snapshots: last_good.is_some() && seen.has_data,
        last_good: last_good.map(|good| good.run_id),
        diagnosis: proposed_diagnosis(context, attempt, diagnoses)?,
        first_look: diff.and_then(suspects::first_look),
        way_back: way_back_action(context, run, attempt, attempts, detections)?,
        warnings: warnings::warnings(attempt.attempt_id, events),
        nothing_changed: diff.is_some_and(|diff| diff.changes.is_empty()),
        reads_checkpoints: attempts.iter().any(|attempt| attempt.resumed_from_step.is_some()),
        health: seen.health,
        lacks_run_file: run.run_file_path.is_none()
            && run.kind == LaunchKind::Train
            && plan.as_ref().is_some_and(|plan| what_had_secret(&plan.run).is_none()),
        needs_full_command: needs_full_command(context, run.run_id),
        // What cannot be read is not known to be spent.
        instead_of_resume: refused_by_budget(context, run)
            .ok()
            .flatten()
            .and_then(|refused| refused.hints.into_iter().next()),
        is_unsupervised: seen.is_unsupervised,
    })
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

/// Why there is no checkpoint at all, where that is so.
pub(super) fn no_checkpoint_why(
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

/// Whether a launch of what is stored is refused since the command held secrets, as `Job::restore` decides it.
pub(super) fn needs_full_command(context: &Context, run_id: RunId) -> bool {
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
    let (at, refused) = newest_refusal(events)?;
    attempt.ended_at.is_some_and(|ended_at| at >= ended_at).then_some(refused)
}

/// The newest refusal of a launch, and when it was.
pub(super) fn newest_refusal(events: &[EventRow]) -> Option<(Timestamp, RefusedLaunch)> {
    let refusals = events.iter().filter(|event| EventKind::LaunchRefused.is(&event.kind));
    let event = refusals.max_by_key(|event| event.at)?;
    let repair = event.field("next").unwrap_or_default().to_owned();
    Some((event.at, RefusedLaunch { why: reason_alone(&event.message).to_owned(), repair }))
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
