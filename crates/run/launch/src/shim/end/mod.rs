//! The end of the attempt: who may continue for how long, and what is known and kept of it.

pub(super) mod ending;
pub(super) mod left;
pub(super) mod oom;
pub(super) mod reserve;
