//! Detectors of what a run does to its machine: steps that stop or get slower, and memory that grows.

pub(super) mod hang;
pub(super) mod memory;
pub(super) mod pace;
pub(super) mod resident;
