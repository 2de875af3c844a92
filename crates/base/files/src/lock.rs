use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::open_own;

const PAUSE: Duration = Duration::from_millis(20);

/// A lock on a folder, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Waits for the lock file `name` in `folder`, made when absent, at most `tries` × 20 ms.
    ///
    /// # Errors
    /// `WouldBlock` when another process still holds it; when the disk refuses.
    pub fn take(folder: &Path, name: &str, tries: u32) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_own(&mut options, &folder.join(name))?;
        for _ in 0..tries {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        let message = format!("another process holds `{}`", folder.join(name).display());
        Err(io::Error::new(io::ErrorKind::WouldBlock, message))
    }
}
