//! The commands under "Run" in the help: they start, continue, stop or roll back a run, or check one before it costs
//! anything. Running in the background and the line of a run at the terminal are here too.

pub mod detach;
pub mod init;
pub mod launch;
pub mod memory;
pub mod preflight;
pub mod prove;
pub mod rehearse;
pub mod resume_all;
pub mod rollback;
pub mod stop;
mod terminal;
