//! Rehearsals of the script itself, if the run file requests them.

use std::sync::PoisonError;

use trackway_core::LaunchKind;
use trackway_core::checks::CheckResult;
use trackway_engine::error::AppError;
use trackway_tower::config_checks::TrainingConfig;
use trackway_tower::rehearsal::Measured;

use super::{Looker, Work};
use crate::preflight::facts::PlanFacts;
use crate::rehearsal::{RehearsalSettings, rehearse_start};

/// What rehearsals showed.
#[derive(Default)]
pub struct Rehearsed {
    /// Settings that were seen in the process.
    pub config: TrainingConfig,
    /// What a step takes; none before a script spoke.
    pub measured: Option<Measured>,
}

pub fn one_batch_asked(facts: &PlanFacts<'_>) -> Result<(), String> {
    let asked = facts.plan.preflight.as_ref().is_some_and(|section| section.one_batch);
    if asked { Ok(()) } else { Err("not enabled in the run file (`preflight.one_batch`)".into()) }
}

pub fn overfit_asked(facts: &PlanFacts<'_>) -> Result<(), String> {
    let asked = facts.plan.preflight.as_ref().is_some_and(|section| section.overfit_batches.is_some());
    if asked { Ok(()) } else { Err("not enabled in the run file (`preflight.overfit_batches`)".into()) }
}

pub fn one_batch(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    launch(work, LaunchKind::OneBatch, RehearsalSettings::one_batch())
}

pub fn overfit(work: &Work<'_>, _: &Looker<'_>) -> Result<Vec<CheckResult>, AppError> {
    let batches = work.job.plan.preflight.as_ref().and_then(|section| section.overfit_batches);
    launch(work, LaunchKind::Overfit, RehearsalSettings::overfit(u64::from(batches.unwrap_or(1))))
}

fn launch(
    work: &Work<'_>,
    kind: LaunchKind,
    mut settings: RehearsalSettings,
) -> Result<Vec<CheckResult>, AppError> {
    let section = work.job.plan.preflight.clone().unwrap_or_default();
    settings.target_loss = section.target_loss;
    settings.timeout_seconds = section.rehearsal_timeout_seconds.unwrap_or(settings.timeout_seconds);
    let Some(start) = work.start else {
        let message = "nothing to launch was prepared";
        return Err(AppError::new(trackway_engine::error::ErrorKind::Fault, message));
    };
    let outcome = rehearse_start(work.context, start, kind, &settings, work.reporter)?;
    let mut rehearsed = work.shared.rehearsed.lock().unwrap_or_else(PoisonError::into_inner);
    rehearsed.config = outcome.config;
    rehearsed.measured = Some(outcome.report.measured);
    Ok(vec![outcome.report.result])
}
