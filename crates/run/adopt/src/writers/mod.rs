//! Who wrote a file: what was seen of processes and of their bytes, and what follows from it.

pub(super) mod amounts;
pub(super) mod owner;
pub(super) mod sightings;
pub(super) mod steps;
