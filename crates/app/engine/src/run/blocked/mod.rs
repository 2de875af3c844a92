//! What changed since the data stopped an attempt: `read.rs` gathers the evidence, `decide.rs` is a pure function over it. Both a resume of
//! its run and a new run of the same name ask it.

mod decide;
mod documents;
mod named;
mod read;
mod run_times;

use trackway_core::TerminationReason;

pub use self::decide::differing_settings;
pub use self::documents::is_document;
pub use self::read::{Next, evidence_of, plan_now};
pub use self::run_times::RunTimes;

/// Whether the data is what stopped an attempt.
pub const fn is_of_data(reason: TerminationReason) -> bool {
    matches!(reason, TerminationReason::DataError | TerminationReason::SchemaDrift)
}
