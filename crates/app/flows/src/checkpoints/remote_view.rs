//! A run's remote, as commands see it: its log and that of this disk together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use trackway_api::checkpoints::{CheckpointPlace, RemoteAnswer};
use trackway_checkpoint::remote::{Replica, Truth};
use trackway_checkpoint::{CheckpointInfo, CheckpointState};
use trackway_engine::checkpoints::one_per_prefix;
use trackway_engine::error::AppError;
use trackway_engine::run::remote::{Patience, is_passing, remote_error};
use trackway_store::{Disk, RealDisk};

use super::Checkpoints;

/// Why a commit of this disk is none of the run's.
const LOST: &str = "another attempt took over the run before this was uploaded";

/// A remote that answered.
pub(super) struct RemoteView {
    pub replica: Replica,
    pub truth: Truth,
}

/// The answer of a remote; [`Self::None`] without one.
pub(super) enum Remote {
    None,
    /// `passing`: waiting may help.
    Silent {
        answer: RemoteAnswer,
        passing: bool,
    },
    Answers(Box<RemoteView>),
}

/// A checkpoint and where its bytes are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedCheckpoint {
    pub info: CheckpointInfo,
    /// On this disk.
    pub here: bool,
    /// At the remote.
    pub there: bool,
    /// On this disk, and to be sent.
    pub waits: bool,
}

impl PlacedCheckpoint {
    pub fn place(&self) -> CheckpointPlace {
        match (self.here, self.there) {
            (true, true) => CheckpointPlace::LocalAndRemote,
            (true, false) if self.waits => CheckpointPlace::Waiting,
            (true, false) => CheckpointPlace::Local,
            (false, true) => CheckpointPlace::Remote,
            (false, false) => CheckpointPlace::None,
        }
    }
}

impl Remote {
    pub fn answer(&self) -> Option<RemoteAnswer> {
        match self {
            Self::None => None,
            Self::Silent { answer, .. } => Some(answer.clone()),
            Self::Answers(there) => {
                Some(RemoteAnswer { location: there.replica.location(), answers: true, error: None })
            }
        }
    }

    fn truth(&self) -> Option<&Truth> {
        match self {
            Self::Answers(there) => Some(&there.truth),
            Self::None | Self::Silent { .. } => None,
        }
    }
}

impl Checkpoints {
    /// Contacts the remote, with the patience of a user at a terminal.
    pub(super) fn ask_remote(&self) -> Remote {
        self.ask_remote_through(Arc::new(RealDisk))
    }

    /// The same, reading local bytes through a given disk.
    pub(super) fn ask_remote_through(&self, disk: Arc<dyn Disk>) -> Remote {
        let Some(plan) = &self.remote else { return Remote::None };
        let never = Arc::new(AtomicBool::new(false));
        let opened = plan.open_on(disk, Patience::Short, &never).and_then(|replica| {
            replica.refuse_empty_remote()?;
            Ok(replica)
        });
        match opened {
            Ok(replica) => {
                let truth = replica.truth(plan.policy());
                Remote::Answers(Box::new(RemoteView { replica, truth }))
            }
            Err(error) => {
                let (location, why) = (plan.location(), error.to_string());
                let answer = RemoteAnswer { location, answers: false, error: Some(why) };
                Remote::Silent { answer, passing: is_passing(&error) }
            }
        }
    }

    /// The same where nothing can be done without its answer.
    pub(super) fn demand_remote(&self) -> Result<Option<Box<RemoteView>>, AppError> {
        let Some(plan) = &self.remote else { return Ok(None) };
        let failed = |error| {
            remote_error("the remote does not answer", error)
                .hint("it holds the truth about this run; nothing was changed")
        };
        let replica = plan.open(Patience::Short, &Arc::new(AtomicBool::new(false))).map_err(failed)?;
        replica.refuse_empty_remote().map_err(|error| remote_error("the remote cannot be used", error))?;
        let truth = replica.truth(plan.policy());
        Ok(Some(Box::new(RemoteView { replica, truth })))
    }

    /// The checkpoints of this disk and of the remote, newest first. Several entries of one prefix stay with `all`.
    pub(super) fn placed(
        &self,
        local: Vec<CheckpointInfo>,
        remote: &Remote,
        all: bool,
    ) -> Vec<PlacedCheckpoint> {
        let local = if all { local } else { one_per_prefix(local) };
        match remote.truth() {
            Some(truth) => merged(local, truth),
            None => by_log(local, self.remote.is_some()),
        }
    }
}

/// As the log of this disk has it, newest first.
fn by_log(local: Vec<CheckpointInfo>, has_remote: bool) -> Vec<PlacedCheckpoint> {
    let place = |info: CheckpointInfo| {
        let here = info.state != CheckpointState::Retired;
        let there = info.uploaded_to.is_some();
        let committed = matches!(info.state, CheckpointState::Committed | CheckpointState::Superseded);
        PlacedCheckpoint { here, there, waits: has_remote && committed && info.on_branch && !there, info }
    };
    local.into_iter().rev().map(place).collect()
}

/// As both logs have it, newest first.
fn merged(local: Vec<CheckpointInfo>, truth: &Truth) -> Vec<PlacedCheckpoint> {
    let mut there: BTreeMap<&str, &CheckpointInfo> =
        truth.checkpoints.iter().map(|info| (info.object_prefix.as_str(), info)).collect();
    let mut placed: Vec<PlacedCheckpoint> = local
        .into_iter()
        .rev()
        .map(|info| {
            let found = there.get(info.object_prefix.as_str()).copied();
            place(info, found, truth)
        })
        .collect();
    for one in &placed {
        there.remove(one.info.object_prefix.as_str());
    }
    let held = |info: &&CheckpointInfo| is_held(info);
    placed.extend(there.into_values().filter(held).map(|info| PlacedCheckpoint {
        info: info.clone(),
        here: false,
        there: true,
        waits: false,
    }));
    placed.sort_by_key(|one| std::cmp::Reverse((one.info.epoch, one.info.step)));
    placed
}

pub(super) fn is_held(info: &CheckpointInfo) -> bool {
    info.uploaded_to.is_some() && info.state != CheckpointState::Retired
}

/// A checkpoint of this disk, corrected by the remote: its state is that in the remote's log, but only this disk knows
/// that bytes here were found bad, or are deleted.
fn place(mut info: CheckpointInfo, found: Option<&CheckpointInfo>, truth: &Truth) -> PlacedCheckpoint {
    let here = info.state != CheckpointState::Retired;
    let waits = here && truth.due.contains(&info.object_prefix);
    let Some(found) = found.filter(|found| found.state != CheckpointState::Retired) else {
        if info.state == CheckpointState::Committed {
            info.state = CheckpointState::Superseded;
        }
        if truth.lost.contains(&info.object_prefix) {
            info.why = Some(LOST.into());
        }
        info.on_branch = false;
        return PlacedCheckpoint { info, here, there: false, waits: false };
    };
    let there = is_held(found);
    if info.state != CheckpointState::Suspect && (here || there) {
        info.state = found.state;
        info.why.clone_from(&found.why);
        info.unsafe_evidence.clone_from(&found.unsafe_evidence);
        info.cleared.clone_from(&found.cleared);
    }
    info.on_branch = found.on_branch && info.state != CheckpointState::Suspect;
    info.uploaded_to.clone_from(&found.uploaded_to);
    info.pins.extend(found.pins.iter().filter(|name| !info.pins.contains(name)).cloned().collect::<Vec<_>>());
    PlacedCheckpoint { info, here, there, waits }
}
