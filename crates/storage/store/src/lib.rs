//! A numbered log of small objects, each created only if absent, with epochs and fencing. It is independent of
//! training: a [`Fold`] of the crate above interprets the entries.
//!
//! 1. Entry *n* is the object `log/` and *n* in eight digits, `.json`. Numbers begin with 1 and have no gaps. An entry
//!    is never changed and never removed, so a name is never free again.
//! 2. A writer reads to the end, decides on what it read, and creates the *next* number. When that is taken it reads
//!    that entry and decides again. So every entry was decided in full knowledge of all entries before it.
//! 3. An **epoch** is taken with an entry that claims it. A trainer that finds a higher epoch, or its epoch held by
//!    another process, is **fenced**: it never appends again. Housekeepers append without an epoch and fence no
//!    trainer.
//! 4. A create whose answer was lost is settled by reading back: its own ULID means won, nothing there means that it
//!    may be tried again, another's means lost.
//! 5. Every so often a writer adds a **summary**: what all entries before it mean together. A reader begins at the
//!    newest one, found through a hint that is verified and may be wrong, late or missing.
//!
//! **Needed of a storage:** that of two creates of one name exactly one succeeds, that what was created is found by
//! the next read, and that it survives a power cut. [`selftest`] finds out.

mod backend;
mod disk;
mod entry;
mod error;
mod local;
mod log;
#[cfg(feature = "remote")]
mod remote;
mod selftest;
#[cfg(test)]
mod simulation;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use backend::{Backend, Created};
pub use disk::{DIRECT_ALIGNMENT_BYTES, Disk, DiskFile, DiskRead, RealDisk};
pub use entry::{Entry, MAX_ENTRY_BYTES, MAX_SUMMARY_BYTES, NoEntry};
pub use error::{ErrorKind, StoreError};
pub use local::LocalBackend;
pub use log::{Claim, Fold, Item, Log, Position, Writer, new_ulid};
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
pub use remote::post_json;
#[cfg(feature = "remote")]
pub use remote::{
    Head, Object, Objects, RemoteBackend, RemoteOptions, Secret, Sink, Transfer, TransferObserver,
};
pub use selftest::{Outcome, Primitive, SelfTest, selftest};
#[cfg(any(test, feature = "testing"))]
pub use testing::MemoryBackend;
