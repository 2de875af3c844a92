//! The commands under "Data and models" in the help: data sets, checkpoints, evaluations, gates and the registry.

pub mod checkpoint;
pub mod data;
pub mod eval;
pub mod gates;
pub mod registry;
