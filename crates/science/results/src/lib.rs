//! What science answers about data and models, as plain data: it is computed by `trackway-tables`, `trackway-data` and `trackway-evaluate`,
//! and is in the contract and in files as it is here.
//!
//! A type is here once, and nowhere with other fields: the crate that computes it gives it out by its own path too. Methods only read; what
//! needs a table or a profile is a function of the crate that has it. So a client of the contract, which
//! reads answers and computes none, needs no Arrow.

pub mod assessment;
pub mod clean;
pub mod drift;
pub mod failures;
pub mod integrity;
pub mod join;
pub mod media;
pub mod personal;
pub mod probes;
pub mod profile;
pub mod reading;
pub mod search;
pub mod snapshot;
pub mod spellings;
pub mod split;
