//! A run from start to end: plan, capture, launch, supervise, seal, decide, and again.

mod adopt_patterns;
mod adopted;
mod adopted_history;
mod blocked;
pub mod changes;
mod container;
pub mod curves;
pub mod detect;
pub mod drive;
mod echo;
mod effective_batch;
pub mod evaluator;
pub(crate) mod home_copy;
mod inject;
mod inputs;
mod isolated;
mod isolated_changes;
mod job;
pub mod ladder;
mod launch;
pub mod live_record;
mod load_crash;
mod local_imports;
pub mod lock;
mod majority;
mod opened;
mod outcome;
mod places;
mod policy;
mod prepare;
mod python_text;
pub mod queue;
pub mod remote;
mod reopen;
mod replay;
mod resume_watch;
pub(crate) mod roll_back;
pub mod seal;
mod shared_paths;
mod sight;
mod spent;
pub mod stacks;
mod supervise;
pub mod supervision;
#[cfg(test)]
mod tests;
pub(crate) mod trust;
pub mod variables;
mod watchdog;

pub use adopted::adopted_patterns;
pub use blocked::{RunTimes, is_document};
pub use container::is_started as starts_container;
pub use drive::{Rehearsal, drive, rehearse};
pub use inject::{Fault, Injection, InjectionError, Moment};
pub use job::{Job, RunSource, StoredJob};
pub(crate) use ladder::judge_rung;
pub use ladder::rung_now;
pub use launch::{has_ended, may_be_starting, note_placement, note_seen};
pub use outcome::outcome;
pub(crate) use policy::{Decided, decide};
pub use prepare::{
    Prepared, Recheck, Start, begin, capture_surroundings, project_of, read, read_again, record_data,
};
pub use reopen::{may_resume, reopen};
pub use spent::refused_by_budget;
pub use supervision::{supervise_with, try_supervise};
