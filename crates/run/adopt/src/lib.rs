//! Checkpoints that a script writes itself, with its framework's own means: found by the patterns of `[checkpoint] adopt`, committed
//! to the run's checkpoint log once they are whole, and put back before a resume.
//!
//! What belongs to a checkpoint and when it is complete is decided by `trackway-layouts`; what a commit guarantees by
//! `trackway-checkpoint`. Here is what connects them: which paths are looked at, which state of them was committed
//! already, and how the bytes are copied without slowing the training.
//!
//! A committed copy shares no name with its source: a script that overwrites `ckpt.pt` in place changes nothing of it.

mod adopter;
mod commit;
mod find;
mod idle;
mod look;
mod path_record;
mod put_back;
#[cfg(test)]
mod tests;
mod writers;

pub use adopter::Adopter;
pub use commit::committed::{Commits, Committed, kept_by_default, models_beside, resumed_from};
pub use commit::weights::same_tensors;
pub use find::candidate::{Candidate, Content};
pub use find::patterns::{PatternError, Patterns};
pub use find::places::Place;
pub use find::saves::Saves;
pub use idle::{processor_time, yield_to_others};
pub use look::{Adopted, AdopterSpec, Facts, Look, NotAdopted, NotOwn};
pub use put_back::history::{History, Past};
pub use put_back::links::link_as_written;
pub use put_back::restore::{Cleared, Clearing, MovedAside, RestoreError, RestoredCheckpoint, origin_of};
pub use writers::amounts::{Amount, Less};
pub use writers::owner::{Company, Evidence, Owner, Writers, owner};
pub use writers::sightings::{How, Sightings, Who, WriterEvidence, WrittenFile};
pub use writers::steps::{DECIDED_NS, Steps};
