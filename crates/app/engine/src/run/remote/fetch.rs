//! Before a launch: contacts the remote of the run, and fetches what the attempt continues from.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use trackway_checkpoint::CheckpointError;
use trackway_checkpoint::remote::{FetchSource, Fetched};
use trackway_core::{Clock as _, Step};
use trackway_formats::layout::AttemptLayout;
use trackway_ledger::AttemptRow;

use super::super::trust::begins_again;
use super::{Patience, RemotePlan, is_passing, remote_error};
use crate::Context;
use crate::budgets::storage_budget;
use crate::checkpoints::fall_back_cost;
use crate::error::AppError;
use crate::json_file;
use crate::reporter::Reporter;
use crate::run::record::earlier;

/// What the fetch found, with what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FetchReport {
    /// When; RFC 3339.
    pub at: String,
    /// Where the remote is.
    pub location: String,
    /// The epoch that was granted.
    pub epoch: u64,
    /// The step that the attempt continues from.
    pub step: Option<Step>,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Option<String>,
    /// Bytes that were fetched from the remote for it; 0: they were on this disk.
    pub fetched_bytes: u64,
    /// Newer checkpoints that were skipped, and why, as sentences.
    pub skipped: Vec<String>,
    /// Committed steps that are trained again because of those.
    pub lost_steps: Step,
    /// GPU hours that those take, by the pace of the run's attempts.
    pub lost_gpu_hours: f64,
    /// Why the training begins again, where checkpoints were committed and none is safe.
    #[serde(default)]
    pub begins_again: Option<String>,
    /// Steps of checkpoints of this machine that never became part of the run.
    pub fenced: Vec<Step>,
    /// Steps of training that are lost with them.
    pub fenced_steps: Step,
    /// GPU hours that those take, by the pace of the run's attempts.
    pub fenced_gpu_hours: f64,
}

impl FetchReport {
    /// What an attempt's folder holds; `None`: it had no remote.
    pub(crate) fn read(attempt: &AttemptLayout) -> Option<Self> {
        json_file::read_if_sound(&attempt.fetch_json())
    }

    fn write(&self, attempt: &AttemptLayout) {
        // The logs have it all; this is for people.
        if std::fs::create_dir_all(attempt.folder()).is_ok() {
            let _ = json_file::write(&attempt.fetch_json(), self);
        }
    }

    /// Messages for a user, a line each.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(step) = self.step.filter(|_| self.fetched_bytes > 0) {
            lines.push(format!(
                "step {step} was brought from {}: {} bytes",
                self.location, self.fetched_bytes
            ));
        }
        lines.extend(self.skipped.iter().cloned());
        lines.extend(self.begins_again.iter().cloned());
        if self.lost_steps > 0 {
            lines.push(format!(
                "{} committed steps ({:.2} GPU-hours) are trained again",
                self.lost_steps, self.lost_gpu_hours
            ));
        }
        if let Some(newest) = self.fenced.iter().max() {
            lines.push(format!(
                "lost: {} checkpoints of this machine up to step {newest} never became part of the run, because another \
                 attempt was granted it meanwhile: {} steps, {:.2} GPU-hours",
                self.fenced.len(),
                self.fenced_steps,
                self.fenced_gpu_hours
            ));
        }
        lines
    }
}

/// Claims the run at its remote for an attempt and fetches what it continues from, with the retries of the retry
/// policy. `previous` is the attempt before, when this one follows by itself: then a run that was granted to another
/// process meanwhile is left alone. `None`: a user requested it, so it may take over.
pub fn fetch(
    context: &Context,
    remote: &RemotePlan,
    row: &AttemptRow,
    previous: Option<&AttemptRow>,
    reporter: &dyn Reporter,
) -> Result<FetchReport, AppError> {
    let report = patiently(context, remote, row, previous, reporter)
        .map_err(|error| context.fail_run(row.run_id, error))?;
    report.sentences().into_iter().for_each(|text| reporter.note(text));
    report.write(&context.home.layout.attempt(row.attempt_id));
    Ok(report)
}

fn patiently(
    context: &Context,
    remote: &RemotePlan,
    row: &AttemptRow,
    previous: Option<&AttemptRow>,
    reporter: &dyn Reporter,
) -> Result<FetchReport, AppError> {
    let budget = storage_budget(&context.run_by_id(row.run_id)?)?;
    let mut delay_seconds = budget.backoff_min_seconds;
    for attempt in 0.. {
        let error = match remote.interruptibly(|cancelled| once(context, remote, row, previous, cancelled)) {
            Ok(fetched) => return Ok(fetched),
            Err(error) => error,
        };
        let failure = |error| remote_error("not launched: no epoch was granted", error);
        if !is_passing(&error) {
            return Err(failure(error).hint("see `trackway checkpoint doctor`"));
        }
        // No launch without the remote: another attempt may own the run.
        if attempt >= budget.attempts || context.request.cancel.stop_requests() > 0 {
            return Err(failure(error)
                .hint("without the remote it is not known whether another attempt owns the run (`storage_error`)")
                .hint(format!("when it responds again, run: trackway resume {}", row.run_id)));
        }
        reporter.note(format!(
            "the remote does not respond ({error}); trying again in {delay_seconds:.0} s ({} of {})",
            attempt + 1,
            budget.attempts
        ));
        context.wait(delay_seconds, || false);
        delay_seconds = (delay_seconds * 2.0).min(budget.backoff_max_seconds);
    }
    unreachable!("the attempts are bounded")
}

fn once(
    context: &Context,
    remote: &RemotePlan,
    row: &AttemptRow,
    previous: Option<&AttemptRow>,
    cancelled: &Arc<AtomicBool>,
) -> Result<FetchReport, CheckpointError> {
    let mut replica = remote.open(Patience::Long, cancelled)?;
    // Once, before the first epoch: a store that cannot fence would let two attempts write.
    if replica.remote_is_empty() {
        remote.selftest(Patience::Long)?.verdict()?;
    }
    if let Some(previous) = previous
        && let Some(epoch) = previous.epoch
        && let Some((found_epoch, found_attempt)) = replica.fenced_by(epoch, previous.attempt_id)?
    {
        return Err(CheckpointError::Fenced { epoch, found_epoch, found_attempt });
    }
    let fetched =
        replica.fetch_target(row.run_id, row.attempt_id, row.epoch.unwrap_or(1), remote.policy())?;
    Ok(report(context, row, &fetched, replica.location()))
}

fn report(context: &Context, row: &AttemptRow, fetched: &Fetched, location: String) -> FetchReport {
    let target = fetched.target.as_ref();
    let passed = fetched.fallbacks.iter().map(|fallback| match fallback.step {
        Some(step) => format!("step {step} was skipped: {}", fallback.why),
        None => format!("a checkpoint was skipped: {}", fallback.why),
    });
    let pace = earlier::pace_before(context, row).unwrap_or_default();
    let gpu_hours = |steps| fall_back_cost(steps, pace).gpu_hours.unwrap_or(0.0);
    FetchReport {
        at: context.clock.now().to_rfc3339(),
        location,
        epoch: fetched.epoch,
        step: target.map(|target| target.step),
        manifest_sha256: target.map(|target| target.manifest_sha256.clone()),
        fetched_bytes: target.filter(|it| it.source == FetchSource::Remote).map_or(0, |it| it.fetched_bytes),
        skipped: passed.collect(),
        begins_again: target.is_none().then(|| begins_again(&fetched.fallbacks)).flatten(),
        lost_steps: fetched.lost_steps,
        lost_gpu_hours: gpu_hours(fetched.lost_steps),
        fenced: fetched.fenced.iter().map(|info| info.step).collect(),
        fenced_steps: fetched.fenced_steps,
        fenced_gpu_hours: gpu_hours(fetched.fenced_steps),
    }
}
