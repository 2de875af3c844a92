//! A run from start to end: plan, capture, launch, supervise, seal, decide, and again.

mod adopted;
pub mod changes;
mod container;
pub mod curves;
pub mod detect;
pub mod drive;
mod echo;
mod effective_batch;
pub mod evaluator;
mod inject;
mod inputs;
mod isolated;
mod isolated_changes;
mod job;
pub mod ladder;
mod launch;
pub mod live_record;
mod load_crash;
pub mod lock;
mod outcome;
mod policy;
mod prepare;
pub mod remote;
pub(crate) mod roll_back;
pub mod seal;
mod sight;
pub mod stacks;
mod supervise;
pub mod supervision;
#[cfg(test)]
mod tests;
pub(crate) mod trust;
mod watchdog;

pub use adopted::adopted_patterns;
pub use container::is_started as starts_container;
pub use drive::{Rehearsal, drive, rehearse};
pub use inject::{Fault, Injection, InjectionError, Moment};
pub use job::{Job, RunSource, StoredJob};
pub(crate) use ladder::judge_rung;
pub use ladder::rung_now;
pub use launch::{has_ended, may_be_starting, note_placement, note_seen};
pub use outcome::outcome;
pub(crate) use policy::{Decided, decide};
pub use prepare::{Prepared, Start, begin, capture_surroundings, read, read_again, record_data, reopen};
pub use supervision::{supervise_with, try_supervise};
