//! Tells how far the reading of large checkpoints is.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trackway_checkpoint::CheckpointView;
use trackway_store::{Disk, DiskFile, DiskRead, RealDisk};

use crate::error::AppError;

/// Told the bytes that were read and those there are in all.
pub type Watch = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A view that tells what it reads, of so many bytes in all.
pub fn watched_view(root: &Path, watch: &Watch, total_bytes: u64) -> Result<CheckpointView, AppError> {
    let count = Arc::new(Count { watch: Arc::clone(watch), total_bytes, done_bytes: AtomicU64::new(0) });
    CheckpointView::open_on(root, Arc::new(CountingDisk { count }))
        .map_err(|error| AppError::fault("the checkpoints could not be read", &error))
}

struct Count {
    watch: Watch,
    total_bytes: u64,
    done_bytes: AtomicU64,
}

impl Count {
    fn add(&self, count: usize) {
        let done_bytes = self.done_bytes.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        (self.watch)(done_bytes.min(self.total_bytes), self.total_bytes);
    }
}

/// The real disk, with an account of what is read.
struct CountingDisk {
    count: Arc<Count>,
}

struct CountingRead {
    file: Box<dyn DiskRead>,
    count: Arc<Count>,
}

impl Disk for CountingDisk {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_folder(path)
    }

    fn create(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create(path, direct)
    }

    fn open(&self, path: &Path, direct: bool) -> io::Result<Box<dyn DiskRead>> {
        let file = RealDisk.open(path, direct)?;
        Ok(Box::new(CountingRead { file, count: Arc::clone(&self.count) }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_folder(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_folder(path)
    }
}

impl DiskRead for CountingRead {
    fn direct(&self) -> bool {
        self.file.direct()
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.file.size_bytes()
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(offset, bytes)?;
        self.count.add(count);
        Ok(count)
    }
}
