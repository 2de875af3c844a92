//! Replacements of a disk or a storage in tests of this crate and of those above it: real ones with faults.

mod conformance;
mod fault_backend;
mod fault_disk;
mod memory;
mod notebook;
mod seeds;

pub use conformance::{Answers, conformance};
#[cfg(test)]
pub(crate) use conformance::{still_clock, surely, writer_ids};
pub use fault_backend::{BackendFault, FaultBackend, Odds};
pub use fault_disk::{Fault, FaultDisk};
pub use memory::MemoryBackend;
pub use notebook::{Note, Notebook, NumberedNote};
pub use seeds::{seeds, seeds_asked_for};
