//! One supervisor per run: whoever holds the lock of a run's folder is it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// Held while this process supervises a run. The kernel lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    _lock: Flock<File>,
}

impl RunLock {
    /// Takes the lock, or answers `None` when another process holds it.
    ///
    /// # Errors
    /// When the folder cannot be made or the file cannot be opened.
    pub fn try_take(run_folder: &Path) -> io::Result<Option<Self>> {
        std::fs::create_dir_all(run_folder)?;
        let path = run_folder.join("supervisor.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(Self { _lock: lock })),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a run has one supervisor at a time, and that the next one gets the lock when the first lets go.
    #[test]
    fn one_supervisor_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = RunLock::try_take(folder.path()).unwrap();
        assert!(first.is_some());
        assert!(RunLock::try_take(folder.path()).unwrap().is_none());
        drop(first);
        assert!(RunLock::try_take(folder.path()).unwrap().is_some());
    }
}
