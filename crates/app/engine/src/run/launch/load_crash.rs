//! Before an attempt is launched: whether the checkpoint it would resume from crashed the last two.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use trackway_checkpoint::{CheckpointInfo, Housekeeper};
use trackway_core::{Clock as _, LaunchKind};
use trackway_formats::EventKind;
use trackway_ledger::{AttemptRow, EventRow, RunRow};
use trackway_rules::LoadCrash;

use crate::Context;
use crate::error::AppError;
use crate::ledger::rows::rung_of;
use crate::run::record::earlier;
use crate::run::remote::{Patience, RemotePlan};

/// Marks the checkpoint suspect that the last attempts of a run crashed at, when there is an older one to step back to
/// that verifies. `last`: the last attempt of the run. Returns the message; none when there is nothing to do.
///
/// # Errors
/// When the ledger or the log cannot be read, or the mark cannot be set.
pub(crate) fn step_back(
    context: &Context,
    run: &RunRow,
    last: &AttemptRow,
) -> Result<Option<String>, AppError> {
    // A rehearsal crashes where it has to.
    if run.kind != LaunchKind::Train {
        return Ok(None);
    }
    let Some(crash) = earlier::through(context, last)?.load_crashes.suspect() else { return Ok(None) };
    let rung = rung_of(last);
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &rung.to_string());
    let remote = RemotePlan::of_run(context, run, rung)?;
    let why = why(&attempts_of(context, &crash)?);
    let Some(info) = mark(context, &root, remote.as_ref(), &crash, &why)? else { return Ok(None) };
    let message = format!("the checkpoint of step {} is suspect from now on: {why}", info.step);
    remember(context, last, &info, &message);
    Ok(Some(message))
}

fn attempts_of(context: &Context, crash: &LoadCrash) -> Result<Vec<AttemptRow>, AppError> {
    let found = crash.attempts.iter().map(|id| context.ledger_read(|ledger| ledger.attempt(*id)));
    Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn why(crashed: &[AttemptRow]) -> String {
    let named = crashed.iter().map(|attempt| {
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
    let fault = |error| AppError::fault("the checkpoints could not be marked", error);
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
fn remember(context: &Context, last: &AttemptRow, info: &CheckpointInfo, message: &str) {
    let kind = EventKind::CheckpointSuspect;
    let event = EventRow {
        event_id: format!("{}:{kind}:{}", last.attempt_id, info.number),
        step: Some(info.step),
        ..EventRow::of_attempt(last, kind, context.clock.now(), message.into())
    };
    let _ = context.ledger_write(|ledger| ledger.append_event(&event));
}
