//! What carries the checkpoints of a run to its remote.

use trackway_core::Rung;

use crate::reporter::Reporter;
use crate::run::remote::RemotePlan;
use crate::run::remote::replication::Replication;

/// What carries the checkpoints of one rung to the remote.
pub(super) struct Sending<'p> {
    plan: Option<&'p RemotePlan>,
    rung: Rung,
    pub(super) replication: Option<Replication>,
}

impl<'p> Sending<'p> {
    pub(super) fn start(plan: Option<&'p RemotePlan>, rung: Rung) -> Self {
        Self { plan, rung, replication: plan.map(|plan| Replication::start(plan.at(rung))) }
    }

    /// Sends those of another rung, once everything of the one before has arrived, or its time is up.
    pub(super) fn change_rung(&mut self, rung: Rung, reporter: &dyn Reporter) {
        if rung == self.rung {
            return;
        }
        if let Some(replication) = self.replication.take() {
            replication.finish(reporter);
        }
        *self = Self::start(self.plan, rung);
    }
}
