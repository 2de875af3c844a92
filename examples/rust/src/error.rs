use std::path::PathBuf;

use trackway_recorder::CheckpointError;

/// Why an example job gave up. Wording is for people; the exit code (1, or 2 for usage) is the contract.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// An argument that the job does not understand. Fix the command line.
    #[error("{0}")]
    Usage(String),
    /// A file or folder of text that cannot be read. Fix the path or its permissions.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that cannot be written. Fix the folder or make room.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Too little text to cut one batch and a validation part from.
    #[error(
        "the text has {found} characters under {places}, and at least {needed} are needed: name more with --text"
    )]
    TextTooShort {
        /// Characters found.
        found: usize,
        /// Characters needed.
        needed: usize,
        /// Where it was looked for.
        places: String,
    },
    /// The loss stopped being a number.
    #[error("the loss is {loss} at step {step}: try a smaller --lr")]
    NotFinite {
        /// The loss as computed.
        loss: f64,
        /// The step that computed it.
        step: u64,
    },
    /// The committed checkpoint belongs to another job, other data or other options.
    #[error(
        "cannot resume from the checkpoint of step {step}: its {what} is {found}, this launch has {expected}"
    )]
    OtherRun {
        /// The step of the checkpoint.
        step: u64,
        /// What differs.
        what: &'static str,
        /// What the checkpoint says.
        found: String,
        /// What this launch says.
        expected: String,
    },
    /// A file inside a verified checkpoint that does not have the shape this job writes.
    #[error("`{file}` in the checkpoint cannot be used: {problem}")]
    CheckpointContent {
        /// The file inside the checkpoint.
        file: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The checkpoint could not be saved, found or verified.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// A tensor operation failed.
    #[error("tensor operation: {0}")]
    Tensor(#[from] candle_core::Error),
}
