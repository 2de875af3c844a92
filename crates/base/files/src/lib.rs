//! Trackway's files: who may read them, whether they are trusted, and the one place that deletes. What is deleted is
//! proved to be Trackway's by its type:
//!
//! - a [`TempFile`] or [`TempFolder`] was created by this process, under a name that did not exist;
//! - an [`OwnedFolder`] was created by this process, or holds an entry that only Trackway writes. It deletes strictly
//!   below itself, and never through a symbolic link;
//! - [`unlink`] removes a single name that the caller made itself, and never a folder.
//!
//! `clippy.toml` forbids `std::fs::remove_*` everywhere else.
#![allow(clippy::disallowed_methods)] // This is that place.

mod clone;
mod link;
mod lock;
mod modes;
mod output;
mod owned;
mod regular;
mod temporary;

pub use clone::clone_file;
pub use link::replace_link;
pub use lock::FolderLock;
pub use modes::{
    GROUP_VARIABLE, give_to_group, give_to_user, give_tree_to_user, make_folder, make_folders,
    make_folders_of_user, may_write, open_of_user, open_own, open_trusted, restore_umask, restrict_umask,
    tighten, user_umask, write_own,
};
pub use output::{Clash, replaces_input};
pub use owned::{OwnedFolder, unlink};
pub use regular::{if_there, open_regular, read_full, read_regular};
pub use temporary::{TempFile, TempFolder, sync_parent};
