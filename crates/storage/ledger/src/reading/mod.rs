//! Reading: lists and their pages, what a reference names, and the change feed.

pub(super) mod feed;
pub(super) mod find;
pub(super) mod pages;
pub(super) mod resolve;
