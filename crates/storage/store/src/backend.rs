use crate::error::StoreError;

/// What became of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The object is in place under its name, durably.
    New,
    /// Another object was there already, or an earlier try of this very create: read it to know.
    Exists,
}

/// A storage of small objects with the one primitive the log needs: create-if-absent.
///
/// Names are relative, in ASCII, with `/` between parts. Every call is safe to repeat. Implementations bound their own
/// retries and time-outs; [`StoreError::kind`] shows whether the outcome is known. `crate::conformance` checks what
/// every implementation must do.
pub trait Backend: Send + Sync {
    /// Where it is, for messages: a path or a URL without secrets.
    fn location(&self) -> String;

    /// Creates an object as a whole and durably unless the name is taken.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Unavailable`]: it may or may not have happened. Any other kind: it did not happen.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Created, StoreError>;

    /// The bytes of an object, at most `max_bytes + 1` of them (one more means that it is larger); `None`: absent. What
    /// a finished create put there is found by every read that begins later.
    fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, StoreError>;

    /// Puts an object in place, over an existing one too. For hints only: last writer wins, and a reader may see the
    /// old.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;

    /// Removes an object; an absent one is fine. Never used on the log.
    fn remove(&self, name: &str) -> Result<(), StoreError>;
}
