//! What the script runs on: the machine, its GPUs, and the image of a container.

pub(super) mod container;
pub(super) mod gpu;
pub(super) mod host;
