//! Reports the progress of reading large checkpoints.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trackway_checkpoint::CheckpointView;
use trackway_engine::error::AppError;
use trackway_files::OwnedFolder;
use trackway_store::{Disk, DiskFile, DiskRead, RealDisk};

/// Called with the bytes that were read and those there are in all.
pub type BytesProgress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// An account of what is read of large checkpoints.
pub(super) struct ReadProgress {
    count: Arc<Count>,
    /// Bytes of each checkpoint that came from the remote.
    at_remote: Mutex<BTreeMap<String, u64>>,
}

impl ReadProgress {
    /// Of so many bytes in all.
    pub fn new(watch: &BytesProgress, total_bytes: u64) -> Self {
        let count = Arc::new(Count { watch: Arc::clone(watch), total_bytes, done_bytes: AtomicU64::new(0) });
        Self { count, at_remote: Mutex::default() }
    }

    /// A disk that reports what is read from it.
    pub fn disk(&self) -> Arc<dyn Disk> {
        Arc::new(CountingDisk { count: Arc::clone(&self.count) })
    }

    /// A view that reports what it reads.
    pub fn view(&self, root: &Path) -> Result<CheckpointView, AppError> {
        CheckpointView::open_on(root, self.disk())
            .map_err(|error| AppError::fault("the checkpoints could not be read", error))
    }

    /// Takes in how much of a checkpoint was read at the remote.
    pub fn at_remote(&self, prefix: &str, done_bytes: u64) {
        let mut of_each = self.at_remote.lock().unwrap_or_else(PoisonError::into_inner);
        let before = of_each.entry(prefix.to_owned()).or_default();
        let more = done_bytes.saturating_sub(*before);
        *before += more;
        self.count.add(more);
    }
}

struct Count {
    watch: BytesProgress,
    total_bytes: u64,
    done_bytes: AtomicU64,
}

impl Count {
    fn add(&self, count: u64) {
        let done_bytes = self.done_bytes.fetch_add(count, Ordering::Relaxed) + count;
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

    fn remove_folder(&self, owned: &OwnedFolder, path: &Path) -> io::Result<()> {
        RealDisk.remove_folder(owned, path)
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
        self.count.add(count as u64);
        Ok(count)
    }
}
