//! The expected cost of the checks, reported before they begin.

use trackway_api::runs::preflight::Quote;

use super::plan::PlannedStep;
use super::sets::DataSets;
use crate::data::table::expected_seconds;

/// Adds up what the steps that will be done read.
pub fn quote(planned: &[PlannedStep], sets: &DataSets) -> Quote {
    let readings: u64 =
        planned.iter().filter(|step| step.answered.is_none()).map(|step| step.spec.readings).sum();
    let sets = sets.quotes();
    let bytes = sets.iter().map(|set| set.size_bytes).sum::<u64>().saturating_mul(readings);
    Quote { bytes, seconds: expected_seconds(bytes), sets }
}
