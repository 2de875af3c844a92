//! The next attempt is put in place: its inputs, its variables, its container, and the checkpoint that it continues from.

pub(super) mod adopted;
mod adopted_history;
pub(super) mod attempt;
pub(super) mod container;
mod inputs;
pub(super) mod isolated;
mod load_crash;
pub mod variables;
