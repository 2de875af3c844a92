//! The engine: it takes a job through its attempts (launch, watch, stop, seal, decide, repeat) with what every use case
//! needs. It is independent of command lines and web requests, and never prints.

pub mod actions;
pub mod attempt_data;
pub mod attempt_files;
pub mod budgets;
pub mod capture;
pub mod checkpoints;
pub mod context;
pub mod control;
pub mod deferred_seals;
pub mod error;
pub mod file_digest;
pub mod good_runs;
pub mod home;
pub mod json_file;
mod launchers;
pub mod ledger_access;
pub mod ledger_state;
mod names;
pub mod notices;
pub mod notify;
pub mod page;
mod patience;
pub mod reporter;
pub mod request;
pub mod roll_back;
pub mod row_copies;
pub mod rows;
pub mod run;
pub mod save_reason;
pub mod stop;
pub mod stored;
pub mod testing;

pub use context::{Context, Dependencies, Shared};
pub use request::{Actor, Proof, Request};
pub use roll_back::RollBackRequest;
