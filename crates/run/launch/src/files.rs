//! How whole files of an attempt's folder are put in place and read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_files::{open_own, open_trusted};

/// A JSON file of an attempt's folder that is larger than this is damaged, not read.
pub const JSON_BYTES_MAX: u64 = 4 * 1024 * 1024;

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
