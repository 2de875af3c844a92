//! Large objects: checkpoint files, up and down, in parts and several parts at a time.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _};
use tokio::task::JoinSet;

use super::{Remote, error};
use crate::disk::{Disk, DiskRead};
use crate::error::StoreError;

/// The most parts of an object; S3 allows 10,000. Larger objects have larger parts.
const MAX_PARTS: u64 = 9_000;
/// How many parts travel at a time: enough of the usual ones to fill a link of 5 to 10 Gbit/s.
const MAX_PARTS_IN_FLIGHT: u64 = 8;
/// How much is in memory at a time. Larger parts are fewer at a time, but two at least.
const MAX_IN_FLIGHT_BYTES: u64 = 128 << 20;
/// How soon a wish to stop is noticed.
const CANCEL_POLL: Duration = Duration::from_millis(100);
/// How long it is tried to take back what was uploaded of an object that failed.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// What the caller sees of a transfer, and how it stops it. Both functions are called by the calling thread.
pub struct TransferObserver<'a> {
    /// Called after each part: bytes that arrived, of all.
    pub progress: &'a mut dyn FnMut(u64, u64),
    /// Shown the bytes in order, whatever the order in which parts travel: for hashing them.
    pub bytes: &'a mut dyn FnMut(&[u8]),
    /// Set by any thread: the transfer stops at the next part or within a fraction of a second.
    pub cancelled: &'a AtomicBool,
}

/// Takes bytes and their offset, in order.
pub type Sink<'a> = dyn FnMut(u64, &[u8]) -> Result<(), StoreError> + 'a;

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub size_bytes: u64,
}

/// The way to a storage for large objects. Every call is safe to repeat.
///
/// Uploads are not conditional: names of checkpoint files are used once, and by one. An upload whose process is
/// killed leaves its parts, which cost money until a life-cycle rule of the bucket removes incomplete uploads.
#[derive(Clone)]
pub struct Transfer {
    remote: Arc<Remote>,
}

impl Transfer {
    pub(super) fn new(remote: Arc<Remote>) -> Self {
        Self { remote }
    }

    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.remote.connection.large
    }

    fn job<'a>(&'a self, name: &'a str, total_bytes: u64) -> Job<'a> {
        let parts = Parts::new(self.remote.connection.part_bytes, total_bytes);
        Job { transfer: self, name, total_bytes, parts }
    }

    /// What is known of an object; `None`: it is absent.
    pub fn head(&self, name: &str) -> Result<Option<Head>, StoreError> {
        let path = self.remote.path(name)?;
        self.remote.wait("look at", name, async {
            let meta = error::if_there(self.remote.connection.small.head(&path).await)?;
            Ok(meta.map(|meta| Head { size_bytes: meta.size }))
        })
    }

    /// Removes an object; an absent one is fine.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.remote.remove(name)
    }

    /// Makes an object of a file. Its bytes are read once, in order, as [`TransferObserver::bytes`] sees them: a caller that
    /// knows their hash knows afterwards that this is what was sent. Gives the size.
    ///
    /// # Errors
    /// When the disk fails, when the storage does not answer or refuses, and [`crate::ErrorKind::Cancelled`]. There is
    /// no object then, or there is all of it.
    pub fn upload(
        &self,
        disk: &dyn Disk,
        from: &FilePath,
        name: &str,
        watch: &mut TransferObserver<'_>,
    ) -> Result<u64, StoreError> {
        let path = self.remote.path(name)?;
        let file = disk.open(from, false).map_err(StoreError::io("open", from))?;
        let size_bytes = file.size_bytes().map_err(StoreError::io("read", from))?;
        let source = Source { file: file.into(), path: from };
        let job = self.job(name, size_bytes);
        self.remote.reactor.block_on(async {
            match size_bytes > job.parts.part_bytes {
                false => job.upload_whole(&source, &path, watch).await,
                true => job.upload_in_parts(&source, &path, watch).await,
            }
        })?;
        Ok(size_bytes)
    }

    /// Hands the bytes of an object of known size to `sink`, in order. Check their hash: nothing here does.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Damaged`] when it is absent or of another size; when the storage does not answer or refuses;
    /// the errors of `sink`; [`crate::ErrorKind::Cancelled`]. `sink` may have got some of it then.
    pub fn download(
        &self,
        name: &str,
        size_bytes: u64,
        sink: &mut Sink<'_>,
        watch: &mut TransferObserver<'_>,
    ) -> Result<(), StoreError> {
        let path = self.remote.path(name)?;
        let damaged = |why| Err(StoreError::Damaged { location: self.remote.location_of(name), why });
        match self.head(name)? {
            None => return damaged("it is absent".into()),
            Some(head) if head.size_bytes != size_bytes => {
                return damaged(format!("it has {} bytes, not {size_bytes}", head.size_bytes));
            }
            Some(_) => {}
        }
        let job = self.job(name, size_bytes);
        self.remote.reactor.block_on(job.download_in_parts(&path, sink, watch))
    }

    /// The same into a new file, durably but for its name.
    ///
    /// # Errors
    /// As [`Transfer::download`], and when the disk fails or the file exists. There is no file then, unless its disk
    /// does not even let it be removed.
    pub fn download_file(
        &self,
        name: &str,
        size_bytes: u64,
        disk: &dyn Disk,
        to: &FilePath,
        watch: &mut TransferObserver<'_>,
    ) -> Result<(), StoreError> {
        let file = disk.create(to, false).map_err(StoreError::io("create", to))?;
        let mut write =
            |offset, bytes: &[u8]| file.write_at(offset, bytes).map_err(StoreError::io("write", to));
        let done = self
            .download(name, size_bytes, &mut write, watch)
            .and_then(|()| file.sync().map_err(StoreError::io("sync", to)));
        if done.is_err() {
            let _ = disk.remove_file(to);
        }
        done
    }
}

/// The file that is uploaded.
struct Source<'a> {
    file: Arc<dyn DiskRead>,
    path: &'a FilePath,
}

impl Source<'_> {
    async fn read(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let file = Arc::clone(&self.file);
        let expected = to_usize(range.end - range.start);
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; expected];
            let count = file.read_at(range.start, &mut bytes)?;
            bytes.truncate(count);
            Ok(bytes)
        });
        let bytes = read.await.expect("reading does not panic").map_err(StoreError::io("read", self.path))?;
        if bytes.len() < expected {
            let location = self.path.display().to_string();
            return Err(StoreError::Damaged { location, why: "it became shorter while it was read".into() });
        }
        Ok(bytes.into())
    }
}

/// One object on its way.
struct Job<'a> {
    transfer: &'a Transfer,
    name: &'a str,
    total_bytes: u64,
    parts: Parts,
}

impl Job<'_> {
    fn failed(&self, action: &'static str) -> impl FnOnce(object_store::Error) -> StoreError {
        error::failed(action, self.transfer.remote.location_of(self.name))
    }

    fn check_cancelled(&self, watch: &TransferObserver<'_>) -> Result<(), StoreError> {
        if watch.cancelled.load(Ordering::Relaxed) {
            return Err(StoreError::Cancelled { location: self.transfer.remote.location_of(self.name) });
        }
        Ok(())
    }

    /// The next task that is done; `None`: there is none.
    async fn next<T: 'static>(
        &self,
        tasks: &mut JoinSet<object_store::Result<T>>,
        watch: &TransferObserver<'_>,
        action: &'static str,
    ) -> Result<Option<T>, StoreError> {
        loop {
            self.check_cancelled(watch)?;
            if let Ok(joined) = tokio::time::timeout(CANCEL_POLL, tasks.join_next()).await {
                let done = joined.map(|done| done.expect("requests do not panic")).transpose();
                return done.map_err(self.failed(action));
            }
        }
    }

    async fn upload_whole(
        &self,
        source: &Source<'_>,
        path: &Path,
        watch: &mut TransferObserver<'_>,
    ) -> Result<(), StoreError> {
        let bytes = source.read(0..self.total_bytes).await?;
        (watch.bytes)(&bytes);
        let (store, path) = (Arc::clone(self.transfer.store()), path.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { store.put(&path, bytes.into()).await.map(drop) });
        self.next(&mut tasks, watch, "upload").await?;
        (watch.progress)(self.total_bytes, self.total_bytes);
        Ok(())
    }

    async fn upload_in_parts(
        &self,
        source: &Source<'_>,
        path: &Path,
        watch: &mut TransferObserver<'_>,
    ) -> Result<(), StoreError> {
        let store = self.transfer.store();
        let mut upload = store.put_multipart(path).await.map_err(self.failed("upload"))?;
        let mut result = self.send_parts(source, upload.as_mut(), watch).await;
        if result.is_ok() {
            result = match upload.complete().await {
                Ok(_) => return Ok(()),
                // When its first answer is lost, the second reports a missing upload; the object settles it.
                Err(error) => match store.head(path).await {
                    Ok(meta) if meta.size == self.total_bytes => return Ok(()),
                    _ => Err(self.failed("upload")(error)),
                },
            };
        }
        // Whatever comes of it: the first failure is what the caller hears.
        let _ = tokio::time::timeout(ABORT_TIMEOUT, upload.abort()).await;
        result
    }

    async fn send_parts(
        &self,
        source: &Source<'_>,
        upload: &mut dyn MultipartUpload,
        watch: &mut TransferObserver<'_>,
    ) -> Result<(), StoreError> {
        let (mut tasks, mut done_bytes) = (JoinSet::new(), 0);
        let mut parts = self.parts.ranges();
        loop {
            if tasks.len() < self.parts.in_flight
                && let Some(part) = parts.next()
            {
                self.check_cancelled(watch)?;
                let size_bytes = part.end - part.start;
                let bytes = source.read(part).await?;
                (watch.bytes)(&bytes);
                let sent = upload.put_part(bytes.into());
                tasks.spawn(async move { sent.await.map(|()| size_bytes) });
                continue;
            }
            match self.next(&mut tasks, watch, "upload").await? {
                Some(size_bytes) => done_bytes += size_bytes,
                None => return Ok(()),
            }
            (watch.progress)(done_bytes, self.total_bytes);
        }
    }

    async fn download_in_parts(
        &self,
        path: &Path,
        sink: &mut Sink<'_>,
        watch: &mut TransferObserver<'_>,
    ) -> Result<(), StoreError> {
        let (mut tasks, mut arrived, mut done_bytes) = (JoinSet::new(), BTreeMap::new(), 0);
        let mut parts = self.parts.ranges();
        loop {
            // Those that wait for an earlier one take room too.
            if tasks.len() + arrived.len() < self.parts.in_flight
                && let Some(part) = parts.next()
            {
                let (store, path) = (Arc::clone(self.transfer.store()), path.clone());
                tasks.spawn(async move { Ok((part.start, store.get_range(&path, part).await?)) });
                continue;
            }
            match self.next(&mut tasks, watch, "download").await? {
                Some((offset, bytes)) => drop(arrived.insert(offset, bytes)),
                None => return Ok(()),
            }
            while let Some(bytes) = arrived.remove(&done_bytes) {
                (watch.bytes)(&bytes);
                sink(done_bytes, &bytes)?;
                done_bytes += bytes.len() as u64;
                (watch.progress)(done_bytes, self.total_bytes);
            }
        }
    }
}

/// How an object is cut.
#[derive(Debug, Clone, Copy)]
struct Parts {
    total_bytes: u64,
    /// The size of all but the last.
    part_bytes: u64,
    /// How many are under way at a time.
    in_flight: usize,
}

impl Parts {
    fn new(usual_bytes: u64, total_bytes: u64) -> Self {
        let part_bytes = usual_bytes.max(total_bytes.div_ceil(MAX_PARTS));
        let in_flight = (MAX_IN_FLIGHT_BYTES / part_bytes).clamp(2, MAX_PARTS_IN_FLIGHT);
        Self { total_bytes, part_bytes, in_flight: to_usize(in_flight) }
    }

    fn ranges(self) -> impl Iterator<Item = Range<u64>> {
        let Self { total_bytes, part_bytes, .. } = self;
        (0..total_bytes.div_ceil(part_bytes))
            .map(move |index| index * part_bytes..((index + 1) * part_bytes).min(total_bytes))
    }
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).expect("a part fits in memory")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::remote::{Connection, RemoteBackend};
    use crate::{Backend as _, ErrorKind, RealDisk};

    /// A storage in memory, with small parts.
    fn in_memory() -> RemoteBackend {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let connection = Connection {
            small: Arc::clone(&store),
            large: store,
            prefix: Path::from("prefix"),
            location: "memory".into(),
            call_timeout: Duration::from_secs(60),
            retry_pause: Duration::from_millis(1),
            part_bytes: 1000,
        };
        RemoteBackend::over(connection).unwrap()
    }

    /// Files of many parts go up and come down in order, whatever the order in which parts arrive.
    #[test]
    fn many_parts_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let content: Vec<u8> = (0..250_123_u32).map(|index| (index / 7) as u8).collect();
        std::fs::write(&from, &content).unwrap();
        let transfer = in_memory().transfer();
        let (mut seen, mut reported) = (Vec::new(), Vec::new());
        let mut watch = TransferObserver {
            progress: &mut |done, all| reported.push((done, all)),
            bytes: &mut |bytes| seen.extend_from_slice(bytes),
            cancelled: &AtomicBool::new(false),
        };
        let size_bytes = transfer.upload(&RealDisk, &from, "a/file", &mut watch).unwrap();
        transfer.download_file("a/file", size_bytes, &RealDisk, &to, &mut watch).unwrap();
        assert_eq!(seen, [content.as_slice(), &content].concat());
        assert_eq!(reported.len(), 2 * 251);
        assert_eq!(std::fs::read(&to).unwrap(), content);
        let again =
            transfer.download_file("a/file", size_bytes, &RealDisk, &to, &mut quiet(&AtomicBool::new(false)));
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Unavailable, "an existing file is not touched");
        assert_eq!(std::fs::read(&to).unwrap(), content);
    }

    fn quiet(cancelled: &AtomicBool) -> TransferObserver<'_> {
        TransferObserver {
            progress: Box::leak(Box::new(|_, _| {})),
            bytes: Box::leak(Box::new(|_: &[u8]| {})),
            cancelled,
        }
    }

    /// Proves that an error of the sink ends a download.
    #[test]
    fn a_full_disk_ends_a_download() {
        let backend = in_memory();
        backend.replace("file", &[7; 50_000]).unwrap();
        let mut room = 10;
        let mut sink = |_, _: &[u8]| {
            room -= 1;
            let full =
                || StoreError::io("write", FilePath::new("disk"))(std::io::ErrorKind::StorageFull.into());
            if room == 0 { Err(full()) } else { Ok(()) }
        };
        let error = backend
            .transfer()
            .download("file", 50_000, &mut sink, &mut quiet(&AtomicBool::new(false)))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
    }

    /// Parts cover an object without gaps, are never too many for S3, and bound what is in memory.
    #[test]
    fn parts_of_any_size() {
        let usual_bytes = 16 << 20;
        for total_bytes in [1, usual_bytes, usual_bytes + 1, 5 << 30, 5 << 40] {
            let parts = Parts::new(usual_bytes, total_bytes);
            let ranges: Vec<_> = parts.ranges().collect();
            assert!(ranges.len() as u64 <= MAX_PARTS);
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, total_bytes));
            let memory_bytes = parts.in_flight as u64 * parts.part_bytes;
            assert!(memory_bytes <= MAX_IN_FLIGHT_BYTES || parts.in_flight == 2, "{total_bytes}");
        }
    }
}
