//! Checkpoints: their rows against their logs, their manifests and their files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use trackway_api::home::verify::SealedKind;
use trackway_checkpoint::doctor::log_errors;
use trackway_checkpoint::verify_copy;
use trackway_core::{CheckpointState, Clock as _, RunId};
use trackway_engine::Context;
use trackway_engine::checkpoints::stale_rows;
use trackway_engine::error::AppError;
use trackway_formats::checkpoint_manifest::MANIFEST_FILE_NAME;
use trackway_formats::sha256_hex;
use trackway_ledger::CheckpointRow;

use super::{Depth, ItemVerdict, VerifyFindings, is_of_here, runs_in, unreadable_or};

pub(super) fn checkpoints(
    context: &Context,
    run: Option<RunId>,
    depth: Depth,
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    let mut after = Default::default();
    let mut mirrored = BTreeSet::new();
    loop {
        let (rows, unreadable, last) = context.ledger_read(|ledger| ledger.checkpoints_after(run, &after))?;
        let Some(last) = last else { return unmirrored(context, run, &mirrored, found) };
        after = last;
        unreadable.into_iter().for_each(|row| found.unreadable(SealedKind::Manifest, row));
        for row in &rows {
            if mirrored.insert(row.run_id.to_string()) {
                mirror(context, row.run_id, found)?;
            }
            let Some(looked) = manifest(context, row) else { continue };
            let holds = matches!(looked, ItemVerdict::Holds);
            found.take(SealedKind::Manifest, row.run_id, &row.object_prefix, looked);
            if holds && depth == Depth::Files {
                context.request.check_cancelled()?;
                found.take(SealedKind::Weights, row.run_id, &row.object_prefix, weights(context, row));
            }
        }
    }
}

/// Checkpoints that are here and of which the ledger has no row.
fn unmirrored(
    context: &Context,
    run: Option<RunId>,
    mirrored: &BTreeSet<String>,
    found: &mut VerifyFindings<'_>,
) -> Result<(), AppError> {
    let runs = runs_in(&context.home.layout.checkpoints(), run);
    let mut runs = runs.into_iter().filter(|run_id| !mirrored.contains(&run_id.to_string()));
    runs.try_for_each(|run_id| mirror(context, run_id, found))
}

/// Every file of a checkpoint, by its manifest.
fn weights(context: &Context, row: &CheckpointRow) -> ItemVerdict {
    let folder = context.home.folder().join(&row.location).join(&row.object_prefix);
    match verify_copy(&folder, row.manifest_sha256.as_deref().unwrap_or_default()) {
        Ok(()) => ItemVerdict::Holds,
        Err(defect) => ItemVerdict::Differs(format!("a file in `{}`: {defect}", folder.display())),
    }
}

/// The rows of a run's checkpoints against their logs.
fn mirror(context: &Context, run_id: RunId, found: &mut VerifyFindings<'_>) -> Result<(), AppError> {
    let run = match context.run_by_id(run_id) {
        Ok(run) => run,
        Err(error) => {
            let looked = unreadable_or(error)?;
            found.take(SealedKind::Mirror, run_id, &run_id.to_string(), looked);
            return Ok(());
        }
    };
    let errors = log_faults(context, run_id);
    if !errors.is_empty() {
        let id = run_id.to_string();
        found.differs_in(SealedKind::Mirror, run_id, errors.into_iter().map(|why| (id.clone(), why)));
        return Ok(());
    }
    match stale_rows(context, &run) {
        Ok(None) => found.take(SealedKind::Mirror, run_id, &run_id.to_string(), ItemVerdict::Unknown),
        Ok(Some(mut stale)) => {
            // The log moves on while the rows of a run that has not ended are compared; what it lacks it never gets again.
            let is_open = !run.state.is_final();
            stale.retain(|(_, is_lost)| !is_open || *is_lost);
            if stale.is_empty() {
                let looked = if is_open { ItemVerdict::Open } else { ItemVerdict::Holds };
                found.take(SealedKind::Mirror, run_id, &run_id.to_string(), looked);
                return Ok(());
            }
            let faults = stale.into_iter().map(|(row, _)| {
                let why = format!("the log of its root says `{}`, and the ledger another thing", row.state);
                (row.object_prefix, why)
            });
            found.differs_in(SealedKind::Mirror, run_id, faults);
        }
        Err(error) => {
            let why = format!("the log of its checkpoints: {error}");
            found.take(SealedKind::Mirror, run_id, &run_id.to_string(), ItemVerdict::Differs(why));
        }
    }
    Ok(())
}

/// What is wrong with the logs of a run's checkpoints: readers end at an entry that is damaged or gone, and see nothing after it.
fn log_faults(context: &Context, run_id: RunId) -> Vec<String> {
    let entries = std::fs::read_dir(context.home.layout.checkpoints().join(run_id.to_string()));
    let mut roots: Vec<PathBuf> = entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    roots.retain(|root| root.is_dir());
    roots.sort_unstable();
    let of_root = |root: PathBuf| {
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let faults = match log_errors(&root, context.clock.now()) {
            Ok(findings) => findings.into_iter().map(|finding| finding.message).collect(),
            Err(error) => vec![error.to_string()],
        };
        faults.into_iter().map(move |why| format!("`{name}`: {why} (`trackway checkpoint doctor {run_id}`)"))
    };
    roots.into_iter().flat_map(of_root).collect()
}

/// The manifest of a checkpoint whose files should be there; `None`: it has none, or they were deleted on purpose.
fn manifest(context: &Context, row: &CheckpointRow) -> Option<ItemVerdict> {
    let expected = row.manifest_sha256.as_ref()?;
    if row.state == CheckpointState::Retired {
        return None;
    }
    let root = context.home.folder().join(&row.location);
    if !root.is_dir() && (row.uploaded_to.is_some() || !is_of_here(context, row.run_id)) {
        return Some(ItemVerdict::Unknown);
    }
    let path = root.join(&row.object_prefix).join(MANIFEST_FILE_NAME);
    Some(match std::fs::read(&path) {
        Ok(bytes) if sha256_hex(&bytes) == *expected => ItemVerdict::Holds,
        Ok(_) => ItemVerdict::Differs(format!("`{}` is not the one that was committed", path.display())),
        Err(error) if row.state == CheckpointState::Suspect => {
            ItemVerdict::Differs(format!("it is suspect, and `{}` cannot be read: {error}", path.display()))
        }
        Err(error) => ItemVerdict::Differs(format!("`{}` cannot be read: {error}", path.display())),
    })
}
