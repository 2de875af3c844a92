//! Objects that others wrote, such as data: looked up, listed, and read in ranges.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};

use super::{Remote, RemoteBackend, error};
use crate::error::StoreError;

/// An object as a storage lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name below the URL of the storage.
    pub name: String,
    pub size_bytes: u64,
    /// What changes with its content: the entity tag, else the version, else the time of change.
    pub version: String,
}

impl Object {
    fn of(meta: ObjectMeta) -> Self {
        let version = meta.e_tag.or(meta.version);
        Self {
            name: meta.location.to_string(),
            size_bytes: meta.size,
            version: version.unwrap_or_else(|| meta.last_modified.timestamp_micros().to_string()),
        }
    }
}

/// The objects of a storage. Nothing is ever written; every call is safe to repeat.
#[derive(Clone)]
pub struct Objects {
    remote: Arc<Remote>,
}

impl RemoteBackend {
    /// The way to objects that others wrote. Names are those in the storage, whatever the URL's prefix.
    #[must_use]
    pub fn objects(&self) -> Objects {
        Objects { remote: Arc::clone(&self.remote) }
    }
}

impl Objects {
    /// What is known of an object; `None`: it is absent.
    pub fn head(&self, name: &str) -> Result<Option<Object>, StoreError> {
        let path = self.path(name)?;
        self.remote.wait("look at", name, async {
            Ok(error::if_there(self.remote.connection.small.head(&path).await)?.map(Object::of))
        })
    }

    /// Every object whose name begins with `folder` and a `/`; all of them where it is empty.
    pub fn list(&self, folder: &str) -> Result<Vec<Object>, StoreError> {
        let path = self.path(folder)?;
        let prefix = Some(&path).filter(|path| !path.as_ref().is_empty());
        // Each page has a separate time-out; how many there are is not known.
        let listed = self.remote.connection.small.list(prefix).map_ok(Object::of).try_collect();
        self.remote.reactor.block_on(listed).map_err(error::failed("list", self.remote.location_of(folder)))
    }

    /// Bytes of an object: all of the range, which must be within it.
    ///
    /// # Errors
    /// When the storage does not answer, refuses, or gives less.
    pub fn read(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        let path = self.path(name)?;
        self.remote
            .reactor
            .block_on(self.remote.connection.large.get_range(&path, range))
            .map_err(error::failed("read", self.remote.location_of(name)))
    }

    fn path(&self, name: &str) -> Result<Path, StoreError> {
        Path::parse(name).map_err(|error| error::failed("name", self.remote.location_of(name))(error.into()))
    }
}
