//! The files of an attempt's folder (`docs/formats/attempt-folder.md`), and how whole files are put in place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_files::{open_own, open_trusted};

/// A JSON file of an attempt's folder that is larger than this is damaged, not read.
pub const JSON_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Where the files of one attempt are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFiles {
    directory: PathBuf,
}

macro_rules! file {
    ($(#[$doc:meta])* $method:ident, $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(&self) -> PathBuf {
            self.directory.join($name)
        }
    };
}

impl AttemptFiles {
    /// The files in this folder, which need not exist.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The folder itself.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    file!(
        /// The launch as requested, without secrets. Written by the launcher before the shim starts.
        launch_json, "launch.json"
    );
    file!(
        /// Identities of the shim and the script. Written by the shim before the script starts.
        shim_json, "shim.json"
    );
    file!(
        /// Locked by the shim for as long as it lives.
        shim_lock, "shim.lock"
    );
    file!(
        /// How the attempt ended. Written by the shim, once, at the very end.
        exit_json, "exit.json"
    );
    file!(
        /// The space reserved for the exit record while the script runs.
        exit_reserved, "exit.json.reserved"
    );
    file!(
        /// Copies of files that the script gave as artifacts, under their hashes.
        artifacts, "artifacts"
    );
    file!(
        /// What the script wrote to its standard output.
        stdout_log, "stdout.log"
    );
    file!(
        /// What the script wrote to its standard error.
        stderr_log, "stderr.log"
    );
    file!(
        /// When the lines of `stdout.log` began.
        stdout_times, "stdout.times"
    );
    file!(
        /// When the lines of `stderr.log` began.
        stderr_times, "stderr.times"
    );
    file!(
        /// What supervisors did to the attempt.
        actions_jsonl, "actions.jsonl"
    );
    file!(
        /// Commands to the script (`TRACKWAY_CONTROL`).
        control_jsonl, "control.jsonl"
    );
    file!(
        /// The flight record's segments (`TRACKWAY_RECORD`).
        records, "records"
    );
    file!(
        /// What the processes did when the attempt made no progress (`TRACKWAY_STACKS`).
        stacks, "stacks"
    );
    file!(
        /// Where torchelastic's `@record` leaves the error (`TORCHELASTIC_ERROR_FILE`).
        error_json, "error.json"
    );
}

/// Whether a file must survive a power cut, or only a crash of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The kernel has it: any process may die.
    Process,
    /// The disk has it.
    Power,
}

/// Puts a whole file in place: readers see the old one or the new one, never half of one.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    // Two processes may put the same file in place at the same time: each needs a distinct name for it.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_extension(format!("new-{}-{number}", std::process::id()));
    let mut file = open_own(OpenOptions::new().write(true).create(true).truncate(true), &temporary)?;
    file.write_all(bytes)?;
    if durability == Durability::Power {
        file.sync_all()?;
    }
    std::fs::rename(&temporary, path)?;
    if durability == Durability::Power { sync_parent(path) } else { Ok(()) }
}

/// Makes the names in the folder of `path` survive a power cut.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Reads a JSON file of bounded size that only this user can have written; `None` if there is none.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match open_trusted(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(JSON_BYTES_MAX).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from)
}
