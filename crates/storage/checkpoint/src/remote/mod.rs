//! One truth in an object store, for a root whose bytes are on local disks.
//!
//! The remote has a log of the same kind. With a remote, **its log alone grants epochs and commits**; entries of a
//! local log count only once they are in the remote's. The training process is not aware of this: it reads and writes
//! its local root. Its launcher does three things, in this order:
//!
//! 1. **Fetch** ([`Replica::fetch_target`]), before the launch: hands over what is still waiting, claims the next epoch
//!    at the remote, walks the remote's commits from the newest to its ancestors to the first whose bytes are available
//!    completely, here or from the remote (models beside a script's own checkpoints last), and writes `claim` and
//!    `adopt` entries into the local log, so that the ordinary resume finds exactly that. Its files are in a new folder:
//!    those of the old one may be being deleted.
//! 2. **Hand over** ([`Replica::hand_over`]): adds each local commit to the remote's log, in order, in its writer's name.
//!    There is no `begin`: it exists so that bytes without a commit can be found, and here the commit comes first;
//!    its bytes are durable on the local disk already. A higher epoch at the remote fences: what still waits is lost.
//! 3. **Upload** ([`Replica::upload_next`]): the manifest, then every file that is not held there yet, then `uploaded`
//!    in both logs. Only `uploaded` means that the bytes are complete, so the manifest may come first; and it must,
//!    because processes that delete read from it which files this checkpoint uses.
//!
//! A reader of a checkpoint fetches it into a separate folder ([`Replica::fetch`]), protected by a pin at the remote.
//!
//! **Where a file is.** A file `f` of a checkpoint is at `PREFIX/f`, or, when its manifest says `stored_in`, at
//! `STORED_IN/f`. It is relied on there only if the checkpoint's parent relies on it, is uploaded and was not retired
//! *after* this checkpoint's manifest was there; otherwise it is sent below this checkpoint's prefix.
//!
//! **Deleting** ([`Replica::collect`]) writes `retire`, *then* reads the manifests of all commits that are not retired,
//! and removes what none of them reaches. An upload puts its manifest and *then* looks whether its parent is retired. So
//! either the deleter sees the manifest, or the uploader sees the retirement: nothing that is relied on is deleted,
//! and no lock is needed.
//!
//! **Crashes.** Everything is found again from the two logs; there is no other state. A supervisor that is killed at
//! any point leaves at most objects that no `uploaded` refers to; the next one finds them by name and size, or sends
//! them again.

mod collect;
mod fetch;
mod fetch_target;
mod files;
mod gather;
mod hand_over;
mod replica;
#[cfg(feature = "remote")]
mod transfer;
mod truth;
mod upload;
mod walk;

#[cfg(test)]
pub(crate) mod tests;

pub use collect::RemoteCollected;
pub use fetch_target::{FetchSource, Fetched, Target};
pub use files::RemoteFiles;
pub use replica::{RemoteLag, Replica};
#[cfg(feature = "remote")]
pub use transfer::TransferFiles;
pub use truth::{Foreseen, Truth};
pub use upload::Uploaded;
