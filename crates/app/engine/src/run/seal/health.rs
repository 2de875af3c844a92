//! What the health of an attempt is judged by: its record, its checkpoints, and where earlier good runs of its name ended.

use trackway_adopt::same_tensors;
use trackway_checkpoint::{
    COMPARED_BYTES_MAX, CheckpointInfo, CheckpointView, ManifestFile, have_same_weights, weights_of,
};
use trackway_core::{Health, HealthReport, LaunchKind, Rung, Step, TerminationReason};
use trackway_layouts::{Entry, Folder, tensors_of};
use trackway_ledger::{AttemptRow, RunRow};
use trackway_rules::health::{EarlierEnd, HealthEvidence, Unmoved, judge};

use crate::Context;
use crate::checkpoints::view;
use crate::error::AppError;
use crate::good_runs::good_runs;
use crate::ledger::rows::rung_of;
use crate::run::detect::replay::Replay;
use crate::run::trust::begins;

/// Earlier good runs that are looked at.
const EARLIER_MAX: usize = 5;
/// Steps between two checkpoints whose weights must differ.
const APART_STEPS: Step = 10;

/// What its record shows, whether its weights changed, and what the record has not.
type JudgedBy<'s> = (&'s Replay, Option<Unmoved>, Option<&'s str>);

/// Writes the health of a training into its row. Other launches have none: what they are for is their own verdict.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn note(
    context: &Context,
    run: &RunRow,
    row: &mut AttemptRow,
    seen: JudgedBy<'_>,
) -> Result<(), AppError> {
    let Some((health, report)) = judged(context, run, row, seen)? else { return Ok(()) };
    let mut stored = serde_json::json!(report);
    context.redactor.json(&mut stored);
    (row.health, row.health_json) = (Some(health), Some(stored));
    Ok(())
}

/// Why a rung must not lead to the next one: what its attempt computed is broken.
///
/// # Errors
/// When the ledger cannot be read.
pub(super) fn broken_because(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    replay: &Replay,
) -> Result<Option<String>, AppError> {
    let judged = judged(context, run, row, (replay, unmoved(context, row), None))?;
    let broken = judged.filter(|(health, _)| *health == Health::Broken);
    Ok(broken.and_then(|(_, report)| report.findings.into_iter().next()).map(|found| found.evidence))
}

fn judged(
    context: &Context,
    run: &RunRow,
    row: &AttemptRow,
    (replay, unmoved, not_kept): JudgedBy<'_>,
) -> Result<Option<(Health, HealthReport)>, AppError> {
    if row.kind != LaunchKind::Train || row.started_at.is_none() {
        return Ok(None);
    }
    let earlier = match replay.curves.training_loss() {
        Some((loss, _)) => earlier_ends(context, run, loss)?,
        None => Vec::new(),
    };
    Ok(Some(judge(&HealthEvidence {
        reason: row.termination_reason.unwrap_or(TerminationReason::Unknown),
        last_step: row.last_step.max(replay.last_step),
        from_the_beginning: begins(row),
        on_all_data: rung_of(row) == Rung::FULL,
        curves: &replay.curves,
        losses: &replay.losses,
        standing: &replay.standing,
        unmoved,
        earlier: &earlier,
        not_kept,
    })))
}

/// Where earlier good runs of the name ended, by this metric.
fn earlier_ends(context: &Context, run: &RunRow, metric: &str) -> Result<Vec<EarlierEnd>, AppError> {
    let mut ends = Vec::new();
    for good in good_runs(context, &run.name, Some(run.created_at))?.into_iter().take(EARLIER_MAX) {
        let Some(last) = context.last_attempt_of(good.run_id)? else { continue };
        let summaries = context.ledger_read(|ledger| ledger.metric_summaries_of(last.attempt_id))?;
        let summary = summaries.into_iter().find(|summary| summary.name == metric);
        ends.extend(summary.and_then(|summary| {
            let run = good.run_id.to_string();
            let last_step = Step::try_from(summary.last_step).ok()?;
            Some(EarlierEnd { run, last_step, last_value: summary.last_value? })
        }));
    }
    Ok(ends)
}

/// The first and the last checkpoint that the attempt committed, where all hold the same weights: each as the log says,
/// wherever the others are now, or the two by their files. Weights that are not finite do not change either, for
/// another reason. A log that cannot be read shows nothing.
pub(super) fn unmoved(context: &Context, row: &AttemptRow) -> Option<Unmoved> {
    if row.kind != LaunchKind::Train {
        return None;
    }
    let root = context.home.layout.checkpoint_root(row.run_id, row.kind, &row.rung);
    let view = root.join("log").is_dir().then(|| view(&root).ok()).flatten()?;
    let is_own = |info: &CheckpointInfo| info.attempt_id == row.attempt_id && info.manifest_sha256.is_some();
    let own: Vec<CheckpointInfo> = view.list().into_iter().filter(is_own).collect();
    let (first, last) = (own.first()?, own.last()?);
    if last.step < first.step + APART_STEPS {
        return None;
    }
    let is_unmoved = own.iter().skip(1).all(|info| info.same_weights) || are_same(&view, first, last);
    (is_unmoved && are_finite(&view, last))
        .then_some(Unmoved { first_step: first.step, last_step: last.step })
}

/// Whether no weight that can be read is NaN or infinite.
fn are_finite(view: &CheckpointView, info: &CheckpointInfo) -> bool {
    let Ok(manifest) = view.manifest(info.number) else { return false };
    let (folder, mut budget_bytes) = (Folder::new(view.root().join(&info.folder)), COMPARED_BYTES_MAX);
    let is_finite = |file: &ManifestFile| {
        let tensors = tensors_of(&folder, &Entry::named(&file.name, file.size_bytes), &mut budget_bytes);
        tensors.non_finite.is_empty()
    };
    weights_of(&manifest.files).into_iter().all(is_finite)
}

fn are_same(view: &CheckpointView, first: &CheckpointInfo, last: &CheckpointInfo) -> bool {
    let held = |info: &CheckpointInfo| {
        Some((view.root().join(&info.folder), view.manifest(info.number).ok()?.files))
    };
    held(first).zip(held(last)).is_some_and(|((folder, files), (other_folder, other_files))| {
        have_same_weights((&folder, &files), (&other_folder, &other_files), same_tensors)
    })
}
