//! Marks checkpoints unsafe while an attempt runs, and when it has ended: what they hold is most likely lost
//! (`docs/checkpoints.md`). `trackway_tower::trust` decides; here the record and the checkpoints are read, and the marks are set.

use std::path::Path;
use std::sync::Arc;

use trackway_adopt::kept_by_default;
use trackway_checkpoint::{CheckpointInfo, CheckpointState, Fallback, FallbackKind, Housekeeper};
use trackway_core::{Clock as _, LaunchKind, Step, UnsafeEvidence};
use trackway_formats::EventKind;
use trackway_formats::checkpoint_manifest::{Kind, Manifest};
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};
use trackway_formats::runfile::{CheckpointSection, Plan};
use trackway_layouts::{Entry, Folder, NonFinite, first_non_finite};
use trackway_ledger::{AttemptRow, EventRow, RunRow};
use trackway_tower::trust::{LossRecord, ReadTensors, SAFE_AFTER, judge};

use crate::Context;
use crate::checkpoints::{keep_variables, mirror_now, mirror_run, policy_of, view};
use crate::error::AppError;
use crate::reporter::Reporter;

/// Bytes of checkpoints whose values are looked at when an attempt has ended, as far as they can be read without loading.
const LOOK_BYTES_MAX: u64 = 4 << 30;
/// Checkpoints whose values are looked at: from the newest that a resume could take, while each holds values that are not finite.
const LOOKS_MAX: usize = 8;

/// Whether an attempt begins with nothing learned.
pub(super) fn begins(row: &AttemptRow) -> bool {
    row.resumed_from_step.is_none() && row.warm_start_step.is_none() && row.kind == LaunchKind::Train
}

/// The losses of an attempt, of which nothing was recorded yet.
pub(super) fn losses_of(plan: &Plan, row: &AttemptRow) -> LossRecord {
    LossRecord::new(plan.checkpoint.safe_after.unwrap_or(SAFE_AFTER), begins(row))
}

/// Marks the checkpoints of an attempt that runs, by what was recorded so far. A failure is tried again at the next look, and when the attempt
/// has ended.
pub(super) fn mark_running(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    losses: Option<&LossRecord>,
    reporter: &dyn Reporter,
) {
    let Some(losses) = losses.filter(|losses| losses.has_episodes()) else { return };
    let marked = mark_by_loss(context, row, losses).unwrap_or_default();
    if marked.is_empty() {
        return;
    }
    let _ = mirror_now(context, run, &row.rung);
    for message in marked.iter().map(|(info, evidence)| remember(context, row, info, evidence)) {
        reporter.note(message);
    }
}

/// Marks the checkpoints of an attempt that ended, by all that it recorded (`losses`) and, with `by_values`, by the values in those that a resume could
/// take. Doing it again adds nothing. Returns the messages.
///
/// # Errors
/// When the checkpoints cannot be read or marked.
pub(crate) fn mark_ended(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    by_values: bool,
    losses: &LossRecord,
) -> Result<Vec<String>, AppError> {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    if row.kind != LaunchKind::Train || !root.join("log").is_dir() {
        return Ok(Vec::new());
    }
    let mut marked = mark_by_loss(context, row, losses)?;
    if by_values {
        marked.extend(mark_by_values(context, row, losses)?);
    }
    if !marked.is_empty() {
        mirror_run(context, run, &std::collections::BTreeMap::new())?;
    }
    Ok(marked.iter().map(|(info, evidence)| remember(context, row, info, evidence)).collect())
}

/// Deletes what retention does not keep of the checkpoints that a script wrote itself, now that it is known which are safe: at its end the last ones are
/// committed at once. A failure only means that they stay until the next commit.
pub(crate) fn retire_ended(context: &Context, run: &RunRow, row: &AttemptRow, section: &CheckpointSection) {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let Ok(view) = view(&root) else { return };
    let Some(by_default) = kept_by_default(&view) else { return };
    let policy = if keep_variables(section).is_empty() { by_default } else { policy_of(section) };
    let retired = Housekeeper::open(&root, Arc::clone(&context.clock), Arc::clone(&context.ids))
        .and_then(|mut house| house.collect(&policy, f64::INFINITY, false));
    if retired.is_ok() {
        let _ = mirror_run(context, run, &std::collections::BTreeMap::new());
    }
}

/// The message where a resume begins again, because all that it skips is unsafe.
pub(super) fn begins_again(skipped: &[Fallback]) -> Option<String> {
    if !Fallback::only_unsafe(skipped) {
        return None;
    }
    let newest = skipped.iter().find(|one| one.kind == FallbackKind::Unsafe)?;
    let step = newest.step.map_or_else(|| "the newest checkpoint".into(), |step| format!("step {step}"));
    Some(format!(
        "the training begins again: no committed checkpoint is safe; {step} is skipped ({})",
        newest.why
    ))
}

type Marked = Vec<(CheckpointInfo, UnsafeEvidence)>;

fn mark_by_loss(context: &Context, row: &AttemptRow, losses: &LossRecord) -> Result<Marked, AppError> {
    let unseen = ReadTensors::default();
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let own = |info: &CheckpointInfo| info.attempt_id == row.attempt_id && is_judged(info);
    let found = view(&root)?.list().into_iter().filter(own);
    let found =
        found.filter_map(|info| Some((judge(judged_step(&root, &info, losses), losses, &unseen)?, info)));
    set(context, row, found.map(|(evidence, info)| (info, evidence)).collect())
}

/// Looks into the newest checkpoint that a resume could take, and as long as its values are not finite into the one before.
fn mark_by_values(context: &Context, row: &AttemptRow, losses: &LossRecord) -> Result<Marked, AppError> {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let (mut marked, mut budget_bytes) = (Vec::new(), LOOK_BYTES_MAX);
    for _ in 0..LOOKS_MAX {
        let view = view(&root)?;
        let newest = view.list().into_iter().rev().find(|info| info.on_branch && is_judged(info));
        let Some(info) = newest else { break };
        let step = judged_step(&root, &info, losses);
        if !losses.was_bad_by(step) {
            break;
        }
        let Ok(manifest) = view.manifest(info.number) else { break };
        let folder = Folder::new(view.root().join(&info.folder));
        let tensors = values_of(&folder, &manifest, &mut budget_bytes);
        let Some(evidence) = judge(step, losses, &tensors) else { break };
        let set = set(context, row, vec![(info, evidence)])?;
        if set.is_empty() {
            break;
        }
        marked.extend(set);
    }
    Ok(marked)
}

/// The step by which a checkpoint is judged: that of its origin where the script wrote it and counts its losses otherwise.
fn judged_step(root: &Path, info: &CheckpointInfo, losses: &LossRecord) -> Step {
    let origin = std::fs::read(root.join(&info.folder).join(ORIGIN_FILE_NAME)).ok();
    let origin = origin.and_then(|bytes| CheckpointOrigin::from_bytes(&bytes).ok());
    losses.judged_step(info.step, origin.and_then(|origin| origin.reached_step))
}

fn values_of(folder: &Folder, manifest: &Manifest, budget_bytes: &mut u64) -> ReadTensors {
    let files = manifest.files.iter().filter(|file| matches!(file.kind, Kind::Weights | Kind::State));
    let found = files
        .into_iter()
        .find_map(|file| first_non_finite(folder, &Entry::named(&file.name, file.size_bytes), budget_bytes));
    ReadTensors { non_finite: found.map(|NonFinite { tensor, value }| (tensor, value.to_owned())) }
}

/// Whether a checkpoint is committed and not marked: what a person cleared stays so.
fn is_judged(info: &CheckpointInfo) -> bool {
    let state = matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded);
    state && info.cleared.is_none()
}

fn set(context: &Context, row: &AttemptRow, found: Marked) -> Result<Marked, AppError> {
    if found.is_empty() {
        return Ok(found);
    }
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let fault = |error| AppError::fault("the unsafe checkpoints could not be marked", &error);
    let mut house =
        Housekeeper::open(&root, Arc::clone(&context.clock), Arc::clone(&context.ids)).map_err(fault)?;
    let mut marked = Vec::new();
    for (info, evidence) in found {
        if house.mark_unsafe(info.number, &evidence).map_err(fault)? {
            marked.push((info, evidence));
        }
    }
    Ok(marked)
}

/// The mark in the log is what counts; the event makes the history of the run complete. Returns the message.
fn remember(context: &Context, row: &AttemptRow, info: &CheckpointInfo, evidence: &UnsafeEvidence) -> String {
    let message = format!(
        "the checkpoint of step {} is unsafe, and no attempt continues from it: {}",
        info.step, evidence.why
    );
    let kind = EventKind::CheckpointUnsafe;
    let event = EventRow {
        event_id: format!("{}:{kind}:{}", row.attempt_id, info.number),
        step: Some(info.step),
        fields_json: serde_json::to_value(evidence).ok(),
        ..EventRow::of_attempt(row, kind, context.clock.now(), message.clone())
    };
    let _ = context.ledger_write_now(|ledger| ledger.append_event(&event));
    message
}
