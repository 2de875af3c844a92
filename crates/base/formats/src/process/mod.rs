//! What Trackway and the training process exchange: variables of the environment, requests, events, the reasons of saves, and what
//! a rehearsal reports.

pub mod control;
pub mod environment;
pub mod events;
pub mod rehearsal;
pub(super) mod save_reason;
