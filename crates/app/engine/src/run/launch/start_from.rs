//! The checkpoint that the next attempt continues from.

use trackway_adopt::resumed_from;
use trackway_checkpoint::LoadedCheckpoint;
use trackway_ledger::AttemptRow;

use crate::Context;
use crate::checkpoints::{fall_back_notice, view};
use crate::error::{AppError, ErrorKind};
use crate::ledger::rows::rung_of;
use crate::reporter::Reporter;
use crate::run::prepare::begin::Prepared;
use crate::run::record::earlier;
use crate::run::remote::RemotePlan;
use crate::run::remote::fetch::fetch;
use crate::run::trust;

/// Notes the checkpoint that the attempt continues from, brought to this disk where it is only at the remote. Returns
/// it where every byte of it was read here.
pub(super) fn start_from(
    context: &Context,
    prepared: &Prepared,
    row: &mut AttemptRow,
    follows: Option<&AttemptRow>,
    reporter: &dyn Reporter,
) -> Result<Option<LoadedCheckpoint>, AppError> {
    match &prepared.remote {
        None => {
            let target = resume_target(context, prepared, row, reporter)?;
            if let Some(target) = &target {
                row.resumed_from_step = Some(target.info.step);
                row.resumed_from_manifest_sha256.clone_from(&target.info.manifest_sha256);
            }
            Ok(target)
        }
        Some(remote) => fetch_for(context, &remote.at(rung_of(row)), row, follows, reporter).map(|()| None),
    }
}

/// The remote grants the epoch and determines what the attempt resumes from. A committed step that the ledger has and
/// the remote does not is an error here too.
fn fetch_for(
    context: &Context,
    remote: &RemotePlan,
    row: &mut AttemptRow,
    follows: Option<&AttemptRow>,
    reporter: &dyn Reporter,
) -> Result<(), AppError> {
    let fetched = fetch(context, remote, row, follows, reporter)?;
    let run = context.run_by_id(row.run_id)?;
    if fetched.step.is_none() && run.last_committed_step.is_some() && fetched.begins_again.is_none() {
        let message =
            format!("not launched: the ledger has a committed step, and {} has none", fetched.location);
        let error =
            AppError::new(ErrorKind::Integrity, message).hint("restore the checkpoints, or start a new run");
        return Err(context.fail_run(run.run_id, error));
    }
    row.epoch = Some(fetched.epoch);
    row.resumed_from_step = fetched.step;
    row.resumed_from_manifest_sha256 = fetched.manifest_sha256;
    Ok(())
}

/// The checkpoint the attempt should resume from, every byte of it read. Committed steps that cannot be resumed from
/// are an explicit error before the launch, never a silent step 0.
fn resume_target(
    context: &Context,
    prepared: &Prepared,
    row: &AttemptRow,
    reporter: &dyn Reporter,
) -> Result<Option<LoadedCheckpoint>, AppError> {
    let run = context.run_by_id(prepared.run.run_id)?;
    let root = context.home.layout.checkpoint_root(run.run_id, run.kind, &row.rung);
    let view = view(&root)?;
    let begins_again = trust::begins_again(&view.skipped());
    let why = match view.resume_target() {
        Ok(None) if begins_again.is_some() => {
            begins_again.into_iter().for_each(|text| reporter.note(text));
            return Ok(None);
        }
        Ok(None) => match run.last_committed_step {
            Some(step) => format!(
                "step {step} was committed, as the ledger and the attempts' records have it, and `{}` has no committed step",
                root.display()
            ),
            None => return Ok(None),
        },
        Ok(Some(loaded)) => {
            let pace = earlier::pace_before(context, row)?;
            fall_back_notice(&loaded, pace).into_iter().for_each(|text| reporter.note(text));
            return Ok(Some(resumed_from(&view, loaded)));
        }
        Err(error) => error.to_string(),
    };
    let error = AppError::new(ErrorKind::Integrity, format!("not launched: {why}"))
        .hint(format!("see what is wrong with: trackway checkpoint doctor {}", run.run_id))
        .hint("restore the checkpoints, or start a new run");
    Err(context.fail_run(run.run_id, error))
}
