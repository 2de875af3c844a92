//! What tests of this crate and of those above it put in the place of a disk or a storage: real ones behind faults.

mod fault_backend;
mod fault_disk;

pub use fault_backend::{BackendFault, FaultBackend, Odds};
pub use fault_disk::{Fault, FaultDisk};
