//! A training run before it ends: its run file is written, it is checked and rehearsed, its cost in memory and time is
//! estimated, it is trained and evaluated, over folds where that is requested, and its resuming is proved.

pub mod cadence;
pub mod cross_validation;
pub mod init;
pub mod memory;
mod next_step;
pub mod preflight;
pub mod prove;
pub mod rehearsal;
mod script;
mod start;
pub mod train;
