//! Rehearsals of the script itself.

use std::sync::PoisonError;

use trackway_core::checks::{CheckResult, Verdict};
use trackway_core::{AttemptId, LaunchKind, RunId};
use trackway_engine::Context;
use trackway_engine::capture::{Capture, script_of};
use trackway_engine::error::AppError;
use trackway_engine::run::{Job, starts_container};
use trackway_formats::rehearsal::RehearsalFacts;
use trackway_ledger::{EventRow, RunFilter};
use trackway_rules::preflight::config_checks::TrainingConfig;
use trackway_rules::preflight::rehearsal::{Measured, check_name, config_of, measured};

use super::{Looker, Work};
use crate::training::preflight::facts::PlanFacts;
use crate::training::preflight::select::covers;
use crate::training::rehearsal::{RehearsalSettings, rehearse_start};
use crate::training::script::takes_batches;

/// Runs that are looked at for one whose rehearsal passed, newest first.
const RUNS_MAX: usize = 20;

/// What rehearsals showed.
#[derive(Default)]
pub struct RehearsalResults {
    /// Settings that were seen in the process.
    pub config: TrainingConfig,
    /// What a step takes; none before a script spoke.
    pub measured: Option<Measured>,
    /// Their runs, those of evaluators too.
    pub runs: Vec<RunId>,
}

/// Why the script is not rehearsed.
pub struct NotRehearsed {
    pub why: String,
    /// The run whose rehearsal passed with the same config and script.
    passed_in: Option<RunId>,
}

impl From<&str> for NotRehearsed {
    fn from(why: &str) -> Self {
        Self { why: why.to_owned(), passed_in: None }
    }
}

impl RehearsalResults {
    /// What the earlier rehearsal showed because of which no other one is made.
    pub fn before(context: &Context, not: &NotRehearsed) -> Result<Self, AppError> {
        let Some(run_id) = not.passed_in else { return Ok(Self::default()) };
        let mut rehearsals = context.ledger_read(|ledger| ledger.runs_for(run_id))?;
        rehearsals.retain(|run| run.kind == LaunchKind::OneBatch);
        for rehearsal in rehearsals.iter().rev() {
            let launches = context.ledger_read(|ledger| ledger.launches_of_run(rehearsal.run_id))?;
            // Those before it were out of memory, the one after it resumed.
            let learned =
                launches.iter().find(|row| row.termination_reason.is_some_and(|it| it.is_success()));
            if let Some(learned) = learned {
                let events = context.ledger_read(|ledger| ledger.events_of_run(rehearsal.run_id))?;
                let facts = facts_of(&events, learned.attempt_id);
                let (config, measured) = (config_of(&facts), Some(measured(&facts)));
                return Ok(Self { config, measured, runs: Vec::new() });
            }
        }
        Ok(Self::default())
    }
}

/// The facts that a launch reported, from its stored events.
fn facts_of(events: &[EventRow], attempt_id: AttemptId) -> RehearsalFacts {
    let mut facts = RehearsalFacts::default();
    for event in events.iter().filter(|event| event.attempt_id == Some(attempt_id)) {
        let fields = event.fields_json.as_ref().and_then(|fields| fields.as_object()).into_iter().flatten();
        let fields = fields.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        facts.take_event(&event.kind, &fields.collect::<Vec<_>>());
    }
    facts
}

/// Whether the script is rehearsed with one batch: because the run file says so; without a word there, if it takes its batches
/// from Trackway and no run of this config and script passed before. The inner error: why not.
pub fn rehearses_one_batch(
    context: &Context,
    job: &Job,
    capture: &Capture,
) -> Result<Result<(), NotRehearsed>, AppError> {
    if starts_container(job.plan.container.as_ref(), capture) {
        return Ok(Err("the script runs in a container (`[container]`), where it is not rehearsed".into()));
    }
    let section = job.plan.preflight.clone().unwrap_or_default();
    let is_required = section.require.iter().any(|name| covers(name, check_name(LaunchKind::OneBatch)));
    match section.one_batch {
        Some(false) => return Ok(Err("turned off in the run file (`preflight.one_batch`)".into())),
        Some(true) => return Ok(Ok(())),
        None if is_required => return Ok(Ok(())),
        None => {}
    }
    let script = script_of(&job.plan.run.command, &job.working_directory());
    if !script.is_some_and(|script| takes_batches(&script)) {
        return Ok(Err(
            "the script does not use `run.batches` (`preflight.one_batch` rehearses it anyway)".into()
        ));
    }
    let script_blake3 = capture.script.as_ref().and_then(|script| script.blake3.as_deref());
    Ok(match passed_before(context, job, script_blake3)? {
        Some(run) => Err(NotRehearsed {
            why: format!("run {run} passed it with the same config and script"),
            passed_in: Some(run),
        }),
        None => Ok(()),
    })
}

/// A run of the same config and script whose rehearsal passed.
fn passed_before(
    context: &Context,
    job: &Job,
    script_blake3: Option<&str>,
) -> Result<Option<RunId>, AppError> {
    let filter =
        RunFilter { name: Some(job.plan.run.name.clone()), limit: Some(RUNS_MAX), ..RunFilter::default() };
    let runs = context.ledger_read(|ledger| ledger.list_runs(&filter))?;
    for run in runs.into_iter().filter(|run| run.config_sha256 == job.config_sha256) {
        let attempts = context.attempts_of(run.run_id)?;
        let same = attempts.iter().any(|row| row.script_blake3.as_deref() == script_blake3);
        let checks = context.ledger_read(|ledger| ledger.preflight_checks_of(run.run_id))?;
        let name = check_name(LaunchKind::OneBatch);
        let passed = |verdict: &str| verdict == Verdict::Pass.as_str() || verdict == Verdict::Warn.as_str();
        if same && checks.iter().any(|check| check.check_name == name && passed(check.verdict.as_str())) {
            return Ok(Some(run.run_id));
        }
    }
    Ok(None)
}

pub fn one_batch_asked(facts: &PlanFacts<'_>) -> Result<(), String> {
    facts.one_batch.clone()
}

pub fn overfit_asked(facts: &PlanFacts<'_>) -> Result<(), String> {
    let asked = facts.plan.preflight.as_ref().is_some_and(|section| section.overfit_batches.is_some());
    if asked { Ok(()) } else { Err("not enabled in the run file (`preflight.overfit_batches`)".into()) }
}

pub fn one_batch(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    launch(work, LaunchKind::OneBatch)
}

pub fn overfit(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    launch(work, LaunchKind::Overfit)
}

fn launch(work: &Work<'_>, kind: LaunchKind) -> Result<Vec<CheckResult>, AppError> {
    let section = work.job.plan.preflight.clone().unwrap_or_default();
    let (Some(start), Some(settings)) = (work.start, RehearsalSettings::of(&section, kind)) else {
        let message = "nothing to launch was prepared";
        return Err(AppError::new(trackway_engine::error::ErrorKind::Fault, message));
    };
    let outcome = rehearse_start(work.context, start, kind, &settings, work.reporter)?;
    let mut rehearsed = work.shared.rehearsed.lock().unwrap_or_else(PoisonError::into_inner);
    rehearsed.config = outcome.config;
    rehearsed.measured = Some(outcome.report.measured);
    rehearsed.runs.push(outcome.report.run_id);
    rehearsed.runs.extend(outcome.evaluator_run_id);
    Ok(vec![outcome.report.result])
}
