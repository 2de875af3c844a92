//! Before an attempt is launched: whether the checkpoint it would resume from crashed the last two.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use trackway_checkpoint::{CheckpointInfo, Housekeeper};
use trackway_core::{Clock as _, LaunchKind, with_fields_of};
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, AttemptState, EventRow, RunRow};
use trackway_rules::{LoadAttempt, LoadCrash, load_crash};

use crate::Context;
use crate::error::AppError;
use crate::rows::rung_of;
use crate::run::remote::{Patience, RemotePlan};

/// Marks the checkpoint suspect that the last attempts of a run crashed at, when there is an older one to step back to
/// that verifies. Returns the message; none when there is nothing to do.
///
/// # Errors
/// When the ledger or the log cannot be read, or the mark cannot be set.
pub(crate) fn step_back(context: &Context, run: &RunRow) -> Result<Option<String>, AppError> {
    // A rehearsal crashes where it has to.
    if run.kind != LaunchKind::Train {
        return Ok(None);
    }
    let mut attempts = context.attempts_of(run.run_id)?;
    let Some(rung) = attempts.last().map(rung_of) else { return Ok(None) };
    attempts.retain(|attempt| attempt.state == AttemptState::Sealed && rung_of(attempt) == rung);
    let seen: Vec<LoadAttempt> = attempts.iter().map(as_seen).collect();
    let Some(crash) = load_crash(&seen) else { return Ok(None) };
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &rung.to_string());
    let remote = RemotePlan::of_run(context, run, rung)?;
    let why = why(&crash, &attempts);
    let Some(info) = mark(context, &root, remote.as_ref(), &crash, &why)? else { return Ok(None) };
    let message = format!("the checkpoint of step {} is suspect from now on: {why}", info.step);
    remember(context, &attempts, &info, &message);
    Ok(Some(message))
}

fn as_seen(attempt: &AttemptRow) -> LoadAttempt {
    with_fields_of!(
        LoadAttempt,
        &attempt,
        [attempt_id, resumed_from_step, last_step, last_committed_step, exit_code, signal],
        resumed_from: attempt.resumed_from_manifest_sha256.clone(),
        reason: attempt.termination_reason.unwrap_or(trackway_core::TerminationReason::Unknown),
    )
}

fn why(crash: &LoadCrash, attempts: &[AttemptRow]) -> String {
    let named =
        attempts.iter().filter(|attempt| crash.attempts.contains(&attempt.attempt_id)).map(|attempt| {
            let reason = attempt.termination_reason.map(|reason| reason.to_string()).unwrap_or_default();
            format!("attempt {} ({}, {reason})", attempt.attempt_number, attempt.attempt_id)
        });
    let named: Vec<_> = named.collect();
    format!("{} ended right after loading it, without a step", named.join(" and "))
}

fn mark(
    context: &Context,
    root: &Path,
    remote: Option<&RemotePlan>,
    crash: &LoadCrash,
    why: &str,
) -> Result<Option<CheckpointInfo>, AppError> {
    let fault = |error| AppError::fault("the checkpoints could not be marked", &error);
    let mut house =
        Housekeeper::open(root, Arc::clone(&context.clock), Arc::clone(&context.ids)).map_err(fault)?;
    let infos = house.view().list();
    let mut on_branch = infos.iter().rev().filter(|info| info.on_branch);
    // Only what the next resume would take, and only with somewhere to go: an older one that can be loaded at all.
    let newest =
        on_branch.next().filter(|info| info.manifest_sha256.as_ref() == Some(&crash.manifest_sha256));
    let Some(newest) = newest.cloned() else { return Ok(None) };
    let older_verifies = match remote {
        None => on_branch.any(|info| house.view().verify(info.number).is_ok()),
        Some(remote) => older_by_truth(remote, crash),
    };
    if !older_verifies {
        return Ok(None);
    }
    house.suspect(newest.number, why).map_err(fault)?;
    Ok(Some(newest))
}

/// Whether a fetch would find another one, on this disk or at the remote. A remote that does not answer counts as no:
/// then nothing is launched either.
fn older_by_truth(remote: &RemotePlan, crash: &LoadCrash) -> bool {
    let opened = remote.open(Patience::Long, &Arc::new(AtomicBool::new(false)));
    let found = opened.and_then(|mut replica| replica.foresee(Some(&crash.manifest_sha256)));
    found.is_ok_and(|found| found.is_some())
}

/// The mark in the log is what counts; the event makes the story of the run whole.
fn remember(context: &Context, attempts: &[AttemptRow], info: &CheckpointInfo, message: &str) {
    let Some(last) = attempts.last() else { return };
    let kind = EventKind::CheckpointSuspect;
    let event = EventRow {
        event_id: format!("{}:{kind}:{}", last.attempt_id, info.number),
        step: Some(info.step),
        ..EventRow::of_attempt(last, kind, context.clock.now(), message.into())
    };
    let _ = context.ledger_write(|ledger| ledger.append_event(&event));
}
