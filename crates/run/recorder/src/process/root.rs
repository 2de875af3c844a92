use trackway_checkpoint::bulk::{DraftSave, LoadedFile, Saved};
use trackway_checkpoint::{
    CheckpointError, CheckpointRoot, CheckpointWriter, Commit, LoadedCheckpoint, RankedRoot, RankedSave,
};

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
