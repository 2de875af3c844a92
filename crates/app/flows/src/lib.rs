//! The use cases around a run in plain data: what is checked before it, what is evaluated, gated and registered after
//! it, and what keeps a home in order. It is independent of command lines and web requests, and never prints.

pub mod checkpoints;
pub mod data;
pub mod evaluation;
pub mod home;
pub mod markdown;
pub mod outputs;
pub mod query;
pub mod registry;
pub mod runs;
#[cfg(test)]
mod tests;
pub mod training;
