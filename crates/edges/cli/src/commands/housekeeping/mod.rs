//! The commands under "Housekeeping" in the help: settings, the shell, the home and its ledger, imports and schemas.

pub mod config;
pub mod doctor;
pub mod gc;
pub mod import;
pub mod notify;
pub mod schema;
pub mod shell;
pub mod tick;
