//! The few operations on a disk that checkpoints are made of. Production has one implementation; tests put another
//! in front of it that fails at the n-th operation and forgets what was never synced, as a power cut does.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use trackway_files::{OwnedFolder, clone_file, open_own, open_regular, read_full};

/// What offsets, lengths and addresses of direct I/O are multiples of.
pub const DIRECT_ALIGNMENT_BYTES: usize = 4096;

/// A disk. Every method is one step at which a crash may happen.
pub trait Disk: Send + Sync {
    /// Makes a folder. An existing one is fine.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes a new file. An existing one is an error. `direct`: past the page cache, where the file system can; then
    /// offsets, lengths and addresses of writes must be multiples of [`DIRECT_ALIGNMENT_BYTES`].
    fn create(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskFile>>;
    /// Opens a file for reading. `direct` as for [`Disk::create`].
    fn open(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskRead>>;
    /// Gives a file a second name. Fails with `AlreadyExists` when the name is taken: the one atomic
    /// create-if-absent that every local file system has.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name, whatever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file that the caller made.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a folder with everything in it, below a folder that is Trackway's.
    fn remove_folder(&self, owned: &OwnedFolder, path: &Path) -> io::Result<()>;
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
    /// Lets this file, which is new and empty, share the blocks of another one until one of both is written to (a reflink). False
    /// where the file system cannot: then nothing was done.
    fn share_blocks(&self, _source: &File) -> io::Result<bool> {
        Ok(false)
    }
    /// Makes the bytes durable.
    fn sync(&self) -> io::Result<()>;
}

/// A file that is being read. May be read from several threads, at different offsets.
pub trait DiskRead: Send + Sync {
    /// Whether it is read past the page cache.
    fn direct(&self) -> bool;
    /// Its size now.
    fn size_bytes(&self) -> io::Result<u64>;
    /// Reads bytes at an offset; fewer than requested only at the end of the file.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
    /// How many bytes of it are in the page cache, if known: from there it is read faster than directly.
    fn cached_bytes(&self) -> u64 {
        0
    }
}

/// The file system of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        match trackway_files::make_folder(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn create(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskFile>> {
        let (file, direct) =
            direct_io(open_own(OpenOptions::new().write(true).create_new(true), path)?, direct);
        Ok(Box::new(RealFile { file, direct }))
    }

    fn open(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskRead>> {
        let (file, direct) = direct_io(open_regular(path)?, direct);
        Ok(Box::new(RealFile { file, direct }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        trackway_files::unlink(path)
    }

    fn remove_folder(&self, owned: &OwnedFolder, path: &Path) -> io::Result<()> {
        owned.remove(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// A file past the page cache, if requested and possible.
///
/// The flag is set on the open file. Given to `open`, a file system without direct I/O would refuse it with EINVAL
/// before or after it made the file, and it would be unknown whose file a second `open` finds.
fn direct_io(file: File, direct: bool) -> (File, bool) {
    let direct = direct && set_direct(&file);
    (file, direct)
}

/// Whether the file system does direct I/O on this file, which is from now on.
fn set_direct(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // SAFETY: the descriptor is open as long as `file` lives, and these calls take and give integers only.
    unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        flags >= 0 && libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_DIRECT) == 0
    }
}

/// The system call that counts a file's pages in the cache (Linux 6.5), under its number on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat`, of which only the first number is wanted.
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached_pages: u64,
    others: [u64; 4],
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

    fn share_blocks(&self, source: &File) -> io::Result<bool> {
        clone_file(source, &self.file)
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
        // A direct read that ends within a block met the end of the file, and must not be continued from there.
        read_full(&self.file, offset, bytes, if self.direct { DIRECT_ALIGNMENT_BYTES } else { 1 })
    }

    fn cached_bytes(&self) -> u64 {
        let whole_file = [0u64; 2];
        let mut found = CacheStat::default();
        // SAFETY: the call reads two numbers and writes five, which is what it is given.
        let result = unsafe {
            libc::syscall(
                SYS_CACHESTAT,
                self.file.as_raw_fd(),
                whole_file.as_ptr(),
                &raw mut found,
                0 as libc::c_uint,
            )
        };
        let page_bytes = DIRECT_ALIGNMENT_BYTES as u64;
        if result == 0 { found.cached_pages * page_bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(4096))]
    struct Page([u8; 4096]);

    fn folders() -> Vec<tempfile::TempDir> {
        let shm = Path::new("/dev/shm");
        let mut folders = vec![tempfile::tempdir().unwrap()];
        if shm.is_dir() {
            folders.push(tempfile::tempdir_in(shm).unwrap());
        } else {
            trackway_skip::skip!("no tmpfs at {}", shm.display());
        }
        folders
    }

    /// Proves that a file for which direct I/O was requested is made, written and read on a disk and on tmpfs, which
    /// may not have it.
    #[test]
    fn direct_where_the_file_system_can() {
        for folder in folders() {
            let path = folder.path().join("file");
            let page = Page([7; 4096]);
            let file = RealDisk.create(&path, true).unwrap();
            println!("{}: direct {}", folder.path().display(), file.direct());
            file.write_at(0, &page.0).unwrap();
            file.write_at(4096, &page.0).unwrap();
            file.set_size(5000).unwrap();
            file.sync().unwrap();
            let read = RealDisk.open(&path, true).unwrap();
            let mut page = Page([0; 4096]);
            assert_eq!((read.size_bytes().unwrap(), read.read_at(4096, &mut page.0).unwrap()), (5000, 904));
            assert!(page.0[..904] == [7; 904] && page.0[904..] == [0; 3192]);
        }
    }

    /// Proves that an existing name is refused, with direct I/O and without, and that the existing file is not touched.
    #[test]
    fn create_is_exclusive() {
        for folder in folders() {
            let path = folder.path().join("file");
            std::fs::write(&path, b"old").unwrap();
            for direct in [false, true] {
                let error = RealDisk.create(&path, direct).err().unwrap();
                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            }
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
        }
    }
}
