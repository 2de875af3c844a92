//! The data of an attempt and the files that its command names, as they are now.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use trackway_engine::Context;
use trackway_engine::capture::NamedFile;
use trackway_engine::capture::named_files::blake3_of;
use trackway_engine::capture::sources::AttemptSource;
use trackway_engine::error::{AppError, ErrorKind};
use trackway_files::open_regular;
use trackway_ledger::AttemptRow;

use crate::data::table::ReadObserver;

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 1 << 20;

/// A file of a run's data.
pub(super) struct DataFile {
    pub set: String,
    /// Its path: relative to the run file's folder, absolute, or a URL.
    pub path: String,
    /// BLAKE3 of its bytes when the attempt read it.
    pub blake3: String,
    /// The same now; `None`: it cannot be read as a file of this machine.
    pub now: Option<String>,
}

/// The files of an attempt's data, each of them read.
pub(super) fn files(
    context: &Context,
    attempt: &AttemptRow,
    observer: &ReadObserver<'_>,
) -> Result<Vec<DataFile>, AppError> {
    let base = super::job_of(context, attempt.run_id)?.base;
    let run = context.run_by_id(attempt.run_id)?;
    let mut files = Vec::new();
    for (set, _) in context.sets_read(&run, Some(attempt))?.sets {
        let of_set = context.ledger_read(|ledger| ledger.data_snapshot_files(&set.data_sha256))?;
        files.extend(of_set.into_iter().map(|file| DataFile {
            set: set.name.clone(),
            path: file.path,
            blake3: file.blake3,
            now: None,
        }));
    }
    let size_bytes = |file: &DataFile| base.join(&file.path).metadata().map_or(0, |metadata| metadata.len());
    let mut reading =
        HashProgress { observer, done_bytes: 0, total_bytes: files.iter().map(size_bytes).sum() };
    for file in &mut files {
        file.now = match open_regular(&base.join(&file.path)) {
            Ok(opened) => reading.blake3_of(opened)?,
            Err(_) => None,
        };
    }
    Ok(files)
}

/// A file that the command names and that is in no data set.
pub(super) struct CommandFile {
    pub path: PathBuf,
    pub state: FileState,
}

/// What is known of a file now.
pub(super) enum FileState {
    /// It has the bytes that it had at the launch: BLAKE3.
    Same(String),
    /// It has others.
    Changed,
    /// Its bytes cannot be compared, since it was not hashed at the launch.
    NotHashed,
    /// It is gone, or cannot be read.
    Missing,
}

/// The files that the command named, without those of the data.
pub(super) fn named_files(source: &AttemptSource, base: &Path, data: &[DataFile]) -> Vec<CommandFile> {
    let is_data = |path: &Path| data.iter().any(|file| base.join(&file.path) == path);
    let state = |file: &NamedFile| match (&file.blake3, blake3_of(&file.path)) {
        (None, _) => FileState::NotHashed,
        (Some(then), Some(now)) if *then == now => FileState::Same(now),
        (Some(_), Some(_)) => FileState::Changed,
        (Some(_), None) => FileState::Missing,
    };
    let others = source.named_files.iter().filter(|file| !is_data(&file.path));
    others.map(|file| CommandFile { path: file.path.clone(), state: state(file) }).collect()
}

/// How far the reading is.
struct HashProgress<'o> {
    observer: &'o ReadObserver<'o>,
    done_bytes: u64,
    total_bytes: u64,
}

impl HashProgress<'_> {
    /// `None`: it cannot be read to its end.
    fn blake3_of(&mut self, mut file: File) -> Result<Option<String>, AppError> {
        let (mut hasher, mut block) = (blake3::Hasher::new(), vec![0; BLOCK_BYTES]);
        loop {
            if self.observer.cancelled.load(Ordering::Relaxed) {
                return Err(AppError::new(ErrorKind::Cancelled, "interrupted"));
            }
            let length = match file.read(&mut block) {
                Ok(0) => return Ok(Some(hasher.finalize().to_hex().to_string())),
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return Ok(None),
            };
            hasher.update(&block[..length]);
            self.done_bytes += length as u64;
            (self.observer.progress)(self.done_bytes.min(self.total_bytes), self.total_bytes);
        }
    }
}
