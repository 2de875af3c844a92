//! A run from start to end: plan, capture, launch, supervise, seal, decide, and again.

mod blocked;
pub mod detect;
pub mod drive;
pub mod evaluator;
mod job;
pub mod ladder;
mod launch;
pub(crate) mod locks;
mod outcome;
mod prepare;
pub mod queue;
mod record;
pub mod remote;
pub(crate) mod resume;
pub(crate) mod retry;
pub mod seal;
#[cfg(test)]
mod tests;
pub(crate) mod trust;
mod watch;

pub use blocked::{RunTimes, is_document};
pub use drive::{Rehearsal, drive, is_resumed, reason_alone, refuse_first, refuse_resume, rehearse};
pub use job::{Job, RunSource, StoredJob};
pub(crate) use ladder::judge_rung;
pub use ladder::rung_now;
pub use launch::adopted::adopted_patterns;
pub use launch::attempt::{has_ended, may_be_starting};
pub use launch::container::is_started as starts_container;
pub use launch::row::{note_placement, note_seen};
pub use launch::variables;
pub use locks::places::HeldPlace;
pub use locks::supervision;
pub use locks::supervision::{supervise_with, try_supervise};
pub use outcome::outcome;
pub use prepare::begin::{
    Prepared, Recheck, Start, begin, capture_surroundings, project_of, read, read_again, read_not_given,
    record_data,
};
pub use prepare::offered::{Offered, gpus_at_hand, offered};
pub use record::{curves, live_record, stacks};
pub use resume::reopen::{may_resume, reopen};
pub use resume::spent::refused_by_budget;
pub(crate) use retry::policy::{Decided, decide};
pub use watch::inject::{Fault, Injection, InjectionError, InjectionTime};
