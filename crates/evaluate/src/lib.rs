//! What the rows of an evaluation show, computed from them alone: no clock, no I/O but reading the table.
//!
//! A table in memory is a [`trackway_data::model::Frame`]; a number is an [`Estimate`], never without its interval.

mod estimate;
pub mod search;

pub use estimate::{Estimate, Method};
