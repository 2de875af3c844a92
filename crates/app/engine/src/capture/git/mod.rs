//! The working tree as git sees it: its state, its difference to the commit, and that difference without secrets.

pub(super) mod diff;
pub(super) mod patch;
pub(super) mod working_tree;
