//! A run is opened again: whether it may be, what opens it, and what it has spent.

pub(crate) mod home_copy;
mod opened;
pub(super) mod reopen;
pub(super) mod spent;
