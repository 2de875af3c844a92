//! What commands do with a run's remote while no supervisor does.

use trackway_api::checkpoints::remote::RemoteStatus;
use trackway_ledger::RunRow;

use super::replication::Replication;
use super::{RemotePlan, read_status};
use crate::Context;
use crate::error::AppError;
use crate::reporter::Reporter;
use crate::run::ladder;

/// Hands over and uploads what an ended run left. `None`: everything is at the remote, or the run has none.
pub fn settle_remote(
    context: &Context,
    run: &RunRow,
    reporter: &dyn Reporter,
) -> Result<Option<RemoteStatus>, AppError> {
    let status = read_status(&context.home.layout.run(run.run_id));
    if status.is_none_or(|status| status.is_settled()) {
        return Ok(None);
    }
    let remote = RemotePlan::of_run(context, run, ladder::rung_now(context, run)?)?;
    Ok(remote.map(|remote| Replication::start(remote).finish(reporter)))
}
