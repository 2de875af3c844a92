//! Writing what is beside the attempts: evaluations, models, and what a person changes of a run.

pub(super) mod evaluations;
mod registry;
pub(super) mod run_amendments;
