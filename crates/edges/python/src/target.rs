use trackway_checkpoint::bulk;
use trackway_recorder::CheckpointDraft;

/// What makes a checkpoint of a draft.
pub enum Target {
    Run(CheckpointDraft),
    Root(bulk::Draft),
}

impl Target {
    /// What is filled.
    pub fn draft(&mut self) -> &mut bulk::Draft {
        match self {
            Self::Run(draft) => draft,
            Self::Root(draft) => draft,
        }
    }
}
