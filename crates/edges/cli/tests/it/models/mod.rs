//! Checkpoints, here and at a remote, and the registry of models with its gates.

mod checkpoints;
pub(crate) mod registry;
mod remote;
