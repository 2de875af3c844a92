//! The next attempt is put in place: its inputs, its variables, its container, and the checkpoint that it continues from.

pub(super) mod additions;
pub(super) mod adopted;
mod adopted_history;
pub(super) mod after_launch;
pub(super) mod attempt;
pub(super) mod container;
mod inputs;
pub(super) mod isolated;
mod load_crash;
pub(super) mod row;
pub(super) mod spec;
mod start_from;
pub(super) mod stored_capture;
pub mod variables;
