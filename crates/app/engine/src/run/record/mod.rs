//! What an attempt shows while it runs: its flight record, its curves, its stacks, what its resume did, and what the
//! attempts before it showed.

pub mod curves;
pub(super) mod earlier;
pub(super) mod effective_batch;
pub mod live_record;
pub(super) mod resume_watch;
pub mod stacks;
