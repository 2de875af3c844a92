use trackway_checkpoint::bulk;
use trackway_recorder::CheckpointDraft;

/// What makes a checkpoint of a draft.
pub enum Target {
    Run(CheckpointDraft),
    Root(bulk::Draft),
}
