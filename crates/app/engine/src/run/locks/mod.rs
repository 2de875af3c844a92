//! What one process holds at a time: the lock of a run, its lease as the supervisor, and places of a queue.

pub mod lock;
pub(super) mod places;
pub mod supervision;
