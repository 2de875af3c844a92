//! Before the first launch: the run file is read and hashed, its surroundings are captured, and what cannot run is refused.

pub(super) mod adopt_patterns;
pub(super) mod begin;
pub(super) mod isolated_changes;
pub(super) mod offered;
pub(super) mod shared_paths;
