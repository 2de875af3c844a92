//! The expected cost of the checks, reported before they begin.

use serde::Serialize;

use super::plan::Planned;
use super::sets::{DataSets, SetQuote};
use crate::data::table::expected_seconds;

/// What is going to be read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quote {
    /// Bytes of all readings.
    pub bytes: u64,
    /// What that takes, about.
    pub seconds: f64,
    /// The data sets.
    pub sets: Vec<SetQuote>,
}

/// Adds up what the steps that will be done read.
pub fn quote(planned: &[Planned], sets: &DataSets) -> Quote {
    let readings: u64 =
        planned.iter().filter(|step| step.answered.is_none()).map(|step| step.spec.readings).sum();
    let sets = sets.quotes();
    let bytes = sets.iter().map(|set| set.size_bytes).sum::<u64>().saturating_mul(readings);
    Quote { bytes, seconds: expected_seconds(bytes), sets }
}
