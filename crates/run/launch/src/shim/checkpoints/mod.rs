//! Checkpoints while the script runs: what shows a save, who writes it, and its commit.

pub(super) mod adopting;
mod recorded;
mod saves;
pub(super) mod writers;
