//! The files of one attempt: what Trackway did to it, the requests to its process, its data, why it saves, and its
//! hashes once it is sealed.

pub mod actions;
pub mod attempt_data;
pub mod attempt_files;
pub mod control;
pub mod save_reason;
