//! What commands do with a run's remote while no supervisor does.

use trackway_ledger::RunRow;

use super::replication::Replication;
use super::{RemotePlan, RemoteStatus};
use crate::App;
use crate::report::Reporter;

impl App {
    /// How a run's remote stood when a supervisor looked last; `None`: it has none.
    #[must_use]
    pub fn remote_status(&self, run: &RunRow) -> Option<RemoteStatus> {
        RemoteStatus::read(&self.home.run_folder(run.run_id))
    }

    /// Hands over and uploads what a run that is at its end left behind. `None`: everything is at the remote, or the run
    /// has none.
    pub(crate) fn settle_remote(&self, run: &RunRow, reporter: &dyn Reporter) -> Option<RemoteStatus> {
        self.remote_status(run).filter(|status| !status.is_settled())?;
        let stage = self.stage_now(run).ok()?;
        Some(Replication::start(RemotePlan::of_run(self, run, stage)?).finish(reporter))
    }
}
