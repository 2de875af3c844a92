//! Which layout a path has, and what its names and content say of it.

mod files;
mod folders;

use crate::layout::{Recognised, Root};
use crate::listing::Listing;
use crate::source::Source;

/// What is known of a checkpoint at `path`, a file or folder of the listing (empty: its root); nothing if it looks like
/// none. A path that was declared to be a checkpoint and is not recognised is one of [`crate::Layout::Unknown`].
#[must_use]
pub fn recognise(listing: &Listing, source: &dyn Source, path: &str) -> Option<Recognised> {
    match (root(listing, path)?, listing.file(path)) {
        (Root::File, Some(file)) => files::recognise(source, file),
        _ => folders::recognise(listing, source, path),
    }
}

/// Whether a path is a file or a folder of the listing; nothing if it is neither.
pub(crate) fn root(listing: &Listing, path: &str) -> Option<Root> {
    match listing.below(path) {
        [] => None,
        [file] if file.path == path => Some(Root::File),
        _ => Some(Root::Folder),
    }
}
