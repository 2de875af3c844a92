//! Checkpoints that a script writes itself, with its framework's own means: found by the patterns of `[checkpoint] adopt`, committed
//! to the run's checkpoint log once they are whole, and put back before a resume.
//!
//! What belongs to a checkpoint and when it is complete is decided by `trackway-layouts`; what a commit guarantees by
//! `trackway-checkpoint`. Here is what connects them: which paths are looked at, which state of them was committed already, and how the bytes
//! are copied without slowing the training.
//!
//! A committed copy shares no name with its source: a script that overwrites `ckpt.pt` in place changes nothing of it.

mod adopter;
mod amounts;
mod candidate;
mod committed;
mod complete;
mod families;
mod history;
mod idle;
mod kinds;
mod links;
mod look;
mod lost;
mod matching;
mod noting;
mod order;
mod own;
mod owner;
mod parts;
mod patterns;
mod places;
mod reads;
mod restore;
mod saves;
mod sightings;
mod steps;
#[cfg(test)]
mod tests;
mod weights;

pub use adopter::Adopter;
pub use amounts::{Amount, Less};
pub use candidate::{Candidate, Content};
pub use committed::{Commits, Committed, kept_by_default, models_beside, resumed_from};
pub use history::{History, Past};
pub use idle::{processor_time, yield_to_others};
pub use links::link_as_written;
pub use look::{Adopted, AdopterSpec, Facts, Look, NotAdopted, NotOwn};
pub use owner::{Company, Evidence, Owner, Writers, owner};
pub use patterns::{PatternError, Patterns};
pub use places::Place;
pub use restore::{Cleared, Clearing, MovedAside, RestoreError, Restored, origin_of};
pub use saves::Saves;
pub use sightings::{How, Sightings, Who, WriterEvidence, WrittenFile};
pub use steps::{DECIDED_NS, Steps};
pub use weights::same_tensors;
