//! The home and its ledger: their state, what is deleted, imported and verified in them, answers to queries, and the
//! settings of Trackway itself.

pub mod doctor;
pub mod gc;
pub mod import;
pub mod notification;
pub mod settings;
pub mod sql;
pub mod tick;
pub mod verify;
