//! What training frameworks themselves write as a checkpoint: which files belong together, which step they are of, and
//! whether they are whole.
//!
//! Reading is apart from deciding. [`list`] reads the names and sizes of a folder; everything else decides over that
//! [`Listing`] and over the bytes that it needs through a [`Source`], such as a folder on a disk:
//!
//! - [`find()`] says which folders and files are checkpoints, which are temporary, and which name the newest one;
//! - [`together`] says which files hold one state, by their names;
//! - [`recognise()`] says of one path which [`Layout`] it has, its step, its data epoch and its [`Component`]s;
//! - [`wholeness`] says whether a checkpoint is whole: the framework's last file first, then the structure of each file;
//! - [`Settling`] decides from what is seen over time when a checkpoint is complete. It reads no clock.
//!
//! **A pickle is never loaded.** The operations of its stream are measured and skipped, none is carried out. Every parser has a
//! bound for what it reads, holds and nests ([`limits`]), and no bytes make it panic.
//! `docs/framework-checkpoints.md` says what each framework writes, in which order, and what can be checked.

mod find;
mod formats;
mod layout;
pub mod limits;
mod listing;
mod marker;
mod names;
mod parts;
mod recognise;
mod settling;
mod source;
#[cfg(test)]
mod tests;
mod values;
mod whole;

pub use find::{FoundCheckpoints, Tracker, Unfinished, find};
pub use layout::{Component, Layout, LayoutConfidence, Recognised, Root, StepOrigin};
pub use listing::{Entry, Fingerprint, Link, ListError, Listing, list, list_to_search};
pub use marker::{DEEPSPEED_TRACKER, MEGATRON_TRACKER};
pub use names::numbers;
pub use parts::{FileGroup, Part, PartName, together};
pub use recognise::recognise;
pub use settling::{
    Answer, Because, DEFAULT_QUIET_NS, MAX_QUIET_NS, Observation, Settling, UNVERIFIED_PERIODS,
};
pub use source::{Folder, Source};
#[cfg(test)]
use tests::tree::Tree;
pub use values::{NonFinite, Tensors, have_same_tensors, tensors_of};
pub use whole::{By, Wholeness, file_wholeness, wholeness};
