//! The ledger's rows of checkpoints. The log of a root is the truth; after each change of it the rows follow.

use std::collections::BTreeMap;
use std::path::Path;

use trackway_checkpoint::{CheckpointInfo, CheckpointView};
use trackway_ledger::{AttemptRow, CheckpointRow, CheckpointRowState, RunRow};

use super::view;
use crate::Context;
use crate::error::AppError;

/// The rows of a rung's checkpoints as its log has them now, with what is known of their bytes.
pub(crate) fn rows_of_rung(context: &Context, attempt: &AttemptRow) -> Result<Vec<CheckpointRow>, AppError> {
    let root = context.home.layout.checkpoint_root(attempt.run_id, attempt.kind, &attempt.rung);
    let known = context.ledger_read(|ledger| ledger.checkpoints_of_run(attempt.run_id))?;
    let rows = mirror_rows(&root, &view(&root)?).into_iter().map(|row| {
        let before = before(&known, &row);
        with_what_was_checked(row, &BTreeMap::new(), before)
    });
    Ok(rows.collect())
}

fn mirror_rows(root: &Path, view: &CheckpointView) -> Vec<CheckpointRow> {
    one_per_prefix(view.list()).into_iter().map(|info| row_of(root, info)).collect()
}

/// The row of the same checkpoint as the ledger has it.
fn before<'k>(known: &'k [CheckpointRow], row: &CheckpointRow) -> Option<&'k CheckpointRow> {
    known.iter().find(|before| before.object_prefix == row.object_prefix)
}

/// Brings the rows of a run's checkpoints up to their logs, in all rungs that were launched. `checked`: what reading every byte
/// of some of them showed, whether they are what was committed, by the SHA-256 of their manifest.
///
/// # Errors
/// When a log cannot be read or the ledger cannot be written.
pub fn mirror_run(context: &Context, run: &RunRow, checked: &BTreeMap<String, bool>) -> Result<(), AppError> {
    if context.ledger_is_read_only() {
        return Ok(());
    }
    let changed = changed_rows(context, run, checked)?;
    context.ledger_write(|ledger| ledger.upsert_checkpoints(&changed))
}

/// The same while an attempt is watched: now or, if the ledger is away, at the next change.
///
/// # Errors
/// As for [`mirror_run`].
pub(crate) fn mirror_now(context: &Context, run: &RunRow, rung: &str) -> Result<(), AppError> {
    let known = context.ledger_write_now(|ledger| ledger.checkpoints_of_run(run.run_id))?;
    let changed = changed_of_rung(context, run, rung, (&known, &BTreeMap::new()))?;
    context.ledger_write_now(|ledger| ledger.upsert_checkpoints(&changed))
}

/// The rows of a run's checkpoints that are not as their logs have them. `None`: no log of it is on this machine.
///
/// # Errors
/// When a log or the ledger cannot be read.
pub fn stale_rows(context: &Context, run: &RunRow) -> Result<Option<Vec<CheckpointRow>>, AppError> {
    let attempts = context.attempts_of_kind(run.run_id, run.kind)?;
    let is_here =
        |rung: &str| context.home.layout.checkpoint_root(run.run_id, run.kind, rung).join("log").is_dir();
    match attempts.iter().any(|attempt| is_here(&attempt.rung)) {
        true => changed_rows(context, run, &BTreeMap::new()).map(Some),
        false => Ok(None),
    }
}

fn changed_rows(
    context: &Context,
    run: &RunRow,
    checked: &BTreeMap<String, bool>,
) -> Result<Vec<CheckpointRow>, AppError> {
    let attempts = context.attempts_of_kind(run.run_id, run.kind)?;
    let mut rungs: Vec<&str> = attempts.iter().map(|row| row.rung.as_str()).collect();
    rungs.sort_unstable();
    rungs.dedup();
    let known = context.ledger_read(|ledger| ledger.checkpoints_of_run(run.run_id))?;
    let changed = rungs.into_iter().map(|rung| changed_of_rung(context, run, rung, (&known, checked)));
    changed.collect::<Result<Vec<_>, _>>().map(|rows| rows.concat())
}

fn changed_of_rung(
    context: &Context,
    run: &RunRow,
    rung: &str,
    (known, checked): (&[CheckpointRow], &BTreeMap<String, bool>),
) -> Result<Vec<CheckpointRow>, AppError> {
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, rung);
    // The bytes of another machine's run are not here, and what its ledger has is what there is.
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let changed = mirror_rows(&root, &view(&root)?).into_iter().filter_map(|row| {
        let before = before(known, &row);
        let row = with_what_was_checked(row, checked, before);
        (before != Some(&row)).then_some(row)
    });
    Ok(changed.collect())
}

/// Whether the bytes were read is not in the log: the newest answer stays, unless they are deleted since.
fn with_what_was_checked(
    row: CheckpointRow,
    checked: &BTreeMap<String, bool>,
    before: Option<&CheckpointRow>,
) -> CheckpointRow {
    let now = row.manifest_sha256.as_ref().and_then(|manifest| checked.get(manifest)).copied();
    let known = now.or(row.verified);
    let verified = known.or(before.and_then(|before| before.verified));
    CheckpointRow { verified, ..row }
}

fn row_of(root: &Path, info: CheckpointInfo) -> CheckpointRow {
    let state = info.state.as_str().parse().unwrap_or(CheckpointRowState::Writing);
    let is_committed = info.manifest_sha256.is_some();
    CheckpointRow {
        metrics_json: (!info.metrics.is_empty()).then(|| serde_json::json!(info.metrics)),
        run_id: info.run_id,
        attempt_id: info.attempt_id,
        step: info.step,
        epoch: info.epoch,
        object_prefix: info.object_prefix,
        state,
        location: root.to_string_lossy().into_owned(),
        size_bytes: info.size_bytes,
        verified: (state == CheckpointRowState::Suspect).then_some(false),
        committed_at: info.at.parse().ok().filter(|_| is_committed),
        manifest_sha256: info.manifest_sha256,
        why: info.why,
        pins: (!info.pins.is_empty()).then(|| info.pins.join(",")),
        uploaded_to: info.uploaded_to,
        uploaded_at: info.uploaded_at.and_then(|at| at.parse().ok()),
    }
}

/// Checkpoints without the older entries of those that were adopted: an adopted one has two for one prefix.
pub fn one_per_prefix(infos: Vec<CheckpointInfo>) -> Vec<CheckpointInfo> {
    let newest: BTreeMap<String, u64> =
        infos.iter().map(|info| (info.object_prefix.clone(), info.number)).collect();
    infos.into_iter().filter(|info| newest[&info.object_prefix] == info.number).collect()
}
