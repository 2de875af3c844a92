//! Work that one process does at a time: it supervises a subject, does a duty that is due, or delivers a notice.

pub(super) mod duties;
pub(super) mod outbox;
mod supervision;
