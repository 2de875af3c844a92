//! What a run starts from: its source, its data, and the weights of another run.

use trackway_core::{CheckpointUse, RunId};
use trackway_engine::Context;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_engine::reporter::Reporter;
use trackway_engine::run::ladder::warm_start::WarmStart;
use trackway_engine::run::{RunSource, Start, read, rung_now};

use crate::checkpoints::{CheckpointRef, Chosen, checkpoints};

/// How long the other run's checkpoint is held: a run that is resumed before its first commit still needs it.
const HOLD_SECONDS: f64 = 30.0 * 24.0 * 3600.0;

/// Reads the source, resolves its data, and chooses and holds the checkpoint of `run.start_from`.
///
/// # Errors
/// As [`read`]; [`ErrorKind::NotFound`] when the other run or its checkpoint is not there.
pub(crate) fn read_start(
    context: &Context,
    source: &RunSource,
    retry_data_error: bool,
    reporter: &dyn Reporter,
) -> Result<Start, AppError> {
    let mut start = read(context, source, retry_data_error, reporter)?;
    let named = start.job.plan.run.start_from.clone();
    start.start_from = named
        .map(|named| chosen(context, &named))
        .transpose()
        .map_err(|error| start.job.at_key(&["run", "start_from"], error))?;
    Ok(start)
}

/// The run and the checkpoint that `run.start_from` means; nothing is held.
///
/// # Errors
/// [`ErrorKind::NotFound`] when the other run or its checkpoint is not there.
pub(crate) fn weights_of(context: &Context, named: &str) -> Result<(RunId, Chosen), AppError> {
    let at_key = |error: AppError| error.within("`run.start_from`");
    let (run, reference) = CheckpointRef::of_run(named).map_err(at_key)?;
    let run_id = context.resolve_run(run).map_err(at_key)?;
    let chosen =
        checkpoints(context, run_id)?.chosen_for(&reference, CheckpointUse::Start, None).map_err(at_key)?;
    Ok((run_id, chosen))
}

fn chosen(context: &Context, named: &str) -> Result<WarmStart, AppError> {
    let (run_id, chosen) = weights_of(context, named)?;
    let checkpoints = checkpoints(context, run_id)?;
    let Some(number) = chosen.number() else {
        let message = format!("`run.start_from`: step {} of run {run_id} is only at its remote", chosen.step);
        return Err(AppError::new(ErrorKind::NotFound, message)
            .hint("start from a run whose checkpoints are on this disk"));
    };
    checkpoints.hold(
        &format!("start-{}", &chosen.manifest_sha256[..12]),
        &chosen,
        "a run starts from it",
        HOLD_SECONDS,
    )?;
    Ok(WarmStart {
        run_id: Some(run_id),
        rung: rung_now(context, &context.run_by_id(run_id)?)?.to_string(),
        root: checkpoints.root().to_owned(),
        number: Some(number),
        step: chosen.step,
        manifest_sha256: Some(chosen.manifest_sha256),
    })
}
