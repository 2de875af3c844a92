//! Before a resume: what the earlier attempts are shown to have written, and the last committed state at its place.

pub(super) mod history;
pub(super) mod links;
pub(super) mod own;
pub(super) mod restore;
