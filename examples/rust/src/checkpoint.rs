use serde::{Deserialize, Serialize};
use trackway_recorder::{Kind, LoadedCheckpoint, Recorder};

use crate::{Adam, JobError, Options, Parameters, Validation};

pub(crate) const WEIGHTS: &str = "model.safetensors";
const OPTIMIZER: &str = "adam.safetensors";
pub(crate) const CURSOR: &str = "cursor.json";
const CURSOR_VERSION: u32 = 1;

/// Where the training is in its data. All randomness is a function of `seed` and `step`, so no generator state
/// needs to be saved; the other fields let a launch refuse a checkpoint that is not its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Version of this file.
    pub version: u32,
    /// Name of the job.
    pub job: String,
    /// Updates done.
    pub step: u64,
    /// Epoch of the next batch, counted from 0.
    pub epoch: u64,
    /// Batches of that epoch already used.
    pub position: u64,
    /// Seed of weights and data order.
    pub seed: u64,
    /// Examples per update.
    pub batch: usize,
    /// BLAKE3 of the data trained on.
    pub data_blake3: String,
}

impl Cursor {
    /// The cursor after `step` updates, of which `(epoch, position)` is the place in the data.
    #[must_use]
    pub fn new(job: &str, options: &Options, data_blake3: &str, step: u64, place: (u64, u64)) -> Self {
        Self {
            version: CURSOR_VERSION,
            job: job.to_owned(),
            step,
            epoch: place.0,
            position: place.1,
            seed: options.seed,
            batch: options.batch,
            data_blake3: data_blake3.to_owned(),
        }
    }

    /// Whether a checkpoint with the cursor `found` continues the training that `self` describes.
    pub(crate) fn accept(&self, found: &Self) -> Result<(), JobError> {
        let differing = [
            ("cursor version", found.version.to_string(), self.version.to_string()),
            ("job", found.job.clone(), self.job.clone()),
            ("seed", found.seed.to_string(), self.seed.to_string()),
            ("batch", found.batch.to_string(), self.batch.to_string()),
            ("training data (BLAKE3)", found.data_blake3.clone(), self.data_blake3.clone()),
        ];
        match differing.into_iter().find(|(_, found, expected)| found != expected) {
            None => Ok(()),
            Some((what, found, expected)) => {
                Err(JobError::OtherRun { step: self.step, what, found, expected })
            }
        }
    }
}

/// Commits weights, optimizer and cursor together with the validation figures of that step.
///
/// # Errors
/// When a tensor cannot be written out or the checkpoint cannot be committed (a fenced attempt must stop).
pub fn save(
    run: &Recorder,
    parameters: &Parameters,
    adam: &Adam,
    cursor: &Cursor,
    validation: Validation,
) -> Result<(), JobError> {
    let weights = parameters.to_safetensors()?;
    let optimizer = adam.to_safetensors()?;
    let place = serde_json::to_vec_pretty(cursor).expect("a cursor has only numbers and text");
    let metrics = [("val_loss", validation.loss), ("val_accuracy", validation.accuracy)];
    run.save_checkpoint(cursor.step, &metrics, |writer| {
        writer.file(WEIGHTS, Kind::Weights, &weights)?;
        writer.file(OPTIMIZER, Kind::Optimizer, &optimizer)?;
        writer.file(CURSOR, Kind::DataCursor, &place)?;
        Ok(())
    })?;
    Ok(())
}

/// Reads a cursor.
///
/// # Errors
/// [`JobError::CheckpointContent`] for bytes that are none.
pub(crate) fn cursor(bytes: &[u8]) -> Result<Cursor, JobError> {
    serde_json::from_slice(bytes)
        .map_err(|error| JobError::CheckpointContent { file: CURSOR, problem: error.to_string() })
}

/// Puts a verified checkpoint into weights and optimizer; `expected` is what this launch would write at that step.
///
/// # Errors
/// [`JobError::OtherRun`] when seed, batch or data differ, [`JobError::CheckpointContent`] when a file has another
/// shape. Weights may then be half set: do not train on.
pub fn restore(
    checkpoint: &LoadedCheckpoint,
    parameters: &Parameters,
    adam: &mut Adam,
    expected: &Cursor,
) -> Result<(), JobError> {
    expected.accept(&cursor(&checkpoint.read(CURSOR)?)?)?;
    parameters.load_safetensors(WEIGHTS, &checkpoint.read(WEIGHTS)?)?;
    adam.load_safetensors(OPTIMIZER, &checkpoint.read(OPTIMIZER)?)
}
