//! The document key by key: each key with its place, its kind of value, and what is wrong with it.

pub(super) mod tree;
pub(super) mod values;
pub(super) mod walker;
