use trackway_checkpoint::bulk;
use trackway_recorder::CheckpointStage;

/// Who makes a checkpoint of what is staged.
pub enum Target {
    Run(CheckpointStage),
    Root(bulk::Stage),
}
