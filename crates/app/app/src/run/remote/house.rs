//! What commands do with a run's remote while no supervisor does.

use trackway_ledger::RunRow;

use super::replication::Replication;
use super::{RemotePlan, RemoteStatus};
use crate::App;
use crate::error::AppError;
use crate::report::Reporter;

impl App {
    /// How a run's remote stood when a supervisor looked last; `None`: it has none.
    #[must_use]
    pub fn remote_status(&self, run: &RunRow) -> Option<RemoteStatus> {
        RemoteStatus::read(&self.home.run_folder(run.run_id))
    }

    /// Hands over and uploads what a run that is at its end left behind. `None`: everything is at the remote, or the run
    /// has none.
    pub(crate) fn settle_remote(
        &self,
        run: &RunRow,
        reporter: &dyn Reporter,
    ) -> Result<Option<RemoteStatus>, AppError> {
        if self.remote_status(run).is_none_or(|status| status.is_settled()) {
            return Ok(None);
        }
        let remote = RemotePlan::of_run(self, run, self.rung_now(run)?)?;
        Ok(remote.map(|remote| Replication::start(remote).finish(reporter)))
    }
}
