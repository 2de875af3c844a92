//! The few operations on a disk that the protocol is made of. Production has one implementation; tests put another
//! in front of it that fails at the n-th operation and forgets what was never synced, as a power cut does.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// A disk. Every method is one step at which a crash may happen.
pub(crate) trait Disk: Send + Sync {
    /// Makes a folder. An existing one is fine.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes a new file. An existing one is an error.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file a second name. Fails with `AlreadyExists` when the name is taken: the one atomic
    /// create-if-absent that every local file system has.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder with everything in it.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is being written.
pub(crate) trait DiskFile {
    /// Appends bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes the bytes durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// The file system of the operating system.
pub(crate) struct RealDisk;

impl Disk for RealDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Box::new(RealFile(file)))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir_all(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}
