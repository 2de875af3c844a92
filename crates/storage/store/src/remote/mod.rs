//! S3-compatible storage, Google Cloud Storage and Azure Blob Storage, through `object_store`; each behind a separate feature.
//!
//! **Conditional puts.** A create is a PUT with `If-None-Match: *` (GCS: `x-goog-if-generation-match: 0`).
//! `object_store` sends it again by itself after an answer of 5xx, 408 or 429, when the connection could not be made,
//! and when the connection ended before an answer came; not after a time-out or a reset. When the first one did land,
//! the second is answered with 412 and reported as "already exists", like one that lost. S3 also answers 409 while
//! another conditional PUT of that name is in flight, which `object_store` 0.13 reports in the same way although the
//! object need not exist. So "already exists" settles nothing: this code checks whether the object exists, and waits
//! and tries again after a 409; the log then reads back whose it is.
//!
//! **Threads.** Calls block. Each storage has a small runtime, so that callers need none; they must not be inside of
//! one.

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
mod clouds;
mod error;
mod objects;
mod options;
mod transfer;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};
use tokio::runtime::Runtime;

use crate::backend::{Backend, Created};
use crate::error::StoreError;
pub use objects::{Object, Objects};
use options::Connection;
pub use options::{RemoteOptions, Secret};
pub use transfer::{Head, Sink, Transfer, TransferObserver};
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
pub use webhook::post_json;

/// How often a create is sent that was answered with a conflict and found nothing there. The pauses between, each
/// twice the one before, are at most 6.3 s together.
const MAX_CONFLICT_TRIES: u32 = 7;
/// Threads that drive connections: TLS at the speed of a 10 Gbit/s link takes one or two.
const RUNTIME_THREADS: usize = 2;

/// The runtime of one storage. Unlike the bare one it may be dropped anywhere.
struct Reactor(Option<Runtime>);

impl Reactor {
    fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(RUNTIME_THREADS)
            .thread_name("trackway-store")
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("it is taken only in drop").block_on(future)
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What the backend and transfers have in common.
struct Remote {
    connection: Connection,
    reactor: Reactor,
}

impl Remote {
    fn path(&self, name: &str) -> Result<Path, StoreError> {
        let parts = [self.connection.prefix.as_ref(), name].into_iter().filter(|part| !part.is_empty());
        Path::parse(parts.collect::<Vec<_>>().join("/"))
            .map_err(|error| error::failed("name", self.location_of(name))(error.into()))
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.path(name)?;
        self.wait("remove", name, async {
            error::if_there(self.connection.small.delete(&path).await).map(drop)
        })
    }

    fn location_of(&self, name: &str) -> String {
        format!("{}/{name}", self.connection.location)
    }

    /// Waits for a call on small objects, but not longer than all its time-outs and retries together can take.
    fn wait<T>(
        &self,
        action: &'static str,
        name: &str,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, StoreError> {
        let limit = self.connection.call_timeout;
        match self.reactor.block_on(async { tokio::time::timeout(limit, call).await }) {
            Ok(result) => result.map_err(error::failed(action, self.location_of(name))),
            Err(_) => Err(error::timed_out(action, self.location_of(name), limit.as_secs_f64())),
        }
    }
}

/// Small objects below a URL of a remote storage.
#[derive(Clone)]
pub struct RemoteBackend {
    remote: Arc<Remote>,
}

impl RemoteBackend {
    /// Objects below `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`. Connects to nothing yet.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Input`]: the URL or a setting is not understood.
    pub fn new(url: &str, options: &RemoteOptions) -> Result<Self, StoreError> {
        Self::over(options.open(url)?)
    }

    fn over(connection: Connection) -> Result<Self, StoreError> {
        let reactor = Reactor::new()
            .map_err(|error| error::unusable(connection.location.clone(), error.to_string()))?;
        Ok(Self { remote: Arc::new(Remote { connection, reactor }) })
    }

    /// The way for large objects of the same storage.
    #[must_use]
    pub fn transfer(&self) -> Transfer {
        Transfer::new(Arc::clone(&self.remote))
    }

    fn store(&self) -> &dyn ObjectStore {
        self.remote.connection.small.as_ref()
    }

    /// Sends a create until it is known whether the object exists, or the tries are used up.
    async fn create_settled(&self, path: &Path, bytes: &[u8]) -> object_store::Result<Created> {
        let payload = PutPayload::from(bytes.to_vec());
        let mut tries = 1;
        loop {
            let options = PutOptions::from(PutMode::Create);
            match self.store().put_opts(path, payload.clone(), options).await {
                Ok(_) => return Ok(Created::New),
                Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.store().head(path).await {
                Err(object_store::Error::NotFound { .. }) if tries < MAX_CONFLICT_TRIES => {}
                // Also when that is unknown: a caller that reads it back finds out.
                _ => return Ok(Created::Exists),
            }
            tokio::time::sleep(conflict_pause(self.remote.connection.retry_pause, tries, bytes)).await;
            tries += 1;
        }
    }
}

/// A pause of which two writers have different ones: half of it depends on what is written, which has a ULID in it.
fn conflict_pause(first: Duration, tries: u32, bytes: &[u8]) -> Duration {
    let longest = first * 2_u32.pow(tries);
    let share = u32::from(blake3::hash(bytes).as_bytes()[tries as usize % blake3::OUT_LEN]);
    longest / 2 + longest / 2 * share / u32::from(u8::MAX)
}

/// The first bytes of an object, one more than `max_bytes` at most.
async fn read_some(
    store: &dyn ObjectStore,
    path: &Path,
    max_bytes: usize,
) -> object_store::Result<Option<Vec<u8>>> {
    let Some(object) = error::if_there(store.get(path).await)? else { return Ok(None) };
    let limit = max_bytes.saturating_add(1);
    let expected = usize::try_from(object.meta.size).unwrap_or(usize::MAX).min(limit);
    let mut bytes = Vec::with_capacity(expected);
    let mut stream = object.into_stream();
    while bytes.len() < limit
        && let Some(chunk) = stream.next().await
    {
        bytes.extend_from_slice(&chunk?);
    }
    bytes.truncate(limit);
    if bytes.len() < expected { Err(error::cut_short(expected, bytes.len())) } else { Ok(Some(bytes)) }
}

impl Backend for RemoteBackend {
    fn location(&self) -> String {
        self.remote.connection.location.clone()
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError> {
        let path = self.remote.path(name)?;
        self.remote.wait("create", name, self.create_settled(&path, bytes))
    }

    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.remote.path(name)?;
        self.remote.wait("read", name, read_some(self.store(), &path, max_bytes))
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.remote.path(name)?;
        self.remote.wait("replace", name, self.store().put(&path, bytes.to_vec().into())).map(drop)
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.remote.remove(name)
    }
}
