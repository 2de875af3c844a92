//! Rehearsals of the script itself.

use std::sync::PoisonError;

use trackway_core::checks::{CheckResult, Verdict};
use trackway_core::{LaunchKind, RunId};
use trackway_engine::Context;
use trackway_engine::capture::{Capture, script_of};
use trackway_engine::error::AppError;
use trackway_engine::run::{Job, starts_container};
use trackway_ledger::RunFilter;
use trackway_tower::config_checks::TrainingConfig;
use trackway_tower::rehearsal::{Measured, check_name};

use super::{Looker, Work};
use crate::preflight::facts::PlanFacts;
use crate::rehearsal::{RehearsalSettings, rehearse_start};
use crate::script::takes_batches;

/// Runs that are looked at for one whose rehearsal passed, newest first.
const RUNS_MAX: usize = 20;

/// What rehearsals showed.
#[derive(Default)]
pub struct Rehearsed {
    /// Settings that were seen in the process.
    pub config: TrainingConfig,
    /// What a step takes; none before a script spoke.
    pub measured: Option<Measured>,
    /// Their runs, those of evaluators too.
    pub runs: Vec<RunId>,
}

/// Whether the script is rehearsed with one batch: because the run file says so; without a word there, if it takes its batches
/// from Trackway and no run of this config and script passed before. The inner error: why not.
pub fn rehearses_one_batch(
    context: &Context,
    job: &Job,
    capture: &Capture,
) -> Result<Result<(), String>, AppError> {
    if starts_container(job.plan.container.as_ref(), capture) {
        return Ok(Err("the script runs in a container (`[container]`), where it is not rehearsed".into()));
    }
    match job.plan.preflight.as_ref().and_then(|section| section.one_batch) {
        Some(true) => return Ok(Ok(())),
        Some(false) => return Ok(Err("turned off in the run file (`preflight.one_batch`)".into())),
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
        Some(run) => Err(format!("run {run} passed it with the same config and script")),
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
