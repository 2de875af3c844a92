//! What commands do with a run's remote while no supervisor does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;
use trackway_core::Step;
use trackway_ledger::RunRow;

use super::replication::Replication;
use super::{Patience, RemotePlan, RemoteStatus, remote_error};
use crate::App;
use crate::error::AppError;
use crate::report::Reporter;

/// What a collection of garbage at a remote did, or would do.
#[derive(Debug, Clone, Serialize)]
pub struct RemoteCollection {
    /// Where it is.
    pub location: String,
    /// Whether nothing was deleted.
    pub dry_run: bool,
    /// Steps of checkpoints that stay, newest first.
    pub keep: Vec<Step>,
    /// Steps of those that go, or would, newest first.
    pub retire: Vec<Step>,
    /// Objects that were removed.
    pub removed_objects: u64,
    /// Steps found not to be whole there, and marked suspect.
    pub suspects: Vec<Step>,
    /// Why nothing was retired, when that is so.
    pub refused: Option<String>,
}

impl App {
    /// How a run's remote stood when a supervisor looked last; `None`: it has none.
    #[must_use]
    pub fn remote_status(&self, run: &RunRow) -> Option<RemoteStatus> {
        RemoteStatus::read(&self.home.run_folder(run.run_id))
    }

    /// Deletes at a run's remote what the run file does not keep, and with `older_than_seconds` what no resume comes to.
    /// `None`: the run has no remote.
    ///
    /// # Errors
    /// When the remote does not answer; what was retired is removed by the next call.
    pub fn collect_remote(
        &self,
        run: &RunRow,
        older_than_seconds: f64,
        dry_run: bool,
    ) -> Result<Option<RemoteCollection>, AppError> {
        let Some(plan) = RemotePlan::of_run(self, run) else { return Ok(None) };
        let failed = |error| remote_error("the remote could not be cleaned up", &error);
        let mut replica = plan.open(Patience::Short, &Arc::new(AtomicBool::new(false))).map_err(failed)?;
        let done =
            replica.collect(Some(plan.house_policy()), Some(older_than_seconds), dry_run).map_err(failed)?;
        let there = replica.remote_list();
        let steps = |numbers: &mut dyn Iterator<Item = u64>| {
            let step = |number| there.iter().find(|info| info.number == number).map(|info| info.step);
            let mut steps: Vec<Step> = numbers.filter_map(step).collect();
            steps.sort_unstable_by(|left, right| right.cmp(left));
            steps
        };
        Ok(Some(RemoteCollection {
            location: replica.location(),
            dry_run,
            keep: steps(&mut done.plan.keep.keys().copied()),
            retire: steps(&mut done.plan.retire.keys().copied()),
            removed_objects: done.removed_objects,
            suspects: steps(&mut done.suspects.iter().copied()),
            refused: done.refused,
        }))
    }

    /// Hands over and uploads what a run that is at its end left behind. `None`: everything is at the remote, or the run
    /// has none.
    pub(crate) fn settle_remote(&self, run: &RunRow, reporter: &dyn Reporter) -> Option<RemoteStatus> {
        self.remote_status(run).filter(|status| !status.is_settled())?;
        Some(Replication::start(RemotePlan::of_run(self, run)?).finish(reporter))
    }
}
