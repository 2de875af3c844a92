//! The lock file of a run: the process that holds it supervises the run on this machine.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use nix::fcntl::{Flock, FlockArg};
use trackway_files::if_there;
use trackway_formats::layout::RunLayout;

/// Held while this process supervises a run. The kernel releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    file: Flock<File>,
}

impl RunLock {
    /// Takes the lock, or answers `None` when another process holds it.
    ///
    /// # Errors
    /// When the folder cannot be made or the file cannot be opened.
    pub fn try_take(run: &RunLayout) -> io::Result<Option<Self>> {
        std::fs::create_dir_all(run.folder())?;
        // The file stays when the lock ends: a lease names the lock by its inode.
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(run.supervisor_lock())?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Some(Self { file })),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// Whether a process on this machine holds the lock; nothing is made.
    ///
    /// # Errors
    /// When the file is there and cannot be opened.
    pub fn is_held(run: &RunLayout) -> io::Result<bool> {
        let Some(file) = if_there(File::open(run.supervisor_lock()))? else { return Ok(false) };
        // Shared: of two processes that only look, none takes the other for a supervisor.
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(false),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(true),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// The file, by device and inode.
    pub fn id(&self) -> io::Result<String> {
        Ok(id_of(&self.file.metadata()?))
    }

    /// That of the lock of a run, held or not; none: there is no file.
    pub fn id_of(run: &RunLayout) -> io::Result<Option<String>> {
        Ok(if_there(std::fs::metadata(run.supervisor_lock()))?.as_ref().map(id_of))
    }
}

fn id_of(metadata: &Metadata) -> String {
    format!("{}:{}", metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that a run has one supervisor at a time, and that the next one gets the same lock when the first ends.
    #[test]
    fn one_supervisor_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunLayout::new(folder.path());
        assert!(
            !RunLock::is_held(&run).unwrap() && RunLock::id_of(&run).unwrap().is_none(),
            "there is no file"
        );
        let first = RunLock::try_take(&run).unwrap().unwrap();
        assert!(RunLock::try_take(&run).unwrap().is_none() && RunLock::is_held(&run).unwrap());
        let id = first.id().unwrap();
        assert_eq!(RunLock::id_of(&run).unwrap().as_ref(), Some(&id));
        drop(first);
        assert!(!RunLock::is_held(&run).unwrap());
        assert_eq!(RunLock::try_take(&run).unwrap().unwrap().id().unwrap(), id);
    }
}
