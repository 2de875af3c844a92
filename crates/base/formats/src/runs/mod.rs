//! Runs beside one another: the groups that are read together, and the queues that they wait in.

pub mod group;
pub mod queue;
