//! Diagnoses an attempt: launches its job again for a few steps, from its last checkpoint before the symptom, with an environment
//! that makes the script's recorder observe, and writes down what that shows as evidence of the attempt.
//!
//! The launch belongs to a run of kind `diagnose` with a separate checkpoint root, into which the checkpoint is copied. So it never
//! counts as a training attempt, never writes into the run's checkpoints, and is never repeated.

mod evidence;

use std::collections::BTreeMap;
use std::sync::Arc;

use trackway_api::runs::diagnosis::AttemptDiagnosis;
use trackway_checkpoint::{CheckpointRoot, CheckpointState, CheckpointView, LoadedCheckpoint};
use trackway_core::{AttemptId, Clock as _, DiagnosisKind, LaunchKind, RunId, Step, with_fields_of};
use trackway_engine::Context;
use trackway_engine::checkpoints::view;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::{NotesOnly, Reporter};
use trackway_engine::rows::rung_of;
use trackway_engine::run::{Prepared, Rehearsal, begin, read_again, rehearse};
use trackway_formats::Variable;
use trackway_formats::layout::RowCopy;
use trackway_formats::runfile::PlanEntry;
use trackway_ledger::{AttemptRow, AttemptState, DetectionRow, DiagnosisRow, KeptRows, RunOrAttempt, RunRow};
use trackway_rules::diagnosis::{
    DetectedSymptom, NothingToRun, Plan, Subject, Symptom, finding, plan, symptom,
};

/// How long the launch may take.
pub const TIMEOUT_SECONDS: f64 = 1800.0;
/// How long a script may take until it speaks to the recorder: imports can be slow.
const HANDSHAKE_SECONDS: f64 = 120.0;
/// How long a diagnosis of a hang waits for the next step.
pub const HANG_AFTER_SECONDS: f64 = 60.0;
/// A collective operation fails after this many times as long: the stacks are taken first.
const BARRIER_FACTOR: f64 = 3.0;
/// Operations of all ranks that PyTorch's flight recorder keeps.
const RECORDED_OPERATIONS: &str = "2000";

/// The request of `trackway diagnose`.
#[derive(Debug, Clone)]
pub struct DiagnoseRequest {
    /// What to observe; `None`: what fits the symptom.
    pub kind: Option<DiagnosisKind>,
    /// Steps to make.
    pub steps: Option<u64>,
    /// The step to continue from, at most; 0: from the beginning.
    pub from_step: Option<Step>,
    /// How long the launch may take.
    pub timeout_seconds: f64,
    /// How long a diagnosis of a hang waits for the next step.
    pub hang_after_seconds: f64,
}

/// What is diagnosed: an attempt with a symptom.
struct Case {
    run: RunRow,
    attempt: AttemptRow,
    symptom: Symptom,
}

/// Diagnoses an attempt, or the newest attempt of a run with a symptom.
///
/// # Errors
/// [`ErrorKind::Blocked`] when no launch would show anything, and while the attempt runs; [`ErrorKind::NotFound`] for a run without
/// attempts and for checkpoints that are not on this machine; a fault while launching.
pub fn diagnose(
    context: &Context,
    subject: RunOrAttempt,
    request: &DiagnoseRequest,
    reporter: &dyn Reporter,
) -> Result<AttemptDiagnosis, AppError> {
    let case = case_of(context, subject, request.kind)?;
    let reporter = NotesOnly(reporter);
    let (plan, source) = source_of(context, &case, request, &reporter)?;
    let mut start = read_again(context, &case.run, &reporter)?;
    start.for_run_id = Some(case.run.run_id);
    let prepared = begin(context, &start, LaunchKind::Diagnose, &reporter)?;
    if let Some(source) = &source {
        copy_checkpoint(context, &prepared, &case.attempt, source)?;
    }
    reporter.note(announcement(&case.symptom, &plan));
    let rehearsal = launch_of(context, &case, &plan, request)?;
    let sealed = rehearse(context, &prepared, None, &rehearsal, &reporter)?;
    let seen = evidence::read(context, &sealed)?;
    let found = finding(&case.symptom, &plan, &seen.launched);
    let (run_id, attempt_id) = (case.run.run_id, case.attempt.attempt_id);
    let row = DiagnosisRow {
        diagnosis_run_id: prepared.run.run_id,
        attempt_id,
        run_id,
        launch_id: sealed.row.attempt_id,
        kind: case.symptom.kind,
        why: case.symptom.why,
        verdict: found.verdict,
        finding: context.redactor.text(&found.sentence).into_owned(),
        from_step: plan.from_step,
        until_step: plan.until_step,
        step: found.step,
        batch: found.batch,
        facts_json: Some(seen.facts),
        at: context.clock.now(),
        wall_seconds: sealed.row.wall_seconds.unwrap_or(0.0),
        gpu_seconds: sealed.row.gpu_seconds.unwrap_or(0.0),
        cost_usd: sealed.row.cost_usd,
    };
    context.ledger_write(|ledger| ledger.insert_diagnosis(&row))?;
    context.keep(run_id, RowCopy::Diagnosis(row.diagnosis_run_id), &KeptRows::of([&row]));
    wire(context, row)
}

/// The diagnoses of the attempts of a run, oldest first.
pub fn diagnoses_of(context: &Context, run_id: RunId) -> Result<Vec<AttemptDiagnosis>, AppError> {
    let rows = context.ledger_read(|ledger| ledger.diagnoses_of_run(run_id))?;
    rows.into_iter().map(|row| wire(context, row)).collect()
}

/// Whether another launch would show the cause of what happened to an attempt; `None`: it would not.
pub fn diagnosis_for(context: &Context, attempt: &AttemptRow) -> Result<Option<DiagnosisKind>, AppError> {
    if attempt.kind != LaunchKind::Train || attempt.state != AttemptState::Sealed {
        return Ok(None);
    }
    let detections = detections_of(context, attempt.attempt_id)?;
    Ok(symptom(&subject_of(attempt, &detections), None).ok().map(|symptom| symptom.kind))
}

fn detections_of(context: &Context, attempt_id: AttemptId) -> Result<Vec<DetectionRow>, AppError> {
    context.ledger_read(|ledger| ledger.detections_of_attempt(attempt_id))
}

fn subject_of(attempt: &AttemptRow, detections: &[DetectionRow]) -> Subject {
    let seen =
        detections.iter().map(|row| DetectedSymptom { detector: row.detector, first_step: row.first_step });
    Subject { reason: attempt.termination_reason, last_step: attempt.last_step, seen: seen.collect() }
}

/// The newest attempt with a symptom; where a person names the kind, the last attempt.
fn case_of(context: &Context, subject: RunOrAttempt, kind: Option<DiagnosisKind>) -> Result<Case, AppError> {
    let (run, attempts) = match subject {
        RunOrAttempt::Attempt(attempt) => (context.run_by_id(attempt.run_id)?, vec![*attempt]),
        RunOrAttempt::Run(run) => {
            let attempts = context.attempts_of_kind(run.run_id, run.kind)?;
            (*run, attempts)
        }
    };
    let no_attempt =
        || AppError::new(ErrorKind::NotFound, format!("run `{}` has no attempt to diagnose", run.name));
    let last = attempts.last().ok_or_else(no_attempt)?;
    if last.kind != LaunchKind::Train {
        let message = format!("{} is a launch of kind `{}`, and not a training", last.attempt_id, last.kind);
        return Err(AppError::new(ErrorKind::Usage, message));
    }
    if last.state != AttemptState::Sealed {
        let message = format!("attempt {} has not ended: a diagnosis would compete with it", last.attempt_id);
        return Err(AppError::new(ErrorKind::Blocked, message)
            .hint(format!("stop it first: trackway stop {}", run.run_id)));
    }
    let mut nothing = None;
    for attempt in attempts.into_iter().rev() {
        let detections = detections_of(context, attempt.attempt_id)?;
        match symptom(&subject_of(&attempt, &detections), kind) {
            Ok(symptom) => return Ok(Case { run, attempt, symptom }),
            Err(why) => {
                nothing.get_or_insert((attempt.attempt_id, why));
            }
        }
    }
    let Some((attempt_id, NothingToRun { why, instead })) = nothing else { return Err(no_attempt()) };
    let message = format!("nothing was launched for attempt {attempt_id}: {why}");
    let error = AppError::new(ErrorKind::Blocked, message);
    let error = instead.iter().fold(error, |error, hint| error.hint(*hint));
    Err(error.hint("to observe it all the same: --kind numeric, throughput or hang"))
}

/// From where to where, and the checkpoint to continue from. One that does not verify is reported, and an older one is taken.
fn source_of(
    context: &Context,
    case: &Case,
    request: &DiagnoseRequest,
    reporter: &dyn Reporter,
) -> Result<(Plan, Option<LoadedCheckpoint>), AppError> {
    let root = context.home.layout.checkpoint_root(case.run.run_id, case.run.kind, &case.attempt.rung);
    let view = view(&root)?;
    let mut steps = committed(&view);
    let was_committed = case.attempt.last_committed_step.or(case.attempt.resumed_from_step);
    if let (Some(step), true, None) = (was_committed, steps.is_empty(), request.from_step) {
        let message =
            format!("step {step} was committed, but `{}` has no checkpoint that can be read", root.display());
        return Err(AppError::new(ErrorKind::NotFound, message)
            .hint(format!("see where they are: trackway checkpoint ls {}", case.run.run_id))
            .hint("or start from the beginning: --from-step 0"));
    }
    loop {
        let plan = plan(&case.symptom, &steps, request.steps, request.from_step).map_err(|why| {
            AppError::new(ErrorKind::NotFound, why)
                .hint(format!("see what there is: trackway checkpoint ls {}", case.run.run_id))
        })?;
        let Some(step) = plan.from_step else { return Ok((plan, None)) };
        match load(&view, step) {
            Ok(loaded) => return Ok((plan, Some(loaded))),
            Err(why) => {
                reporter.note(format!("the checkpoint of step {step} cannot be used: {why}"));
                steps.retain(|other| *other != step);
            }
        }
    }
}

fn is_readable(state: CheckpointState) -> bool {
    matches!(state, CheckpointState::Committed | CheckpointState::Superseded)
}

fn committed(view: &CheckpointView) -> Vec<Step> {
    let infos =
        view.list().into_iter().filter(|info| is_readable(info.state) && info.manifest_sha256.is_some());
    infos.map(|info| info.step).collect()
}

/// The newest commit of a step, verified.
fn load(view: &CheckpointView, step: Step) -> Result<LoadedCheckpoint, String> {
    let infos = view.list().into_iter().filter(|info| info.step == step && is_readable(info.state));
    let number = infos.map(|info| info.number).max().ok_or("it is not in the log")?;
    view.load(number).map_err(|error| error.to_string())
}

/// Under epoch 0, so that the launch, which is the first of its run, may claim the next one.
fn copy_checkpoint(
    context: &Context,
    prepared: &Prepared,
    attempt: &AttemptRow,
    source: &LoadedCheckpoint,
) -> Result<(), AppError> {
    let run = &prepared.run;
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &attempt.rung);
    let writer = AttemptId::new(&context.ids);
    CheckpointRoot::open(&root, 0, run.run_id, writer, Arc::clone(&context.clock), Arc::clone(&context.ids))
        .and_then(|mut root| root.save_copy(source))
        .map(drop)
        .map_err(|error| AppError::fault("the checkpoint could not be copied", error))
}

fn announcement(symptom: &Symptom, plan: &Plan) -> String {
    let from = match plan.from_step {
        Some(step) => format!("from the checkpoint of step {step}"),
        None => "from the beginning".into(),
    };
    format!("diagnosis ({}): {}; {from} to step {}", symptom.kind, symptom.why, plan.until_step)
}

fn launch_of(
    context: &Context,
    case: &Case,
    plan: &Plan,
    request: &DiagnoseRequest,
) -> Result<Rehearsal, AppError> {
    let kind = case.symptom.kind;
    let segments = context.ledger_read(|ledger| ledger.segments_of(case.attempt.attempt_id))?;
    let used_sdk = segments.iter().any(|segment| segment.origin.as_deref() == Some("sdk"));
    let hang_after = request.hang_after_seconds;
    Ok(Rehearsal {
        environment: environment(case, plan, hang_after)
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect(),
        in_force: PlanEntry::default(),
        injection: None,
        handshake_seconds: (kind == DiagnosisKind::Numeric).then_some(HANDSHAKE_SECONDS),
        timeout_seconds: Some(request.timeout_seconds),
        hang_after_seconds: (kind == DiagnosisKind::Hang).then_some(hang_after),
        last_step: Some(plan.until_step),
        rung: Some(rung_of(&case.attempt)),
        // The recorder of the script samples by itself, and more often.
        takes_stacks: kind == DiagnosisKind::Throughput && !used_sdk,
    })
}

/// What the attempt had in its environment beyond the plan, and what makes the script observe.
fn environment(case: &Case, plan: &Plan, hang_after_seconds: f64) -> BTreeMap<String, String> {
    let mut environment = changed_environment(&case.run, &case.attempt);
    let kind = case.symptom.kind;
    let skipped = case.attempt.skip_batches.clone();
    environment.extend(skipped.map(|skipped| (Variable::SkipBatches.as_str().to_owned(), skipped)));
    let mut set = |name: &str, value: String| environment.insert(name.to_owned(), value);
    set(Variable::Diagnosis.as_str(), kind.to_string());
    set(Variable::DiagnosisFromStep.as_str(), plan.observe_from_step.to_string());
    set(Variable::MaxSteps.as_str(), plan.until_step.to_string());
    // No save is due: what the launch holds is of no use afterwards.
    set(Variable::CheckpointAtSteps.as_str(), u64::MAX.to_string());
    match kind {
        // In a compiled model there are no single operations to observe.
        DiagnosisKind::Numeric => drop(set("TORCHDYNAMO_DISABLE", "1".into())),
        DiagnosisKind::Throughput => {}
        DiagnosisKind::Hang => {
            let barrier_seconds = (hang_after_seconds * BARRIER_FACTOR).ceil();
            set(Variable::DiagnosisBarrierSeconds.as_str(), barrier_seconds.to_string());
            set("NCCL_DEBUG", "INFO".into());
            // The recorder of operations, under its name and its former one.
            set("TORCH_FR_BUFFER_SIZE", RECORDED_OPERATIONS.into());
            set("TORCH_NCCL_TRACE_BUFFER_SIZE", RECORDED_OPERATIONS.into());
            set("TORCH_NCCL_DUMP_ON_TIMEOUT", "1".into());
        }
    }
    environment
}

/// The variables that a retry plan changed for the attempt.
fn changed_environment(run: &RunRow, attempt: &AttemptRow) -> BTreeMap<String, String> {
    let of = |config: &serde_json::Value| {
        let environment = config.get("run").and_then(|run| run.get("environment"));
        environment.and_then(serde_json::Value::as_object).cloned().unwrap_or_default()
    };
    let planned = of(&run.config_json);
    let changed =
        of(&attempt.config_json).into_iter().filter(|(name, value)| planned.get(name) != Some(value));
    changed.filter_map(|(name, value)| Some((name, value.as_str()?.to_owned()))).collect()
}

fn wire(context: &Context, row: DiagnosisRow) -> Result<AttemptDiagnosis, AppError> {
    let artifacts = context.ledger_read(|ledger| ledger.artifacts_of(row.launch_id))?;
    let folder = context.home.layout.attempt(row.launch_id).artifacts();
    let files = artifacts.iter().map(|artifact| folder.join(&artifact.blake3).to_string_lossy().into_owned());
    Ok(with_fields_of!(
        AttemptDiagnosis,
        row,
        [
            diagnosis_run_id, launch_id, attempt_id, run_id, kind, why, verdict, finding, from_step,
            until_step, step, batch, at, wall_seconds, gpu_seconds, cost_usd,
        ],
        facts: row.facts_json.unwrap_or_default(),
        files: files.collect(),
    ))
}

/// What the next action is called for a symptom of this kind, of one process or of several ranks.
#[must_use]
pub const fn promise(kind: DiagnosisKind, may_have_ranks: bool) -> &'static str {
    match kind {
        DiagnosisKind::Numeric => "find the first layer and batch with NaN",
        DiagnosisKind::Throughput => "find what the time of a step is spent on",
        DiagnosisKind::Hang if may_have_ranks => "find where it waits, and the rank that did not join",
        DiagnosisKind::Hang => "find where it waits",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trackway_core::TerminationReason;

    use super::*;

    /// Proves that the launch gets what a retry plan had changed, the skipped batches, and no cadence of saves.
    #[test]
    fn the_launch_has_the_attempts_environment() {
        let ids = trackway_core::SequentialIds::default();
        let run_id = RunId::new(&ids);
        let name = trackway_core::name::Name::renamed(trackway_core::name::NameKind::Run, "r");
        let at = trackway_core::Timestamp::from_micros(1);
        let config = json!({ "run": { "environment": { "BATCH": "64", "KEPT": "1" } } });
        let run = RunRow::planned(run_id, &name, "c", config, at);
        let mut attempt = AttemptRow::planned(AttemptId::new(&ids), 1, LaunchKind::Train, &run);
        attempt.config_json = json!({ "run": { "environment": { "BATCH": "32", "KEPT": "1" } } });
        attempt.skip_batches = Some("3..5".into());
        attempt.termination_reason = Some(TerminationReason::Hang);
        let symptom = symptom(&subject_of(&attempt, &[]), None).unwrap();
        let plan = Plan { from_step: Some(3), observe_from_step: 4, until_step: 9 };
        let environment = environment(&Case { run, attempt, symptom }, &plan, 10.0);
        let value = |name: &str| environment.get(name).map(String::as_str);
        assert_eq!(value("BATCH"), Some("32"));
        assert_eq!(value("KEPT"), None);
        assert_eq!(value("TRACKWAY_SKIP_BATCHES"), Some("3..5"));
        assert_eq!(value("TRACKWAY_MAX_STEPS"), Some("9"));
        assert_eq!(value("TRACKWAY_DIAGNOSIS"), Some("hang"));
        assert_eq!(value("TRACKWAY_DIAGNOSIS_BARRIER_SECONDS"), Some("30"));
        assert_eq!(value("NCCL_DEBUG"), Some("INFO"));
        assert_eq!(value("TORCH_FR_BUFFER_SIZE"), Some("2000"));
        assert_eq!(
            value("TORCH_DISTRIBUTED_DEBUG"),
            None,
            "DistributedDataParallel of PyTorch 2.15 crashes with it"
        );
    }
}
