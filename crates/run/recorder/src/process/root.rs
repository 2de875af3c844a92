use std::sync::Arc;

use trackway_checkpoint::bulk::{DraftSave, LoadedFile, Saved};
use trackway_checkpoint::{
    CheckpointError, CheckpointRoot, CheckpointWriter, Commit, LoadedCheckpoint, RankedRoot, RankedSave,
};
use trackway_formats::Variable;

use crate::process::ProcessSlot;
use crate::process::inner::Inner;

pub(crate) const NO_ROOT: CheckpointError =
    CheckpointError::NotInAttempt { variable: Variable::Checkpoints.as_str() };

/// A checkpoint root as this process writes to it.
pub(crate) enum Root {
    Alone(CheckpointRoot),
    /// With other ranks.
    Together(RankedRoot),
}

impl Root {
    pub fn save(
        &mut self,
        save: &RankedSave<'_>,
        fill: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), CheckpointError>,
    ) -> Result<Commit, CheckpointError> {
        match self {
            Self::Alone(root) => root.save(save.step, save.metrics, fill),
            Self::Together(root) => root.save(save, fill),
        }
    }

    pub fn save_draft(
        &mut self,
        save: &DraftSave,
        before_commit: impl FnOnce() -> Result<(), CheckpointError>,
    ) -> Result<Saved<Commit>, CheckpointError> {
        match self {
            Self::Alone(root) => root.save_draft(save, before_commit),
            Self::Together(root) => root.save_draft(save, before_commit),
        }
    }

    pub fn resume_target(&mut self) -> Result<Option<LoadedCheckpoint>, CheckpointError> {
        match self {
            Self::Alone(root) => root.resume_target(),
            Self::Together(root) => root.resume_target(),
        }
    }

    pub fn resume_read(&mut self) -> Result<Option<(LoadedCheckpoint, Vec<LoadedFile>)>, CheckpointError> {
        match self {
            Self::Alone(root) => root.resume_read(),
            Self::Together(root) => root.resume_read(),
        }
    }
}

impl Inner {
    /// Runs something on the checkpoint root, opening it (which claims the epoch) on first use.
    pub(crate) fn with_root<T>(
        &self,
        slot: &ProcessSlot,
        run: impl FnOnce(&mut Root) -> Result<T, CheckpointError>,
    ) -> Result<T, CheckpointError> {
        let mut slot_root = slot.checkpoints();
        let root = match slot_root.as_mut() {
            Some(root) => root,
            None => slot_root.insert(self.open_root(slot)?),
        };
        run(root)
    }

    /// Opens the checkpoint root so that a fence is met here, unless a save is using it just now.
    pub(crate) fn open_root_unless_busy(&self, slot: &ProcessSlot) -> Result<(), CheckpointError> {
        let Some(mut root) = slot.checkpoints_unless_busy() else { return Ok(()) };
        if root.is_none() {
            *root = Some(self.open_root(slot)?);
        }
        Ok(())
    }

    fn open_root(&self, slot: &ProcessSlot) -> Result<Root, CheckpointError> {
        let missing = |variable| CheckpointError::NotInAttempt { variable };
        let settings = &self.settings;
        let path = settings.checkpoint_root.as_deref().ok_or(NO_ROOT)?;
        let epoch = settings.epoch.ok_or(missing(Variable::Epoch.as_str()))?;
        let run_id = settings.run_id().ok_or(missing(Variable::Run.as_str()))?;
        let attempt_id = settings.attempt_id().ok_or(missing(Variable::Attempt.as_str()))?;
        let (clock, ids) = (Arc::clone(&self.clock), Arc::clone(&self.ids));
        let Some(group) = settings.group.clone() else {
            return CheckpointRoot::open(path, epoch, run_id, attempt_id, clock, ids).map(Root::Alone);
        };
        let root = RankedRoot::open(path, epoch, run_id, attempt_id, group?, clock, ids)?;
        slot.set_decliner(root.decliner());
        Ok(Root::Together(root))
    }
}
