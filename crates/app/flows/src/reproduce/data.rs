//! The data of an attempt, file by file, as it is now.

use std::path::PathBuf;

use trackway_core::RunId;
use trackway_engine::Context;
use trackway_engine::error::AppError;
use trackway_files::open_regular;

/// A file of a run's data.
pub(super) struct DataFile {
    /// The data set.
    pub set: String,
    /// Its path: relative to the run file's folder, absolute, or a URL.
    pub path: String,
    /// BLAKE3 of its bytes when the run read it.
    pub blake3: String,
    /// The same now; `None`: it cannot be read as a file of this machine.
    pub now: Option<String>,
}

/// The files of a run's data, each of them read.
pub(super) fn files(context: &Context, run_id: RunId) -> Result<Vec<DataFile>, AppError> {
    let base = super::job_of(context, run_id)?.base;
    let mut files = Vec::new();
    for set in context.ledger_read(|ledger| ledger.data_of_run(run_id))? {
        let of_set = context.ledger_read(|ledger| ledger.data_snapshot_files(&set.data_sha256))?;
        files.extend(of_set.into_iter().map(|file| {
            let now = blake3_of(base.join(&file.path));
            DataFile { set: set.name.clone(), path: file.path, blake3: file.blake3, now }
        }));
    }
    Ok(files)
}

fn blake3_of(path: PathBuf) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut open_regular(&path).ok()?, &mut hasher).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}
