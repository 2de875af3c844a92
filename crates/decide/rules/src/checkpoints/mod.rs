//! Decisions about checkpoints: how often to save, which one to go back to after a problem, and which one kills the process that
//! loads it.

pub mod cadence;
pub(crate) mod load_crash;
pub mod roll_back;
