//! The use cases around a run in plain data: what is checked before it, what is evaluated, gated and registered after
//! it, and what keeps a home in order. It is independent of command lines and web requests, and never prints.

pub mod amend;
pub mod amend_run;
pub mod assess;
pub mod baseline;
pub mod cadence;
pub mod checkpoints;
pub mod classify;
pub mod cross_validation;
pub mod data;
pub mod diagnose;
pub mod doctor;
pub mod evaluate;
pub mod export;
pub mod gates;
pub mod gc;
pub mod import;
pub mod init;
pub mod known_bad;
pub mod markdown;
pub mod memory;
pub mod model_pin;
mod next_step;
pub mod outputs;
pub mod preflight;
pub mod probe;
pub mod prove;
pub mod query;
pub mod rebuild;
pub mod reconcile;
pub mod registry;
pub mod rehearsal;
pub mod reproduce;
pub mod score;
mod scoring;
mod script;
pub mod slices;
mod start;
#[cfg(test)]
mod tests;
pub mod train;
pub mod verify;
