use std::path::{Path, PathBuf};

use crate::checkpoint::{self, Cursor};
use crate::{Job, JobError, Options};

/// Where `trackway eval run` puts the checkpoint to be evaluated, and where it wants the rows.
const CHECKPOINT: &str = "TRACKWAY_CHECKPOINT_DIR";
const OUT: &str = "TRACKWAY_EVALUATION_OUT";

/// Evaluates the checkpoint that `trackway eval run` gives: leaves a row for each item of the held-out data in `predictions.csv`, from
/// which Trackway computes the numbers. Seed and batch, and so the split, are those of the training.
///
/// # Errors
/// [`JobError::Usage`] outside an evaluation; [`JobError::OtherRun`] when the data is not what was trained on.
pub fn evaluate<J: Job>(
    options: Options,
    prepare: impl FnOnce(&Options) -> Result<J, JobError>,
) -> Result<(), JobError> {
    let (given, out) = (folder(CHECKPOINT)?, folder(OUT)?);
    let cursor: Cursor = checkpoint::cursor(&read(&given.join(checkpoint::CURSOR))?)?;
    let options = Options { seed: cursor.seed, batch: cursor.batch, ..options };
    let job = prepare(&options)?;
    let place = (cursor.epoch, cursor.position);
    Cursor::new(job.name(), &options, job.data_blake3(), cursor.step, place).accept(&cursor)?;
    let weights = read(&given.join(checkpoint::WEIGHTS))?;
    job.parameters().load_safetensors(checkpoint::WEIGHTS, &weights)?;
    let rows = job.predictions()?;
    std::thread::sleep(std::time::Duration::from_millis(options.step_millis));
    let path = out.join("predictions.csv");
    std::fs::write(&path, rows).map_err(|source| JobError::Write { path, source })
}

fn folder(variable: &str) -> Result<PathBuf, JobError> {
    let missing = || JobError::Usage(format!("--evaluate wants {variable}, which `trackway eval run` sets"));
    std::env::var_os(variable).map(PathBuf::from).ok_or_else(missing)
}

fn read(path: &Path) -> Result<Vec<u8>, JobError> {
    std::fs::read(path).map_err(|source| JobError::Read { path: path.to_owned(), source })
}
