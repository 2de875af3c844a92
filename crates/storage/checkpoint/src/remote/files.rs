use std::io;
use std::path::Path;

use trackway_store::StoreError;

/// The large objects of a remote: the files of checkpoints. Names are those of [`trackway_store::Backend`], in the same
/// storage. No name is ever written with other bytes than before, so every call is safe to repeat.
pub trait RemoteFiles: Send + Sync {
    /// Sends a file and reports to `progress` how much of it has arrived. Afterwards the object has all of its bytes;
    /// before, there is no object of that name.
    ///
    /// # Errors
    /// When the file cannot be read, or the storage does not answer or refuses.
    fn send(&self, name: &str, from: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), StoreError>;

    /// How large an object is; `None`: absent.
    fn size_bytes(&self, name: &str) -> Result<Option<u64>, StoreError>;

    /// Hands the bytes of an object to `take`, in order, when it has `size_bytes`. How many it has; `None`: absent.
    ///
    /// # Errors
    /// When the storage does not answer or refuses, and the errors of `take`.
    fn fetch(
        &self,
        name: &str,
        size_bytes: u64,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<Option<u64>, StoreError>;

    /// Removes an object; an absent one is fine.
    fn remove(&self, name: &str) -> Result<(), StoreError>;

    /// How many files are worth sending or fetching at a time.
    fn at_once(&self) -> usize {
        1
    }
}
