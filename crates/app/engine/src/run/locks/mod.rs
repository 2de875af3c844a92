//! What one process holds at a time beside the lock of a run: its lease as the supervisor, and places of a queue.

pub(super) mod places;
pub mod supervision;
