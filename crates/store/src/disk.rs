//! The few operations on a disk that checkpoints are made of. Production has one implementation; tests put another
//! in front of it that fails at the n-th operation and forgets what was never synced, as a power cut does.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// A disk. Every method is one step at which a crash may happen.
pub trait Disk: Send + Sync {
    /// Makes a folder. An existing one is fine.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes a new file. An existing one is an error. `direct`: past the page cache, where the file system can; then
    /// offsets, lengths and addresses of writes must be multiples of 4,096.
    fn create(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading. `direct` as for [`Disk::create`].
    fn open(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskRead>>;
    /// Gives a file a second name. Fails with `AlreadyExists` when the name is taken: the one atomic
    /// create-if-absent that every local file system has.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name, whatever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder with everything in it.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is being written. May be written from several threads, at different offsets.
pub trait DiskFile: Send + Sync {
    /// Whether it is written past the page cache.
    fn direct(&self) -> bool;
    /// Writes bytes at an offset.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts it, or makes it longer with zeros.
    fn set_size(&self, size_bytes: u64) -> io::Result<()>;
    /// Makes the bytes durable.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is being read. May be read from several threads, at different offsets.
pub trait DiskRead: Send + Sync {
    /// Whether it is read past the page cache.
    fn direct(&self) -> bool;
    /// Its size now.
    fn size_bytes(&self) -> io::Result<u64>;
    /// Reads bytes at an offset; fewer than asked for only at the end of the file.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
}

/// The file system of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn create(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskFile>> {
        let (file, direct) = open_real(OpenOptions::new().write(true).create_new(true), path, direct)?;
        Ok(Box::new(RealFile { file, direct }))
    }

    fn open(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskRead>> {
        let (file, direct) = open_real(OpenOptions::new().read(true), path, direct)?;
        Ok(Box::new(RealFile { file, direct }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
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

/// Opens with direct I/O where asked for and possible, else without.
fn open_real(options: &mut OpenOptions, path: &Path, direct: bool) -> io::Result<(File, bool)> {
    if direct {
        match options.custom_flags(libc::O_DIRECT).open(path) {
            // What a file system without direct I/O says; on creation Linux may have made the file already.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                options.custom_flags(0).create_new(false);
            }
            result => return result.map(|file| (file, true)),
        }
    }
    options.open(path).map(|file| (file, false))
}

struct RealFile {
    file: File,
    direct: bool,
}

impl DiskFile for RealFile {
    fn direct(&self) -> bool {
        self.direct
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        self.file.set_len(size_bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl DiskRead for RealFile {
    fn direct(&self) -> bool {
        self.direct
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}
