//! Marks checkpoints unsafe while an attempt runs, and when it has ended: what they hold is most likely lost
//! (`docs/checkpoints.md`). `trackway_rules::trust` decides; here the record and the checkpoints are read, and the marks are set.

use std::path::Path;
use std::sync::Arc;

use trackway_adopt::kept_by_default;
use trackway_checkpoint::{
    CheckpointInfo, CheckpointState, CheckpointView, Fallback, FallbackKind, Housekeeper,
};
use trackway_core::{Clock as _, LaunchKind, UnsafeEvidence};
use trackway_formats::EventKind;
use trackway_formats::checkpoint_manifest::Kind;
use trackway_formats::checkpoint_origin::{CheckpointOrigin, ORIGIN_FILE_NAME};
use trackway_formats::runfile::{CheckpointSection, Plan};
use trackway_layouts::{Entry, Folder, NonFinite, tensors_of};
use trackway_ledger::{AttemptRow, EventRow, RunRow};
use trackway_rules::trust::{
    JudgedStep, LossRecord, LostTensor, ReadCheckpoint, ReadTensors, SAFE_AFTER, judge, judge_values,
};

use crate::Context;
use crate::checkpoints::{keep_variables, mirror_now, mirror_run, policy_of, view};
use crate::error::AppError;
use crate::reporter::Reporter;

/// Bytes of checkpoints whose values are looked at when an attempt has ended, as far as they can be read without loading.
const LOOK_BYTES_MAX: u64 = 4 << 30;
/// Checkpoints whose values are looked at: from the newest that a resume could take, while each holds values that are not finite.
const LOOKS_MAX: usize = 64;

/// Whether an attempt begins with nothing learned.
pub(super) fn begins(row: &AttemptRow) -> bool {
    row.resumed_from_step.is_none() && row.warm_start_step.is_none() && row.kind == LaunchKind::Train
}

/// The losses of an attempt, of which nothing was recorded yet.
pub(super) fn losses_of(plan: &Plan, row: &AttemptRow) -> LossRecord {
    LossRecord::new(plan.checkpoint.safe_after.unwrap_or(SAFE_AFTER), begins(row))
}

/// Marks the checkpoints of an attempt that runs, by what was recorded so far. A failure is tried again at the next
/// look, and when the attempt has ended.
pub(super) fn mark_running(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    losses: Option<&LossRecord>,
    reporter: &dyn Reporter,
) {
    let Some(losses) = losses.filter(|losses| losses.has_episodes()) else { return };
    // What values may show waits for the end of the attempt.
    let marked = mark_by_loss(context, row, losses, LossRecord::may_yet_be_cleared).unwrap_or_default();
    if marked.is_empty() {
        return;
    }
    let _ = mirror_now(context, run, &row.rung);
    for message in marked.iter().map(|(info, evidence)| remember(context, row, info, evidence)) {
        reporter.note(message);
    }
}

/// Marks the checkpoints of an attempt that ended, by all that it recorded (`losses`) and, with `by_values`, by the
/// values in those that a resume could take; `losses` learns what the values show. Doing it again adds nothing. Returns
/// the messages.
///
/// # Errors
/// When the checkpoints cannot be read or marked.
pub(crate) fn mark_ended(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    by_values: bool,
    losses: &mut LossRecord,
) -> Result<Vec<String>, AppError> {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    if row.kind != LaunchKind::Train || !root.join("log").is_dir() {
        return Ok(Vec::new());
    }
    let mut budget_bytes = LOOK_BYTES_MAX;
    clear_by_values(context, row, losses, &mut budget_bytes)?;
    // What values may clear waits for them; the others need no byte of a checkpoint.
    let mut marked = mark_by_loss(context, row, losses, LossRecord::may_be_cleared)?;
    marked.extend(mark_by_loss_and_values(context, row, losses, &mut budget_bytes)?);
    if by_values {
        marked.extend(mark_by_values(context, row, losses, &mut budget_bytes)?);
    }
    if !marked.is_empty() {
        mirror_run(context, run, &std::collections::BTreeMap::new())?;
    }
    Ok(marked.iter().map(|(info, evidence)| remember(context, row, info, evidence)).collect())
}

/// Deletes what retention does not keep of the checkpoints that a script wrote itself, now that it is known which are
/// safe: at its end the last ones are committed at once. A failure only means that they stay until the next commit.
pub(crate) fn retire_ended(context: &Context, run: &RunRow, row: &AttemptRow, section: &CheckpointSection) {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let Ok(view) = view(&root) else { return };
    let Some(by_default) = kept_by_default(&view) else { return };
    let policy = if keep_variables(section).is_empty() { by_default } else { policy_of(section) };
    // Nothing is infinitely old: what is suspect, or was left by a fenced attempt, stays.
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

/// The checkpoints of an attempt against which losses speak, oldest first, each with how it is judged.
fn spoken_against(
    context: &Context,
    row: &AttemptRow,
    losses: &LossRecord,
) -> Result<Vec<(CheckpointInfo, JudgedStep)>, AppError> {
    let unread = ReadTensors::default();
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let own = view(&root)?.list().into_iter().filter(|info| info.attempt_id == row.attempt_id);
    let judged = own.filter(is_judged).map(|info| {
        let judged = judged(&root, &info, losses);
        (info, judged)
    });
    Ok(judged.filter(|(_, judged)| judge(*judged, losses, &unread).is_some()).collect())
}

/// Marks what the losses speak against, but for what waits for its values.
fn mark_by_loss(
    context: &Context,
    row: &AttemptRow,
    losses: &LossRecord,
    waits: fn(&LossRecord, JudgedStep) -> bool,
) -> Result<Marked, AppError> {
    let found = spoken_against(context, row, losses)?.into_iter();
    let lost = found.filter(|(_, judged)| !waits(losses, *judged));
    let evidence =
        lost.filter_map(|(info, judged)| Some((info, judge(judged, losses, &ReadTensors::default())?)));
    set(context, row, evidence.collect())
}

/// Lets the losses know where the values in a checkpoint show that a NaN before it is over.
fn clear_by_values(
    context: &Context,
    row: &AttemptRow,
    losses: &mut LossRecord,
    budget_bytes: &mut u64,
) -> Result<(), AppError> {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let view = view(&root)?;
    for (info, judged) in spoken_against(context, row, losses)? {
        let is_unclear =
            losses.may_be_cleared(judged) && judge(judged, losses, &ReadTensors::default()).is_some();
        if is_unclear && values_of(&view, &info, budget_bytes).are_finite() {
            losses.clear_by_values(judged);
        }
    }
    Ok(())
}

/// Marks what is left of what values may clear, unless they do.
fn mark_by_loss_and_values(
    context: &Context,
    row: &AttemptRow,
    losses: &LossRecord,
    budget_bytes: &mut u64,
) -> Result<Marked, AppError> {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let view = view(&root)?;
    let mut found = Vec::new();
    for (info, judged) in spoken_against(context, row, losses)? {
        let tensors = values_of(&view, &info, budget_bytes);
        found.extend(judge(judged, losses, &tensors).map(|evidence| (info, evidence)));
    }
    set(context, row, found)
}

/// Looks into the newest checkpoint that a resume could take, and as long as its values are not finite into the one
/// before: those before decide whether such values are of weights or of a buffer. The losses learn what was lost.
fn mark_by_values(
    context: &Context,
    row: &AttemptRow,
    losses: &mut LossRecord,
    budget_bytes: &mut u64,
) -> Result<Marked, AppError> {
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let view = view(&root)?;
    let newest_first = view.list().into_iter().rev().filter(|info| info.on_branch && is_judged(info));
    let (mut infos, mut read) = (Vec::new(), Vec::new());
    for info in newest_first.take(LOOKS_MAX) {
        let tensors = values_of(&view, &info, budget_bytes);
        let are_lost = !tensors.non_finite.is_empty();
        read.push(ReadCheckpoint {
            step: info.step,
            judged: judged(&root, &info, losses),
            is_own: info.attempt_id == row.attempt_id,
            tensors,
        });
        infos.push(info);
        if !are_lost {
            break;
        }
    }
    let mut found = Vec::new();
    for (place, info) in infos.into_iter().enumerate() {
        let Some(evidence) = judge_values(&read[place..], losses) else { break };
        if read[place].is_own {
            losses.take_lost_values(read[place].judged, &evidence);
        }
        found.push((info, evidence));
    }
    set(context, row, found)
}

/// How a checkpoint is judged: by the step of its origin where the script wrote it and counts its losses otherwise.
fn judged(root: &Path, info: &CheckpointInfo, losses: &LossRecord) -> JudgedStep {
    let origin = std::fs::read(root.join(&info.folder).join(ORIGIN_FILE_NAME)).ok();
    let origin = origin.and_then(|bytes| CheckpointOrigin::from_bytes(&bytes).ok());
    losses.judged(info.step, origin.and_then(|origin| origin.reached_step))
}

/// The values in a checkpoint, as far as they can be read.
fn values_of(view: &CheckpointView, info: &CheckpointInfo, budget_bytes: &mut u64) -> ReadTensors {
    let unread = ReadTensors { is_partial: true, ..ReadTensors::default() };
    let Ok(manifest) = view.manifest(info.number) else { return unread };
    let folder = Folder::new(view.root().join(&info.folder));
    let has_tensors = |kind| matches!(kind, Kind::Weights | Kind::State | Kind::Optimizer);
    let files = manifest.files.iter().filter(|file| has_tensors(file.kind)).enumerate();
    files.fold(ReadTensors::default(), |mut all, (place, file)| {
        let found = tensors_of(&folder, &Entry::named(&file.name, file.size_bytes), budget_bytes);
        let lost = |one: NonFinite| LostTensor {
            file: place,
            name: one.tensor,
            value: one.value.to_owned(),
            size_bytes: one.size_bytes,
            is_mostly_nan: one.is_mostly_nan,
        };
        all.finite += found.finite;
        all.size_bytes += found.size_bytes;
        all.non_finite.extend(found.non_finite.into_iter().map(lost));
        all.is_partial |= found.is_partial;
        all
    })
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
    let fault = |error| AppError::fault("the unsafe checkpoints could not be marked", error);
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
