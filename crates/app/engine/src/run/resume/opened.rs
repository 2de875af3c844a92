//! What opens a run that its data blocked. Settings open nothing: a resume keeps those of its run.

use std::path::Path;

use trackway_ledger::{AttemptRow, RunRow};

use crate::Context;
use crate::capture::Capture;
use crate::error::{AppError, ErrorKind};
use crate::reporter::Reporter;
use crate::run::blocked::{Next, differing_settings, evidence_of, is_of_data, plan_now};
use crate::run::job::{Job, data_sha256};
use crate::run::prepare::begin::{Opened, contract_sha256, resolve_data};

/// Why a run cannot be resumed.
pub(super) fn not_resumable(run: &RunRow, why: &str) -> AppError {
    AppError::new(ErrorKind::Usage, format!("run `{}` cannot be resumed: it is {}{why}", run.name, run.state))
        .hint(format!("see why with: trackway explain {}", run.run_id))
}

/// What changed since the last attempt of a blocked run.
///
/// # Errors
/// [`crate::error::ErrorKind::Usage`] with the digests where nothing did, and for a run that something else blocked.
pub(super) fn opened(
    context: &Context,
    (run, job, capture): (&RunRow, &Job, &Capture),
    reporter: &dyn Reporter,
) -> Result<Opened, AppError> {
    let last = context.last_attempt_of(run.run_id)?;
    let stopped = |attempt: AttemptRow| {
        let reason = attempt.termination_reason.filter(|reason| is_of_data(*reason))?;
        Some((attempt, reason))
    };
    let Some((last, reason)) = last.and_then(stopped) else { return Err(not_resumable(run, "")) };
    let manifests = resolve_data(context, job, reporter)?;
    let data_sha256 = data_sha256(&manifests);
    let next = Next {
        job,
        capture,
        manifests: &manifests,
        data_sha256: data_sha256.clone(),
        contract_sha256: contract_sha256(job),
    };
    let found = evidence_of(context, (run, &last), &next)?.compared();
    let plan_now = plan_now(context, job);
    let settings = plan_now.map(|now| differing_settings(&job.stored_plan, &now)).unwrap_or_default();
    if found.changed.is_empty() {
        let refused = not_resumable(run, &found.refusal(reason, &settings));
        let run_file = job.run_file.as_deref().filter(|_| !settings.is_empty());
        return Err(with_repairs(refused, run_file));
    }
    Ok(Opened { sentence: found.opening(reason, &settings), data_sha256 })
}

/// The refusal with what to do. `run_file`: the one whose settings are not those of the run.
fn with_repairs(refused: AppError, run_file: Option<&Path>) -> AppError {
    let refused = refused.hint("repair the data, its schema or the code, then resume it");
    match run_file {
        Some(path) => refused.hint(format!(
            "start a run with the new settings: trackway run {} --retry-data-error",
            path.display()
        )),
        None => refused,
    }
}
