//! What a launch has beyond its plan.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use trackway_core::Rung;
use trackway_formats::runfile::{Plan, PlanEntry, ResourcesSection};
use trackway_launch::{Isolation, Terminal};

use crate::capture::Capture;

/// What a launch has in its environment beyond the plan.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// The changes of a retry plan, which make it another config.
    pub in_force: PlanEntry,
    /// Trackway's own variables, for a rehearsal and after a roll back, which do not.
    pub own: BTreeMap<String, OsString>,
    /// The rung of the data; `None`: that of the attempt before, or else the first one.
    pub rung: Option<Rung>,
    /// Machines that it must not run on.
    pub exclude_hosts: Vec<String>,
    /// Where its changes to the working directory go instead.
    pub isolation: Option<Isolation>,
    /// What it starts from, if that was captured just now.
    pub capture: Option<Capture>,
    /// The terminals of its script, for a launcher that has a use for them.
    pub terminal: Option<Arc<Terminal>>,
}

impl Additions {
    /// What the attempt is given: the resources of the plan, with the changes of its retries.
    pub(in crate::run) fn resources(&self, plan: &Plan) -> ResourcesSection {
        plan.resources.changed(&self.in_force.resources)
    }

    /// The engine that launches it: as the plan says, or a retry of it.
    pub(super) fn engine<'p>(&self, plan: &'p Plan) -> &'p str {
        plan.launch.engine_with(&self.in_force)
    }
}
