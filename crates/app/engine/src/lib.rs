//! The engine: it takes a job through its attempts (launch, watch, stop, seal, decide, repeat) with what every use case
//! needs. It is independent of command lines and web requests, and never prints.

mod attempt;
pub mod budgets;
pub mod capture;
pub mod checkpoints;
mod context;
pub mod deferred_seals;
pub mod error;
pub mod file_digest;
pub mod good_runs;
pub mod home;
pub mod json_file;
mod ledger;
pub mod notify;
pub mod reporter;
pub mod roll_back;
pub mod run;
pub mod run_lock;
pub mod stop;
pub mod testing;

pub use attempt::{actions, attempt_data, attempt_files, control, save_reason};
pub use context::queue_limits::QueueLimits;
pub use context::request::{Actor, Proof, Request};
pub use context::{Context, Dependencies, Shared, ledger_state, notices};
pub use ledger::{page, row_copies, rows, stored};
pub use roll_back::RollBackRequest;
