use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use trackway_store::{RealDisk, StoreError, Transfer, TransferObserver};

use super::files::RemoteFiles;

/// Files that are under way at a time: small ones are mostly waited for, and a large one fills the link alone.
const FILES_AT_ONCE: usize = 4;

/// The files of checkpoints in an object store. Large ones travel in parts, several at a time.
#[derive(Clone)]
pub struct TransferFiles {
    transfer: Transfer,
    cancelled: Arc<AtomicBool>,
}

impl TransferFiles {
    /// Files in the storage of a transfer. Once `cancelled` is set, every transfer under way and to come ends with an
    /// error.
    #[must_use]
    pub fn new(transfer: Transfer, cancelled: Arc<AtomicBool>) -> Self {
        Self { transfer, cancelled }
    }
}

impl RemoteFiles for TransferFiles {
    fn send(&self, name: &str, from: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError> {
        let mut watch = TransferObserver {
            progress: &mut |done_bytes, _| progress(done_bytes),
            bytes: &mut |_| {},
            cancelled: &self.cancelled,
        };
        self.transfer.upload(&RealDisk, from, name, &mut watch).map(drop)
    }

    fn size_bytes(&self, name: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.transfer.head(name)?.map(|head| head.size_bytes))
    }

    fn fetch(
        &self,
        name: &str,
        size_bytes: u64,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Option<u64>, StoreError> {
        let found_bytes = self.size_bytes(name)?;
        if found_bytes != Some(size_bytes) {
            return Ok(found_bytes);
        }
        let mut sink = |_: u64, bytes: &[u8]| take(bytes).map_err(StoreError::io("take in", Path::new(name)));
        let mut watch =
            TransferObserver { progress: &mut |_, _| {}, bytes: &mut |_| {}, cancelled: &self.cancelled };
        self.transfer.download(name, size_bytes, &mut sink, &mut watch)?;
        Ok(found_bytes)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.transfer.remove(name)
    }

    fn at_once(&self) -> usize {
        FILES_AT_ONCE
    }
}
