//! Data at `s3://`, `gs://` and `az://` URLs, read in ranges through one bounded cache of blocks.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trackway_tables::read::{ByteSource, RemoteFile, RemoteFiles};

use trackway_store::{Object, Objects, RemoteBackend, RemoteOptions, StoreError};

/// The size of a request. An answer takes about 30 ms and a connection carries 50 to 100 MB/s.
const BLOCK_BYTES: u64 = 4 << 20;

/// Blocks kept, of all objects together: 64 MiB. Hashing and parsing an object at the same time fetch it once.
const BLOCKS_KEPT: usize = 16;

/// Reads `s3://`, `gs://` and `az://` URLs. Credentials come from the environment, as for checkpoints.
#[must_use]
pub fn remote_files() -> Arc<dyn RemoteFiles> {
    Arc::new(Remotes::default())
}

/// Every storage in use.
#[derive(Default)]
struct Remotes {
    storages: Mutex<HashMap<String, Objects>>,
    blocks: Arc<Blocks>,
}

impl Remotes {
    /// The storage of a URL, and the object's name there.
    fn storage<'u>(&self, url: &'u str) -> io::Result<(String, Objects, &'u str)> {
        let unsupported = |why: String| io::Error::new(io::ErrorKind::Unsupported, why);
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        if !matches!(scheme, "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss") {
            return Err(unsupported("only s3://, gs:// and az:// URLs are read; copy the data here".into()));
        }
        let (bucket, name) = rest.split_once('/').unwrap_or((rest, ""));
        let base = format!("{scheme}://{bucket}");
        let mut storages = locked(&self.storages);
        if let Some(objects) = storages.get(&base) {
            return Ok((base, objects.clone(), name));
        }
        let backend = RemoteBackend::new(&base, &RemoteOptions::default()).map_err(failed)?;
        storages.insert(base.clone(), backend.objects());
        Ok((base, backend.objects(), name))
    }
}

fn remote_file(base: &str, object: Object) -> RemoteFile {
    RemoteFile {
        url: format!("{base}/{}", object.name),
        size_bytes: object.size_bytes,
        version: object.version,
    }
}

impl RemoteFiles for Remotes {
    fn list(&self, folder_url: &str) -> io::Result<Vec<RemoteFile>> {
        let (base, objects, name) = self.storage(folder_url)?;
        let listed = objects.list(name).map_err(failed)?;
        Ok(listed.into_iter().map(|object| remote_file(&base, object)).collect())
    }

    fn head(&self, url: &str) -> io::Result<Option<RemoteFile>> {
        let (base, objects, name) = self.storage(url)?;
        if name.is_empty() {
            return Ok(None);
        }
        Ok(objects.head(name).map_err(failed)?.map(|object| remote_file(&base, object)))
    }

    fn open(&self, url: &str) -> io::Result<Arc<dyn ByteSource>> {
        let (_, objects, name) = self.storage(url)?;
        let object = objects.head(name).map_err(failed)?.ok_or(io::ErrorKind::NotFound)?;
        // The version is part of the key: a changed object is not read from blocks of what it was.
        let key = format!("{url} {}", object.version);
        Ok(Arc::new(RemoteBytes { objects, object, key, blocks: Arc::clone(&self.blocks) }))
    }
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error.to_string())
}

/// A panic while a lock was held leaves whole entries.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block, once it was fetched. The first thread that locks it fetches it; others wait.
type Block = Arc<Mutex<Option<bytes::Bytes>>>;

/// The blocks used last.
#[derive(Default)]
struct Blocks(Mutex<CachedBlocks>);

#[derive(Default)]
struct CachedBlocks {
    by_key: BTreeMap<(String, u64), (Block, u64)>,
    /// Counts uses; the block with the lowest count was used longest ago.
    uses: u64,
}

impl Blocks {
    fn block(&self, key: &str, index: u64) -> Block {
        let mut kept = locked(&self.0);
        kept.uses += 1;
        let uses = kept.uses;
        let key = (key.to_owned(), index);
        if let Some((block, used)) = kept.by_key.get_mut(&key) {
            *used = uses;
            return Arc::clone(block);
        }
        if kept.by_key.len() >= BLOCKS_KEPT {
            let oldest = kept.by_key.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kept.by_key.remove(&oldest));
        }
        let block = Block::default();
        kept.by_key.insert(key, (Arc::clone(&block), uses));
        block
    }
}

/// An object that is read.
struct RemoteBytes {
    objects: Objects,
    object: Object,
    key: String,
    blocks: Arc<Blocks>,
}

impl ByteSource for RemoteBytes {
    fn size_bytes(&self) -> u64 {
        self.object.size_bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= self.object.size_bytes || buffer.is_empty() {
            return Ok(0);
        }
        let index = offset / BLOCK_BYTES;
        let start = index * BLOCK_BYTES;
        let block = self.blocks.block(&self.key, index);
        let mut fetched = locked(&block);
        let bytes = match &*fetched {
            Some(bytes) => bytes.clone(),
            None => {
                let range = start..(start + BLOCK_BYTES).min(self.object.size_bytes);
                let bytes = self.objects.read(&self.object.name, range).map_err(failed)?;
                fetched.insert(bytes).clone()
            }
        };
        drop(fetched);
        let from = usize::try_from(offset - start).expect("an offset within a block");
        let length = bytes.len().saturating_sub(from).min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[from..from + length]);
        Ok(length)
    }
}
